//! What is wrong with a document: what, where, why, and what to do about it.

use crate::node::{Span, Text};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// How much a diagnostic weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The document cannot be used.
    Error,
    /// The document can be used, but says something that is probably not meant.
    Warning,
}

/// A place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The document.
    pub text: Arc<Text>,
    /// The part of it, in bytes.
    pub span: Span,
}

impl Place {
    /// Line and column of the start, both counted from 1; the column in characters.
    pub fn line_column(&self) -> (usize, usize) {
        self.text.line_column(self.span.start)
    }
}

/// One fault of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// A stable code, such as `unknown-key`.
    pub code: &'static str,
    /// How much it weighs.
    pub level: Level,
    /// What is wrong, as a lower-case fragment.
    pub message: String,
    /// Where, if it has a place.
    pub place: Option<Place>,
    /// Why that matters.
    pub why: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error without a place yet.
    pub fn error(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            level: Level::Error,
            message: message.into(),
            place: None,
            why: None,
            hint: None,
        }
    }

    /// A warning without a place yet.
    pub fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Diagnostic {
            level: Level::Warning,
            ..Self::error(code, message)
        }
    }

    /// The same diagnostic at a place.
    pub fn at(mut self, text: &Arc<Text>, span: Span) -> Self {
        self.place = Some(Place {
            text: text.clone(),
            span,
        });
        self
    }

    /// The same diagnostic with a reason.
    pub fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }

    /// The same diagnostic with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            let (line, column) = place.line_column();
            write!(f, "{}:{line}:{column}: ", place.text.name)?;
        }
        write!(f, "{}", self.message)?;
        if let Some(why) = &self.why {
            write!(f, "; {why}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, " (hint: {hint})")?;
        }
        Ok(())
    }
}

/// All that is wrong with a set of documents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        if !self.0.contains(&diagnostic) {
            self.0.push(diagnostic);
        }
    }

    /// Adds all of another set.
    pub fn extend(&mut self, other: Diagnostics) {
        for diagnostic in other.0 {
            self.push(diagnostic);
        }
    }

    /// Whether the documents can be used.
    pub fn has_errors(&self) -> bool {
        self.0.iter().any(|d| d.level == Level::Error)
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// In document order: by file, then by place.
    pub fn sort(&mut self) {
        self.0.sort_by(|a, b| {
            let key = |d: &Diagnostic| d.place.as_ref().map(|p| (p.text.name.clone(), p.span.start));
            key(a).cmp(&key(b))
        });
    }
}
