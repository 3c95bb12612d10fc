//! `freshness`

use crate::literals::{type_name, value_type};
use crate::measure::{Measure, MeasureValue};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::{shapes, statistics};
use arrow::datatypes::DataType;
use bigdecimal::BigDecimal;
use chrono_tz::Tz;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::{Metric, MetricKind, duration_text};
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use datafusion_common::ScalarValue;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// The newest value of a date or timestamp column is not older than a threshold.
///
/// The age is the run's clock (`--now` sets it) less the newest value. A date counts as the start of its day,
/// and timestamps without zone are read, in the document's `timezone`, which `details.assumed_timezone` then
/// names. A newest value further in the future than `future_tolerance` (5 minutes) breaks the check whatever
/// its threshold. Without values it is `no_data`. Name the column of the moment you mean: when it happened,
/// when it was loaded, or when it was changed.
///
/// ## Why it matters
/// A feed that stopped looks like a quiet day, until somebody asks.
///
/// ## Example
/// ```yaml
/// - freshness: updated_at
///   must_be: "< 1d"
/// ```
///
/// ## Holds
/// | updated_at           |
/// |----------------------|
/// | 2025-12-24T08:00:00Z |
/// | 2026-01-01T12:00:00Z |
/// | null                 |
///
/// ## Broken
/// | updated_at           |
/// |----------------------|
/// | 2025-12-24T08:00:00Z |
/// | 2025-12-31T12:00:00Z |
/// | null                 |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct FreshnessParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Freshness {
    column: String,
}

impl RuleDefinition for Freshness {
    const NAME: &'static str = "freshness";
    const FAMILY: Family = Family::Time;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Timeliness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Duration);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| Freshness { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        FreshnessParameters::json_schema(generator)
    }
}

impl Rule for Freshness {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let data_type = value_type(&column.data_type);
        let dates = matches!(data_type, DataType::Date32 | DataType::Date64);
        if !dates && !matches!(data_type, DataType::Timestamp(..) | DataType::Null) {
            return Err(BindError::new(format!(
                "`freshness` is for dates and timestamps, column `{}` is {}",
                column.name,
                type_name(data_type)
            ))
            .hint("give its type and form under `source: schema:` and `timestamp_format:`"));
        }
        let age = Age {
            assumed_zone: statistics::is_local(data_type),
            column: column.name,
            timezone: scope.timezone,
            now: statistics::nanoseconds(scope.now),
            future_tolerance_seconds: scope.future_tolerance_seconds,
        };
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Extremes(column.expr)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Extremes { max, .. }] => age.judge(max.as_ref()),
                other => Finding::unexpected(other),
            }),
        }))
    }
}

struct Age {
    column: String,
    timezone: Tz,
    now: i128,
    future_tolerance_seconds: u64,
    assumed_zone: bool,
}

impl Age {
    fn judge(&self, newest: Option<&ScalarValue>) -> Finding {
        let Some(newest) = newest else {
            return statistics::no_data(&self.column);
        };
        let Some((nanos, text)) = statistics::instant(newest, self.timezone) else {
            return Finding::error(format!("`{}`: {newest} is out of the range of dates", self.column));
        };
        let seconds = |nanos: i128| BigDecimal::new(nanos.into(), 9).normalized();
        let age = self.now - nanos;
        let future = age < 0 && -age > i128::from(self.future_tolerance_seconds) * 1_000_000_000;
        let message = match future {
            false => format!(
                "the newest `{}` is {} old, of {text}",
                self.column,
                duration_text(&seconds(age))
            ),
            true => format!(
                "the newest `{}` is {} in the future, of {text}; {} are tolerated",
                self.column,
                duration_text(&seconds(-age)),
                duration_text(&BigDecimal::from(self.future_tolerance_seconds))
            ),
        };
        let mut finding = Finding {
            metric: Some(Metric::Seconds(seconds(age))),
            broken: future.then_some(true),
            failed_count: u64::from(future),
            message,
            ..Finding::default()
        };
        finding.details.insert("newest".into(), text.into());
        if self.assumed_zone {
            finding
                .details
                .insert("assumed_timezone".into(), self.timezone.name().into());
        }
        finding
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i128 = 1_767_312_000_000_000_000;

    fn judge(value: Option<ScalarValue>, timezone: Tz) -> Finding {
        let age = Age {
            column: "at".into(),
            timezone,
            now: NOW,
            future_tolerance_seconds: 300,
            assumed_zone: true,
        };
        age.judge(value.as_ref())
    }

    fn seconds_ago(seconds: i64) -> Option<ScalarValue> {
        Some(ScalarValue::TimestampSecond(Some(1_767_312_000 - seconds), None))
    }

    fn age(finding: &Finding) -> Option<i64> {
        match finding.metric.as_ref()? {
            Metric::Seconds(seconds) => bigdecimal::ToPrimitive::to_i64(seconds),
            _ => None,
        }
    }

    #[test]
    fn the_age_is_now_less_the_newest_value() {
        let finding = judge(seconds_ago(7_200), Tz::UTC);
        assert_eq!((age(&finding), finding.broken), (Some(7_200), None));
        assert_eq!(finding.message, "the newest `at` is 2h old, of 2026-01-01T22:00:00");
        assert_eq!(finding.details["assumed_timezone"], "UTC");
    }

    #[test]
    fn local_values_are_read_in_the_zone_of_the_document() {
        assert_eq!(age(&judge(seconds_ago(10_800), Tz::America__Sao_Paulo)), Some(0));
        let day = Some(ScalarValue::Date32(Some(20_454)));
        assert_eq!(age(&judge(day.clone(), Tz::UTC)), Some(86_400));
        assert_eq!(age(&judge(day, Tz::America__Sao_Paulo)), Some(75_600));
    }

    #[test]
    fn a_value_from_the_future_is_no_fresh_value() {
        let near = judge(seconds_ago(-300), Tz::UTC);
        assert_eq!((age(&near), near.broken), (Some(-300), None));
        let far = judge(seconds_ago(-301), Tz::UTC);
        assert_eq!((far.broken, far.failed_count), (Some(true), 1));
        assert!(
            far.message.contains("5m in the future") && far.message.contains("5m are tolerated"),
            "{}",
            far.message
        );
    }

    #[test]
    fn no_value_is_no_data() {
        let finding = judge(None, Tz::UTC);
        assert_eq!((finding.metric, finding.broken), (None, None));
    }
}
