//! `not_blank`

use crate::kernels::{TextTest, holds};
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use crate::types::is_text;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use datafusion_expr::lit;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Every value of a text column shows something: it is neither null nor made of white space alone.
///
/// White space is what Unicode calls so, no-break space included. On a column that is no text the rule asks for
/// what `not_null` does.
///
/// ## Why it matters
/// A blank passes `not_null`, groups as a value of its own, and prints as nothing.
///
/// ## Example
/// ```yaml
/// - not_blank: customer_name
/// ```
///
/// ## Holds
/// | customer_name |
/// |---------------|
/// | Ana           |
/// | `  Bruno `    |
///
/// ## Broken
/// | customer_name | broken |
/// |---------------|--------|
/// | Ana           | no     |
/// | `   `         | yes    |
/// | null          | yes    |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct NotBlankParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct NotBlank {
    column: String,
}

impl RuleDefinition for NotBlank {
    const NAME: &'static str = "not_blank";
    const FAMILY: Family = Family::Presence;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Completeness;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| NotBlank { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        NotBlankParameters::json_schema(generator)
    }
}

impl Rule for NotBlank {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let shows = match is_text(&column.data_type) {
            true => holds(ShowsSomething, column.expr.clone()),
            false => lit(true),
        };
        Ok(Bound::Row(RowCheck {
            holds: Holds::Expr(column.expr.is_not_null().and(shows)),
            reason: format!("`{}` has no value or only blanks", column.name),
        }))
    }
}

/// The text has a character that is no white space.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ShowsSomething;

impl TextTest for ShowsSomething {
    const NAME: &'static str = "shows_something";

    type Run<'a> = ();

    fn begin(&self) {}

    fn passes((): &mut (), text: &[u8]) -> bool {
        // Nearly every text begins with a visible ASCII sign.
        text.first().is_some_and(u8::is_ascii_graphic)
            || std::str::from_utf8(text).is_ok_and(|text| !text.trim().is_empty())
    }
}
