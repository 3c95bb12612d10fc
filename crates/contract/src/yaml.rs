//! YAML text to nodes, with bounds that a hostile document cannot pass.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::node::{Entry, Node, Span, Text, Value};
use bigdecimal::BigDecimal;
use saphyr_parser::{Event, Parser, ScalarStyle, Span as RawSpan, Tag};
use std::borrow::Cow;
use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

/// Values a document may hold once its aliases are spread out. A rule file of a thousand checks
/// has some ten thousand; an alias bomb has billions.
const NODES_MAX: usize = 200_000;
/// Nesting a document may have.
const DEPTH_MAX: usize = 64;
/// Digits a number may have: more than any decimal(76) needs.
const DIGITS_MAX: usize = 200;

/// Reads the single document of a text.
pub(crate) fn parse(text: &Arc<Text>, diagnostics: &mut Diagnostics) -> Option<Node> {
    let mut builder = Builder {
        text,
        offsets: Offsets::new(&text.content),
        anchors: HashMap::new(),
        nodes: 0,
        diagnostics,
        parser: Parser::new_from_str(&text.content),
    };
    match builder.document() {
        Ok(node) => node,
        Err(diagnostic) => {
            builder.diagnostics.push(diagnostic);
            None
        }
    }
}

/// Characters to bytes. The parser counts characters; messages point at bytes.
struct Offsets {
    /// Byte offset of every character, only kept for text that is not all ASCII.
    bytes: Option<Vec<u32>>,
    len: usize,
}

impl Offsets {
    fn new(content: &str) -> Self {
        let bytes = (!content.is_ascii()).then(|| content.char_indices().map(|(at, _)| at as u32).collect());
        Offsets {
            bytes,
            len: content.len(),
        }
    }

    fn byte(&self, character: usize) -> usize {
        match &self.bytes {
            None => character.min(self.len),
            Some(bytes) => bytes.get(character).map_or(self.len, |at| *at as usize),
        }
    }

    fn span(&self, raw: &RawSpan) -> Span {
        let start = self.byte(raw.start.index());
        Span {
            start,
            end: self.byte(raw.end.index()).max(start),
        }
    }
}

struct Builder<'a, 'input> {
    text: &'a Arc<Text>,
    offsets: Offsets,
    anchors: HashMap<usize, (Node, usize)>,
    nodes: usize,
    diagnostics: &'a mut Diagnostics,
    parser: Parser<'input, saphyr_parser::StrInput<'input>>,
}

type Step<T> = Result<T, Diagnostic>;

