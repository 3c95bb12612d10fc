//! `foreign_key`

use crate::references::{self, References};
use crate::rule::{BindError, Bound, Documents, Family, Holds, Reference, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::nearest::list;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde_json::{Value, json};

/// Every key is one of those that other data has. Several columns are one composite key.
///
/// The keys are those of a declared table, of a file, or written in the document. A key with a null part is
/// unknown. An empty table is an answer: then every key breaks the rule. A table that cannot be read is an error.
///
/// ## Why it matters
/// An order of a customer that nobody knows drops out of every join, and the totals no longer meet.
///
/// ## Example
/// ```yaml
/// - foreign_key: { column: currency, references: { values: [EUR, BRL] } }
/// ```
///
/// ## Holds
/// | currency |
/// |----------|
/// | EUR      |
/// | BRL      |
/// | null     |
///
/// ## Broken
/// | currency | broken |
/// |----------|--------|
/// | EUR      | no     |
/// | eur      | yes    |
/// | null     | no     |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ForeignKeyParameters {
    /// The column, or the columns of one composite key.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// Where the keys are.
    references: References,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct ForeignKey {
    columns: Vec<String>,
    references: Reference,
}

impl RuleDefinition for ForeignKey {
    const NAME: &'static str = "foreign_key";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<ForeignKeyParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        let place = node.get("references").unwrap_or(node);
        if columns.is_empty() {
            return Vec::new();
        }
        let references = references::read(found.references, place, &columns, diagnostics);
        references
            .into_iter()
            .map(|references| ForeignKey {
                columns: columns.clone(),
                references,
            })
            .collect()
    }

    fn parse_within(node: &Node, documents: &Documents, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let mut rules = Self::parse(node, diagnostics);
        let place = node.get("references").unwrap_or(node);
        rules.retain(|rule| references::is_declared(&rule.references, place, documents, diagnostics));
        rules
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        ForeignKeyParameters::json_schema(generator)
    }
}

impl Rule for ForeignKey {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({ "references": references::canonical(&self.references) })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        references::check(&self.references, &columns, scope)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let there = references::shown(&self.references);
        Ok(Bound::Row(RowCheck {
            reason: format!("{} is {{value}}, which is not among {there}", list(&names)),
            holds: Holds::Member {
                keys: columns.into_iter().map(|column| column.expr).collect(),
                of: self.references.clone(),
            },
        }))
    }
}
