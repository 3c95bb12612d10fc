//! A document as a tree of values that know their place.
//!
//! Numbers keep the digits as written, so that `9007199254740992.5` stays exactly that.

use crate::diagnostic::{Diagnostic, Diagnostics};
use bigdecimal::BigDecimal;
use std::sync::Arc;

/// A range of bytes in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, PartialOrd, Ord)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// A document's text under its name (a path, `<stdin>`, `--rule`).
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    /// The name that messages give it.
    pub name: String,
    /// The whole text.
    pub content: String,
}

impl Text {
    /// A document under a name.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Arc<Self> {
        Arc::new(Text {
            name: name.into(),
            content: content.into(),
        })
    }

    /// Line and column of a byte, both counted from 1; the column in characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.content[..offset.min(self.content.len())];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}

/// A value with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// What it is.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
    /// In which document (they differ after an `include`).
    pub text: Arc<Text>,
}

/// What a node can be. Mappings keep their order and hold no key twice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// `null`, `~` or nothing.
    Null,
    /// `true` or `false` (YAML 1.2: `yes` is text).
    Bool(bool),
    /// A number, exact, with the digits as written. `.nan` and `.inf` are text.
    Number(BigDecimal),
    /// Text, quoted or not.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping.
    Map(Vec<Entry>),
}

/// One entry of a mapping.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    /// Reads YAML 1.2 (and so JSON). What could not be read is in the diagnostics.
    pub fn parse(text: &Arc<Text>, diagnostics: &mut Diagnostics) -> Option<Node> {
        crate::yaml::parse(text, diagnostics)
    }

    /// The value of a key, if this is a mapping that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.entries()
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| &entry.value)
    }

    /// The entries of a mapping; none for anything else.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The text of a text node.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The items of a list node.
    pub fn as_list(&self) -> Option<&[Node]> {
        match &self.value {
            Value::List(items) => Some(items),
            _ => None,
        }
    }

    /// What kind of value this is, for messages: "a list", "a number".
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "nothing",
            Value::Bool(_) => "true or false",
            Value::Number(_) => "a number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a mapping",
        }
    }

    /// An error at this node.
    pub fn error(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(&self.text, self.span)
    }

    /// A warning at this node.
    pub fn warning(&self, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::warning(code, message).at(&self.text, self.span)
    }

    /// The same values as JSON, for digests and canonical forms. Numbers become text where a
    /// double would not hold them.
    pub fn to_json(&self) -> serde_json::Value {
        use serde_json::Value as Json;
        match &self.value {
            Value::Null => Json::Null,
            Value::Bool(b) => Json::Bool(*b),
            Value::Number(n) => crate::literal::number_to_json(n),
            Value::Text(t) => Json::String(t.clone()),
            Value::List(items) => Json::Array(items.iter().map(Node::to_json).collect()),
            Value::Map(entries) => Json::Object(entries.iter().map(|e| (e.key.clone(), e.value.to_json())).collect()),
        }
    }
}
