//! `invalid_count`

use crate::conditions::{self, Conditions, Valid};
use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shares::Counting;
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// So many rows have an invalid value in the column; none, unless `must_be` allows some.
///
/// All conditions given must hold: `values`, `forbidden`, `regex`, `format`, `min`, `max`, `min_length`, `max_length`,
/// `length`. A missing value is never invalid.
///
/// ## Why it matters
/// Some dirt is normal in what people type; the count shows when it becomes a pile.
///
/// ## Example
/// ```yaml
/// - invalid_count: { column: country, format: iso_3166, length: 2 }
///   must_be: "<= 1"
/// ```
///
/// ## Holds
/// | country |
/// |---------|
/// | BR      |
/// | XX      |
/// | null    |
///
/// ## Broken
/// | country |
/// |---------|
/// | BR      |
/// | XX      |
/// | BRA     |
/// | null    |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct InvalidCountParameters(#[allow(dead_code, reason = "only its schema is used")] Conditions);

/// The rule.
#[derive(Debug, Clone)]
pub struct InvalidCount {
    valid: Valid,
}

impl RuleDefinition for InvalidCount {
    const NAME: &'static str = "invalid_count";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Validity;
    const METRIC: Option<MetricKind> = Some(MetricKind::Rows);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let found = conditions::read(node, diagnostics);
        found.into_iter().map(|valid| InvalidCount { valid }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        InvalidCountParameters::json_schema(generator)
    }
}

impl Rule for InvalidCount {
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
        let counting = Counting::new(scope, false);
        Ok(counting.matches(!valid, move |rows| format!("{rows} have an invalid `{name}`")))
    }
}
