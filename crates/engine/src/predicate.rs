//! Boolean expressions over chunks: compiled once, evaluated per chunk into bits of broken and unknown rows.

use crate::error::{Error, Result};
use arrow::array::{Array, AsArray, BooleanArray, RecordBatch};
use arrow::buffer::{BooleanBuffer, MutableBuffer};
use arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ToDFSchema};
use datafusion::logical_expr::execution_props::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{ColumnarValue, Expr, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use std::sync::Arc;

/// Compiles an expression against a schema. Integer arithmetic does not wrap (S22): an overflow is an error of
/// the row it happens on.
///
/// # Errors
/// Types do not fit.
pub(crate) fn compile(expr: &Expr, schema: &SchemaRef) -> Result<Arc<dyn PhysicalExpr>> {
    let df_schema: Arc<DFSchema> = Arc::new(schema.as_ref().clone().to_dfschema()?);
    let context = SimplifyContext::builder().with_schema(df_schema.clone()).build();
    let simplifier = ExprSimplifier::new(context);
    let coerced = simplifier.coerce(expr.clone(), &df_schema)?;
    // Constants are folded once instead of once per chunk; what cannot be folded is evaluated as it stands.
    let folded = simplifier.simplify(coerced.clone()).unwrap_or(coerced);
    let physical = create_physical_expr(
        &folded,
        &df_schema,
        &ExecutionProps::new(),
        &PhysicalPlanningContext::default(),
    )?;
    let checked = physical.transform_up(|node| {
        let Some(binary) = node.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(node));
        };
        let arithmetic = matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply);
        if !arithmetic {
            return Ok(Transformed::no(node));
        }
        let checked = BinaryExpr::new(binary.left().clone(), *binary.op(), binary.right().clone());
        Ok(Transformed::yes(
            Arc::new(checked.with_fail_on_overflow(true)) as Arc<dyn PhysicalExpr>
        ))
    })?;
    Ok(checked.data)
}

/// What an expression says of the rows of a chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Truth {
    /// FALSE, or could not be computed; `None` if no row is.
    pub(crate) broken: Option<BooleanBuffer>,
    /// NULL; `None` if no row is.
    pub(crate) unknown: Option<BooleanBuffer>,
    /// Why a row could not be computed, of the first such row.
    pub(crate) fault: Option<String>,
}

/// Evaluates a boolean expression: FALSE rows are broken, NULL rows unknown. A row on which it cannot be
/// computed is broken (S22); only then are rows looked at one by one, by halves.
pub(crate) fn evaluate(expr: &dyn PhysicalExpr, batch: &RecordBatch) -> Result<Truth> {
    match try_evaluate(expr, batch) {
        Ok(values) => Ok(truth(&values)),
        Err(error) if batch.num_rows() <= 1 => {
            let broken = (batch.num_rows() == 1).then(|| BooleanBuffer::new_set(1));
            Ok(Truth {
                broken,
                unknown: None,
                fault: Some(comporta_rules::sql::plain(&error.to_string())),
            })
        }
        Err(_) => {
            let half = batch.num_rows() / 2;
            let first = evaluate(expr, &batch.slice(0, half))?;
            let second = evaluate(expr, &batch.slice(half, batch.num_rows() - half))?;
            Ok(Truth {
                broken: joined(first.broken, half, second.broken, batch.num_rows() - half),
                unknown: joined(first.unknown, half, second.unknown, batch.num_rows() - half),
                fault: first.fault.or(second.fault),
            })
        }
    }
}

/// Rows on which an expression is TRUE; `None` stands for all of them.
pub(crate) fn selected(expr: &dyn PhysicalExpr, batch: &RecordBatch) -> Result<Option<BooleanBuffer>> {
    let truth = evaluate(expr, batch)?;
    Ok(or(truth.broken, truth.unknown).map(|out| !&out))
}

