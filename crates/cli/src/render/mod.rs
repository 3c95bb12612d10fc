//! A report in the formats people and programs read; one file per format.

pub(crate) mod escape;
#[cfg(test)]
pub(crate) mod fixtures;
pub(crate) mod github;
pub(crate) mod json;
pub(crate) mod junit;
pub(crate) mod markdown;
pub(crate) mod numbers;
pub(crate) mod text;

use crate::failure::Failure;
use crate::output;
use comporta::contract::Report;
use std::fmt;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// The report as it is persisted.
    Json,
    /// For test dashboards.
    Junit,
    /// Annotations of a GitHub workflow.
    Github,
    /// For comments on pull requests.
    Markdown,
}

impl Format {
    const ALL: &'static [(Format, &'static str)] = &[
        (Format::Text, "text"),
        (Format::Json, "json"),
        (Format::Junit, "junit"),
        (Format::Github, "github"),
        (Format::Markdown, "markdown"),
    ];
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL
            .iter()
            .find(|(format, _)| format == self)
            .map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

/// A format, and the file it goes to if not to standard output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FormatRequest {
    /// The format.
    pub(crate) format: Format,
    /// The file.
    pub(crate) path: Option<String>,
}

impl FormatRequest {
    /// Reads `FORMAT` or `FORMAT=PATH`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) => (name, Some(path.to_string())),
            None => (text, None),
        };
        if path.as_deref() == Some("") {
            return Err("a path is expected behind `=`".into());
        }
        let found = Format::ALL.iter().find(|(_, known)| *known == name);
        match found {
            Some((format, _)) => Ok(FormatRequest { format: *format, path }),
            None => Err("one of text, json, junit, github, markdown is expected".into()),
        }
    }
}

/// Which command the report is of: a check says what would be done, a run what was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// `comporta check`
    Check,
    /// `comporta run`
    Run,
}

/// What a format needs beside the report.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// Which command the report is of.
    pub(crate) purpose: Purpose,
    /// Whether checks that pass are listed too.
    pub(crate) verbose: bool,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

/// Says the report in every format asked for.
pub(crate) fn say(report: &Report, view: &View, requests: &[FormatRequest]) -> Result<(), Failure> {
    for request in requests {
        let look = match request.path {
            None => text::Look::of_stdout(),
            Some(_) => text::Look::PLAIN,
        };
        let said = match request.format {
            Format::Text => text::render(report, view, look),
            Format::Json => json::render(report)?,
            Format::Junit => junit::render(report)?,
            Format::Github => github::render(report, view),
            Format::Markdown => markdown::render(report, view),
        };
        match &request.path {
            None => output::stdout(&said)?,
            Some(path) => output::file(path, &said)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_format_may_name_a_file() {
        let request = FormatRequest::parse("junit=out/report.xml").unwrap();
        assert_eq!(
            (request.format, request.path.as_deref()),
            (Format::Junit, Some("out/report.xml"))
        );
        assert_eq!(FormatRequest::parse("text").unwrap().path, None);
        assert!(FormatRequest::parse("html").is_err());
        assert!(FormatRequest::parse("json=").is_err());
    }
}
