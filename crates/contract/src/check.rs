//! One item under `rules:` as it was written: a rule key beside the attributes every check may
//! carry. What the rule's parameters mean is the registry's business (`comporta-rules`).

use crate::decode::decode;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::literal::Literal;
use crate::nearest::{list, suggest};
use crate::node::{Entry, Node, Span, Value};
use crate::outcome::{Dimension, Severity};
use crate::source::OneOrMany;
use crate::threshold::Threshold;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What an unknown (a predicate that is NULL) means for a row rule, and how keys compare nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NullPolicy {
    /// Counted apart, no violation (S9).
    #[default]
    Unknown,
    /// An unknown is a violation.
    Violate,
    /// In keys, NULL is a value like any other (S13).
    Equal,
}

/// What NaN means beyond being a value (S12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NanPolicy {
    /// Its presence breaks the check.
    Fail,
}

/// The denominator of shares (S10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShareOf {
    /// All rows in scope.
    #[default]
    All,
    /// Rows in scope less the unknown ones.
    Known,
}

/// What a check without data weighs (S3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NoDataPolicy {
    /// Nothing.
    Pass,
    /// As a broken check of severity `warn`.
    Warn,
}

/// How far `unique` and `foreign_key` look (S14).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UniqueScope {
    /// At the batch alone.
    #[default]
    Batch,
    /// At the batch and what is published.
    Target,
}

/// What every check may say beside its rule.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes {
    /// What people call it.
    pub name: Option<String>,
    /// What a break asks for; the document's `on_fail` otherwise.
    pub severity: Option<Severity>,
    /// A boolean expression: only rows on which it is true are in scope.
    pub filter: Option<Node>,
    /// What an unknown means.
    pub nulls: NullPolicy,
    /// What NaN means.
    pub nan: Option<NanPolicy>,
    /// Values that count as missing for this check.
    pub missing: Vec<Literal>,
    /// The denominator of shares.
    pub of: ShareOf,
    /// The stricter target.
    pub warn: Option<Threshold>,
    /// The promise.
    pub must_be: Option<Threshold>,
    /// What no data weighs.
    pub on_no_data: Option<NoDataPolicy>,
    /// Columns whose every combination is judged by itself.
    pub group_by: Vec<String>,
    /// How far keys are looked for.
    pub scope: UniqueScope,
    /// The side of quality; the rule's own otherwise.
    pub dimension: Option<Dimension>,
    /// What to say when it breaks.
    pub message: Option<String>,
    /// Words to choose checks by.
    pub tags: Vec<String>,
}

/// The keys of [`Attributes`], in documentation order.
pub const ATTRIBUTES: &[&str] = &[
    "name",
    "severity",
    "where",
    "nulls",
    "nan",
    "missing",
    "of",
    "warn",
    "must_be",
    "on_no_data",
    "group_by",
    "scope",
    "dimension",
    "message",
    "tags",
];

/// One item under `rules:`.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckCall {
    /// The rule's name.
    pub rule: String,
    /// Its parameters.
    pub parameters: Node,
    /// Where the rule's name stands.
    pub rule_span: Span,
    /// What stands beside it.
    pub attributes: Attributes,
    /// The whole item.
    pub node: Node,
    /// The default severity of the file it was included from, if that file names one.
    pub on_fail: Option<Severity>,
}

impl CheckCall {
    /// Reads an item, given the names of the rules there are.
    pub fn parse(node: &Node, rules: &[&str], diagnostics: &mut Diagnostics) -> Option<Self> {
        if let Some(word) = node.as_text() {
            let shown = if rules.contains(&word) { word } else { "not_null" };
            diagnostics.push(
                node.error(
                    "check-not-mapping",
                    format!("a check is a mapping, not the text `{word}`"),
                )
                .hint(format!("write `{shown}:` with the columns or parameters behind it")),
            );
            return None;
        }
        if !matches!(node.value, Value::Map(_)) || node.entries().is_empty() {
            diagnostics.push(
                node.error(
                    "check-not-mapping",
                    format!("a check is a mapping with a rule as its key, not {}", node.kind()),
                )
                .hint("write for example `- not_null: [order_id]`"),
            );
            return None;
        }
        let rule = Self::rule_entry(node, rules, diagnostics)?;
        let attributes = Attributes::parse(node, diagnostics);
        Some(CheckCall {
            rule: rule.key.clone(),
            parameters: rule.value.clone(),
            rule_span: rule.key_span,
            attributes,
            node: node.clone(),
            on_fail: None,
        })
    }

