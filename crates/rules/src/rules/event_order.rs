//! `event_order`

use crate::kernels::compare;
use crate::literals::{type_name, value_type};
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::shapes;
use arrow::datatypes::DataType;
use comporta_contract::nearest::list;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::Operator;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind, Value as NodeValue};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, lit, when};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The events of a row happened in this order.
///
/// Each date or timestamp is not before any that stands in front of it; with `strict: true` it is after them. Events
/// that have not happened yet (nulls) are passed over, and a row with fewer than two events is unknown. A date
/// beside a timestamp is the start of its day; timestamps without zone are read in the document's time zone where
/// another has one.
///
/// ## Why it matters
/// An order shipped before it was paid is a clock that is wrong, or a process that is.
///
/// ## Example
/// ```yaml
/// - event_order: [created_at, paid_at, shipped_at]
/// ```
///
/// ## Holds
/// | created_at           | paid_at              | shipped_at           |
/// |----------------------|----------------------|----------------------|
/// | 2026-01-01T08:00:00Z | 2026-01-01T08:00:00Z | 2026-01-01T17:30:00Z |
/// | 2026-01-01T09:00:00Z | null                 | 2026-01-01T10:00:00Z |
/// | 2026-01-01T10:00:00Z | null                 | null                 |
///
/// ## Broken
/// | created_at           | paid_at              | shipped_at           | broken |
/// |----------------------|----------------------|----------------------|--------|
/// | 2026-01-01T08:00:00Z | 2026-01-01T07:00:00Z | 2026-01-01T17:30:00Z | yes    |
/// | 2026-01-01T09:00:00Z | null                 | 2026-01-01T08:59:59Z | yes    |
/// | 2026-01-01T10:00:00Z | 2026-01-01T11:00:00Z | null                 | no     |
#[derive(Debug, Clone, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum EventOrderParameters {
    /// The columns, first event first.
    Columns(OneOrMany),
    /// The same, with options.
    Named(EventOrder),
}

/// The rule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventOrder {
    /// The columns, first event first.
    columns: Vec<String>,
    /// Whether two events may not happen at the same time. Default: false.
    #[serde(default)]
    strict: bool,
}

/// Events of one row. Every pair is compared, since what stands between them may be null.
const EVENTS_MAX: usize = 24;

impl RuleDefinition for EventOrder {
    const NAME: &'static str = "event_order";
    const FAMILY: Family = Family::Time;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let rule = match &node.value {
            NodeValue::Map(_) => shapes::parameters::<EventOrder>(node, diagnostics),
            _ => shapes::key(node, diagnostics).map(|columns| EventOrder { columns, strict: false }),
        };
        let Some(rule) = rule else { return Vec::new() };
        let place = node.get("columns").unwrap_or(node);
        let repeated = rule
            .columns
            .iter()
            .enumerate()
            .find(|(at, name)| rule.columns[..*at].contains(name));
        if let Some((_, name)) = repeated {
            diagnostics.push(place.error("repeated-column", format!("`{name}` stands twice in the order")));
            return Vec::new();
        }
        if !(2..=EVENTS_MAX).contains(&rule.columns.len()) {
            diagnostics.push(
                place
                    .error("event-order-length", format!("an order has 2 to {EVENTS_MAX} columns"))
                    .hint("write for example `event_order: [created_at, paid_at]`"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        EventOrderParameters::json_schema(generator)
    }
}

impl Rule for EventOrder {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({ "strict": self.strict })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        for column in &columns {
            let data_type = value_type(&column.data_type);
            if !matches!(
                data_type,
                DataType::Date32 | DataType::Date64 | DataType::Timestamp(..) | DataType::Null
            ) {
                return Err(BindError::new(format!(
                    "`event_order` is for dates and timestamps, column `{}` is {}",
                    column.name,
                    type_name(data_type)
                )));
            }
        }
        let operator = if self.strict {
            Operator::Less
        } else {
            Operator::LessOrEqual
        };
        let mut pairs = Vec::new();
        for (at, later) in columns.iter().enumerate() {
            for earlier in &columns[..at] {
                pairs.push(compare::columns(earlier, operator, later, scope)?);
            }
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        Ok(Bound::Row(RowCheck {
            holds: Holds::Expr(in_order(pairs)?),
            reason: format!("{} are not in this order", list(&names)),
        }))
    }
}

/// FALSE if any pair is out of order, TRUE if any pair is known, else NULL.
fn in_order(pairs: Vec<Expr>) -> Result<Expr, BindError> {
    let any = |test: fn(Expr) -> Expr| pairs.iter().cloned().map(test).reduce(Expr::or);
    let (Some(broken), Some(known)) = (any(Expr::is_false), any(Expr::is_not_null)) else {
        return Err(BindError::new("an order needs two columns or more"));
    };
    when(broken, lit(false))
        .when(known, lit(true))
        .otherwise(lit(ScalarValue::Boolean(None)))
        .map_err(|error| BindError::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{Field, Schema as Fields, TimeUnit};
    use chrono::DateTime;
    use comporta_contract::Text;
    use std::collections::BTreeSet;

    fn parse(yaml: &str) -> Option<EventOrder> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        let rule = EventOrder::parse(&node, &mut diagnostics).pop();
        assert_eq!(rule.is_none(), diagnostics.has_errors(), "{yaml}");
        rule
    }

    fn bind(yaml: &str) -> Result<String, BindError> {
        let schema = Fields::new(vec![
            Field::new("day", DataType::Date32, true),
            Field::new("other", DataType::Date32, true),
            Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
            Field::new("n", DataType::Int64, true),
        ]);
        let tables = BTreeSet::new();
        let scope = Scope::new(&schema, chrono_tz::Tz::UTC, DateTime::UNIX_EPOCH, &tables, &[]);
        match parse(yaml).unwrap().bind(&scope)? {
            Bound::Row(RowCheck {
                holds: Holds::Expr(holds),
                ..
            }) => Ok(holds.to_string()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_pair_is_compared_and_nulls_are_passed_over() {
        assert_eq!(
            bind("[day, other]").unwrap(),
            "CASE WHEN day <= other IS FALSE THEN Boolean(false) WHEN day <= other IS NOT NULL THEN Boolean(true) ELSE Boolean(NULL) END"
        );
        let three = bind("{ columns: [day, other, at], strict: true }").unwrap();
        for pair in ["day < other", "less_by_value(day, at)", "less_by_value(other, at)"] {
            assert!(three.contains(pair), "{three}");
        }
    }

    #[test]
    fn what_is_no_time_is_an_error_of_the_check() {
        assert!(bind("[day, n]").unwrap_err().message.contains("column `n` is int64"));
    }

    #[test]
    fn slips_are_faults() {
        for yaml in [
            "[a]",
            "a",
            "[a, a]",
            "{ columns: [a, b], strcit: true }",
            "{ columns: [a, a] }",
            "{}",
            "[]",
            "7",
        ] {
            assert_eq!(parse(yaml), None, "{yaml}");
        }
    }
}
