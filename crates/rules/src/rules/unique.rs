//! `unique`

use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::nearest::list;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, NullPolicy, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// No two rows have the same key. Several columns are one composite key.
///
/// All occurrences of a repeated key break it, not only the later ones: nobody knows which of them is the
/// right one. `details` gives the other two numbers that people mean: repeated keys and surplus rows. A key
/// with a null part is unknown unless the check says `nulls: equal`.
///
/// ## Why it matters
/// A row read twice doubles every sum, and a merge by a repeated key is undefined.
///
/// ## Example
/// ```yaml
/// - unique: [order_id, line]
/// ```
///
/// ## Holds
/// | order_id | line |
/// |----------|------|
/// | 1        | 1    |
/// | 1        | 2    |
/// | null     | 1    |
/// | null     | 1    |
///
/// ## Broken
/// | order_id | line | broken |
/// |----------|------|--------|
/// | 1        | 1    | yes    |
/// | 1        | 1    | yes    |
/// | 2        | 1    | no     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct UniqueParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct Unique {
    columns: Vec<String>,
}

impl RuleDefinition for Unique {
    const NAME: &'static str = "unique";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Uniqueness;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        shapes::key(node, diagnostics)
            .into_iter()
            .map(|columns| Unique { columns })
            .collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        UniqueParameters::json_schema(generator)
    }
}

impl Rule for Unique {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        Ok(Bound::Row(RowCheck {
            reason: format!("{} has the value {{value}} in another row too", list(&names)),
            holds: Holds::Unique {
                keys: columns.into_iter().map(|column| column.expr).collect(),
                nulls_equal: scope.nulls == NullPolicy::Equal,
            },
        }))
    }
}
