//! `stddev`

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

/// The sample standard deviation of a column of numbers keeps to a threshold.
///
/// It is computed from exact sums, with n − 1 below the line. Nulls and NaN are left out; `nan: fail` refuses
/// NaN. Fewer than two values are `no_data`.
///
/// ## Why it matters
/// A sensor that is stuck gives values that are all valid and all the same.
///
/// ## Example
/// ```yaml
/// - stddev: temperature
///   must_be: "> 0.5"
/// ```
///
/// ## Holds
/// | temperature |
/// |-------------|
/// | 18.5        |
/// | 21          |
/// | null        |
/// | 23.5        |
///
/// ## Broken
/// | temperature |
/// |-------------|
/// | 21          |
/// | 21          |
/// | null        |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct StddevParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Stddev {
    column: String,
}

impl RuleDefinition for Stddev {
    const NAME: &'static str = "stddev";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Number);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| Stddev { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        StddevParameters::json_schema(generator)
    }
}

impl Rule for Stddev {
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
    let finding = match statistics::deviation(moments) {
        None => Finding {
            message: format!("`{column}` has fewer than two values"),
            ..Finding::default()
        },
        Some(deviation) => Finding {
            message: format!("the standard deviation of `{column}` is {deviation}"),
            metric: Some(deviation),
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

    fn moments(values: &[i64]) -> Moments {
        Moments {
            count: values.len() as u64,
            sum: values.iter().map(|v| BigDecimal::from(*v)).sum(),
            sum_squares: values.iter().map(|v| BigDecimal::from(v * v)).sum(),
            ..Moments::default()
        }
    }

    #[test]
    fn it_is_that_of_a_sample() {
        let finding = judge("x", &moments(&[2, 4, 4, 4, 5, 5, 7, 9]), None);
        let Some(Metric::Number(found)) = finding.metric else {
            panic!("{finding:?}")
        };
        assert_eq!(found.with_scale(12).to_string(), "2.138089935299");
    }

    #[test]
    fn close_values_far_from_zero_do_not_cancel_out() {
        let far = 1_000_000_000;
        let finding = judge("x", &moments(&[far, far + 1, far + 2]), None);
        assert_eq!(finding.metric, Some(Metric::Number(BigDecimal::from(1))));
    }

    #[test]
    fn one_value_has_none_and_equal_values_have_zero() {
        assert_eq!(judge("x", &moments(&[3]), None).metric, None);
        assert_eq!(
            judge("x", &moments(&[3, 3]), None).metric,
            Some(Metric::Number(BigDecimal::from(0)))
        );
    }
}
