//! `range`

use crate::literals::compare;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::literal::plain_number;
use comporta_contract::threshold::Operator;
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Every value lies between two bounds, both included.
///
/// Bounds are exact: a decimal bound on an integer column is not rounded. A date as the bound of a
/// timestamp column means the whole day in the document's time zone. NaN satisfies no bound; a null is
/// unknown.
///
/// ## Why it matters
/// A price of -1 or an age of 900 passes every type check and spoils every average.
///
/// ## Example
/// ```yaml
/// - range: { column: price, min: 0, max: 10000 }
/// ```
///
/// ## Holds
/// | price |
/// |-------|
/// | 0     |
/// | 10000 |
/// | null  |
///
/// ## Broken
/// | price   | broken |
/// |---------|--------|
/// | -1      | yes    |
/// | 10000.5 | yes    |
/// | NaN     | yes    |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Range {
    /// The column.
    column: String,
    /// Smallest value allowed. Absent: no lower bound.
    min: Option<Literal>,
    /// Largest value allowed. Absent: no upper bound.
    max: Option<Literal>,
}

impl RuleDefinition for Range {
    const NAME: &'static str = "range";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(range) = shapes::parameters::<Range>(node, diagnostics) else {
            return Vec::new();
        };
        match range.fault() {
            None => vec![range],
            Some((code, message, why)) => {
                diagnostics.push(node.error(code, message).why(why));
                Vec::new()
            }
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <Range as JsonSchema>::json_schema(generator)
    }
}

impl Range {
    /// What is wrong with the bounds, as far as they show it by themselves (S16).
    fn fault(&self) -> Option<(&'static str, String, &'static str)> {
        match (&self.min, &self.max) {
            (None, None) => Some((
                "range-without-bound",
                "`range` has neither `min` nor `max`".into(),
                "every value would keep to it",
            )),
            (Some(Literal::Number(min)), Some(Literal::Number(max))) if min > max => Some((
                "range-inverted",
                format!("`min` {} is above `max` {}", plain_number(min), plain_number(max)),
                "no value can satisfy it, so every row would break it",
            )),
            (Some(Literal::Text(min)), Some(Literal::Text(max)))
                if crate::literals::iso(min).is_some() && crate::literals::iso(max).is_some() && min > max =>
            {
                Some((
                    "range-inverted",
                    format!("`min` {min} is above `max` {max}"),
                    "no value can satisfy it, so every row would break it",
                ))
            }
            _ => None,
        }
    }
}

impl Rule for Range {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "min": self.min, "max": self.max })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let min = self
            .min
            .as_ref()
            .map(|min| compare(&column, Operator::GreaterOrEqual, min, scope))
            .transpose()?;
        let max = self
            .max
            .as_ref()
            .map(|max| compare(&column, Operator::LessOrEqual, max, scope))
            .transpose()?;
        let limits = match (&self.min, &self.max) {
            (Some(min), Some(max)) => format!("not between {min} and {max}"),
            (Some(min), None) => format!("below the minimum {min}"),
            (None, Some(max)) => format!("above the maximum {max}"),
            (None, None) => return Err(BindError::new("`range` has neither `min` nor `max`")),
        };
        let holds = match (min, max) {
            (Some(min), Some(max)) => min.and(max),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => return Err(BindError::new("`range` has neither `min` nor `max`")),
        };
        Ok(Bound::Row(RowCheck {
            holds: Holds::Expr(holds),
            reason: format!("`{}` is {{value}}, {limits}", column.name),
        }))
    }
}
