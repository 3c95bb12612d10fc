//! `outliers`

use crate::measure::{Measure, MeasureValue, Moments, Ranked};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::{shapes, statistics};
use bigdecimal::BigDecimal;
use comporta_contract::literal::number_to_json;
use comporta_contract::threshold::{Metric, MetricKind};
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Few values lie far from the others, none unless a threshold allows some.
///
/// With the method `iqr`, far means more than `factor` times the distance between the quartiles below the
/// first or above the third of them (factor 1.5, after Tukey). With `zscore`, far means more than `factor`
/// sample standard deviations from the average (factor 3). `must_be` and `warn` count the rows, or their share
/// with `%`; without `must_be` it is `= 0`. `details` gives the bounds. Nulls and NaN are left out; `nan: fail`
/// refuses NaN.
///
/// ## Why it matters
/// A price with the point in the wrong place is a valid price; only its neighbours give it away.
///
/// ## Example
/// ```yaml
/// - outliers: { column: price, method: iqr }
/// ```
///
/// ## Holds
/// | price |
/// |-------|
/// | 10    |
/// | 11    |
/// | 12    |
/// | null  |
/// | 13    |
/// | 14    |
///
/// ## Broken
/// | price |
/// |-------|
/// | 10    |
/// | 11    |
/// | 12    |
/// | null  |
/// | 13    |
/// | 1400  |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Outliers {
    /// The column.
    column: String,
    /// How far is measured. Default: `iqr`.
    #[serde(default)]
    method: Method,
    /// How far is too far. Default: 1.5 for `iqr`, 3 for `zscore`.
    #[schemars(with = "Option<f64>")]
    factor: Option<Literal>,
}

/// How far is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// In distances between the quartiles.
    #[default]
    Iqr,
    /// In standard deviations.
    Zscore,
}

