//! `schema`

use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::{Scope, match_name};
use crate::{shapes, types};
use arrow::datatypes::Schema as Fields;
use comporta_contract::nearest::list;
use comporta_contract::source::TypeName;
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// The batch has the columns it should, with the types they should have.
///
/// `int` accepts integers of any width, `int64` only itself; `decimal(12,2)` wants that precision and scale,
/// `decimal` any. Names that differ only in case are the same column where that is not ambiguous. Further columns
/// are allowed unless `extra: forbid`, and the order is free unless `order: strict`. A missing column is a failure
/// of this check, not an error. An empty batch is judged like any other.
///
/// ## Why it matters
/// A column renamed upstream is all nulls downstream, and every check of it falls silent.
///
/// ## Example
/// ```yaml
/// - schema: { columns: { order_id: int, amount: number }, extra: forbid }
/// ```
///
/// ## Holds
/// | order_id | amount |
/// |----------|--------|
/// | 1        | 9.5    |
/// | null     | 7      |
///
/// ## Broken
/// | order_id | note  |
/// |----------|-------|
/// | 1        | hello |
/// | null     | null  |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SchemaParameters")]
pub struct SchemaRule {
    /// Types by column.
    #[schemars(with = "IndexMap<String, String>")]
    columns: IndexMap<String, TypeName>,
    /// Whether the batch may have further columns. Default: `allow`.
    #[serde(default)]
    extra: Extra,
    /// Whether the columns must stand in the order written. Default: `free`.
    #[serde(default)]
    order: Order,
}

/// What further columns mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Extra {
    /// Nothing.
    #[default]
    Allow,
    /// They break the check.
    Forbid,
}

/// What the order of columns means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Nothing.
    #[default]
    Free,
    /// It must be the one written.
    Strict,
}

