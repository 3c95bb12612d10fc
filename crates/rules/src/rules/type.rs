//! `type`

use crate::kernels::{self, parses::Parses};
use crate::literals::constant;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use crate::types::{is_text, matches_at};
use comporta_contract::Diagnostic;
use comporta_contract::nearest::suggest;
use comporta_contract::source::OneOrMany;
use comporta_contract::types::{LogicalType, TYPE_NAMES};
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// Every value of the column is of a type.
///
/// Cells that were read as the type and did not parse break it, with the text as it stood. A text column is tried
/// cell by cell. A column of another type breaks it in every row that has a value: `int` accepts any width, `int64`
/// only itself, a decimal its own precision and scale. A null is of every type.
///
/// ## Why it matters
/// One `n/a` among the amounts turns the whole column to text for the next reader.
///
/// ## Example
/// ```yaml
/// - type: { column: quantity, is: int }
/// ```
///
/// ## Holds
/// | quantity |
/// |----------|
/// | 1        |
/// | -20      |
/// | null     |
///
/// ## Broken
/// | quantity | broken |
/// |----------|--------|
/// | 1        | no     |
/// | n/a      | yes    |
/// | 1.5      | yes    |
/// | null     | no     |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TypeParameters {
    /// The column; of a list, each by itself.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// The name of the type.
    is: String,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Type {
    column: String,
    declared: LogicalType,
}

impl RuleDefinition for Type {
    const NAME: &'static str = "type";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<TypeParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        let declared = match LogicalType::parse(&found.is) {
            Ok(declared) => declared,
            Err(message) => {
                diagnostics.push(unknown_type(node.get("is").unwrap_or(node), &found.is, &message));
                return Vec::new();
            }
        };
        columns
            .into_iter()
            .map(|column| Type {
                column,
                declared: declared.clone(),
            })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        TypeParameters::json_schema(generator)
    }
}

impl Rule for Type {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "is": self.declared.to_string() })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        // A marker for missing values is no reason to judge a cell by another type.
        let column = scope.column(&self.column)?;
        let named = format!("`{}`", column.name);
        let (holds, reason) = match matches_at(&column.name, &self.declared, &column.data_type) {
            Ok(()) => {
                let own = scope.schema.field_with_name(&column.name).is_ok();
                let holds = match own {
                    true => Holds::CellParses { column: column.name },
                    false => Holds::Expr(constant(column.expr, true)),
                };
                (holds, format!("{named} is {{value}}, which is no {}", self.declared))
            }
            Err(difference) => match Parses::new(&self.declared).filter(|_| is_text(&column.data_type)) {
                Some(parses) => {
                    let reason = format!("{named} is {{value}}, which is no {}", self.declared);
                    (Holds::Expr(kernels::holds(parses, column.expr)), reason)
                }
                None => (Holds::Expr(constant(column.expr, false)), difference),
            },
        };
        Ok(Bound::Row(RowCheck { holds, reason }))
    }
}

fn unknown_type(node: &Node, written: &str, message: &str) -> Diagnostic {
    node.error("unknown-type", message).hint(suggest(written, TYPE_NAMES))
}
