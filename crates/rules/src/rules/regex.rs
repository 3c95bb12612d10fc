//! `regex`

use crate::conditions::pattern_of;
use crate::kernels::holds;
use crate::kernels::regex::Pattern;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// Every text matches a regular expression.
///
/// The expression is looked for anywhere in the text unless it is anchored; `$` is the very end. `\d`, `\w`, `\s` and
/// `\b` are of ASCII; `.` is one character. Look-around and back-references do not exist, so every match takes linear
/// time. A null is unknown.
///
/// ## Why it matters
/// A code that does not look like one was typed by hand, shifted by a column, or cut off.
///
/// ## Example
/// ```yaml
/// - regex: { column: sku, pattern: '^[A-Z]{3}-\d{4}$' }
/// ```
///
/// ## Holds
/// | sku      |
/// |----------|
/// | ABC-0001 |
/// | null     |
///
/// ## Broken
/// | sku       | broken |
/// |-----------|--------|
/// | ABC-0001  | no     |
/// | abc-0001  | yes    |
/// | ABC-00012 | yes    |
/// | null      | no     |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RegexParameters {
    /// The column; of a list, each by itself.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// The pattern, in the syntax of the Rust `regex` crate.
    pattern: String,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Regex {
    column: String,
    pattern: Pattern,
}

impl RuleDefinition for Regex {
    const NAME: &'static str = "regex";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<RegexParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        let Some(pattern) = node.get("pattern").and_then(|pattern| pattern_of(pattern, diagnostics)) else {
            return Vec::new();
        };
        debug_assert_eq!(pattern.as_str(), found.pattern);
        columns
            .into_iter()
            .map(|column| Regex {
                column,
                pattern: pattern.clone(),
            })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        RegexParameters::json_schema(generator)
    }
}

impl Rule for Regex {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "pattern": self.pattern.as_str() })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.text_column(&self.column, Self::NAME)?;
        Ok(Bound::Row(RowCheck {
            reason: format!(
                "`{}` is {{value}}, which does not match {}",
                column.name,
                self.pattern.as_str()
            ),
            holds: Holds::Expr(holds(self.pattern.clone(), column.expr)),
        }))
    }
}
