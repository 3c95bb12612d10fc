//! `row_count`

use crate::measure::{Measure, MeasureValue};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::threshold::{Metric, MetricKind};
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// The batch has as many rows as it should.
///
/// Bounds are included. `must_be` and `warn` may be used beside them or in their place. With `where`, the
/// rows in scope are counted; zero rows are counted like any other number.
///
/// ## Why it matters
/// A feed that did not arrive and a filter that matched nothing both look like success.
///
/// ## Example
/// ```yaml
/// - row_count: { min: 1 }
/// ```
///
/// ## Holds
/// | order_id |
/// |----------|
/// | 1        |
/// | null     |
///
/// ## Broken
/// | order_id |
/// |----------|
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RowCount {
    /// Fewest rows allowed.
    min: Option<u64>,
    /// Most rows allowed.
    max: Option<u64>,
}

impl RuleDefinition for RowCount {
    const NAME: &'static str = "row_count";
    const FAMILY: Family = Family::Volume;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Volume;
    const METRIC: Option<MetricKind> = Some(MetricKind::Count);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        if node.value == Value::Null {
            return vec![RowCount::default()];
        }
        let Some(rule) = shapes::parameters::<RowCount>(node, diagnostics) else {
            return Vec::new();
        };
        if let (Some(min), Some(max)) = (rule.min, rule.max)
            && min > max
        {
            diagnostics.push(
                node.error("range-inverted", format!("`min` {min} is above `max` {max}"))
                    .why("no batch can satisfy it"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <RowCount as JsonSchema>::json_schema(generator)
    }
}

impl Rule for RowCount {
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    fn parameters(&self) -> Json {
        json!({ "min": self.min, "max": self.max })
    }

    fn default_must_be(&self) -> Option<&'static str> {
        (self.min.is_none() && self.max.is_none()).then_some("")
    }

    fn bind(&self, _: &Scope) -> Result<Bound, BindError> {
        let rule = self.clone();
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Rows],
            judge: Arc::new(move |values| rule.judge(values)),
        }))
    }
}

impl RowCount {
    fn judge(&self, values: &[MeasureValue]) -> Finding {
        let [MeasureValue::Count(rows)] = values else {
            return Finding::unexpected(values);
        };
        let too_few = self.min.is_some_and(|min| *rows < min);
        let too_many = self.max.is_some_and(|max| *rows > max);
        let rows_text = if *rows == 1 {
            "1 row".to_string()
        } else {
            format!("{rows} rows")
        };
        let message = match (too_few, too_many) {
            (true, _) => format!("{rows_text}, fewer than {}", self.min.unwrap_or_default()),
            (_, true) => format!("{rows_text}, more than {}", self.max.unwrap_or_default()),
            _ => rows_text,
        };
        Finding {
            metric: Some(Metric::Number((*rows).into())),
            broken: (self.min.is_some() || self.max.is_some()).then_some(too_few || too_many),
            failed_count: u64::from(too_few || too_many),
            message,
            ..Finding::default()
        }
    }
}