fn try_evaluate(
    expr: &dyn PhysicalExpr,
    batch: &RecordBatch,
) -> Result<BooleanArray, datafusion::error::DataFusionError> {
    let values = match expr.evaluate(batch)? {
        ColumnarValue::Array(values) => values,
        scalar => scalar.into_array(batch.num_rows())?,
    };
    match values.data_type() {
        DataType::Boolean => Ok(values.as_boolean().clone()),
        DataType::Null => Ok(BooleanArray::new_null(batch.num_rows())),
        other => Err(datafusion::error::DataFusionError::Internal(format!(
            "a predicate gave {other}"
        ))),
    }
}

fn truth(values: &BooleanArray) -> Truth {
    let unknown = values
        .nulls()
        .filter(|nulls| nulls.null_count() > 0)
        .map(|nulls| !nulls.inner());
    let truths = values.values();
    let false_or_null = values.len() - truths.count_set_bits();
    let broken = match &unknown {
        _ if false_or_null == 0 && unknown.is_none() => None,
        None => Some(!truths),
        Some(unknown) => {
            let broken = &(!truths) & &(!unknown);
            (broken.count_set_bits() > 0).then_some(broken)
        }
    };
    Truth {
        broken,
        unknown,
        fault: None,
    }
}

fn joined(
    first: Option<BooleanBuffer>,
    first_rows: usize,
    second: Option<BooleanBuffer>,
    second_rows: usize,
) -> Option<BooleanBuffer> {
    if first.is_none() && second.is_none() {
        return None;
    }
    let first = first.unwrap_or_else(|| BooleanBuffer::new_unset(first_rows));
    let second = second.unwrap_or_else(|| BooleanBuffer::new_unset(second_rows));
    let bits = MutableBuffer::collect_bool(first_rows + second_rows, |at| match at < first_rows {
        true => first.value(at),
        false => second.value(at - first_rows),
    });
    Some(BooleanBuffer::new(bits.into(), 0, first_rows + second_rows))
}

/// The rows of either.
pub(crate) fn or(left: Option<BooleanBuffer>, right: Option<BooleanBuffer>) -> Option<BooleanBuffer> {
    match (left, right) {
        (Some(left), Some(right)) => Some(&left | &right),
        (one, other) => one.or(other),
    }
}

/// The rows of the first that the second has too; `None` as the second stands for all.
pub(crate) fn within(rows: Option<BooleanBuffer>, scope: Option<&BooleanBuffer>) -> Option<BooleanBuffer> {
    let rows = match (rows, scope) {
        (Some(rows), Some(scope)) => &rows & scope,
        (rows, _) => rows?,
    };
    (rows.count_set_bits() > 0).then_some(rows)
}

/// The rows of the first that the second has not.
pub(crate) fn without(rows: Option<BooleanBuffer>, out: Option<&BooleanBuffer>) -> Option<BooleanBuffer> {
    let rows = match (rows, out) {
        (Some(rows), Some(out)) => &rows & &(!out),
        (rows, _) => rows?,
    };
    (rows.count_set_bits() > 0).then_some(rows)
}