    /// The one key that is no attribute.
    fn rule_entry<'a>(node: &'a Node, rules: &[&str], diagnostics: &mut Diagnostics) -> Option<&'a Entry> {
        let is_attribute = |entry: &&Entry| ATTRIBUTES.contains(&entry.key.as_str());
        let known: Vec<&Entry> = node
            .entries()
            .iter()
            .filter(|e| rules.contains(&e.key.as_str()))
            .collect();
        let mut found = None;
        for entry in node.entries().iter().filter(|e| !is_attribute(e)) {
            let place = |d: Diagnostic| d.at(&node.text, entry.key_span);
            if !rules.contains(&entry.key.as_str()) {
                let candidates: Vec<&str> = match known.is_empty() {
                    true => rules.iter().chain(ATTRIBUTES).copied().collect(),
                    false => ATTRIBUTES.to_vec(),
                };
                let what = if known.is_empty() { "rule" } else { "attribute" };
                let hint = match crate::nearest::nearest(&entry.key, candidates.iter().copied()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None if known.is_empty() => "`comporta rules` lists the rules".to_string(),
                    None => format!("a check may carry {}", list(ATTRIBUTES)),
                };
                let code = if known.is_empty() {
                    "unknown-rule"
                } else {
                    "unknown-key"
                };
                diagnostics.push(place(
                    Diagnostic::error(code, format!("unknown {what} `{}`", entry.key)).hint(hint),
                ));
            } else if found.is_some() {
                diagnostics.push(
                    place(Diagnostic::error(
                        "several-rules",
                        format!("`{}` is a second rule in one check", entry.key),
                    ))
                    .hint("start a new item with `- ` in front of it"),
                );
            } else {
                found = Some(entry);
            }
        }
        if found.is_none() && node.entries().iter().all(|e| is_attribute(&e)) {
            diagnostics.push(
                node.error("no-rule", "this check has no rule")
                    .hint("`comporta rules` lists the rules"),
            );
        }
        found
    }
}

impl Attributes {
    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Self {
        let mut read = Attributes::default();
        for entry in node.entries() {
            let value = &entry.value;
            match entry.key.as_str() {
                "name" => read.name = decode(value, diagnostics),
                "severity" => read.severity = word(value, "severity", Severity::from_word, Severity::ALL, diagnostics),
                "where" => read.filter = text(value, "where", diagnostics),
                "nulls" => read.nulls = decode(value, diagnostics).unwrap_or_default(),
                "nan" => read.nan = decode(value, diagnostics),
                "missing" => read.missing = literals(value, diagnostics),
                "of" => read.of = decode(value, diagnostics).unwrap_or_default(),
                "warn" => read.warn = threshold(value, diagnostics),
                "must_be" => read.must_be = threshold(value, diagnostics),
                "on_no_data" => read.on_no_data = decode(value, diagnostics),
                "group_by" => read.group_by = decode::<OneOrMany>(value, diagnostics).unwrap_or_default().0,
                "scope" => read.scope = decode(value, diagnostics).unwrap_or_default(),
                "dimension" => {
                    read.dimension = word(value, "dimension", Dimension::from_word, Dimension::ALL, diagnostics);
                }
                "message" => read.message = decode(value, diagnostics),
                "tags" => read.tags = decode::<OneOrMany>(value, diagnostics).unwrap_or_default().0,
                _ => {}
            }
        }
        if let (Some(warn), Some(must_be)) = (&read.warn, &read.must_be)
            && warn.is_laxer_than(must_be) == Some(true)
            && let Some(place) = node.get("warn")
        {
            diagnostics.push(
                place
                    .error(
                        "warn-laxer",
                        format!("`warn: {}` is laxer than `must_be: {}`", warn.text, must_be.text),
                    )
                    .why("`warn` is the target and `must_be` the limit, so this warning could never be seen")
                    .hint("swap the two, or make `warn` stricter"),
            );
        }
        read
    }
}

/// A closed word, with the nearest one as a hint.
pub(crate) fn word<T: Copy + std::fmt::Display>(
    node: &Node,
    what: &str,
    from_word: fn(&str) -> Option<T>,
    all: &[T],
    diagnostics: &mut Diagnostics,
) -> Option<T> {
    let found = node.as_text().and_then(from_word);
    if found.is_none() {
        let words: Vec<String> = all.iter().map(T::to_string).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let written = node
            .as_text()
            .map_or_else(|| node.kind().to_string(), |word| format!("`{word}`"));
        diagnostics.push(
            node.error("unknown-word", format!("{written} is no {what}"))
                .hint(suggest(node.as_text().unwrap_or(""), &words)),
        );
    }
    found
}

/// A text attribute that keeps its place, since SQL is parsed later.
pub(crate) fn text(node: &Node, key: &str, diagnostics: &mut Diagnostics) -> Option<Node> {
    match &node.value {
        Value::Text(text) if !text.trim().is_empty() => Some(node.clone()),
        Value::Bool(_) => Some(Node {
            value: Value::Text(node.to_json().to_string()),
            ..node.clone()
        }),
        _ => {
            diagnostics.push(node.error(
                "wrong-type",
                format!("`{key}` is an expression in text, not {}", node.kind()),
            ));
            None
        }
    }
}

fn literals(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Literal> {
    match &node.value {
        Value::List(_) => decode(node, diagnostics).unwrap_or_default(),
        _ => decode(node, diagnostics).into_iter().collect(),
    }
}

fn threshold(node: &Node, diagnostics: &mut Diagnostics) -> Option<Threshold> {
    match Threshold::parse(node) {
        Ok(threshold) => Some(threshold),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
    }
}
