//! `compare`

use crate::kernels;
use crate::literals;
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::{Column, Scope, is_nan};
use comporta_contract::decode::decode;
use comporta_contract::nearest::suggest;
use comporta_contract::threshold::Operator;
use comporta_contract::{Diagnostic, Diagnostics, Dimension, Literal, Node, RuleKind, Value as NodeValue};
use datafusion_expr::Expr;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// Two columns, or a column and a value, stand in an order.
///
/// Numbers are compared by value whatever their types: an integer is not rounded to a double. A decimal fraction
/// beside a float is the float that is written so. A date beside a timestamp is the start of its day, as a value it
/// is the whole day; timestamps without zone are read in the document's time zone where the other side has one. NaN
/// satisfies no comparison; a null on either side is unknown.
///
/// ## Why it matters
/// A parcel that arrives before it is sent passes every check of either date.
///
/// ## Example
/// ```yaml
/// - compare: { left: paid, operator: <=, right: price }
/// - compare: { left: paid, operator: ">=", right: { value: 0 } }
/// ```
///
/// ## Holds
/// | paid | price |
/// |------|-------|
/// | 5    | 7.5   |
/// | 7.5  | 7.5   |
/// | null | 7.5   |
///
/// ## Broken
/// | paid | price | broken |
/// |------|-------|--------|
/// | 8    | 7.5   | yes    |
/// | 5    | 7.5   | no     |
/// | -1   | 7.5   | yes    |
/// | null | 7.5   | no     |
#[derive(Debug, Clone, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
pub struct CompareParameters {
    /// A column, or a value as `{value: …}`.
    left: SideParameters,
    /// How the two must compare.
    operator: OperatorWord,
    /// A column, or a value as `{value: …}`.
    right: SideParameters,
}

/// A column or a value.
#[derive(Debug, Clone, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum SideParameters {
    /// The name of a column.
    Column(String),
    /// A value.
    Value {
        /// The value.
        value: Literal,
    },
}

/// A comparison sign.
#[derive(Debug, Clone, JsonSchema)]
#[expect(missing_docs, reason = "the signs say it")]
pub enum OperatorWord {
    #[serde(rename = "=")]
    Equal,
    #[serde(rename = "!=")]
    NotEqual,
    #[serde(rename = "<")]
    Less,
    #[serde(rename = "<=")]
    LessOrEqual,
    #[serde(rename = ">")]
    Greater,
    #[serde(rename = ">=")]
    GreaterOrEqual,
}

/// The rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    left: Side,
    operator: Operator,
    right: Side,
}

#[derive(Debug, Clone, PartialEq)]
enum Side {
    Column(String),
    Value(Literal),
}

const SIGNS: &[(&str, Operator)] = &[
    ("=", Operator::Equal),
    ("!=", Operator::NotEqual),
    ("<", Operator::Less),
    ("<=", Operator::LessOrEqual),
    (">", Operator::Greater),
    (">=", Operator::GreaterOrEqual),
    ("==", Operator::Equal),
    ("<>", Operator::NotEqual),
];