/// Evaluates expressions to arrays, for keys and measures.
pub(crate) fn values(expr: &dyn PhysicalExpr, batch: &RecordBatch) -> Result<arrow::array::ArrayRef> {
    let value = expr.evaluate(batch).map_err(Error::from)?;
    Ok(value.into_array(batch.num_rows())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Date32Array, Decimal128Array, Float64Array, Int64Array, TimestampMicrosecondArray};
    use comporta_contract::rules_file::NoIncludes;
    use comporta_contract::{Diagnostics, RulesFile, Severity, Text};
    use comporta_rules::check::Surroundings;
    use comporta_rules::{Bound, Check, Documents, Holds};

    fn batch() -> RecordBatch {
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "n",
                Arc::new(Int64Array::from(vec![
                    Some(9_007_199_254_740_993),
                    Some(0),
                    None,
                    Some(i64::MAX),
                ])),
            ),
            (
                "x",
                Arc::new(Float64Array::from(vec![
                    9_007_199_254_740_992.0,
                    -0.0,
                    f64::NAN,
                    f64::NAN,
                ])),
            ),
            (
                "d",
                Arc::new(
                    Decimal128Array::from(vec![1999, 0, 1, 2])
                        .with_precision_and_scale(10, 2)
                        .unwrap(),
                ),
            ),
            ("day", Arc::new(Date32Array::from(vec![20_455; 4]))),
            (
                "at",
                Arc::new(TimestampMicrosecondArray::from(vec![
                    Some(1_767_312_000_000_000),
                    Some(1_767_311_999_999_999),
                    None,
                    Some(0),
                ])),
            ),
        ];
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, values)| (name, values, true)))
            .unwrap()
    }

    /// One sign per row: `+` holds, `-` is broken, `?` is unknown.
    fn signs(rule: &str) -> String {
        signs_in(chrono_tz::Tz::UTC, rule)
    }

    fn signs_in(timezone: chrono_tz::Tz, rule: &str) -> String {
        let (batch, mut diagnostics) = (batch(), Diagnostics::default());
        let text = Text::new("rules.yml", format!("- {rule}"));
        let file = RulesFile::parse(&text, &comporta_rules::names(), &NoIncludes, &mut diagnostics);
        let checks = Check::resolve(
            &file.rules[0],
            Severity::Fail,
            &Documents::from(&file),
            &mut diagnostics,
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let surroundings = Surroundings {
            timezone,
            now: chrono::DateTime::from_timestamp(1_767_312_000, 0).unwrap(),
            future_tolerance_seconds: 300,
            tables: Default::default(),
        };
        let bound = checks[0].bind(&batch.schema(), &surroundings).bound.unwrap();
        let Bound::Row(check) = bound else {
            panic!("{rule} judges no rows")
        };
        let Holds::Expr(holds) = check.holds else {
            panic!("{rule} is no expression")
        };
        let truth = evaluate(compile(&holds, &batch.schema()).unwrap().as_ref(), &batch).unwrap();
        let is = |bits: &Option<BooleanBuffer>, row| bits.as_ref().is_some_and(|bits| bits.value(row));
        (0..batch.num_rows())
            .map(|row| match (is(&truth.broken, row), is(&truth.unknown, row)) {
                (true, _) => '-',
                (_, true) => '?',
                _ => '+',
            })
            .collect()
    }

    #[test]
    fn columns_are_compared_by_value_and_nan_satisfies_nothing() {
        assert_eq!(signs("compare: { left: n, operator: '>', right: x }"), "+-?-");
        assert_eq!(signs("compare: { left: n, operator: '!=', right: x }"), "+-?-");
        assert_eq!(
            signs("compare: { left: x, operator: '!=', right: { value: 1 } }"),
            "++--"
        );
        assert_eq!(signs("event_order: [day, at]"), "+-?-");
        assert_eq!(signs("event_order: { columns: [day, at], strict: true }"), "--?-");
        assert_eq!(signs("sum_of: { column: n, columns: [x] }"), "++?-");
        assert_eq!(signs("sum_of: { column: d, columns: [n] }"), "-+?-");
    }

    #[test]
    fn there_is_one_zero_and_expressions_read_the_clock_of_the_run() {
        assert_eq!(signs("range: { column: x, min: 0 }"), "++--");
        assert_eq!(
            signs("compare: { left: x, operator: '<', right: { value: 0 } }"),
            "----"
        );
        assert_eq!(signs("expression: x >= 0"), "++++");
        assert_eq!(signs("expression: x = 0 or x > 1"), "++++");
        assert_eq!(signs("expression: at < now()"), "-+?+");
        let three_hours_behind = chrono_tz::Tz::America__Sao_Paulo;
        assert_eq!(signs_in(three_hours_behind, "expression: at < now()"), "--?+");
        assert_eq!(signs("expression: day = current_date and d between 0 and 0.02"), "-+++");
    }

    #[test]
    fn a_row_on_which_an_expression_cannot_be_computed_breaks_it() {
        assert_eq!(signs("expression: n + 1 > 0"), "++?-");
        assert_eq!(signs("expression: 10 / n > 0"), "--?-");
        assert_eq!(
            signs("sql: { failed_rows: SELECT * FROM batch b WHERE b.N > 5 }"),
            "-+?-"
        );
    }
}
