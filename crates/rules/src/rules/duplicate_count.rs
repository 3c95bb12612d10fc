//! `duplicate_count`

use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use crate::shares::Counting;
use comporta_contract::NullPolicy;
use comporta_contract::nearest::list;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// So many rows share their key with another row; none, unless `must_be` allows some. Several columns are one key.
///
/// All occurrences count, not only the later ones, as in `unique`; `details` gives the repeated keys and the surplus
/// rows. A key with a null part is unknown unless the check says `nulls: equal`.
///
/// ## Why it matters
/// Where some repetition is normal, a limit tells the normal from a file that was loaded twice.
///
/// ## Example
/// ```yaml
/// - duplicate_count: [customer_id, day]
///   must_be: "<= 2"
/// ```
///
/// ## Holds
/// | customer_id | day |
/// |-------------|-----|
/// | 1           | 1   |
/// | 1           | 1   |
/// | 1           | 2   |
/// | null        | 1   |
/// | null        | 1   |
///
/// ## Broken
/// | customer_id | day |
/// |-------------|-----|
/// | 1           | 1   |
/// | 1           | 1   |
/// | 1           | 1   |
/// | null        | 1   |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct DuplicateCountParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct DuplicateCount {
    columns: Vec<String>,
}

impl RuleDefinition for DuplicateCount {
    const NAME: &'static str = "duplicate_count";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Uniqueness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Rows);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let key = shapes::key(node, diagnostics);
        key.into_iter().map(|columns| DuplicateCount { columns }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        DuplicateCountParameters::json_schema(generator)
    }
}

impl Rule for DuplicateCount {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("= 0")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        scope.refuse_nan_policy(&columns, Self::NAME)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = list(&names);
        let keys = columns.into_iter().map(|column| column.expr).collect();
        Ok(Counting::new(scope, false).repeats(keys, scope.nulls == NullPolicy::Equal, names))
    }
}
