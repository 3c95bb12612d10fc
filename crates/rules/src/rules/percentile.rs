//! `percentile`

use crate::measure::{Measure, MeasureValue, Ranked};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::{shapes, statistics};
use bigdecimal::BigDecimal;
use comporta_contract::literal::plain_number;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// A percentile of a column of numbers keeps to a threshold.
///
/// The values in order have ranks from 0 to n − 1; the percentile p is the value at rank (n − 1) · p / 100,
/// interpolated in a straight line between the two ranks around it (definition 7 of Hyndman and Fan, 1996,
/// which NumPy, R and spreadsheets use unless told otherwise). It is exact, not sampled. Nulls and NaN are left
/// out; `nan: fail` refuses NaN. Without values it is `no_data`.
///
/// ## Why it matters
/// An average hides that one customer in twenty waits ten times as long as the others.
///
/// ## Example
/// ```yaml
/// - percentile: { column: seconds, p: 75 }
///   must_be: "<= 30"
/// ```
///
/// ## Holds
/// | seconds |
/// |---------|
/// | 10      |
/// | 20      |
/// | 30      |
/// | null    |
/// | 600     |
/// | 5       |
///
/// ## Broken
/// | seconds |
/// |---------|
/// | 10      |
/// | 20      |
/// | null    |
/// | 50      |
/// | 600     |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Percentile {
    /// The column.
    column: String,
    /// The percentile, from 0 (the smallest value) through 50 (the median) to 100 (the largest).
    #[schemars(with = "f64", range(min = 0, max = 100))]
    p: Literal,
}

impl RuleDefinition for Percentile {
    const NAME: &'static str = "percentile";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Number);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(rule) = shapes::parameters::<Percentile>(node, diagnostics) else {
            return Vec::new();
        };
        if rule.share().is_none() {
            let place = node.get("p").unwrap_or(node);
            diagnostics.push(
                place
                    .error(
                        "percentile-range",
                        format!("`p` is a number from 0 to 100, not {}", rule.p),
                    )
                    .hint("the median is 50"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <Percentile as JsonSchema>::json_schema(generator)
    }
}

impl Percentile {
    /// The share of values below, from 0 to 1.
    fn share(&self) -> Option<BigDecimal> {
        match &self.p {
            Literal::Number(p) if *p >= BigDecimal::from(0) && *p <= BigDecimal::from(100) => {
                Some(p / BigDecimal::from(100))
            }
            _ => None,
        }
    }
}

impl Rule for Percentile {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "p": self.p })
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = statistics::numeric_column(scope, &self.column, Self::NAME)?;
        let share = self
            .share()
            .ok_or_else(|| BindError::new("`p` is a number from 0 to 100"))?;
        let (binary, nan) = (statistics::is_binary(&column), scope.nan);
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Ranked(column.expr)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Ranked(ranked)] => {
                    let finding = judge(&column.name, ranked.as_ref(), &share, binary);
                    statistics::with_nan(finding, &column.name, ranked.nan_count(), nan)
                }
                other => Finding::unexpected(other),
            }),
        }))
    }
}

fn judge(column: &str, ranked: &dyn Ranked, share: &BigDecimal, binary: bool) -> Finding {
    let Some(value) = statistics::quantile(ranked, share) else {
        return statistics::no_data(column);
    };
    let metric = statistics::number(value, binary);
    let p = plain_number(&(share * BigDecimal::from(100)));
    Finding {
        message: format!("the percentile {p} of `{column}` is {metric}"),
        metric: Some(metric),
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures::Values;
    use comporta_contract::Text;
    use comporta_contract::threshold::Metric;

    fn percentile(values: &[i64], p: &str) -> Option<Metric> {
        let share: BigDecimal = p.parse::<BigDecimal>().unwrap() / BigDecimal::from(100);
        judge("x", &Values::of(values), &share, false).metric
    }

    fn number(text: &str) -> Option<Metric> {
        Some(Metric::Number(text.parse().unwrap()))
    }

    #[test]
    fn it_lies_on_the_line_between_two_ranks() {
        assert_eq!(percentile(&[1, 2, 3, 4], "50"), number("2.5"));
        assert_eq!(percentile(&[1, 2, 3, 4], "0"), number("1"));
        assert_eq!(percentile(&[1, 2, 3, 4], "100"), number("4"));
        assert_eq!(percentile(&[10, 20, 30, 40, 50], "90"), number("46"));
        assert_eq!(percentile(&[7], "37.5"), number("7"));
        assert_eq!(percentile(&[], "50"), None);
    }

    #[test]
    fn a_percentile_beyond_the_scale_is_a_fault() {
        for yaml in [
            "{ column: x, p: 101 }",
            "{ column: x, p: -1 }",
            "{ column: x, p: '95' }",
            "{ column: x }",
            "x",
        ] {
            let mut diagnostics = Diagnostics::default();
            let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
            assert!(Percentile::parse(&node, &mut diagnostics).is_empty(), "{yaml}");
            assert!(diagnostics.has_errors(), "{yaml}");
        }
    }
}
