//! `length`

use crate::kernels::holds;
use crate::kernels::length::Characters;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// Every text has so many characters, both bounds included.
///
/// Unicode characters are counted, not bytes: `São` has three. Blanks count. A null is unknown.
///
/// ## Why it matters
/// A text at the very limit of its field was probably cut off; a name of one letter is probably none.
///
/// ## Example
/// ```yaml
/// - length: { column: name, min: 2, max: 5 }
/// ```
///
/// ## Holds
/// | name  |
/// |-------|
/// | Zé    |
/// | Bruno |
/// | null  |
///
/// ## Broken
/// | name   | broken |
/// |--------|--------|
/// | Zé     | no     |
/// | Z      | yes    |
/// | Brunos | yes    |
/// | null   | no     |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LengthParameters {
    /// The column; of a list, each by itself.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// Fewest characters allowed. Absent: no lower bound.
    min: Option<u64>,
    /// Most characters allowed. Absent: no upper bound.
    max: Option<u64>,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Length {
    column: String,
    characters: Characters,
}

impl RuleDefinition for Length {
    const NAME: &'static str = "length";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<LengthParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        let characters = Characters {
            min: found.min,
            max: found.max,
        };
        let fault = match (found.min, found.max) {
            (None, None) => Some((
                "range-without-bound",
                "`length` has neither `min` nor `max`".to_string(),
                "every text would keep to it",
            )),
            (Some(min), Some(max)) if min > max => Some((
                "range-inverted",
                format!("`min` {min} is above `max` {max}"),
                "no text can satisfy it, so every row would break it",
            )),
            _ => None,
        };
        if let Some((code, message, why)) = fault {
            diagnostics.push(node.error(code, message).why(why));
            return Vec::new();
        }
        columns
            .into_iter()
            .map(|column| Length {
                column,
                characters: characters.clone(),
            })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        LengthParameters::json_schema(generator)
    }
}

impl Rule for Length {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "min": self.characters.min, "max": self.characters.max })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.text_column(&self.column, Self::NAME)?;
        let limits = match (self.characters.min, self.characters.max) {
            (Some(min), Some(max)) if min == max => format!("not of {min} characters"),
            (Some(min), Some(max)) => format!("not of {min} to {max} characters"),
            (Some(min), None) => format!("shorter than {min} characters"),
            (None, Some(max)) => format!("longer than {max} characters"),
            (None, None) => return Err(BindError::new("`length` has neither `min` nor `max`")),
        };
        Ok(Bound::Row(RowCheck {
            reason: format!("`{}` is {{value}}, {limits}", column.name),
            holds: Holds::Expr(holds(self.characters.clone(), column.expr)),
        }))
    }
}
