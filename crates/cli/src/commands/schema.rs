//! `comporta schema [rules|pipeline|report]`

use crate::commands::Ended;
use crate::{exit_code, output};
use clap::{Args, ValueEnum};
use comporta::schema::{Document, to_text};

const AFTER_HELP: &str = "\
Examples:
  comporta schema rules > rules.schema.json
  comporta schema pipeline > pipeline.schema.json

An editor with a YAML language server completes and checks a file that begins with
  # yaml-language-server: $schema=rules.schema.json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The document
    #[arg(value_enum, default_value = "rules")]
    document: Choice,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Choice {
    /// The rules file of `comporta check`
    Rules,
    /// The pipeline of `comporta run`
    Pipeline,
    /// The JSON report
    Report,
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let document = match arguments.document {
        Choice::Rules => Document::Rules,
        Choice::Pipeline => Document::Pipeline,
        Choice::Report => Document::Report,
    };
    output::stdout(&to_text(&document.schema()))?;
    Ok(exit_code::PUBLISHED)
}
