//! What statistics of files prove without reading rows: counts, nulls, bounds of exact types (issue: speed).
//! Only exact statistics are here at all; anything this module does not recognise is simply measured.

use crate::program::Slot;
use crate::world::{ColumnStatistics, Statistics};
use arrow::datatypes::Schema;
use comporta_rules::{Bound, Holds, Measure, MeasureValue};
use datafusion::logical_expr::{Expr, Operator};
use datafusion::scalar::ScalarValue;
use std::cmp::Ordering;

/// Unknown rows of a row check, if statistics prove that no row breaks it.
pub(crate) fn row_check(slot: &Slot, schema: &Schema, statistics: &Statistics) -> Option<u64> {
    if slot.bound.filter.is_some() || slot.check.attributes.nulls == comporta_contract::NullPolicy::Violate {
        return None;
    }
    let Ok(Bound::Row(row)) = &slot.bound.bound else {
        return None;
    };
    match &row.holds {
        Holds::Expr(expr) => holds_everywhere(expr, schema, statistics),
        _ => None,
    }
}

/// The value of a measure that statistics know.
pub(crate) fn measure(
    measure: &Measure,
    slot: &Slot,
    schema: &Schema,
    statistics: &Statistics,
) -> Option<MeasureValue> {
    if slot.bound.filter.is_some() || !slot.bound.group_by.is_empty() {
        return None;
    }
    let rows = statistics.rows?;
    match measure {
        Measure::Rows => Some(MeasureValue::Count(rows)),
        Measure::Matches(Expr::IsNull(inner)) => {
            let nulls = column(inner, schema, statistics)?.null_count?;
            Some(MeasureValue::Matches {
                matched: nulls,
                unknown: 0,
                rows,
            })
        }
        Measure::Extremes(expr) => {
            let known = column(expr, schema, statistics)?;
            let nulls = known.null_count?;
            if nulls == rows {
                return Some(MeasureValue::Extremes {
                    min: None,
                    max: None,
                    nan_count: 0,
                });
            }
            let (min, max) = (known.min.clone()?, known.max.clone()?);
            Some(MeasureValue::Extremes {
                min: Some(min),
                max: Some(max),
                nan_count: 0,
            })
        }
        _ => None,
    }
}

/// The number of nulls if the expression is TRUE on every other row.
fn holds_everywhere(expr: &Expr, schema: &Schema, statistics: &Statistics) -> Option<u64> {
    match expr {
        Expr::IsNotNull(inner) => (column(inner, schema, statistics)?.null_count? == 0).then_some(0),
        Expr::BinaryExpr(binary) if binary.op == Operator::And => {
            let left = holds_everywhere(&binary.left, schema, statistics)?;
            let right = holds_everywhere(&binary.right, schema, statistics)?;
            // Two comparisons of one column are unknown on the same rows.
            let same = columns_of(&binary.left) == columns_of(&binary.right);
            (same || (left == 0 && right == 0)).then_some(left.max(right))
        }
        Expr::BinaryExpr(binary) => {
            let Expr::Literal(bound, _) = binary.right.as_ref() else {
                return None;
            };
            let known = column(&binary.left, schema, statistics)?;
            let nulls = known.null_count?;
            if statistics.rows == Some(nulls) {
                return Some(nulls);
            }
            let (min, max) = (known.min.as_ref()?, known.max.as_ref()?);
            compares(binary.op, min, max, bound)?.then_some(nulls)
        }
        _ => None,
    }
}

/// Whether every value between `min` and `max` compares so with the bound.
fn compares(operator: Operator, min: &ScalarValue, max: &ScalarValue, bound: &ScalarValue) -> Option<bool> {
    let min = min.partial_cmp(bound)?;
    let max = max.partial_cmp(bound)?;
    Some(match operator {
        Operator::GtEq => min != Ordering::Less,
        Operator::Gt => min == Ordering::Greater,
        Operator::LtEq => max != Ordering::Greater,
        Operator::Lt => max == Ordering::Less,
        Operator::Eq => min == Ordering::Equal && max == Ordering::Equal,
        Operator::NotEq => min == Ordering::Greater || max == Ordering::Less,
        _ => return None,
    })
}

fn columns_of(expr: &Expr) -> Vec<String> {
    let mut names: Vec<String> = expr
        .column_refs()
        .into_iter()
        .map(|column| column.name.clone())
        .collect();
    names.sort();
    names
}

fn column<'a>(expr: &Expr, schema: &Schema, statistics: &'a Statistics) -> Option<&'a ColumnStatistics> {
    let Expr::Column(column) = expr else { return None };
    statistics.columns.get(&schema.index_of(&column.name).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use datafusion::prelude::{col, lit};

    fn proves(expr: Expr) -> Option<u64> {
        let schema = Schema::new(vec![
            Field::new("x", DataType::Int64, true),
            Field::new("y", DataType::Int64, true),
        ]);
        let known = |nulls, min: i64, max: i64| ColumnStatistics {
            null_count: Some(nulls),
            min: Some(min.into()),
            max: Some(max.into()),
        };
        let columns = [(0, known(0, 1, 9)), (1, known(3, -1, 5))].into_iter().collect();
        holds_everywhere(
            &expr,
            &schema,
            &Statistics {
                rows: Some(10),
                columns,
            },
        )
    }

    #[test]
    fn only_what_is_certain_is_proved() {
        assert_eq!(proves(col("x").is_not_null()), Some(0));
        assert_eq!(proves(col("y").is_not_null()), None);
        assert_eq!(proves(col("x").gt_eq(lit(1i64))), Some(0));
        assert_eq!(proves(col("x").gt(lit(1i64))), None);
        assert_eq!(proves(col("y").lt_eq(lit(5i64))), Some(3));
        assert_eq!(
            proves(col("y").gt_eq(lit(-1i64)).and(col("y").lt_eq(lit(5i64)))),
            Some(3)
        );
        assert_eq!(proves(col("x").gt_eq(lit(1i64)).and(col("y").lt_eq(lit(5i64)))), None);
        assert_eq!(proves((col("x") + lit(1i64)).gt_eq(lit(1i64))), None);
    }
}
