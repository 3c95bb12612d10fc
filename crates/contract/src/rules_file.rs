//! The document of `comporta check`: rules and how the batch is read and judged. A pipeline has
//! the same keys and more.

use crate::check::{CheckCall, word};
use crate::decode::decode;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::literal::Literal;
use crate::nearest::suggest;
use crate::node::{Node, Text, Value};
use crate::outcome::Severity;
use crate::source::SourceSpec;
use crate::threshold::duration;
use bigdecimal::{BigDecimal, ToPrimitive};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Reads a document that another one includes.
pub trait Loader {
    /// The text of `path`, relative to the document that names it.
    ///
    /// # Errors
    /// Why it could not be read, as a fragment.
    fn load(&self, path: &str, from: &Text) -> Result<Arc<Text>, String>;
}

/// A loader for documents that may not include others.
pub struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&self, _: &str, _: &Text) -> Result<Arc<Text>, String> {
        Err("nothing can be included here".into())
    }
}

/// What an empty batch does (S4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OnEmpty {
    /// It is held back.
    #[default]
    Hold,
    /// It is published, if its table rules hold.
    Publish,
}

/// What the batch as a whole must reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Gate {
    /// The least share of valid rows, from 0 to 1.
    pub min_valid_ratio: Option<Literal>,
    /// The most invalid rows.
    pub max_invalid: Option<u64>,
}

impl Gate {
    /// The least share of valid rows, exact.
    pub fn min_valid_ratio(&self) -> Option<&BigDecimal> {
        match &self.min_valid_ratio {
            Some(Literal::Number(ratio)) => Some(ratio),
            _ => None,
        }
    }
}

/// A rule of one's own, as a named expression or query with parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The parameters, by name, with what each may be.
    pub parameters: IndexMap<String, ParameterKind>,
    /// A boolean expression over the row, true where it keeps the promise; `$name` stands for a parameter.
    pub expression: Option<Node>,
    /// A query for one boolean.
    pub sql: Option<Node>,
    /// A query for the rows that break the promise.
    pub failed_rows: Option<Node>,
    /// What to say when it breaks.
    pub message: Option<String>,
    /// The whole template.
    pub node: Node,
}

/// What a template's parameter may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// The name of a column.
    Column,
    /// A number.
    Number,
    /// Text.
    Text,
    /// `true` or `false`.
    Boolean,
}

/// A rules file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RulesFile {
    /// The checks, those of included files in their place.
    pub rules: Vec<CheckCall>,
    /// The severity of checks that name none.
    pub on_fail: Option<Severity>,
    /// What an empty batch does.
    pub on_empty: OnEmpty,
    /// What the batch as a whole must reach.
    pub gate: Gate,
    /// The time zone of timestamps without one. Default: UTC.
    pub timezone: Option<String>,
    /// How far in the future a newest value may be, in seconds. Default: 300.
    pub future_tolerance_seconds: Option<u64>,
    /// How the batch is read, and in a pipeline where it is.
    pub source: Option<SourceSpec>,
    /// Other datasets that rules refer to.
    pub tables: IndexMap<String, SourceSpec>,
    /// Rules of one's own.
    pub templates: IndexMap<String, Template>,
}

/// The keys of a rules file.
pub const RULES_FILE_KEYS: &[&str] = &[
    "rules",
    "on_fail",
    "on_empty",
    "gate",
    "timezone",
    "future_tolerance",
    "source",
    "tables",
    "templates",
];

/// Files an `include` may be nested in.
const INCLUDE_DEPTH_MAX: usize = 16;

impl RulesFile {
    /// Reads a rules file. A bare list is the list of its rules.
    pub fn parse(text: &Arc<Text>, rules: &[&str], loader: &dyn Loader, diagnostics: &mut Diagnostics) -> Self {
        let mut file = RulesFile::default();
        let Some(node) = Node::parse(text, diagnostics) else {
            if !diagnostics.has_errors() {
                let empty = Diagnostic::error("empty-document", "the document is empty")
                    .at(text, Default::default())
                    .hint("write `rules:` and a list of checks below it; `comporta rules` lists the rules");
                diagnostics.push(empty);
            }
            return file;
        };
        match &node.value {
            Value::List(_) => file.rules = read_rules(&node, rules, loader, diagnostics),
            Value::Map(_) => file.read(&node, &[], rules, loader, diagnostics),
            _ => diagnostics.push(node.error(
                "wrong-type",
                format!("a rules file is a mapping with `rules:`, not {}", node.kind()),
            )),
        }
        file
    }

