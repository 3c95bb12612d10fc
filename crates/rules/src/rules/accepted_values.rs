//! `accepted_values`

use crate::lists;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Every value is one of a list.
///
/// The values are of the column's type and never coerced: `"1"` is no integer and `1` is no text. Text is compared
/// exactly, case included. NaN is in no list; a null is unknown. Several columns may be named, each with its own list.
///
/// ## Why it matters
/// A status that nobody has heard of falls through every `CASE` and out of every report.
///
/// ## Example
/// ```yaml
/// - accepted_values: { status: [open, closed] }
/// ```
///
/// ## Holds
/// | status |
/// |--------|
/// | open   |
/// | closed |
/// | null   |
///
/// ## Broken
/// | status | broken |
/// |--------|--------|
/// | open   | no     |
/// | Open   | yes    |
/// | null   | no     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct AcceptedValuesParameters(
    #[allow(dead_code, reason = "only its schema is used")] BTreeMap<String, Vec<Literal>>,
);

/// The rule.
#[derive(Debug, Clone)]
pub struct AcceptedValues {
    column: String,
    values: Vec<Literal>,
}

impl RuleDefinition for AcceptedValues {
    const NAME: &'static str = "accepted_values";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        shapes::column_to_value(node, diagnostics)
            .into_iter()
            .filter_map(|(column, values)| {
                Some(AcceptedValues {
                    column,
                    values: lists::read(values, diagnostics)?,
                })
            })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        AcceptedValuesParameters::json_schema(generator)
    }
}

impl Rule for AcceptedValues {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "values": self.values })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let shown = lists::shown(&self.values);
        Ok(Bound::Row(RowCheck {
            holds: Holds::Expr(lists::is_in(&column, &self.values, false, scope)?),
            reason: format!("`{}` is {{value}}, not one of {shown}", column.name),
        }))
    }
}