impl<'input> Builder<'_, 'input> {
    fn document(&mut self) -> Step<Option<Node>> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(root),
                Event::DocumentStart(_) if root.is_some() => {
                    return Err(self
                        .error(&span, "several-documents", "more than one document in the file")
                        .hint("keep one document per file and remove the `---` between them"));
                }
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                other => root = Some(self.node(other, span, 0)?),
            }
        }
    }

    fn next(&mut self) -> Step<(Event<'input>, RawSpan)> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = self.offsets.byte(error.marker().index());
                Err(
                    Diagnostic::error("yaml-syntax", format!("this is no valid YAML: {}", error.info()))
                        .at(self.text, Span { start: at, end: at }),
                )
            }
            None => Ok((Event::StreamEnd, RawSpan::default())),
        }
    }

    fn error(&self, span: &RawSpan, code: &'static str, message: impl Into<String>) -> Diagnostic {
        Diagnostic::error(code, message).at(self.text, self.offsets.span(span))
    }

    fn count(&mut self, more: usize, span: &RawSpan) -> Step<()> {
        self.nodes += more;
        if self.nodes > NODES_MAX {
            return Err(self
                .error(
                    span,
                    "document-too-large",
                    format!("the document holds more than {NODES_MAX} values"),
                )
                .why("aliases are spread out before they are counted, so a few lines can stand for billions"));
        }
        Ok(())
    }

    fn node(&mut self, event: Event<'input>, span: RawSpan, depth: usize) -> Step<Node> {
        if depth > DEPTH_MAX {
            return Err(self.error(
                &span,
                "document-too-deep",
                format!("nested more than {DEPTH_MAX} levels deep"),
            ));
        }
        self.count(1, &span)?;
        let before = self.nodes;
        match event {
            Event::Alias(id) => {
                let Some((node, size)) = self.anchors.get(&id).cloned() else {
                    return Err(self.error(&span, "yaml-syntax", "this alias stands inside the value that it names"));
                };
                self.count(size, &span)?;
                Ok(node)
            }
            Event::Scalar(value, style, anchor, tag) => {
                let value = self.scalar(value, style, tag, &span)?;
                Ok(self.finish(value, self.offsets.span(&span), anchor, before))
            }
            Event::SequenceStart(anchor, _) => {
                let (items, end) = self.list(depth)?;
                let whole = Span {
                    start: self.offsets.byte(span.start.index()),
                    end,
                };
                Ok(self.finish(Value::List(items), whole, anchor, before))
            }
            Event::MappingStart(anchor, _) => {
                let (entries, end) = self.map(depth)?;
                let whole = Span {
                    start: self.offsets.byte(span.start.index()),
                    end,
                };
                Ok(self.finish(Value::Map(entries), whole, anchor, before))
            }
            _ => Err(self.error(&span, "yaml-syntax", "a value is missing here")),
        }
    }

    fn finish(&mut self, value: Value, span: Span, anchor: usize, before: usize) -> Node {
        let span = self.trimmed(span);
        let node = Node {
            value,
            span,
            text: self.text.clone(),
        };
        if anchor > 0 {
            self.anchors.insert(anchor, (node.clone(), self.nodes - before + 1));
        }
        node
    }

    /// Block collections end where the next token starts; a message should not point at the
    /// white space in between.
    fn trimmed(&self, span: Span) -> Span {
        let part = self.text.content.get(span.start..span.end).unwrap_or("");
        Span {
            start: span.start,
            end: span.start + part.trim_end().len(),
        }
    }

    fn list(&mut self, depth: usize) -> Step<(Vec<Node>, usize)> {
        let mut items = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::SequenceEnd) {
                return Ok((items, self.offsets.byte(span.end.index())));
            }
            items.push(self.node(event, span, depth + 1)?);
        }
    }

    fn map(&mut self, depth: usize) -> Step<(Vec<Entry>, usize)> {
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok((entries, self.offsets.byte(span.end.index())));
            }
            let Event::Scalar(key, ..) = event else {
                return Err(self.error(&span, "key-not-text", "a key of a mapping must be plain text"));
            };
            let key_span = self.offsets.span(&span);
            let (event, span) = self.next()?;
            let value = self.node(event, span, depth + 1)?;
            if entries.iter().any(|entry| entry.key == *key) {
                self.diagnostics.push(
                    Diagnostic::error("duplicate-key", format!("`{key}` is written twice in this mapping"))
                        .at(self.text, key_span)
                        .why("one of the two would be ignored")
                        .hint("remove one, or give the second its own item"),
                );
                continue;
            }
            entries.push(Entry {
                key: key.into_owned(),
                key_span,
                value,
            });
        }
    }

    fn scalar(
        &mut self,
        text: Cow<'input, str>,
        style: ScalarStyle,
        tag: Option<Cow<'input, Tag>>,
        span: &RawSpan,
    ) -> Step<Value> {
        if let Some(control) = text
            .chars()
            .find(|c| c.is_control() && !matches!(c, '\n' | '\t' | '\r'))
        {
            self.diagnostics.push(
                Diagnostic::warning(
                    "control-character",
                    format!("the text holds the control character U+{:04X}", control as u32),
                )
                .at(self.text, self.offsets.span(span))
                .why("in double quotes a backslash starts an escape: `\\b` is a backspace, not a word edge")
                .hint("write patterns in single quotes"),
            );
        }
        if style != ScalarStyle::Plain || tag.is_some_and(|tag| tag.suffix == "str") {
            return Ok(Value::Text(text.into_owned()));
        }
        Ok(match text.as_ref() {
            "" | "~" | "null" | "Null" | "NULL" => Value::Null,
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            plain => match number(plain) {
                Some(number) => Value::Number(number),
                None => Value::Text(text.into_owned()),
            },
        })
    }
}

/// A plain scalar of the YAML 1.2 core schema as a number: decimal digits with an optional point
/// and exponent. `012` is 12.
fn number(plain: &str) -> Option<BigDecimal> {
    let (mantissa, exponent) = match plain.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (plain, None),
    };
    let digits = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
    let shaped = digits.bytes().all(|b| b.is_ascii_digit() || b == b'.')
        && digits.bytes().filter(|b| *b == b'.').count() <= 1
        && digits.bytes().any(|b| b.is_ascii_digit())
        && digits.len() <= DIGITS_MAX;
    if !shaped {
        return None;
    }
    if let Some(exponent) = exponent {
        let value: i64 = exponent.parse().ok()?;
        if value.abs() > 400 {
            return None;
        }
    }
    BigDecimal::from_str(plain.strip_prefix('+').unwrap_or(plain)).ok()
}