impl RuleDefinition for SchemaRule {
    const NAME: &'static str = "schema";
    const FAMILY: Family = Family::Shape;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Schema;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(rule) = shapes::parameters::<SchemaRule>(node, diagnostics) else {
            return Vec::new();
        };
        if rule.columns.is_empty() {
            diagnostics.push(
                node.get("columns")
                    .unwrap_or(node)
                    .error("no-columns", "`schema` lists no columns")
                    .why("a check of nothing would always be green")
                    .hint("write for example `columns: { order_id: int64, amount: decimal(12,2) }`"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <SchemaRule as JsonSchema>::json_schema(generator)
    }
}

impl Rule for SchemaRule {
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    fn parameters(&self) -> Value {
        let columns: Vec<Value> = self.columns.iter().map(|(name, of)| json!([name, of])).collect();
        json!({ "columns": columns, "extra": self.extra, "order": self.order })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        Ok(settled(self.judge(scope.schema)))
    }
}

impl SchemaRule {
    fn judge(&self, schema: &Fields) -> Finding {
        let written: Vec<&str> = self.columns.keys().map(String::as_str).collect();
        let mut shape = Shape::of(&written, schema);
        let mut wrong_types = Vec::new();
        for (name, expected) in &self.columns {
            let Some(at) = shape.place(name) else { continue };
            if let Err(difference) =
                types::matches_at(schema.field(at).name(), &expected.0, schema.field(at).data_type())
            {
                wrong_types.push(difference);
            }
        }
        if self.extra == Extra::Forbid {
            let known: Vec<usize> = shape.found.iter().map(|(_, at)| *at).collect();
            let fields = schema.fields().iter().enumerate();
            let extra: Vec<&str> = fields
                .filter(|(at, _)| !known.contains(at))
                .map(|(_, field)| field.name().as_str())
                .collect();
            shape.report("extra", "not expected", &extra);
        }
        if self.order == Order::Strict {
            shape.check_order(schema);
        }
        if !wrong_types.is_empty() {
            shape.problems.extend(wrong_types.iter().cloned());
            shape.details.insert("wrong_type".into(), wrong_types.into());
        }
        shape.finding("every column is as it should be".to_string())
    }
}

/// A check that the schema alone decides.
pub(super) fn settled(finding: Finding) -> Bound {
    Bound::Table(TableCheck {
        measures: Vec::new(),
        judge: Arc::new(move |_| finding.clone()),
    })
}

/// Where the columns that a rule names are, and what is wrong with them.
pub(super) struct Shape<'n> {
    /// Columns found, in the order written, with their place in the schema.
    found: Vec<(&'n str, usize)>,
    problems: Vec<String>,
    details: IndexMap<String, Value>,
}

impl<'n> Shape<'n> {
    pub(super) fn of(written: &[&'n str], schema: &Fields) -> Self {
        let mut shape = Shape {
            found: Vec::new(),
            problems: Vec::new(),
            details: IndexMap::new(),
        };
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let mut missing = Vec::new();
        for &name in written {
            match match_name(name, &names) {
                Ok(Some(exact)) => {
                    let at = names.iter().position(|known| *known == exact).unwrap_or_default();
                    shape.found.push((name, at));
                }
                Ok(None) => missing.push(name),
                Err(ambiguous) => shape.problems.push(ambiguous.message),
            }
        }
        shape.report("missing", "missing", &missing);
        shape
    }

    /// Where a column is, if it is there.
    fn place(&self, written: &str) -> Option<usize> {
        self.found.iter().find(|(name, _)| *name == written).map(|(_, at)| *at)
    }

    fn report(&mut self, key: &str, what: &str, names: &[&str]) {
        if !names.is_empty() {
            self.problems
                .extend(names.iter().map(|name| format!("`{name}` is {what}")));
            self.details.insert(key.into(), json!(names));
        }
    }

    /// The columns found stand in the order written; others may stand between them.
    pub(super) fn check_order(&mut self, schema: &Fields) {
        if self.found.is_sorted_by(|(_, before), (_, behind)| before < behind) {
            return;
        }
        let mut places: Vec<usize> = self.found.iter().map(|(_, at)| *at).collect();
        places.sort_unstable();
        let order: Vec<&str> = places.into_iter().map(|at| schema.field(at).name().as_str()).collect();
        self.problems
            .push(format!("the columns stand in the order {}", list(&order)));
        self.details.insert("order".into(), json!(order));
    }

    pub(super) fn finding(self, well: String) -> Finding {
        const SHOWN: usize = 5;
        let mut message = match self.problems.is_empty() {
            true => well,
            false => self.problems[..self.problems.len().min(SHOWN)].join("; "),
        };
        if self.problems.len() > SHOWN {
            message = format!("{message}; and {} more", self.problems.len() - SHOWN);
        }
        Finding {
            broken: Some(!self.problems.is_empty()),
            failed_count: self.problems.len() as u64,
            message,
            details: self.details,
            ..Finding::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field};
    use comporta_contract::Text;

    fn parse(yaml: &str) -> Result<SchemaRule, Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        SchemaRule::parse(&node, &mut diagnostics).pop().ok_or(diagnostics)
    }

    fn judge(yaml: &str, columns: &[(&str, DataType)]) -> Finding {
        let fields: Vec<Field> = columns
            .iter()
            .map(|(name, of)| Field::new(*name, of.clone(), true))
            .collect();
        parse(yaml).unwrap().judge(&Fields::new(fields))
    }

    #[test]
    fn what_is_wrong_is_listed_and_counted() {
        let finding = judge(
            "{ columns: { id: int, amount: 'decimal(12,2)', day: date }, extra: forbid }",
            &[
                ("ID", DataType::Int16),
                ("amount", DataType::Float64),
                ("note", DataType::Utf8),
            ],
        );
        assert_eq!((finding.broken, finding.failed_count), (Some(true), 3));
        assert_eq!(finding.details["missing"], json!(["day"]));
        assert_eq!(finding.details["extra"], json!(["note"]));
        assert_eq!(
            finding.details["wrong_type"],
            json!(["amount: expected decimal(12,2), found double"])
        );
        assert!(
            finding
                .message
                .starts_with("`day` is missing; `note` is not expected; amount: "),
            "{}",
            finding.message
        );
    }

    #[test]
    fn a_width_left_out_fits_any_and_further_columns_are_allowed() {
        let columns = [("x", DataType::Utf8), ("id", DataType::Int16)];
        assert_eq!(judge("{ columns: { id: int } }", &columns).broken, Some(false));
        assert_eq!(judge("{ columns: { id: int64 } }", &columns).broken, Some(true));
    }

    #[test]
    fn order_is_free_unless_it_is_strict() {
        let columns = [("b", DataType::Int64), ("x", DataType::Int64), ("a", DataType::Int64)];
        assert_eq!(judge("{ columns: { a: int, b: int } }", &columns).broken, Some(false));
        let strict = judge("{ columns: { a: int, b: int }, order: strict }", &columns);
        assert_eq!(
            (strict.broken, &strict.details["order"]),
            (Some(true), &json!(["b", "a"]))
        );
        assert_eq!(
            judge("{ columns: { b: int, a: int }, order: strict }", &columns).broken,
            Some(false)
        );
    }

    #[test]
    fn two_columns_that_differ_in_case_are_a_problem_of_the_batch() {
        let columns = [("id", DataType::Int64), ("ID", DataType::Int64)];
        assert_eq!(judge("{ columns: { Id: int } }", &columns).broken, Some(true));
        assert_eq!(judge("{ columns: { ID: int } }", &columns).broken, Some(false));
    }

    #[test]
    fn types_and_words_that_are_none_are_faults() {
        for yaml in [
            "{ columns: { a: strng } }",
            "{ columns: {} }",
            "{ columns: { a: int }, extra: deny }",
            "{ columns: { a: int }, ordr: strict }",
            "{}",
            "[a, b]",
        ] {
            assert!(parse(yaml).unwrap_err().has_errors(), "{yaml}");
        }
    }
}
