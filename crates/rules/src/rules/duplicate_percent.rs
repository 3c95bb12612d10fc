//! `duplicate_percent`

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

/// So large a share of the rows shares its key with another row; none, unless `must_be` allows some.
///
/// Several columns are one key. All occurrences count, as in `unique`; the share is of all rows in scope, those with
/// an unknown key included, on the 0–100 scale. Of no rows there is no share.
///
/// ## Why it matters
/// Events that are sent again make a small and steady share; a jump of it means that a sender is stuck.
///
/// ## Example
/// ```yaml
/// - duplicate_percent: event_id
///   must_be: "<= 50%"
/// ```
///
/// ## Holds
/// | event_id |
/// |----------|
/// | 1        |
/// | 1        |
/// | 2        |
/// | null     |
///
/// ## Broken
/// | event_id |
/// |----------|
/// | 1        |
/// | 1        |
/// | 2        |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct DuplicatePercentParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct DuplicatePercent {
    columns: Vec<String>,
}

impl RuleDefinition for DuplicatePercent {
    const NAME: &'static str = "duplicate_percent";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Uniqueness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Percent);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let key = shapes::key(node, diagnostics);
        key.into_iter().map(|columns| DuplicatePercent { columns }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        DuplicatePercentParameters::json_schema(generator)
    }
}

impl Rule for DuplicatePercent {
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
        Ok(Counting::new(scope, true).repeats(keys, scope.nulls == NullPolicy::Equal, names))
    }
}