impl RuleDefinition for Compare {
    const NAME: &'static str = "compare";
    const FAMILY: Family = Family::AcrossColumns;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        const KEYS: &[&str] = &["left", "operator", "right"];
        if !matches!(node.value, NodeValue::Map(_)) {
            diagnostics.push(
                node.error("wrong-type", format!("a mapping is expected, not {}", node.kind()))
                    .hint("write for example `compare: { left: start, operator: <=, right: end }`"),
            );
            return Vec::new();
        }
        let mut faulty = false;
        for entry in node
            .entries()
            .iter()
            .filter(|entry| !KEYS.contains(&entry.key.as_str()))
        {
            faulty = true;
            diagnostics.push(
                Diagnostic::error("unknown-key", format!("unknown key `{}`", entry.key))
                    .at(&node.text, entry.key_span)
                    .hint(suggest(&entry.key, KEYS)),
            );
        }
        for key in KEYS.iter().filter(|key| node.get(key).is_none()) {
            faulty = true;
            diagnostics.push(node.error("invalid-value", format!("`{key}` is missing")));
        }
        let (Some(left), Some(operator), Some(right)) = (node.get("left"), node.get("operator"), node.get("right"))
        else {
            return Vec::new();
        };
        let (left_side, sign, right_side) = (
            side(left, diagnostics),
            sign(operator, diagnostics),
            side(right, diagnostics),
        );
        let (Some(left_side), Some(operator), Some(right_side)) = (left_side, sign, right_side) else {
            return Vec::new();
        };
        if let (Side::Value(_), Side::Value(_)) = (&left_side, &right_side) {
            faulty = true;
            diagnostics.push(
                node.error("compare-values", "both sides are values")
                    .why("the check would say the same of every row")
                    .hint("name a column on one side"),
            );
        }
        if left_side == right_side {
            faulty = true;
            diagnostics.push(
                node.error("compare-itself", "both sides are the same column")
                    .why("the check would say the same of every row"),
            );
        }
        if faulty {
            return Vec::new();
        }
        vec![Compare {
            left: left_side,
            operator,
            right: right_side,
        }]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        CompareParameters::json_schema(generator)
    }
}

fn sign(node: &Node, diagnostics: &mut Diagnostics) -> Option<Operator> {
    let written = node.as_text().unwrap_or_default();
    let found = SIGNS
        .iter()
        .find(|(sign, _)| *sign == written.trim())
        .map(|(_, operator)| *operator);
    if found.is_none() {
        let known: Vec<&str> = SIGNS[..6].iter().map(|(sign, _)| *sign).collect();
        diagnostics.push(
            node.error("unknown-word", format!("`{written}` is no comparison"))
                .hint(format!("one of {}", comporta_contract::nearest::list(&known))),
        );
    }
    found
}

fn side(node: &Node, diagnostics: &mut Diagnostics) -> Option<Side> {
    match &node.value {
        NodeValue::Text(name) if !name.trim().is_empty() => return Some(Side::Column(name.clone())),
        NodeValue::Map(entries) => {
            if let [entry] = entries.as_slice()
                && entry.key == "value"
            {
                return decode::<Literal>(&entry.value, diagnostics).map(Side::Value);
            }
        }
        _ => {}
    }
    diagnostics.push(
        node.error(
            "wrong-type",
            format!("a column or `{{ value: … }}` is expected, not {}", node.kind()),
        )
        .hint("write a value as `{ value: 5 }`"),
    );
    None
}

fn words(operator: Operator) -> &'static str {
    match operator {
        Operator::Equal => "equal to",
        Operator::NotEqual => "different from",
        Operator::Less => "less than",
        Operator::LessOrEqual => "at most",
        Operator::Greater => "greater than",
        Operator::GreaterOrEqual => "at least",
    }
}

fn turned(operator: Operator) -> Operator {
    match operator {
        Operator::Less => Operator::Greater,
        Operator::LessOrEqual => Operator::GreaterOrEqual,
        Operator::Greater => Operator::Less,
        Operator::GreaterOrEqual => Operator::LessOrEqual,
        same => same,
    }
}

impl Rule for Compare {
    fn columns(&self) -> Vec<String> {
        let sides = [&self.left, &self.right].into_iter();
        sides
            .filter_map(|side| match side {
                Side::Column(name) => Some(name.clone()),
                Side::Value(_) => None,
            })
            .collect()
    }

