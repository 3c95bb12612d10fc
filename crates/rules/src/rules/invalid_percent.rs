//! `invalid_percent`

use crate::conditions::{self, Conditions, Valid};
use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shares::Counting;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// So large a share of the rows has an invalid value in the column; none, unless `must_be` allows some.
///
/// All conditions given must hold: `values`, `forbidden`, `regex`, `format`, `min`, `max`, `min_length`, `max_length`,
/// `length`. A missing value is never invalid, but its row is part of the whole. Of no rows there is no share.
///
/// ## Why it matters
/// A share holds for batches of every size, and a trend of it shows a source going bad.
///
/// ## Example
/// ```yaml
/// - invalid_percent: { column: age, min: 0, max: 120 }
///   must_be: "< 50%"
/// ```
///
/// ## Holds
/// | age  |
/// |------|
/// | 35   |
/// | -1   |
/// | null |
///
/// ## Broken
/// | age  |
/// |------|
/// | 35   |
/// | -1   |
/// | 900  |
/// | null |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct InvalidPercentParameters(#[allow(dead_code, reason = "only its schema is used")] Conditions);

/// The rule.
#[derive(Debug, Clone)]
pub struct InvalidPercent {
    valid: Valid,
}

impl RuleDefinition for InvalidPercent {
    const NAME: &'static str = "invalid_percent";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Validity;
    const METRIC: Option<MetricKind> = Some(MetricKind::Percent);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let found = conditions::read(node, diagnostics);
        found.into_iter().map(|valid| InvalidPercent { valid }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        InvalidPercentParameters::json_schema(generator)
    }
}

impl Rule for InvalidPercent {
    fn columns(&self) -> Vec<String> {
        vec![self.valid.column.clone()]
    }

    fn parameters(&self) -> Value {
        self.valid.parameters()
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("= 0")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let (column, valid) = self.valid.bind(scope, Self::NAME)?;
        scope.refuse_nan_policy(std::slice::from_ref(&column), Self::NAME)?;
        let name = column.name;
        let counting = Counting::new(scope, true);
        Ok(counting.matches(!valid, move |rows| format!("{rows} have an invalid `{name}`")))
    }
}
