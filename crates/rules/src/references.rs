//! Keys that other data refers to: a declared table, a file, or values written in the document (S14).

use crate::literals::member;
use crate::rule::{BindError, Documents, Reference};
use crate::scope::{Column, Scope};
use comporta_contract::decode::decode;
use comporta_contract::nearest::{list, suggest};
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostics, Literal, Node, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::json;

/// Where keys are: one of `table`, `path` and `values`.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct References {
    /// A table declared under `tables:`.
    table: Option<String>,
    /// A file, read without options.
    path: Option<String>,
    /// Values written here; of a composite key, lists of values.
    values: Option<Written>,
    /// The key column there; the same name as ours if left out.
    column: Option<OneOrMany>,
    /// The key columns there, in the order of ours.
    columns: Option<OneOrMany>,
}

/// Values that are read from their node, so that numbers stay exact.
#[derive(Debug, Clone, Copy)]
struct Written;

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Written)
    }
}

impl JsonSchema for Written {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Keys".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let literal = generator.subschema_for::<Literal>();
        json_schema!({
            "type": "array",
            "minItems": 1,
            "items": { "anyOf": [literal, { "type": "array", "items": literal }] },
        })
    }
}

/// Reads the mapping at `node` for a key of ours.
pub(crate) fn read(
    references: References,
    node: &Node,
    ours: &[String],
    diagnostics: &mut Diagnostics,
) -> Option<Reference> {
    let named: Vec<String> = [references.column, references.columns]
        .into_iter()
        .flatten()
        .flat_map(|names| names.0)
        .collect();
    let columns = if named.is_empty() { ours.to_vec() } else { named };
    if columns.len() != ours.len() {
        diagnostics.push(
            node.error(
                "key-width",
                format!("{} columns refer to {}", ours.len(), list(&columns)),
            )
            .why("keys are compared part by part")
            .hint("name as many columns there as here, in the same order"),
        );
        return None;
    }
    match (references.table, references.path, references.values) {
        (Some(table), None, None) => Some(Reference::Table { table, columns }),
        (None, Some(path), None) => Some(Reference::Path { path, columns }),
        (None, None, Some(_)) => {
            let keys = node.get("values").map(|values| keys(values, ours.len(), diagnostics));
            keys.flatten().map(Reference::Values)
        }
        _ => {
            diagnostics.push(
                node.error("reference", "exactly one of `table`, `path` and `values` is expected")
                    .why("it says where the referenced keys are"),
            );
            None
        }
    }
}

fn keys(node: &Node, width: usize, diagnostics: &mut Diagnostics) -> Option<Vec<Vec<Literal>>> {
    let Some(items) = node.as_list().filter(|items| !items.is_empty()) else {
        diagnostics.push(node.error("wrong-type", format!("a list of keys is expected, not {}", node.kind())));
        return None;
    };
    let mut keys = Vec::with_capacity(items.len());
    for item in items {
        let parts = item.as_list().unwrap_or(std::slice::from_ref(item));
        if parts.len() != width {
            diagnostics.push(item.error(
                "key-width",
                format!("a key of {width} parts is expected, not {}", parts.len()),
            ));
            return None;
        }
        let mut key = Vec::with_capacity(width);
        for part in parts {
            if part.value == Value::Null {
                diagnostics.push(
                    part.error("null-in-list", "a referenced key cannot be null")
                        .why("null equals nothing, so it would never match"),
                );
                return None;
            }
            key.push(decode::<Literal>(part, diagnostics)?);
        }
        keys.push(key);
    }
    keys.sort();
    keys.dedup();
    Some(keys)
}

/// The part of a check's id.
pub(crate) fn canonical(reference: &Reference) -> serde_json::Value {
    match reference {
        Reference::Table { table, columns } => json!({ "table": table, "columns": columns }),
        Reference::Path { path, columns } => json!({ "path": path, "columns": columns }),
        Reference::Values(keys) => json!({ "values": keys }),
    }
}

/// Whether the reference can be followed from these columns, as far as names and types tell.
///
/// # Errors
/// No such table, or a value of another type than the column.
pub(crate) fn check(reference: &Reference, columns: &[Column], scope: &Scope) -> Result<(), BindError> {
    match reference {
        Reference::Table { table, .. } if !scope.tables.contains(table) => {
            let known: Vec<&str> = scope.tables.iter().map(String::as_str).collect();
            let error = BindError::new(format!("table `{table}` is not declared"));
            Err(match known.is_empty() {
                true => error.hint("declare it under `tables:`"),
                false => error.hint(suggest(table, &known)),
            })
        }
        Reference::Values(keys) => {
            for (column, value) in keys.iter().flat_map(|key| columns.iter().zip(key)) {
                member(&column.data_type, value, scope).map_err(|error| BindError {
                    message: format!("{} for column `{}`", error.message, column.name),
                    hint: error.hint,
                })?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// What the keys should be found in, for messages.
pub(crate) fn shown(reference: &Reference) -> String {
    match reference {
        Reference::Table { table, columns } => format!("{} of table `{table}`", list(columns)),
        Reference::Path { path, columns } => format!("{} of `{path}`", list(columns)),
        Reference::Values(keys) => format!("the {} keys listed", keys.len()),
    }
}

/// Whether the table is one that the document declares; a fault at the node otherwise (S2).
pub(crate) fn is_declared(
    reference: &Reference,
    node: &Node,
    documents: &Documents,
    diagnostics: &mut Diagnostics,
) -> bool {
    let Reference::Table { table, .. } = reference else {
        return true;
    };
    if documents.tables.contains(table) {
        return true;
    }
    let known: Vec<&str> = documents.tables.iter().map(String::as_str).collect();
    let place = node.get("table").unwrap_or(node);
    let fault = place.error("unknown-table", format!("table `{table}` is not declared"));
    diagnostics.push(match known.is_empty() {
        true => fault.hint("declare it under `tables:`"),
        false => fault.hint(suggest(table, &known)),
    });
    false
}
