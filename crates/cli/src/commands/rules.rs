//! `comporta rules [NAME]`

use crate::commands::Ended;
use crate::failure::Failure;
use crate::{exit_code, output};
use clap::{Args, ValueEnum};
use comporta::rules::check::suggest_rule;
use comporta::rules::rule::Definition;
use comporta::rules::{page, registry};
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::fmt::Write;

const AFTER_HELP: &str = "\
Examples:
  comporta rules
  comporta rules range
  comporta rules --format json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The rule to show; all are listed without it
    name: Option<String>,
    /// How they are shown
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs: name, family, kind, dimension, summary, JSON Schema of the parameters
    Json,
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let text = match (&arguments.name, arguments.format) {
        (None, Format::Text) => list(),
        (None, Format::Json) => json_text(&Value::Array(registry::all().iter().map(described).collect())),
        (Some(name), Format::Text) => page::page(find(name)?),
        (Some(name), Format::Json) => json_text(&described(find(name)?)),
    };
    output::stdout(&text)?;
    Ok(exit_code::PUBLISHED)
}

fn find(name: &str) -> Result<&'static Definition, Failure> {
    registry::find(name).ok_or_else(|| Failure::usage(format!("there is no rule `{name}`"), suggest_rule(name)))
}

fn json_text(value: &Value) -> String {
    format!("{value:#}\n")
}

/// By family, one line each.
fn list() -> String {
    let width = registry::all().iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for family in page::FAMILIES {
        let rules: Vec<&Definition> = registry::all().iter().filter(|rule| rule.family == *family).collect();
        if rules.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{}", page::family_name(*family));
        for rule in rules {
            let _ = writeln!(text, "  {:width$}  {}", rule.name, page::summary(rule));
        }
        text.push('\n');
    }
    let _ = writeln!(
        text,
        "{} rules; `comporta rules NAME` shows one with its parameters and examples",
        registry::all().len()
    );
    text
}

fn described(rule: &Definition) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.inline_subschemas = true;
    json!({
        "name": rule.name,
        "family": page::family_name(rule.family),
        "kind": rule.kind,
        "dimension": rule.dimension,
        "since": rule.since,
        "summary": page::summary(rule),
        "parameters": (rule.schema)(&mut settings.into_generator()).to_value(),
    })
}
