//! The report as a table: one row per check (design §6).

use crate::error::Result;
use arrow::array::{
    ArrayRef, BooleanArray, Float64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, Utc};
use comporta_contract::Outcome;
use comporta_contract::report::{CheckReport, Report};
use std::sync::Arc;

/// The columns of the report table.
pub(crate) fn schema() -> SchemaRef {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let mut fields: Vec<Field> = [
        "run_id",
        "pipeline",
        "unit",
        "layer",
        "contract_version",
        "rules_digest",
        "decision",
        "rule_type",
        "check_id",
        "check_name",
        "columns",
        "dimension",
        "severity",
        "outcome",
        "effect",
    ]
    .map(text)
    .to_vec();
    fields.push(Field::new("passed", DataType::Boolean, true));
    fields.push(Field::new("evaluated", DataType::UInt64, true));
    fields.push(Field::new("failed_count", DataType::UInt64, true));
    fields.push(Field::new("unknown_count", DataType::UInt64, true));
    fields.push(Field::new("metric_value", DataType::Float64, true));
    fields.push(text("metric_text"));
    fields.push(text("threshold"));
    fields.push(text("message"));
    fields.push(Field::new("rows_read", DataType::UInt64, true));
    fields.push(Field::new(
        "validated_at",
        DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        true,
    ));
    Arc::new(Schema::new(fields))
}

/// The rows of a report.
///
/// # Errors
/// Never for a report of ours.
pub(crate) fn rows(report: &Report, now: DateTime<Utc>) -> Result<RecordBatch> {
    let checks = &report.checks;
    let each = |value: &dyn Fn(&CheckReport) -> Option<String>| -> ArrayRef {
        Arc::new(checks.iter().map(value).collect::<StringArray>())
    };
    let count = |value: &dyn Fn(&CheckReport) -> u64| -> ArrayRef {
        Arc::new(checks.iter().map(|check| Some(value(check))).collect::<UInt64Array>())
    };
    let same = |value: Option<&str>| each(&|_| value.map(str::to_string));
    let columns: Vec<ArrayRef> = vec![
        same(Some(&report.run_id)),
        same(Some(&report.pipeline)),
        same(report.unit.as_deref()),
        same(report.layer.as_deref()),
        same(report.contract.as_ref().map(|contract| contract.version.as_str())),
        same(Some(&report.rules_digest)),
        same(Some(report.decision.as_str())),
        each(&|check| Some(check.rule.clone())),
        each(&|check| Some(check.id.clone())),
        each(&|check| Some(check.name.clone())),
        each(&|check| Some(check.columns.join(", "))),
        each(&|check| Some(check.dimension.to_string())),
        each(&|check| Some(check.severity.to_string())),
        each(&|check| Some(check.outcome.to_string())),
        each(&|check| Some(check.effect.to_string())),
        Arc::new(
            checks
                .iter()
                .map(|check| Some(matches!(check.outcome, Outcome::Pass | Outcome::Warn)))
                .collect::<BooleanArray>(),
        ),
        count(&|check| check.evaluated),
        count(&|check| check.failed_count),
        count(&|check| check.unknown_count),
        Arc::new(
            checks
                .iter()
                .map(|check| check.metric_value.as_f64())
                .collect::<Float64Array>(),
        ),
        each(&|check| check.metric_value.as_str().map(str::to_string)),
        each(&|check| check.threshold.clone()),
        each(&|check| Some(check.message.clone())),
        count(&|_| report.rows.read),
        Arc::new(TimestampMicrosecondArray::from(vec![now.timestamp_micros(); checks.len()]).with_timezone("UTC")),
    ];
    Ok(RecordBatch::try_new(schema(), columns)?)
}
