//! What is wrong with SQL text, with its place in the text and so in the document.

use crate::rule::BindError;
use comporta_contract::{Diagnostic, Node, Span};
use datafusion_sql::sqlparser::parser::ParserError;
use datafusion_sql::sqlparser::tokenizer;

/// A fault of SQL text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// A stable code, such as `sql-syntax`.
    pub code: &'static str,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
    /// Why it is refused.
    pub why: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Line and column in the text, both from 1.
    pub place: Option<(usize, usize)>,
}

impl Fault {
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Fault {
            code,
            message: message.into(),
            why: None,
            hint: None,
            place: None,
        }
    }

    pub(super) fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn at(mut self, span: tokenizer::Span) -> Self {
        let (line, column) = (span.start.line, span.start.column);
        if line > 0 && column > 0 {
            self.place = usize::try_from(line).ok().zip(usize::try_from(column).ok());
        }
        self
    }

    /// A fault of the parser, with the place that stands at the end of its message.
    pub(super) fn syntax(error: &ParserError) -> Self {
        let message = match error {
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => message.as_str(),
            ParserError::RecursionLimitExceeded => {
                return Fault::new("sql-syntax", "the text is nested too deeply")
                    .hint("split it into several checks, or name parts of a query with WITH");
            }
        };
        let (text, place) = match message.rsplit_once(" at Line: ") {
            Some((text, place)) => (text, line_column(place)),
            None => (message, None),
        };
        let mut signs = text.chars();
        let lower = signs
            .next()
            .map(|first| first.to_lowercase().chain(signs).collect::<String>());
        Fault {
            place,
            ..Fault::new("sql-syntax", lower.unwrap_or_else(|| "the text is no SQL".into()))
        }
    }

    /// The fault as a diagnostic of the document, at its place in the text where that can be found.
    pub fn diagnostic(self, node: &Node) -> Diagnostic {
        let span = self.place.and_then(|place| span_in(node, place));
        let message = match (self.place, span) {
            (Some((line, column)), None) => format!("{} (line {line}, column {column} of the text)", self.message),
            _ => self.message,
        };
        Diagnostic {
            why: self.why,
            hint: self.hint,
            ..Diagnostic::error(self.code, message).at(&node.text, span.unwrap_or(node.span))
        }
    }
}

impl From<Fault> for BindError {
    fn from(fault: Fault) -> Self {
        let message = match fault.why {
            Some(why) => format!("{}; {why}", fault.message),
            None => fault.message,
        };
        BindError {
            message,
            hint: fault.hint,
        }
    }
}

/// `1, Column: 10`
fn line_column(text: &str) -> Option<(usize, usize)> {
    let (line, column) = text.split_once(", Column: ")?;
    Some((line.trim().parse().ok()?, column.trim().parse().ok()?))
}

/// The bytes of the document that hold a place of the text. A scalar may be quoted, or a block with its own
/// indentation, so each line of the text is looked for in the scalar as it stands.
fn span_in(node: &Node, (line, column): (usize, usize)) -> Option<Span> {
    let text = node.as_text()?;
    let raw = node.text.content.get(node.span.start..node.span.end)?;
    let mut from = 0;
    for (number, content) in text.lines().enumerate() {
        let at = from + raw.get(from..)?.find(content)?;
        if number + 1 == line {
            let inside: usize = content.chars().take(column - 1).map(char::len_utf8).sum();
            let start = node.span.start + at + inside;
            let word = content[inside..].find(|sign: char| !sign.is_alphanumeric() && sign != '_');
            let length = word.unwrap_or(content.len() - inside).max(1);
            return Some(Span {
                start,
                end: (start + length).min(node.span.end.max(start)),
            });
        }
        from = at + content.len();
    }
    None
}
