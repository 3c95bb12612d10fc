//! `forbidden_values`

use crate::lists;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// No value is one of a list.
///
/// The values are of the column's type and never coerced. Text is compared exactly, case included. NaN is in no list,
/// so it breaks nothing here; a null is unknown. Several columns may be named, each with its own list.
///
/// ## Why it matters
/// Placeholders such as 999 or `test` are valid by type and false by meaning.
///
/// ## Example
/// ```yaml
/// - forbidden_values: { age: [999, -1] }
/// ```
///
/// ## Holds
/// | age  |
/// |------|
/// | 0    |
/// | 99   |
/// | null |
///
/// ## Broken
/// | age  | broken |
/// |------|--------|
/// | 999  | yes    |
/// | 35   | no     |
/// | -1   | yes    |
/// | null | no     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct ForbiddenValuesParameters(
    #[allow(dead_code, reason = "only its schema is used")] BTreeMap<String, Vec<Literal>>,
);

/// The rule.
#[derive(Debug, Clone)]
pub struct ForbiddenValues {
    column: String,
    values: Vec<Literal>,
}

impl RuleDefinition for ForbiddenValues {
    const NAME: &'static str = "forbidden_values";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        shapes::column_to_value(node, diagnostics)
            .into_iter()
            .filter_map(|(column, values)| {
                Some(ForbiddenValues {
                    column,
                    values: lists::read(values, diagnostics)?,
                })
            })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        ForbiddenValuesParameters::json_schema(generator)
    }
}

impl Rule for ForbiddenValues {
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
            holds: Holds::Expr(lists::is_in(&column, &self.values, true, scope)?),
            reason: format!("`{}` is {{value}}, one of the forbidden {shown}", column.name),
        }))
    }
}
