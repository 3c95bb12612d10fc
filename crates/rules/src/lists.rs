//! Lists of values in documents: read, typed by the column, put in order (S15).

use crate::literals::{constant, member, value_type};
use crate::rule::BindError;
use crate::scope::{Column, Scope};
use comporta_contract::decode::decode;
use comporta_contract::{Diagnostics, Literal, Node, Value};
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, lit};

/// Values shown in a message before it says how many more there are.
const SHOWN_MAX: usize = 10;

/// Reads a list of values. A null among them and an empty list are faults.
pub(crate) fn read(node: &Node, diagnostics: &mut Diagnostics) -> Option<Vec<Literal>> {
    let Some(items) = node.as_list() else {
        diagnostics.push(
            node.error(
                "wrong-type",
                format!("a list of values is expected, not {}", node.kind()),
            )
            .hint("write for example `{ status: [open, closed] }`"),
        );
        return None;
    };
    if items.is_empty() {
        diagnostics.push(node.error("empty-list", "the list of values is empty"));
        return None;
    }
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        if item.value == Value::Null {
            diagnostics.push(
                item.error("null-in-list", "a list of values cannot hold null")
                    .why("null equals nothing, so it would never match")
                    .hint("use `not_null` or `nulls: violate` for missing values, or quotes for the text \"null\""),
            );
            return None;
        }
        values.push(decode::<Literal>(item, diagnostics)?);
    }
    Some(canonical(values))
}

/// Sorted and each once, so that the order in a document does not change a check's id.
pub(crate) fn canonical(mut values: Vec<Literal>) -> Vec<Literal> {
    values.sort();
    values.dedup();
    values
}

/// Whether the value is one of those, or none of them; NULL stays unknown. NaN is in no list.
///
/// # Errors
/// A value is of another type than the column.
pub(crate) fn is_in(column: &Column, values: &[Literal], negated: bool, scope: &Scope) -> Result<Expr, BindError> {
    let mut members = Vec::with_capacity(values.len());
    for value in values {
        let typed = member(&column.data_type, value, scope).map_err(|error| BindError {
            message: format!("{} for column `{}`", error.message, column.name),
            hint: error.hint,
        })?;
        // Zero has two signs, which the engine's comparison of sets tells apart.
        match typed {
            Some(ScalarValue::Float64(Some(0.0))) => {
                members.extend([
                    lit(ScalarValue::Float64(Some(0.0))),
                    lit(ScalarValue::Float64(Some(-0.0))),
                ]);
            }
            Some(ScalarValue::Float32(Some(0.0))) => {
                members.extend([
                    lit(ScalarValue::Float32(Some(0.0))),
                    lit(ScalarValue::Float32(Some(-0.0))),
                ]);
            }
            typed => members.extend(typed.map(lit)),
        }
    }
    if *value_type(&column.data_type) == arrow::datatypes::DataType::Null || members.is_empty() {
        return Ok(constant(column.expr.clone(), negated));
    }
    Ok(column.expr.clone().in_list(members, negated))
}

/// The values for a message: `open`, `closed` and 3 more.
pub(crate) fn shown(values: &[Literal]) -> String {
    let named: Vec<String> = values
        .iter()
        .take(SHOWN_MAX)
        .map(|value| format!("`{value}`"))
        .collect();
    match values.len().checked_sub(SHOWN_MAX).filter(|more| *more > 0) {
        Some(more) => format!("{} and {more} more", named.join(", ")),
        None => named.join(", "),
    }
}
