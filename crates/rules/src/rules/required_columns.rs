//! `required_columns`

use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition};
use crate::rules::schema::{Shape, settled};
use crate::scope::Scope;
use crate::shapes;
use arrow::datatypes::Schema as Fields;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// The batch has these columns, whatever their types and order.
///
/// Names that differ only in case are the same column where that is not ambiguous. A missing column is a failure
/// of this check, not an error. An empty batch is judged like any other; whether the columns have values is the
/// business of `not_null`.
///
/// ## Why it matters
/// The gate closes on the file without the column, before the job that needs it fails half-way.
///
/// ## Example
/// ```yaml
/// - required_columns: [order_id, amount]
/// ```
///
/// ## Holds
/// | amount | order_id | note |
/// |--------|----------|------|
/// | 9.5    | 1        | x    |
/// | null   | null     | null |
///
/// ## Broken
/// | order_id | amont |
/// |----------|-------|
/// | 1        | 9.5   |
/// | null     | null  |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct RequiredColumnsParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct RequiredColumns {
    columns: Vec<String>,
}

impl RuleDefinition for RequiredColumns {
    const NAME: &'static str = "required_columns";
    const FAMILY: Family = Family::Shape;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Schema;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let columns = shapes::key(node, diagnostics);
        columns.into_iter().map(|columns| RequiredColumns { columns }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        RequiredColumnsParameters::json_schema(generator)
    }
}

impl Rule for RequiredColumns {
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

impl RequiredColumns {
    fn judge(&self, schema: &Fields) -> Finding {
        let written: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        Shape::of(&written, schema).finding("every column is there".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};

    #[test]
    fn missing_columns_fail_and_are_named() {
        let rule = RequiredColumns {
            columns: vec!["a".into(), "b".into(), "c".into()],
        };
        let schema = Fields::new(vec![Field::new("B", DataType::Utf8, true)]);
        let finding = rule.judge(&schema);
        assert_eq!((finding.broken, finding.failed_count), (Some(true), 2));
        assert_eq!(finding.details["missing"], json!(["a", "c"]));
        assert_eq!(finding.message, "`a` is missing; `c` is missing");
    }
}
