//! The reference page of a rule and its example tables, both read from the rule's doc comment: what stands
//! in the docs, in `comporta rules NAME` and in the executed examples is one text.
//!
//! The doc comment holds a summary of one line, further paragraphs, and the sections `## Why it matters`,
//! `## Example` (a YAML list of checks, or a whole rules file where a list cannot say it), `## Holds` and `## Broken` (tables of rows). In a table, `null` is a
//! null, a cell in backticks is that text with its blanks, and the column `broken` (`yes`, `no`) says which
//! rows of a row rule break it.

use crate::registry;
use crate::rule::{Definition, Family};
use comporta_contract::RuleKind;
use schemars::generate::SchemaSettings;
use serde_json::Value;
use std::fmt::Write as _;

/// One example of a rule's page: a list of checks, rows on which they hold, rows on which they do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocExample {
    /// A YAML list of checks, as it stands under `rules:`, or a whole rules file.
    pub yaml: String,
    /// Rows on which every check passes.
    pub holds: Table,
    /// Rows on which at least one check is broken.
    pub broken: Table,
}

/// Rows of a page, every cell as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns, without `broken`.
    pub columns: Vec<String>,
    /// The rows; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
    /// For each row whether it breaks the rule, where the table says so.
    pub broken: Option<Vec<bool>>,
}

/// A parameter of a rule, as its page lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The key.
    pub name: String,
    /// What may stand behind it, in words.
    pub kind: String,
    /// What it means.
    pub description: String,
    /// Whether it must be there.
    pub required: bool,
}

/// The reference page of a rule, as Markdown.
pub fn page(definition: &Definition) -> String {
    let doc = doc_of(definition);
    let mut sections = sections(&doc);
    let lead = sections.remove(0).1;
    let (summary, more) = lead.split_once("\n\n").unwrap_or((&lead, ""));
    let mut page = format!(
        "# `{}`\n\n{}\n\n{}\n",
        definition.name,
        summary.trim(),
        facts(definition)
    );
    if !more.trim().is_empty() {
        let _ = write!(page, "\n{}\n", more.trim());
    }
    let _ = write!(page, "\n## Parameters\n{}", parameter_table(definition));
    for (title, body) in sections {
        let _ = write!(page, "\n## {title}\n{}\n", body.trim());
    }
    page
}

/// The summary of a rule: the first line of its page.
pub fn summary(definition: &Definition) -> String {
    let doc = doc_of(definition);
    doc.split("\n\n")
        .next()
        .unwrap_or("")
        .replace('\n', " ")
        .trim()
        .to_string()
}

/// All rules, one line each, by family.
pub fn index() -> String {
    let mut text = String::from("# Rules\n");
    for family in FAMILIES {
        let rules: Vec<&Definition> = registry::all().iter().filter(|rule| rule.family == *family).collect();
        if rules.is_empty() {
            continue;
        }
        let _ = write!(text, "\n## {}\n", capitalised(family_name(*family)));
        for rule in rules {
            let _ = writeln!(text, "- [`{0}`]({0}.md): {1}", rule.name, summary(rule));
        }
    }
    text
}

/// The parameters of a rule in the order of its schema; empty for a rule that takes no mapping.
pub fn parameters(definition: &Definition) -> Vec<Parameter> {
    let schema = schema_of(definition);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    properties
        .iter()
        .map(|(name, schema)| Parameter {
            name: name.clone(),
            kind: kind(schema),
            description: description(schema).replace('\n', " "),
            required: required.contains(&name.as_str()),
        })
        .collect()
}

/// The examples of a rule's page. A table that cannot be read is left empty, which its test shows.
pub fn examples(definition: &Definition) -> Vec<DocExample> {
    let mut examples: Vec<DocExample> = Vec::new();
    for (title, body) in sections(&doc_of(definition)) {
        match (title.as_str(), examples.last_mut()) {
            ("Example", _) => examples.push(DocExample {
                yaml: code_block(&body),
                holds: Table::default(),
                broken: Table::default(),
            }),
            ("Holds", Some(example)) => example.holds = table(&body),
            ("Broken", Some(example)) => example.broken = table(&body),
            _ => {}
        }
    }
    examples
}

