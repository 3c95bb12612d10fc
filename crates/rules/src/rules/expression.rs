//! `expression`

use crate::rule::{BindError, Bound, Family, Rule, RuleDefinition};
use crate::rules::sql::Body;
use crate::scope::Scope;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// A boolean expression over the row is true.
///
/// The expression is SQL over the columns of one row: arithmetic, comparisons, `CASE`, and functions that look
/// at nothing but their arguments. Names are found without regard to case where that is not ambiguous; odd ones
/// stand in double quotes, fields of structs as `a['b']`. A number with a point is an exact decimal, and
/// arithmetic never wraps: a row on which the expression cannot be computed breaks it. NULL is unknown. NaN is
/// as in SQL engines, equal to itself and greater than every number. `now()` is the one clock reading of the run.
///
/// ## Why it matters
/// What a row must satisfy is often a relation between its columns that no rule has a name for.
///
/// ## Example
/// ```yaml
/// - expression: quantity * amount >= 0
/// ```
///
/// ## Holds
/// | quantity | amount |
/// |----------|--------|
/// | 2        | 9.5    |
/// | 0        | -1.5   |
/// | null     | -1.5   |
///
/// ## Broken
/// | quantity | amount | broken |
/// |----------|--------|--------|
/// | 2        | 9.5    | no     |
/// | 2        | -9.5   | yes    |
/// | null     | -9.5   | no     |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct ExpressionParameters(#[allow(dead_code, reason = "only its schema is used")] String);

/// The rule.
#[derive(Debug, Clone)]
pub struct Expression {
    body: Body,
}

impl RuleDefinition for Expression {
    const NAME: &'static str = "expression";
    const FAMILY: Family = Family::AcrossColumns;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        if node.as_text().is_none_or(|text| text.trim().is_empty()) {
            diagnostics.push(
                node.error(
                    "wrong-type",
                    format!("an expression in text is expected, not {}", node.kind()),
                )
                .hint("write for example `expression: amount >= 0`"),
            );
            return Vec::new();
        }
        match crate::sql::read_expression(node) {
            Ok(expression) => vec![Expression {
                body: Body::Holds(expression),
            }],
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                Vec::new()
            }
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        ExpressionParameters::json_schema(generator)
    }
}

impl Rule for Expression {
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    fn parameters(&self) -> Value {
        self.body.parameters()
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        self.body.bind(scope, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::Holds;
    use arrow::datatypes::{DataType, Field, Schema as Fields};
    use chrono::DateTime;
    use comporta_contract::{Literal, Text};
    use std::collections::BTreeSet;

    fn rule(yaml: &str) -> Result<Expression, Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        Expression::parse(&node, &mut diagnostics).pop().ok_or(diagnostics)
    }

    #[test]
    fn what_is_no_expression_is_a_fault_of_the_document() {
        for yaml in [
            "12",
            "[a > 1]",
            "''",
            "amount >",
            "select 1",
            "amount > 1; drop table x",
            "sum(a) > 1",
        ] {
            assert!(rule(yaml).is_err(), "{yaml}");
        }
    }

    #[test]
    fn blanks_and_comments_are_no_part_of_what_it_says() {
        assert_eq!(
            rule("a  >  1").unwrap().parameters(),
            rule("a > 1 -- as agreed").unwrap().parameters()
        );
    }

    #[test]
    fn missing_markers_count_in_expressions() {
        let schema = Fields::new(vec![Field::new("a", DataType::Int64, true)]);
        let (tables, missing) = (BTreeSet::new(), [Literal::Number((-1).into())]);
        let scope = Scope::new(&schema, chrono_tz::Tz::UTC, DateTime::UNIX_EPOCH, &tables, &missing);
        let Ok(Bound::Row(check)) = rule("a > 1").unwrap().bind(&scope) else {
            panic!("no row check")
        };
        let Holds::Expr(holds) = check.holds else {
            panic!("no expression")
        };
        assert_eq!(
            holds.to_string(),
            "CASE WHEN a IN ([Int64(-1)]) THEN Int64(NULL) ELSE a END > Int64(1)"
        );
        assert_eq!(check.reason, "`a > 1` is not true");
    }
}