    fn parameters(&self) -> Value {
        let said = |side: &Side| match side {
            Side::Column(_) => json!("column"),
            Side::Value(value) => json!({ "value": value }),
        };
        let sign = SIGNS
            .iter()
            .find(|(_, operator)| *operator == self.operator)
            .map(|(sign, _)| *sign);
        json!({ "left": said(&self.left), "operator": sign, "right": said(&self.right) })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let (holds, first, operator, other) = match (&self.left, &self.right) {
            (Side::Column(left), Side::Column(right)) => {
                let (left, right) = (scope.column(left)?, scope.column(right)?);
                let holds = kernels::compare::columns(&left, self.operator, &right, scope)?;
                (holds, left.name, self.operator, format!("`{}`", right.name))
            }
            (Side::Column(name), Side::Value(value)) => {
                let column = scope.column(name)?;
                (
                    with_value(&column, self.operator, value, scope)?,
                    column.name,
                    self.operator,
                    value.to_string(),
                )
            }
            (Side::Value(value), Side::Column(name)) => {
                let column = scope.column(name)?;
                let operator = turned(self.operator);
                (
                    with_value(&column, operator, value, scope)?,
                    column.name,
                    operator,
                    value.to_string(),
                )
            }
            (Side::Value(_), Side::Value(_)) => return Err(BindError::new("both sides are values")),
        };
        Ok(Bound::Row(RowCheck {
            holds: Holds::Expr(holds),
            reason: format!("`{first}` is {{value}}, not {} {other}", words(operator)),
        }))
    }
}

/// NaN is different from every value and violates `!=` all the same (S12).
fn with_value(column: &Column, operator: Operator, value: &Literal, scope: &Scope) -> Result<Expr, BindError> {
    let compared = literals::compare(column, operator, value, scope)?;
    Ok(
        match literals::value_type(&column.data_type).is_floating() && operator == Operator::NotEqual {
            true => compared.and(is_nan(column.expr.clone()).is_not_true()),
            false => compared,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema as Fields};
    use chrono::DateTime;
    use comporta_contract::Text;
    use std::collections::BTreeSet;

    fn parse(yaml: &str) -> Result<Compare, Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        Compare::parse(&node, &mut diagnostics).pop().ok_or(diagnostics)
    }

    fn bind(yaml: &str) -> Result<(String, String), BindError> {
        let schema = Fields::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("m", DataType::Int64, true),
            Field::new("x", DataType::Float64, true),
            Field::new("t", DataType::Utf8, true),
        ]);
        let tables = BTreeSet::new();
        let scope = Scope::new(&schema, chrono_tz::Tz::UTC, DateTime::UNIX_EPOCH, &tables, &[]);
        match parse(yaml).unwrap().bind(&scope)? {
            Bound::Row(RowCheck {
                holds: Holds::Expr(holds),
                reason,
            }) => Ok((holds.to_string(), reason)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn equal_types_take_the_operator_of_the_engine_and_others_are_compared_by_value() {
        let (holds, reason) = bind("{ left: n, operator: <, right: M }").unwrap();
        assert_eq!(
            (holds.as_str(), reason.as_str()),
            ("n < m", "`n` is {value}, not less than `m`")
        );
        assert_eq!(
            bind("{ left: n, operator: <>, right: x }").unwrap().0,
            "not_equal_by_value(n, x)"
        );
        assert_eq!(
            bind("{ left: { value: 5 }, operator: <, right: n }").unwrap().0,
            "n > Int64(5)"
        );
    }

    #[test]
    fn nan_violates_even_a_difference() {
        assert!(
            bind("{ left: x, operator: '!=', right: { value: 5 } }")
                .unwrap()
                .0
                .contains("isnan(x) IS NOT TRUE")
        );
    }

    #[test]
    fn types_that_have_nothing_in_common_are_an_error_of_the_check() {
        assert!(
            bind("{ left: n, operator: =, right: t }")
                .unwrap_err()
                .message
                .contains("cannot be compared")
        );
        assert!(bind("{ left: n, operator: =, right: { value: abc } }").is_err());
        assert!(bind("{ left: n, operator: =, right: nobody }").is_err());
    }

    #[test]
    fn slips_are_faults() {
        for yaml in [
            "{ left: a, operator: <= }",
            "{ left: a, operator: =<, right: b }",
            "{ left: 5, operator: =, right: b }",
            "{ left: { value: 5 }, operator: =, right: { value: 5 } }",
            "{ left: a, operator: =, right: a }",
            "{ left: a, operator: =, right: b, rihgt: c }",
            "{ left: a, operator: =, right: { valeu: 1 } }",
            "{ left: a, operator: =, right: { value: [1] } }",
            "[a, b]",
        ] {
            assert!(parse(yaml).unwrap_err().has_errors(), "{yaml}");
        }
    }
}
