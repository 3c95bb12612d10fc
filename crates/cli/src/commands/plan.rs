//! `comporta plan PIPELINE` and `comporta plan DATA… --rules FILE`

use crate::arguments::{JudgeArguments, ReadArguments};
use crate::commands::Ended;
use crate::commands::check::Batch;
use crate::failure::Failure;
use crate::render::escape::terminal;
use crate::render::numbers::counted;
use crate::{diagnostics, exit_code, output, runtime};
use clap::{Args, ValueEnum};
use comporta::contract::Diagnostics;
use comporta::engine::PlanSummary;
use comporta::world::World;
use comporta::{documents, prepare};
use std::fmt::Write;

const AFTER_HELP: &str = "\
Examples:
  comporta plan orders.yaml
  comporta plan orders.parquet --rules orders.rules.yaml
  comporta plan orders.parquet --rules orders.rules.yaml --format json

Only the schema is read: footers of Parquet, the log of a Delta table, and text whose types are not declared.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// A pipeline; or data, with the rules it would be checked against
    #[arg(required = true, value_name = "PIPELINE|DATA")]
    places: Vec<String>,
    /// A rules file: the places are data then
    #[arg(long, value_name = "FILE")]
    rules: Option<String>,
    /// A check, as it stands in a rules file; the places are data then
    #[arg(long = "rule", value_name = "YAML")]
    inline: Vec<String>,
    /// How the plan is shown
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    #[command(flatten)]
    judge: JudgeArguments,
    #[command(flatten)]
    read: ReadArguments,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// For programs
    Json,
}

impl Arguments {
    pub(crate) fn is_json(&self) -> bool {
        self.format == Format::Json
    }
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let plan = match arguments.rules.is_some() || !arguments.inline.is_empty() {
        true => plan_check(arguments)?,
        false => plan_run(arguments)?,
    };
    let said = match arguments.format {
        Format::Text => text(&plan),
        Format::Json => {
            let json = serde_json::to_string_pretty(&plan)
                .map_err(|error| comporta::engine::Error::internal(format!("no JSON: {error}")))?;
            format!("{json}\n")
        }
    };
    output::stdout(&said)?;
    Ok(exit_code::PUBLISHED)
}
