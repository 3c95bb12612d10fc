//! `missing_count`

use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use crate::shares::Counting;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// So many rows have no value in the column; none, unless `must_be` allows some.
///
/// NaN is a value, and so is empty text in formats that tell it from null; `missing: [nan, ""]` on the check makes
/// them count. A cell that could not be read as the column's type is unknown, not missing.
///
/// ## Why it matters
/// A few missing values are normal where a form leaves a field open; a sudden thousand means that a source stopped
/// filling it.
///
/// ## Example
/// ```yaml
/// - missing_count: email
///   must_be: "<= 1"
/// ```
///
/// ## Holds
/// | order_id | email           |
/// |----------|-----------------|
/// | 1        | ana@example.com |
/// | 2        | null            |
///
/// ## Broken
/// | order_id | email           |
/// |----------|-----------------|
/// | 1        | null            |
/// | 2        | null            |
/// | 3        | ana@example.com |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct MissingCountParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct MissingCount {
    column: String,
}

impl RuleDefinition for MissingCount {
    const NAME: &'static str = "missing_count";
    const FAMILY: Family = Family::Presence;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Completeness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Rows);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| MissingCount { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        MissingCountParameters::json_schema(generator)
    }
}

impl Rule for MissingCount {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("= 0")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        scope.refuse_nan_policy(std::slice::from_ref(&column), Self::NAME)?;
        let name = column.name;
        let is_missing = column.expr.is_null();
        Ok(Counting::new(scope, false).matches(is_missing, move |rows| format!("{rows} have no `{name}`")))
    }
}
