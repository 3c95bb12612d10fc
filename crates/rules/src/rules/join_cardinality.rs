//! `join_cardinality`

use crate::measure::{JoinCounts, Measure, MeasureValue};
use crate::references::{self, References};
use crate::rule::{BindError, Bound, Documents, Family, Finding, Reference, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// A join with other data multiplies rows only on the side where it may.
///
/// `1:1`: no key more than once on either side. `1:n`: at most once here. `n:1`: at most once there. `n:n`: nothing
/// is promised but that the other side can be read. Keys without a partner break none of them (that is
/// `foreign_key`) and are counted in `details`. A key with a null part joins nothing.
///
/// ## Why it matters
/// A dimension with one repeated key doubles the facts that join it, and no row of either table looks wrong.
///
/// ## Example
/// ```yaml
/// - join_cardinality: { columns: [code], with: { values: [EUR, BRL] }, is: "1:1" }
/// ```
///
/// ## Holds
/// | code |
/// |------|
/// | EUR  |
/// | BRL  |
/// | null |
/// | null |
///
/// ## Broken
/// | code |
/// |------|
/// | EUR  |
/// | EUR  |
/// | null |
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JoinCardinalityParameters {
    /// The column, or the columns of one composite key.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// The other side.
    with: References,
    /// How many rows of ours meet how many of theirs.
    is: Cardinality,
}

/// How many rows of ours meet how many of theirs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Cardinality {
    /// One to one.
    #[serde(rename = "1:1")]
    OneToOne,
    /// One to many: keys are unique here.
    #[serde(rename = "1:n")]
    OneToMany,
    /// Many to one: keys are unique there.
    #[serde(rename = "n:1")]
    ManyToOne,
    /// Many to many.
    #[serde(rename = "n:n")]
    ManyToMany,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct JoinCardinality {
    columns: Vec<String>,
    with: Reference,
    is: Cardinality,
}

impl RuleDefinition for JoinCardinality {
    const NAME: &'static str = "join_cardinality";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(found) = shapes::parameters::<JoinCardinalityParameters>(node, diagnostics) else {
            return Vec::new();
        };
        let columns = shapes::named_columns([found.column, found.columns], node, diagnostics);
        if columns.is_empty() {
            return Vec::new();
        }
        let with = references::read(found.with, node.get("with").unwrap_or(node), &columns, diagnostics);
        let rule = |with| JoinCardinality {
            columns: columns.clone(),
            with,
            is: found.is,
        };
        with.into_iter().map(rule).collect()
    }

    fn parse_within(node: &Node, documents: &Documents, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let mut rules = Self::parse(node, diagnostics);
        let place = node.get("with").unwrap_or(node);
        rules.retain(|rule| references::is_declared(&rule.with, place, documents, diagnostics));
        rules
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        JoinCardinalityParameters::json_schema(generator)
    }
}

impl Rule for JoinCardinality {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({ "with": references::canonical(&self.with), "is": self.is })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        scope.refuse_nan_policy(&columns, Self::NAME)?;
        references::check(&self.with, &columns, scope)?;
        let is = self.is;
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Join {
                keys: columns.into_iter().map(|column| column.expr).collect(),
                with: self.with.clone(),
            }],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Join(counts)] => judge(is, counts),
                other => Finding::unexpected(other),
            }),
        }))
    }
}

fn judge(is: Cardinality, counts: &JoinCounts) -> Finding {
    let (one_here, one_there) = match is {
        Cardinality::OneToOne => (true, true),
        Cardinality::OneToMany => (true, false),
        Cardinality::ManyToOne => (false, true),
        Cardinality::ManyToMany => (false, false),
    };
    let broken = (one_here && counts.most_left > 1) || (one_there && counts.most_right > 1);
    let mut finding = Finding {
        broken: (counts.rows > 0).then_some(broken),
        failed_count: u64::from(broken),
        evaluated: Some(counts.rows + counts.unknown),
        message: format!(
            "up to {} rows here and {} there have the same key",
            counts.most_left, counts.most_right
        ),
        ..Finding::default()
    };
    for (name, number) in [
        ("most_rows_here", counts.most_left),
        ("most_rows_there", counts.most_right),
        ("unmatched_rows", counts.unmatched),
        ("unknown_count", counts.unknown),
    ] {
        finding.details.insert(name.into(), number.into());
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_may_repeat_only_where_it_says_n() {
        use Cardinality::{ManyToMany, ManyToOne, OneToMany, OneToOne};
        let broken = |is, most_left, most_right| {
            judge(
                is,
                &JoinCounts {
                    rows: 3,
                    most_left,
                    most_right,
                    ..JoinCounts::default()
                },
            )
            .broken
        };
        assert_eq!(broken(OneToOne, 1, 1), Some(false));
        assert_eq!(broken(OneToOne, 2, 1), Some(true));
        assert_eq!(broken(OneToMany, 1, 5), Some(false));
        assert_eq!(broken(OneToMany, 2, 1), Some(true));
        assert_eq!(broken(ManyToOne, 5, 1), Some(false));
        assert_eq!(broken(ManyToOne, 1, 2), Some(true));
        assert_eq!(broken(ManyToMany, 5, 5), Some(false));
        assert_eq!(judge(OneToOne, &JoinCounts::default()).broken, None);
    }
}
