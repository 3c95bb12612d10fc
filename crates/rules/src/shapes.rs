//! The shapes in which rules are written: a column, a list of columns, a key, a mapping of parameters.

use comporta_contract::decode::decode;
use comporta_contract::nearest::suggest;
use comporta_contract::source::OneOrMany;
use comporta_contract::{Diagnostic, Diagnostics, Node, Value};
use serde::de::DeserializeOwned;

/// `rule: column` or `rule: [a, b]`: one check per column.
pub fn each_column(node: &Node, diagnostics: &mut Diagnostics) -> Vec<String> {
    match &node.value {
        Value::Map(_) => names_of_map(node, diagnostics),
        _ => names(node, diagnostics),
    }
}

/// `rule: column` or `rule: [a, b]`: one composite key.
pub fn key(node: &Node, diagnostics: &mut Diagnostics) -> Option<Vec<String>> {
    let names = each_column(node, diagnostics);
    for (position, name) in names.iter().enumerate() {
        if names[..position].contains(name) {
            diagnostics.push(node.error("repeated-column", format!("`{name}` stands twice in the key")));
            return None;
        }
    }
    (!names.is_empty()).then_some(names)
}

/// `rule: { … }`: a mapping of parameters.
pub fn parameters<P: DeserializeOwned>(node: &Node, diagnostics: &mut Diagnostics) -> Option<P> {
    decode(node, diagnostics)
}

/// `column: a` or `columns: [a, b]` among other parameters: one check per column, or one key.
pub fn named_columns(
    [column, columns]: [Option<OneOrMany>; 2],
    node: &Node,
    diagnostics: &mut Diagnostics,
) -> Vec<String> {
    let found: Vec<String> = [column, columns]
        .into_iter()
        .flatten()
        .flat_map(|names| names.0)
        .collect();
    if found.is_empty() || found.iter().any(|name| name.trim().is_empty()) {
        diagnostics.push(
            node.error("no-columns", "no column is named")
                .hint("add `column:` with the name of a column"),
        );
        return Vec::new();
    }
    found
}

/// `rule: { column: value, … }`: one check per column, each with its value.
pub fn column_to_value<'n>(node: &'n Node, diagnostics: &mut Diagnostics) -> Vec<(String, &'n Node)> {
    if !matches!(node.value, Value::Map(_)) || node.entries().is_empty() {
        diagnostics.push(
            node.error(
                "wrong-type",
                format!("a mapping from a column to its values is expected, not {}", node.kind()),
            )
            .hint("write for example `{ status: [open, closed] }`"),
        );
    }
    node.entries()
        .iter()
        .map(|entry| (entry.key.clone(), &entry.value))
        .collect()
}

fn names(node: &Node, diagnostics: &mut Diagnostics) -> Vec<String> {
    let names = match &node.value {
        Value::Text(_) | Value::List(_) => decode::<OneOrMany>(node, diagnostics).unwrap_or_default().0,
        _ => {
            diagnostics.push(node.error(
                "wrong-type",
                format!("a column or a list of columns is expected, not {}", node.kind()),
            ));
            return Vec::new();
        }
    };
    if names.is_empty() && node.as_list().is_some_and(<[Node]>::is_empty) {
        diagnostics.push(
            node.error("no-columns", "the list of columns is empty")
                .why("a check of nothing would always be green"),
        );
    }
    if names.iter().any(|name| name.trim().is_empty()) {
        diagnostics.push(node.error("no-columns", "a column's name is blank"));
    }
    names
}

/// `{ column: a }` or `{ columns: [a, b] }`.
fn names_of_map(node: &Node, diagnostics: &mut Diagnostics) -> Vec<String> {
    let mut found = Vec::new();
    for entry in node.entries() {
        match entry.key.as_str() {
            "column" | "columns" => found.extend(names(&entry.value, diagnostics)),
            key => diagnostics.push(
                Diagnostic::error("unknown-key", format!("unknown key `{key}`"))
                    .at(&node.text, entry.key_span)
                    .hint(suggest(key, &["column", "columns"])),
            ),
        }
    }
    if node.entries().is_empty() {
        diagnostics.push(
            node.error("no-columns", "no column is named")
                .hint("write the column behind the rule"),
        );
    }
    found
}
