//! Faults of documents on the terminal: all at once, each with its place, a picture of it, why, and a hint.

use crate::failure::Failure;
use comporta::contract::{Diagnostic, Diagnostics, Level};
use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, Severity, SourceCode};
use serde_json::{Value, json};
use std::fmt;
use std::io::{IsTerminal, Write};

/// How wide and in what signs diagnostics are drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Columns.
    pub(crate) width: usize,
    /// Whether colours are used.
    pub(crate) colour: bool,
}

impl Look {
    /// As fits standard error.
    pub(crate) fn of_stderr() -> Self {
        let terminal = std::io::stderr().is_terminal();
        Look {
            width: crate::output::terminal_width().filter(|_| terminal).unwrap_or(100),
            colour: terminal && crate::output::colours_wanted(),
        }
    }
}

/// Ends the command if a document cannot be used; says warnings and goes on otherwise.
pub(crate) fn settle(found: Diagnostics) -> Result<(), Failure> {
    if found.has_errors() {
        return Err(Failure::Documents(found));
    }
    if !found.is_empty() {
        // Warnings that nobody can see are no reason to stop.
        let _ = std::io::stderr()
            .lock()
            .write_all(render(&found, &Look::of_stderr()).as_bytes());
    }
    Ok(())
}

/// All of them as text, in document order, with a line of counts below.
pub(crate) fn render(diagnostics: &Diagnostics, look: &Look) -> String {
    let mut sorted = diagnostics.clone();
    sorted.sort();
    let theme = match look.colour {
        true => GraphicalTheme::unicode(),
        false => GraphicalTheme::unicode_nocolor(),
    };
    let handler = GraphicalReportHandler::new_themed(theme)
        .with_links(false)
        .with_width(look.width);
    let mut text = String::new();
    for diagnostic in &sorted.0 {
        let drawn = handler.render_report(&mut text, &Shown::new(diagnostic));
        if drawn.is_err() {
            text.push_str(&crate::render::escape::terminal(&diagnostic.to_string()));
        }
        text.push('\n');
    }
    text.push_str(&summary(&sorted));
    text
}

fn summary(diagnostics: &Diagnostics) -> String {
    let errors = diagnostics.0.iter().filter(|d| d.level == Level::Error).count();
    let warnings = diagnostics.0.len() - errors;
    let many = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    match (errors, warnings) {
        (0, _) => format!("{}\n", many(warnings, "warning")),
        (_, 0) => format!("{}; nothing was read\n", many(errors, "error")),
        _ => format!(
            "{}, {}; nothing was read\n",
            many(errors, "error"),
            many(warnings, "warning")
        ),
    }
}

/// All of them as JSON, in document order.
pub(crate) fn to_json(diagnostics: &Diagnostics) -> Value {
    let mut sorted = diagnostics.clone();
    sorted.sort();
    let errors: Vec<Value> = sorted
        .0
        .iter()
        .map(|diagnostic| {
            let place = diagnostic.place.as_ref();
            let line_column = place.map(|place| place.line_column());
            json!({
                "code": diagnostic.code,
                "level": diagnostic.level,
                "message": diagnostic.message,
                "file": place.map(|place| &place.text.name),
                "line": line_column.map(|(line, _)| line),
                "column": line_column.map(|(_, column)| column),
                "why": diagnostic.why,
                "hint": diagnostic.hint,
            })
        })
        .collect();
    json!({ "errors": errors })
}

/// A diagnostic in the form that the drawing library takes.
struct Shown<'a> {
    diagnostic: &'a Diagnostic,
    source: Option<NamedSource<String>>,
}

impl<'a> Shown<'a> {
    fn new(diagnostic: &'a Diagnostic) -> Self {
        let source = diagnostic.place.as_ref().map(|place| {
            let name = crate::render::escape::terminal(&place.text.name);
            NamedSource::new(name, without_controls(&place.text.content))
        });
        Shown { diagnostic, source }
    }
}

/// The text with control signs replaced byte for byte, so that it is harmless and every place stays the same.
fn without_controls(text: &str) -> String {
    let mut harmless = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' | '\t' => harmless.push(sign),
            '\r' => harmless.push(' '),
            sign if sign.is_control() => (0..sign.len_utf8()).for_each(|_| harmless.push('?')),
            sign => harmless.push(sign),
        }
    }
    harmless
}

impl fmt::Debug for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.diagnostic, f)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = crate::render::escape::terminal;
        f.write_str(&plain(&self.diagnostic.message))?;
        match &self.diagnostic.why {
            Some(why) if self.source.is_none() => write!(f, ": {}", plain(why)),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Shown<'_> {}

impl miette::Diagnostic for Shown<'_> {
    fn code<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        Some(Box::new(self.diagnostic.code))
    }

    fn severity(&self) -> Option<Severity> {
        Some(match self.diagnostic.level {
            Level::Error => Severity::Error,
            Level::Warning => Severity::Warning,
        })
    }

    fn help<'b>(&'b self) -> Option<Box<dyn fmt::Display + 'b>> {
        let hint = self.diagnostic.hint.as_ref()?;
        Some(Box::new(crate::render::escape::terminal(hint)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let place = self.diagnostic.place.as_ref()?;
        let content = place.text.content.as_str();
        let start = place.span.start.min(content.len());
        let end = place.span.end.clamp(start, content.len());
        // A fault of a whole block is shown at its first line.
        let first_line = content.get(start..end)?.lines().next().map_or(0, str::len);
        let why = self.diagnostic.why.as_deref().map(crate::render::escape::terminal);
        Some(Box::new(std::iter::once(LabeledSpan::new(why, start, first_line))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta::contract::{Text, node::Span};

    const LOOK: Look = Look {
        width: 80,
        colour: false,
    };

    #[test]
    fn a_diagnostic_shows_place_picture_why_and_hint() {
        let text = Text::new("rules.yml", "rules:\n- not_null: id\n  serverity: warn\n");
        let diagnostics = Diagnostics(vec![
            Diagnostic::error("unknown-key", "unknown attribute `serverity`")
                .at(&text, Span { start: 24, end: 33 })
                .why("it would be ignored")
                .hint("did you mean `severity`?"),
            Diagnostic::error("nothing-chosen", "`--only x` chooses no check").hint("check the name"),
        ]);
        insta::assert_snapshot!(render(&diagnostics, &LOOK), @"
        nothing-chosen

          × `--only x` chooses no check
          help: check the name

        unknown-key

          × unknown attribute `serverity`
           ╭─[rules.yml:3:3]
         2 │ - not_null: id
         3 │   serverity: warn
           ·   ────┬────
           ·       ╰── it would be ignored
           ╰────
          help: did you mean `severity`?

        2 errors; nothing was read
        ");
        let json = to_json(&diagnostics);
        assert_eq!(json["errors"][1]["line"], 3);
        assert_eq!(json["errors"][1]["column"], 3);
        assert_eq!(json["errors"][0]["file"], Value::Null);
    }

    #[test]
    fn a_hostile_document_cannot_speak_to_the_terminal() {
        let text = Text::new("a\u{1b}[2J.yml", "x\u{1b}[31mred\u{9b}0m: 1\r\n");
        let diagnostics = Diagnostics(vec![
            Diagnostic::error("unknown-key", "unknown key `x\u{1b}[31m`").at(&text, Span { start: 0, end: 8 }),
        ]);
        let shown = render(&diagnostics, &LOOK);
        assert!(!shown.contains(['\u{1b}', '\u{9b}', '\r']), "{shown:?}");
    }
}
