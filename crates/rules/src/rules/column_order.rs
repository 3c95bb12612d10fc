//! `column_order`

use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition};
use crate::rules::schema::{Shape, settled};
use crate::scope::Scope;
use crate::shapes;
use arrow::datatypes::Schema as Fields;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// These columns stand in this order.
///
/// Other columns may stand before, between and behind them. A missing column is a failure of this check, not an
/// error. An empty batch is judged like any other.
///
/// ## Why it matters
/// A reader that takes columns by their place puts names where amounts should be and does not notice.
///
/// ## Example
/// ```yaml
/// - column_order: [order_id, line, amount]
/// ```
///
/// ## Holds
/// | order_id | line | note | amount |
/// |----------|------|------|--------|
/// | 1        | 1    | x    | 9.5    |
/// | null     | null | null | null   |
///
/// ## Broken
/// | order_id | amount | line |
/// |----------|--------|------|
/// | 1        | 9.5    | 1    |
/// | null     | null   | null |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct ColumnOrderParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct ColumnOrder {
    columns: Vec<String>,
}

impl RuleDefinition for ColumnOrder {
    const NAME: &'static str = "column_order";
    const FAMILY: Family = Family::Shape;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Schema;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(columns) = shapes::key(node, diagnostics) else {
            return Vec::new();
        };
        if columns.len() < 2 {
            diagnostics.push(
                node.error("too-few-columns", "an order needs two columns or more")
                    .hint("`required_columns` says that a column is there"),
            );
            return Vec::new();
        }
        vec![ColumnOrder { columns }]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        ColumnOrderParameters::json_schema(generator)
    }
}

impl Rule for ColumnOrder {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        Ok(settled(self.judge(scope.schema)))
    }
}

impl ColumnOrder {
    fn judge(&self, schema: &Fields) -> Finding {
        let written: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let mut shape = Shape::of(&written, schema);
        shape.check_order(schema);
        shape.finding("the columns stand in their order".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use comporta_contract::Text;

    fn judge(written: &[&str], there: &[&str]) -> Finding {
        let columns = written.iter().map(|name| (*name).to_string()).collect();
        let fields: Vec<Field> = there
            .iter()
            .map(|name| Field::new(*name, DataType::Utf8, true))
            .collect();
        ColumnOrder { columns }.judge(&Fields::new(fields))
    }

    #[test]
    fn others_may_stand_between_and_a_missing_one_fails() {
        assert_eq!(judge(&["a", "b"], &["x", "a", "y", "B", "z"]).broken, Some(false));
        let turned = judge(&["a", "b"], &["b", "a"]);
        assert_eq!(
            (turned.broken, turned.message.as_str()),
            (Some(true), "the columns stand in the order `b`, `a`")
        );
        assert_eq!(judge(&["a", "b"], &["a"]).details["missing"], json!(["b"]));
    }

    #[test]
    fn one_column_has_no_order() {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", "[a]"), &mut diagnostics).unwrap();
        assert!(ColumnOrder::parse(&node, &mut diagnostics).is_empty() && diagnostics.has_errors());
    }
}
