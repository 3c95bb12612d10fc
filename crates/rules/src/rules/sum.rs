//! `sum`

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

/// The sum of a column of numbers keeps to a threshold.
///
/// The sum of integers and decimals is exact, however large: up to 76 digits, beyond that it is an error and
/// never a wrapped number. Nulls and NaN are left out; `nan: fail` refuses NaN. A sum of no values is `no_data`.
///
/// ## Why it matters
/// A ledger that does not add up to what was sent has lost or doubled a row somewhere.
///
/// ## Example
/// ```yaml
/// - sum: amount
///   must_be: "= 0"
/// ```
///
/// ## Holds
/// | amount |
/// |--------|
/// | 10.10  |
/// | -10.10 |
/// | null   |
///
/// ## Broken
/// | amount |
/// |--------|
/// | 10.10  |
/// | -10.00 |
/// | null   |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct SumParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Sum {
    column: String,
}

impl RuleDefinition for Sum {
    const NAME: &'static str = "sum";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Number);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| Sum { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        SumParameters::json_schema(generator)
    }
}

impl Rule for Sum {
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
    let finding = match statistics::sum(moments) {
        Err(why) => return Finding::error(format!("`{column}`: {why}")),
        Ok(None) => statistics::no_data(column),
        Ok(Some(sum)) => Finding {
            message: format!("the sum of `{column}` is {sum}"),
            metric: Some(sum),
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

    fn moments(sum: &str) -> Moments {
        Moments {
            count: 3,
            sum: sum.parse().unwrap(),
            ..Moments::default()
        }
    }

    #[test]
    fn the_sum_is_exact_beyond_a_double() {
        let finding = judge("x", &moments("9223372036854775808.01"), None);
        let exact: BigDecimal = "9223372036854775808.01".parse().unwrap();
        assert_eq!(finding.metric, Some(Metric::Number(exact)));
    }

    #[test]
    fn a_sum_without_room_is_an_error_and_no_number() {
        let finding = judge("x", &moments(&"9".repeat(77)), None);
        assert!(finding.error.unwrap().contains("76 digits"));
        assert_eq!(judge("x", &moments(&"9".repeat(76)), None).error, None);
    }

    #[test]
    fn a_sum_of_nothing_is_no_data() {
        assert_eq!(judge("x", &Moments::default(), None).metric, None);
    }

    #[test]
    fn infinities_of_both_signs_have_no_sum() {
        let both = Moments {
            infinite: (1, 1),
            binary: true,
            ..moments("0")
        };
        assert!(matches!(judge("x", &both, None).metric, Some(Metric::Float(sum)) if sum.is_nan()));
    }
}