/// Families in the order of the reference.
pub const FAMILIES: &[Family] = &[
    Family::Presence,
    Family::Identity,
    Family::Domain,
    Family::AcrossColumns,
    Family::Shape,
    Family::Volume,
    Family::Statistics,
    Family::Time,
    Family::Free,
];

/// The name of a family, as documents and pages write it.
pub fn family_name(family: Family) -> &'static str {
    match family {
        Family::Presence => "presence",
        Family::Identity => "identity",
        Family::Domain => "domain",
        Family::AcrossColumns => "across columns",
        Family::Shape => "shape",
        Family::Volume => "volume",
        Family::Statistics => "statistics",
        Family::Time => "time",
        Family::Free => "free",
    }
}

fn facts(definition: &Definition) -> String {
    let kind = match definition.kind {
        Some(RuleKind::Row) => "row rule",
        Some(RuleKind::Table) => "table rule",
        None => "row rule or table rule, as its parameters say",
    };
    format!(
        "*{} · {} · dimension {} · since {}*",
        kind,
        family_name(definition.family),
        definition.dimension,
        definition.since
    )
}

fn parameter_table(definition: &Definition) -> String {
    let parameters = parameters(definition);
    if parameters.is_empty() {
        return format!("Behind the key stands {}.\n", kind(&schema_of(definition)));
    }
    let mut text = String::from("| name | value | required | meaning |\n|------|-------|----------|---------|\n");
    for parameter in parameters {
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            parameter.name,
            parameter.kind.replace('|', "\\|"),
            if parameter.required { "yes" } else { "no" },
            parameter.description.replace('|', "\\|"),
        );
    }
    text
}

fn schema_of(definition: &Definition) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    (definition.schema)(&mut settings.into_generator()).to_value()
}

fn doc_of(definition: &Definition) -> String {
    description(&schema_of(definition))
}

fn description(schema: &Value) -> String {
    schema
        .get("description")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_string()
}

/// What a schema allows, in words.
fn kind(schema: &Value) -> String {
    let joined = |options: Vec<String>| {
        let mut words: Vec<String> = Vec::new();
        for option in options.into_iter().filter(|option| option != "null") {
            if !words.contains(&option) {
                words.push(option);
            }
        }
        words.join(" or ")
    };
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return joined(options.iter().map(kind).collect());
        }
    }
    if let Some(word) = schema.get("const") {
        return format!("`{}`", plain(word));
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return joined(words.iter().map(|word| format!("`{}`", plain(word))).collect());
    }
    match schema.get("type") {
        Some(Value::Array(types)) => joined(types.iter().map(|one| of_type(one.as_str(), schema)).collect()),
        Some(one) => of_type(one.as_str(), schema),
        None => "anything".into(),
    }
}

fn of_type(name: Option<&str>, schema: &Value) -> String {
    match name.unwrap_or_default() {
        "null" => "null".into(),
        "string" => "text".into(),
        "boolean" => "true or false".into(),
        "integer" => "a whole number".into(),
        "number" => "a number".into(),
        "array" => match schema.get("items") {
            Some(items) => format!("a list of {}", kind(items).trim_start_matches("a ")),
            None => "a list".into(),
        },
        "object" => match (
            schema.get("properties").and_then(Value::as_object),
            schema.get("additionalProperties"),
        ) {
            (Some(properties), _) => {
                let names: Vec<String> = properties.keys().map(|name| format!("`{name}`")).collect();
                format!("a mapping with {}", names.join(", "))
            }
            (None, Some(value)) if value.is_object() => format!("a mapping from names to {}", kind(value)),
            _ => "a mapping".into(),
        },
        other => other.to_string(),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_string)
}

/// The text before the first heading under an empty title, then each section.
fn sections(doc: &str) -> Vec<(String, String)> {
    let mut sections = vec![(String::new(), String::new())];
    let mut in_code = false;
    for line in doc.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if let Some(title) = line.strip_prefix("## ").filter(|_| !in_code) {
            sections.push((title.trim().to_string(), String::new()));
        } else if let Some((_, body)) = sections.last_mut() {
            body.push_str(line);
            body.push('\n');
        }
    }
    sections
}

/// The first fenced block of a section.
fn code_block(body: &str) -> String {
    let mut lines = body.lines().skip_while(|line| !line.starts_with("```")).skip(1);
    let block: Vec<&str> = lines.by_ref().take_while(|line| !line.starts_with("```")).collect();
    block.iter().map(|line| format!("{line}\n")).collect()
}

