//! `max`

use crate::measure::{Measure, MeasureValue};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::shapes;
use crate::statistics::Extreme;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// The largest value of a column keeps to a threshold.
///
/// Numbers, dates, timestamps and text have one; a date in the threshold of a timestamp column means the whole
/// day in the document's time zone. Nulls and NaN are left out; `nan: fail` refuses NaN. Without values it is
/// `no_data`.
///
/// ## Why it matters
/// A date far in the future, or a quantity of 999999, is a placeholder that somebody will add up.
///
/// ## Example
/// ```yaml
/// - max: quantity
///   must_be: "<= 1000"
/// ```
///
/// ## Holds
/// | quantity |
/// |----------|
/// | 1        |
/// | 1000     |
/// | null     |
///
/// ## Broken
/// | quantity |
/// |----------|
/// | 1        |
/// | 999999   |
/// | null     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct MaxParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Max {
    column: String,
}

impl RuleDefinition for Max {
    const NAME: &'static str = "max";
    const FAMILY: Family = Family::Statistics;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Accuracy;
    const METRIC: Option<MetricKind> = Some(MetricKind::Value);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| Max { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        MaxParameters::json_schema(generator)
    }
}

impl Rule for Max {
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
        let extreme = Extreme::of(&column, Self::NAME, scope)?;
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Extremes(column.expr)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Extremes { max, nan_count, .. }] => extreme.judge("largest", max.as_ref(), *nan_count),
                other => Finding::unexpected(other),
            }),
        }))
    }
}
