//! `avg`

use crate::measure::{Measure, MeasureValue, Moments};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::{shapes, statistics};
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, NanPolicy, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// The average of a column of numbers keeps to a threshold.
///
/// It is the exact sum divided by the number of values; nulls are left out, and so is NaN, which
/// `details.nan_count` counts and `nan: fail` refuses. An average of no values is `no_data`.
///
/// ## Why it matters
/// A change of unit or currency upstream passes every check of single values and moves the average.
///
/// ## Example
/// ```yaml
/// - avg: price
///   must_be: between 10 and 20
/// ```
///
/// ## Holds
/// | price |
/// |-------|
/// | 5     |
/// | 15    |
/// | null  |
/// | 25    |
///
/// ## Broken
/// | price |
/// |-------|
/// | 500   |
/// | 1500  |
/// | null  |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct AvgParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Avg {
    column: String,
}

impl RuleDefinition for Avg {
    const NAME: &'static str = "avg";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Number);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| Avg { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        AvgParameters::json_schema(generator)
    }
}

impl Rule for Avg {
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
        let column = statistics::numeric_column(scope, &self.column, Self::NAME)?;
        let nan = scope.nan;
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Moments(column.expr)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Moments(moments)] => judge(&column.name, moments, nan),
                other => Finding::unexpected(other),
            }),
        }))
    }
}

fn judge(column: &str, moments: &Moments, nan: Option<NanPolicy>) -> Finding {
    let finding = match statistics::average(moments) {
        None => statistics::no_data(column),
        Some(average) => Finding {
            message: format!("the average of `{column}` is {average}"),
            metric: Some(average),
            ..Finding::default()
        },
    };
    statistics::with_nan(finding, column, moments.nan_count, nan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bigdecimal::BigDecimal;
    use comporta_contract::threshold::Metric;

    fn moments(count: u64, sum: i64) -> Moments {
        Moments {
            count,
            sum: BigDecimal::from(sum),
            ..Moments::default()
        }
    }

    #[test]
    fn the_average_divides_the_exact_sum() {
        let finding = judge("x", &moments(4, 10), None);
        assert_eq!(finding.metric, Some(Metric::Number("2.5".parse().unwrap())));
        let third = judge("x", &moments(3, 1), None);
        assert_eq!(
            third.metric,
            Some(Metric::Number("0.333333333333333333333333333333".parse().unwrap()))
        );
        assert_eq!(third.message, "the average of `x` is 0.333333");
    }

    #[test]
    fn an_average_of_nothing_is_no_data() {
        let finding = judge("x", &moments(0, 0), None);
        assert_eq!((finding.metric, finding.broken, finding.error), (None, None, None));
    }

    #[test]
    fn nan_is_counted_and_refused_only_on_demand() {
        let with_nan = Moments {
            nan_count: 2,
            ..moments(1, 1)
        };
        let counted = judge("x", &with_nan, None);
        assert_eq!((counted.broken, &counted.details["nan_count"]), (None, &json!(2)));
        let refused = judge("x", &with_nan, Some(NanPolicy::Fail));
        assert_eq!((refused.broken, refused.failed_count), (Some(true), 2));
    }

    #[test]
    fn infinite_values_make_the_average_infinite() {
        let up = Moments {
            infinite: (1, 0),
            binary: true,
            ..moments(2, 1)
        };
        assert_eq!(judge("x", &up, None).metric, Some(Metric::Float(f64::INFINITY)));
    }
}
