//! Checks that nobody writes and everybody expects: cells parse as their type, lines have the shape of a row
//! (S17).

use comporta_contract::{Attributes, Diagnostics, Dimension, Node, RuleKind, Severity};
use comporta_rules::{BindError, Bound, Check, Definition, Family, Holds, RowCheck, Rule, RuleDefinition, Scope};
use schemars::{Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// The implicit `type` check of a column, or of the row.
#[derive(Debug, Clone)]
struct Implicit {
    column: Option<String>,
}

impl RuleDefinition for Implicit {
    const NAME: &'static str = "type";
    const FAMILY: Family = Family::Domain;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(_: &Node, _: &mut Diagnostics) -> Vec<Self> {
        Vec::new()
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        Schema::default()
    }
}

impl Rule for Implicit {
    fn columns(&self) -> Vec<String> {
        self.column.iter().cloned().collect()
    }

    fn parameters(&self) -> Value {
        json!({ "implicit": true })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let Some(column) = &self.column else {
            return Ok(Bound::Row(RowCheck {
                holds: Holds::LineParses,
                reason: "the line has not the shape of a row: {value}".into(),
            }));
        };
        let column = scope.resolve(column)?;
        Ok(Bound::Row(RowCheck {
            reason: format!(
                "`{}` is {{value}}, which is no {}",
                column.name,
                comporta_rules::literals::type_name(&column.data_type)
            ),
            holds: Holds::CellParses { column: column.name },
        }))
    }
}

static DEFINITION: Definition = Definition::of::<Implicit>();

/// The implicit check of a column.
pub(crate) fn of_column(name: &str, on_fail: Severity) -> Check {
    check(
        Implicit {
            column: Some(name.to_string()),
        },
        format!("type({name})"),
        on_fail,
    )
}

/// The implicit check of the row.
pub(crate) fn of_row(on_fail: Severity) -> Check {
    check(Implicit { column: None }, "row shape".to_string(), on_fail)
}

fn check(rule: Implicit, name: String, on_fail: Severity) -> Check {
    Check {
        definition: &DEFINITION,
        rule: Arc::new(rule),
        attributes: Attributes::default(),
        kind: RuleKind::Row,
        severity: on_fail,
        dimension: DEFINITION.dimension,
        must_be: None,
        name,
        place: String::new(),
    }
}