fn table(body: &str) -> Table {
    let mut lines = body.lines().map(str::trim).filter(|line| line.starts_with('|'));
    let Some(mut columns) = lines.next().map(cells) else {
        return Table::default();
    };
    let mut rows: Vec<Vec<String>> = lines.skip(1).map(cells).collect();
    let marks = columns.iter().position(|name| name == "broken").map(|at| {
        columns.remove(at);
        let marks = rows.iter_mut().map(|row| at < row.len() && row.remove(at) == "yes");
        marks.collect()
    });
    let null = |cell: String| match cell.as_str() {
        "null" => None,
        _ => Some(
            cell.strip_prefix('`')
                .and_then(|cell| cell.strip_suffix('`'))
                .unwrap_or(&cell)
                .to_string(),
        ),
    };
    Table {
        columns,
        rows: rows
            .into_iter()
            .map(|row| row.into_iter().map(null).collect())
            .collect(),
        broken: marks,
    }
}

/// The cells of a table's line; `\|` is a bar inside a cell.
fn cells(line: &str) -> Vec<String> {
    let inner = line.trim().trim_start_matches('|');
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for sign in inner.chars() {
        match (sign, escaped) {
            ('\\', false) => {
                escaped = true;
                continue;
            }
            ('|', false) => cells.push(String::new()),
            (sign, was_escaped) => {
                if let Some(cell) = cells.last_mut() {
                    if was_escaped && sign != '|' {
                        cell.push('\\');
                    }
                    cell.push(sign);
                }
            }
        }
        escaped = false;
    }
    // What stands behind the last bar is no cell.
    cells.pop();
    cells.iter().map(|cell| cell.trim().to_string()).collect()
}

fn capitalised(text: &str) -> String {
    let mut signs = text.chars();
    signs
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(signs).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str) -> &'static Definition {
        registry::find(name).unwrap()
    }

    #[test]
    fn a_page_has_summary_parameters_and_the_sections_of_the_doc() {
        let page = page(rule("range"));
        assert!(
            page.starts_with("# `range`\n\nEvery value lies between two bounds"),
            "{page}"
        );
        assert!(
            page.contains("*row rule · domain · dimension validity · since 0.1.0*"),
            "{page}"
        );
        assert!(page.contains("| `column` | text | yes | The column. |"), "{page}");
        assert!(
            page.contains("| `min` | a number or text or true or false | no | Smallest value allowed."),
            "{page}"
        );
        assert!(page.contains("\n## Why it matters\n"), "{page}");
        assert!(page.contains("| 10000.5 | yes    |"), "{page}");
    }

    #[test]
    fn a_rule_without_mapping_says_what_stands_behind_its_key() {
        let page = page(rule("unique"));
        assert!(page.contains("Behind the key stands text or a list of text."), "{page}");
    }

    #[test]
    fn examples_are_read_with_nulls_and_marks() {
        let examples = examples(rule("unique"));
        let [example] = examples.as_slice() else {
            panic!("{examples:?}")
        };
        assert_eq!(example.yaml, "- unique: [order_id, line]\n");
        assert_eq!(example.holds.columns, ["order_id", "line"]);
        assert_eq!(example.holds.rows[2], [None, Some("1".into())]);
        assert_eq!(example.holds.broken, None);
        assert_eq!(example.broken.columns, ["order_id", "line"]);
        assert_eq!(example.broken.broken, Some(vec![true, true, false]));
        assert_eq!(super::examples(rule("row_count"))[0].broken.rows.len(), 0);
    }

    #[test]
    fn a_cell_may_hold_a_bar_blanks_and_a_backslash() {
        assert_eq!(cells(r"| a\|b | `  ` | \d | |"), ["a|b", "`  `", r"\d", ""]);
        let table = table("| a |\n|---|\n| ` x ` |\n");
        assert_eq!(table.rows, [[Some(" x ".to_string())]]);
    }

    #[test]
    fn the_index_lists_every_rule_once() {
        let index = index();
        for definition in registry::all() {
            let line = format!("- [`{0}`]({0}.md): ", definition.name);
            assert_eq!(index.matches(&line).count(), 1, "{index}");
        }
    }
}
