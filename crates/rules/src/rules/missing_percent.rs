//! `missing_percent`

use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use crate::shares::Counting;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// So large a share of the rows has no value in the column; none, unless `must_be` allows some.
///
/// The share is of all rows in scope, on the 0–100 scale, and compared exactly: 1 of 100 is not `< 1%`. Of no rows
/// there is no share. NaN is a value unless the check says `missing: [nan]`.
///
/// ## Why it matters
/// A limit in rows is right for one size of the batch only; a share holds for all.
///
/// ## Example
/// ```yaml
/// - missing_percent: discount
///   must_be: "<= 50%"
/// ```
///
/// ## Holds
/// | order_id | discount |
/// |----------|----------|
/// | 1        | 0.1      |
/// | 2        | null     |
///
/// ## Broken
/// | order_id | discount |
/// |----------|----------|
/// | 1        | 0.1      |
/// | 2        | null     |
/// | 3        | null     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct MissingPercentParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct MissingPercent {
    column: String,
}

impl RuleDefinition for MissingPercent {
    const NAME: &'static str = "missing_percent";
    const FAMILY: Family = Family::Presence;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Completeness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Percent);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::each_column(node, diagnostics);
        columns.into_iter().map(|column| MissingPercent { column }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        MissingPercentParameters::json_schema(generator)
    }
}

impl Rule for MissingPercent {
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
        Ok(Counting::new(scope, true).matches(is_missing, move |rows| format!("{rows} have no `{name}`")))
    }
}