    /// Reads the keys that rules files and pipelines share; `more` are keys that the caller reads.
    pub(crate) fn read(
        &mut self,
        node: &Node,
        more: &[&str],
        rules: &[&str],
        loader: &dyn Loader,
        diagnostics: &mut Diagnostics,
    ) {
        for entry in node.entries() {
            let value = &entry.value;
            match entry.key.as_str() {
                "rules" => self.rules = read_rules(value, rules, loader, diagnostics),
                "on_fail" => self.on_fail = word(value, "severity", Severity::from_word, Severity::ALL, diagnostics),
                "on_empty" => self.on_empty = decode(value, diagnostics).unwrap_or_default(),
                "gate" => self.gate = read_gate(value, diagnostics),
                "timezone" => self.timezone = decode(value, diagnostics),
                "future_tolerance" => self.future_tolerance_seconds = read_duration(value, diagnostics),
                "source" => self.source = SourceSpec::parse(value, diagnostics),
                "tables" => self.tables = read_named(value, "table", diagnostics, SourceSpec::parse),
                "templates" => self.templates = read_named(value, "template", diagnostics, Template::parse),
                key if more.contains(&key) => {}
                key => {
                    let known: Vec<&str> = RULES_FILE_KEYS.iter().chain(more).copied().collect();
                    diagnostics.push(
                        Diagnostic::error("unknown-key", format!("unknown key `{key}`"))
                            .at(&node.text, entry.key_span)
                            .hint(suggest(key, &known)),
                    );
                }
            }
        }
    }
}

fn read_rules(node: &Node, rules: &[&str], loader: &dyn Loader, diagnostics: &mut Diagnostics) -> Vec<CheckCall> {
    let mut calls = Vec::new();
    let mut including = vec![node.text.name.clone()];
    read_rules_into(node, rules, loader, &mut including, &mut calls, diagnostics);
    calls
}

fn read_rules_into(
    node: &Node,
    rules: &[&str],
    loader: &dyn Loader,
    including: &mut Vec<String>,
    calls: &mut Vec<CheckCall>,
    diagnostics: &mut Diagnostics,
) {
    let Some(items) = node.as_list() else {
        if node.value != Value::Null {
            diagnostics.push(
                node.error(
                    "wrong-type",
                    format!("`rules` is a list of checks, not {}", node.kind()),
                )
                .hint("start every check with `- `"),
            );
        }
        return;
    };
    for item in items {
        match item.get("include") {
            Some(path) => include(path, rules, loader, including, calls, diagnostics),
            None => calls.extend(CheckCall::parse(item, rules, diagnostics)),
        }
    }
}

fn include(
    path: &Node,
    rules: &[&str],
    loader: &dyn Loader,
    including: &mut Vec<String>,
    calls: &mut Vec<CheckCall>,
    diagnostics: &mut Diagnostics,
) {
    let Some(name) = path.as_text() else {
        diagnostics.push(path.error("wrong-type", format!("`include` names a file, not {}", path.kind())));
        return;
    };
    let text = match loader.load(name, &path.text) {
        Ok(text) => text,
        Err(why) => {
            diagnostics.push(
                path.error("include-unreadable", format!("`{name}` cannot be included"))
                    .why(why),
            );
            return;
        }
    };
    if including.contains(&text.name) || including.len() >= INCLUDE_DEPTH_MAX {
        diagnostics.push(
            path.error(
                "include-cycle",
                format!("`{name}` includes itself, by way of {}", including.join(" → ")),
            )
            .hint("move the shared rules into a file of their own"),
        );
        return;
    }
    let Some(root) = Node::parse(&text, diagnostics) else {
        return;
    };
    including.push(text.name.clone());
    let list = match &root.value {
        Value::Map(_) => root.get("rules"),
        _ => Some(&root),
    };
    for entry in root
        .entries()
        .iter()
        .filter(|entry| !matches!(entry.key.as_str(), "rules" | "on_fail"))
    {
        diagnostics.push(
            Diagnostic::warning(
                "include-partial",
                format!("`{}` of an included file is not taken over", entry.key),
            )
            .at(&root.text, entry.key_span)
            .why("an `include` takes the rules alone")
            .hint("write the key in the file that includes it"),
        );
    }
    if let Some(list) = list {
        let from = calls.len();
        read_rules_into(list, rules, loader, including, calls, diagnostics);
        if let Some(severity) = root
            .get("on_fail")
            .and_then(Node::as_text)
            .and_then(Severity::from_word)
        {
            calls[from..].iter_mut().for_each(|call| {
                call.on_fail.get_or_insert(severity);
            });
        }
    }
    including.pop();
}

