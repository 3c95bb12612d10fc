//! `not_null`

use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The column has a value in every row.
///
/// NaN is a value, and so is empty text in formats that tell it from null; `missing: [nan, ""]` on the
/// check makes them count as nulls. A cell that could not be read as the column's type is unknown, not
/// null.
///
/// ## Why it matters
/// A key without a value joins nothing, and a broken join upstream shows first as nulls.
///
/// ## Example
/// ```yaml
/// - not_null: order_id
/// ```
///
/// ## Holds
/// | order_id |
/// |----------|
/// | 1        |
/// | 2        |
///
/// ## Broken
/// | order_id | broken |
/// |----------|--------|
/// | 1        | no     |
/// | null     | yes    |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct NotNullParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct NotNull {
    column: String,
}

impl RuleDefinition for NotNull {
    const NAME: &'static str = "not_null";
    const FAMILY: Family = Family::Presence;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Completeness;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        shapes::each_column(node, diagnostics)
            .into_iter()
            .map(|column| NotNull { column })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        NotNullParameters::json_schema(generator)
    }
}

impl Rule for NotNull {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        Ok(Bound::Row(RowCheck {
            reason: format!("`{}` has no value", column.name),
            holds: Holds::Expr(column.expr.is_not_null()),
        }))
    }
}