impl RuleDefinition for Outliers {
    const NAME: &'static str = "outliers";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Rows);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(rule) = shapes::parameters::<Outliers>(node, diagnostics) else {
            return Vec::new();
        };
        let positive = |factor: &Literal| matches!(factor, Literal::Number(n) if *n > BigDecimal::from(0));
        if let Some(factor) = rule.factor.as_ref().filter(|factor| !positive(factor)) {
            let place = node.get("factor").unwrap_or(node);
            diagnostics.push(
                place
                    .error("outliers-factor", format!("`factor` is a number above 0, not {factor}"))
                    .why("it says how many quartile distances or standard deviations are too far"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <Outliers as JsonSchema>::json_schema(generator)
    }
}

impl Outliers {
    fn factor(&self) -> BigDecimal {
        match (&self.factor, self.method) {
            (Some(Literal::Number(factor)), _) => factor.clone(),
            (_, Method::Iqr) => BigDecimal::new(15.into(), 1),
            (_, Method::Zscore) => BigDecimal::from(3),
        }
    }

    /// The values between which everything is near; `None` without values enough.
    fn bounds(&self, ranked: &dyn Ranked, moments: Option<&Moments>) -> Option<(BigDecimal, BigDecimal)> {
        let (low, high, reach) = match self.method {
            Method::Iqr => {
                let quartile = |hundredths: i64| statistics::quantile(ranked, &BigDecimal::new(hundredths.into(), 2));
                let (first, third) = (quartile(25)?, quartile(75)?);
                let distance = &third - &first;
                (first, third, distance)
            }
            Method::Zscore => {
                let moments = moments.filter(|moments| moments.count > 1)?;
                let mean = statistics::mean(moments);
                (mean.clone(), mean, statistics::exact_deviation(moments)?)
            }
        };
        let reach = reach * self.factor();
        Some((low - &reach, high + reach))
    }

    fn judge(&self, column: &str, rows: u64, ranked: &dyn Ranked, moments: Option<&Moments>) -> Finding {
        let Some((low, high)) = self.bounds(ranked, moments) else {
            return Finding {
                message: format!("`{column}` has too few values to say which lie far out"),
                ..Finding::default()
            };
        };
        let outside = ranked.count_outside(&low, &high);
        let (low, high) = (low.round(6).normalized(), high.round(6).normalized());
        let lie = if outside == 1 { "value lies" } else { "values lie" };
        Finding {
            metric: Some(Metric::Rows {
                part: outside,
                whole: rows,
            }),
            failed_count: outside,
            message: format!(
                "{outside} {lie} outside {} and {} in `{column}`",
                low.to_plain_string(),
                high.to_plain_string()
            ),
            details: [("low", number_to_json(&low)), ("high", number_to_json(&high))]
                .map(|(name, value)| (name.to_string(), value))
                .into_iter()
                .collect(),
            ..Finding::default()
        }
    }
}

impl Rule for Outliers {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "method": self.method, "factor": number_to_json(&self.factor()) })
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("= 0")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = statistics::numeric_column(scope, &self.column, Self::NAME)?;
        let mut measures = vec![Measure::Rows, Measure::Ranked(column.expr.clone())];
        if self.method == Method::Zscore {
            measures.push(Measure::Moments(column.expr));
        }
        let (rule, name, nan) = (self.clone(), column.name, scope.nan);
        Ok(Bound::Table(TableCheck {
            measures,
            judge: Arc::new(move |values| {
                let (rows, ranked, moments) = match values {
                    [MeasureValue::Count(rows), MeasureValue::Ranked(ranked)] => (*rows, ranked, None),
                    [
                        MeasureValue::Count(rows),
                        MeasureValue::Ranked(ranked),
                        MeasureValue::Moments(moments),
                    ] => (*rows, ranked, Some(moments)),
                    other => return Finding::unexpected(other),
                };
                let finding = rule.judge(&name, rows, ranked.as_ref(), moments);
                statistics::with_nan(finding, &name, ranked.nan_count(), nan)
            }),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::Values;
    use comporta_contract::Text;

    fn rule(yaml: &str) -> Option<Outliers> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        let rule = Outliers::parse(&node, &mut diagnostics).pop();
        assert_eq!(rule.is_none(), diagnostics.has_errors(), "{yaml}");
        rule
    }

    fn outside(yaml: &str, values: &[i64]) -> Option<u64> {
        let moments = Moments {
            count: values.len() as u64,
            sum: values.iter().map(|v| BigDecimal::from(*v)).sum(),
            sum_squares: values.iter().map(|v| BigDecimal::from(v * v)).sum(),
            ..Moments::default()
        };
        let finding = rule(yaml).unwrap().judge("x", 100, &Values::of(values), Some(&moments));
        finding.metric.map(|metric| match metric {
            Metric::Rows { part, whole: 100 } => part,
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn values_beyond_the_fences_of_the_quartiles_count() {
        assert_eq!(outside("{ column: x }", &[1, 2, 3, 4, 5, 100, -90]), Some(2));
        assert_eq!(outside("{ column: x }", &[1, 2, 3, 4, 5]), Some(0));
        assert_eq!(outside("{ column: x, factor: 0.4 }", &[1, 2, 3, 4, 5]), Some(2));
        assert_eq!(outside("{ column: x }", &[]), None);
    }

    #[test]
    fn values_many_deviations_away_count() {
        let mut values = vec![0; 50];
        values.extend([1; 50]);
        values.push(40);
        assert_eq!(outside("{ column: x, method: zscore }", &values), Some(1));
        assert_eq!(
            outside("{ column: x, method: zscore }", &[5, 5, 5]),
            Some(0),
            "no spread, nothing far"
        );
        assert_eq!(outside("{ column: x, method: zscore }", &[5]), None);
    }

    #[test]
    fn a_factor_that_is_no_distance_is_a_fault() {
        for yaml in [
            "{ column: x, factor: 0 }",
            "{ column: x, factor: '2' }",
            "{ column: x, method: mad }",
            "{ method: iqr }",
        ] {
            assert_eq!(rule(yaml), None, "{yaml}");
        }
    }

    #[test]
    fn the_default_factor_is_part_of_what_the_check_says() {
        assert_eq!(
            rule("{ column: x }").unwrap().parameters(),
            rule("{ column: x, factor: 1.50 }").unwrap().parameters()
        );
    }
}
