//! `comporta plan PIPELINE` and `comporta plan DATA… --rules FILE`

use crate::arguments::{JudgeArguments, ReadArguments};
use crate::commands::Ended;
use crate::commands::check::{self, RulesArguments};
use crate::failure::Failure;
use crate::render::escape::terminal;
use crate::render::numbers::counted;
use crate::{diagnostics, exit_code, output, runtime};
use clap::{Args, ValueEnum};
use comporta::contract::Diagnostics;
use comporta::engine::{PlanSummary, Scan};
use comporta::world::World;
use comporta::{documents, prepare};
use std::fmt::Write;
use std::path::Path;

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
    #[command(flatten)]
    rules: RulesArguments,
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
    let plan = match arguments.rules.rules.is_some() || !arguments.rules.inline.is_empty() {
        true => plan_check(arguments)?,
        false => plan_run(arguments)?,
    };
    let said = match arguments.format {
        Format::Text => text(&plan),
        Format::Json => {
            let json = serde_json::to_string_pretty(&plan)
                .map_err(|error| comporta::engine::Error::internal(format!("the plan as JSON: {error}")))?;
            format!("{json}\n")
        }
    };
    output::stdout(&said)?;
    Ok(exit_code::PUBLISHED)
}

fn plan_check(arguments: &Arguments) -> Result<PlanSummary, Failure> {
    let prepared = check::prepare(&arguments.places, &arguments.rules, &arguments.read, &arguments.judge)?;
    let world = World::beside(arguments.rules.rules.as_deref().unwrap_or("-"));
    let spec = prepared.document.source.clone().unwrap_or_default();
    let opened = runtime::block_on(None, async {
        world
            .source(&spec, Path::new("."), &prepared.document, &prepared.job)
            .await
    })?;
    let source = opened.map_err(|error| world.redact_error(error))?;
    Ok(comporta::engine::plan(&prepared.job, source.as_ref(), false))
}

fn plan_run(arguments: &Arguments) -> Result<PlanSummary, Failure> {
    let [place] = arguments.places.as_slice() else {
        return Err(Failure::usage(
            "several places and no rules",
            "name one pipeline, or data with `--rules FILE`",
        ));
    };
    let mut found = Diagnostics::default();
    let Some(pipeline) = documents::pipeline(place, &mut found) else {
        return Err(Failure::Documents(found));
    };
    let job = prepare::run_job(&pipeline, &arguments.judge.settings(), &mut found);
    diagnostics::settle(found)?;
    let world = World::beside(place);
    let spec = pipeline.document.source.clone().unwrap_or_default();
    let folder = documents::folder_of(place);
    let opened = runtime::block_on(None, async {
        world.source(&spec, &folder, &pipeline.document, &job).await
    })?;
    let source = opened.map_err(|error| world.redact_error(error))?;
    let mut plan = comporta::engine::plan(&job, source.as_ref(), true);
    let places = [
        ("target", &pipeline.target),
        ("quarantine", &pipeline.quarantine),
        ("report", &pipeline.report),
    ];
    // As written: what a placeholder stands for is never shown.
    let named = places
        .into_iter()
        .filter_map(|(name, spec)| spec.as_ref().map(|spec| (name, spec)));
    plan.writes = named.map(|(name, spec)| format!("{name} {}", spec.place())).collect();
    if !pipeline.transform.is_empty() {
        let columns = plan.scans.last().map(|scan| scan.columns.clone()).unwrap_or_default();
        let steps: Vec<&str> = pipeline
            .transform
            .iter()
            .map(|transform| transform.step.name())
            .collect();
        let scan = Scan {
            purpose: format!("transform ({})", steps.join(", ")),
            columns,
            streams: 1,
        };
        plan.scans.insert(0, scan);
        // What a transform makes is known only once it ran: checks are bound to its columns then.
        plan.proved_by_statistics.clear();
        plan.checks.iter_mut().for_each(|check| check.error = None);
    }
    Ok(plan)
}

fn text(plan: &PlanSummary) -> String {
    let mut said = format!("source  {}", terminal(&plan.source));
    if let Some(rows) = plan.rows {
        let _ = write!(said, " · {}", counted(rows, "row"));
    }
    let _ = writeln!(said, " · {}", counted(plan.bytes, "byte"));
    said.push_str("\nscans\n");
    if plan.scans.is_empty() {
        said.push_str("  none: statistics answer every check\n");
    }
    for scan in &plan.scans {
        let columns = match scan.columns.is_empty() {
            true => "no column, rows are only counted".to_string(),
            false => terminal(&scan.columns.join(", ")),
        };
        let _ = writeln!(said, "  {}: {columns}", terminal(&scan.purpose));
    }
    if !plan.proved_by_statistics.is_empty() {
        said.push_str("\nproved by statistics\n");
        for name in &plan.proved_by_statistics {
            let _ = writeln!(said, "  {}", terminal(name));
        }
    }
    said.push_str("\nchecks\n");
    for check in &plan.checks {
        let left_out = if check.left_out { " (left out)" } else { "" };
        let _ = writeln!(said, "  {:10}  {}{left_out}", check.severity, terminal(&check.name));
        if let Some(error) = &check.error {
            let _ = writeln!(said, "              cannot be evaluated: {}", terminal(error));
        }
    }
    said.push_str("\nwrites\n");
    match plan.writes.is_empty() {
        true => said.push_str("  nothing\n"),
        false => plan.writes.iter().for_each(|place| {
            let _ = writeln!(said, "  {}", terminal(place));
        }),
    }
    said
}