fn read_gate(node: &Node, diagnostics: &mut Diagnostics) -> Gate {
    let gate: Gate = decode(node, diagnostics).unwrap_or_default();
    let in_range = match &gate.min_valid_ratio {
        None => true,
        Some(Literal::Number(ratio)) => *ratio >= BigDecimal::from(0) && *ratio <= BigDecimal::from(1),
        Some(_) => false,
    };
    if !in_range && let Some(place) = node.get("min_valid_ratio") {
        diagnostics.push(
            place
                .error("invalid-ratio", "`min_valid_ratio` is a share from 0 to 1")
                .hint("99 % is 0.99"),
        );
    }
    gate
}

fn read_duration(node: &Node, diagnostics: &mut Diagnostics) -> Option<u64> {
    let seconds = node.as_text().and_then(duration).and_then(|seconds| seconds.to_u64());
    if seconds.is_none() {
        diagnostics.push(
            node.error("wrong-type", "a duration is expected here")
                .hint("write for example `5m` or `24h`"),
        );
    }
    seconds
}

fn read_named<T>(
    node: &Node,
    what: &str,
    diagnostics: &mut Diagnostics,
    read: fn(&Node, &mut Diagnostics) -> Option<T>,
) -> IndexMap<String, T> {
    if !matches!(node.value, Value::Map(_)) {
        diagnostics.push(node.error(
            "wrong-type",
            format!("a mapping from {what} names is expected, not {}", node.kind()),
        ));
    }
    let mut named = IndexMap::new();
    for entry in node.entries() {
        if let Some(value) = read(&entry.value, diagnostics) {
            named.insert(entry.key.clone(), value);
        }
    }
    named
}

impl Template {
    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        const KEYS: &[&str] = &["parameters", "expression", "sql", "failed_rows", "message"];
        let mut template = Template {
            parameters: IndexMap::new(),
            expression: None,
            sql: None,
            failed_rows: None,
            message: None,
            node: node.clone(),
        };
        for entry in node.entries() {
            let value = &entry.value;
            match entry.key.as_str() {
                "parameters" => template.parameters = decode(value, diagnostics).unwrap_or_default(),
                "expression" => template.expression = crate::check::text(value, "expression", diagnostics),
                "sql" => template.sql = crate::check::text(value, "sql", diagnostics),
                "failed_rows" => template.failed_rows = crate::check::text(value, "failed_rows", diagnostics),
                "message" => template.message = decode(value, diagnostics),
                key => diagnostics.push(
                    Diagnostic::error("unknown-key", format!("unknown key `{key}`"))
                        .at(&node.text, entry.key_span)
                        .hint(suggest(key, KEYS)),
                ),
            }
        }
        let ways = [&template.expression, &template.sql, &template.failed_rows];
        if ways.iter().filter(|way| way.is_some()).count() != 1 {
            diagnostics.push(
                node.error(
                    "template-without-body",
                    "a template has one of `expression`, `sql`, `failed_rows`",
                )
                .hint("write for example `expression: $column <= $max`"),
            );
            return None;
        }
        Some(template)
    }
}
