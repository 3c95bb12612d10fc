//! `comporta run PIPELINE`

use crate::arguments::{JudgeArguments, OutputArguments};
use crate::commands::Ended;
use crate::failure::Failure;
use crate::{diagnostics, exit_code, output, progress, render, runtime};
use clap::Args;
use comporta::contract::pipeline::Pipeline;
use comporta::contract::{Decision, Diagnostics, Report};
use comporta::engine::job::Job;
use comporta::world::World;
use comporta::{documents, prepare};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Examples:
  comporta run orders.yaml
  comporta run orders.yaml --format text --format junit=report.xml
  comporta run orders.yaml --now 2026-08-21T06:00:00Z
      the clock reading is part of the report, so the same input gives the same report

Nothing becomes visible in the target before the decision. Killed at any moment and run again, target and
quarantine are as after one clean run.

Exit codes: 0 published · 1 held by the data · 2 a document is wrong · 3 could not tell, safe to retry";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The pipeline, YAML or JSON; `-` is standard input
    pipeline: String,
    /// The state database, where runs are remembered [default: .comporta/state.db beside the pipeline]
    #[arg(long, value_name = "PATH")]
    state: Option<PathBuf>,
    /// Write the report here, as JSON
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    report: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    judge: JudgeArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let requests = arguments.output.requests()?;
    let (pipeline, job) = prepare(arguments)?;
    let world = World::beside(&arguments.pipeline);
    let state = state_of(&arguments.pipeline, arguments.state.as_ref());
    let progress = progress::for_terminal(!arguments.output.no_progress);
    let ran = runtime::block_on(arguments.judge.threads.map(Into::into), async {
        world.run(&pipeline, &job, &state, progress).await
    })?;
    let mut report = ran.map_err(|error| world.redact_error(error))?;
    world.redact_report(&mut report);
    if let Some(place) = &arguments.report {
        output::file(place, &render::json::render(&report)?)?;
    }
    let view = render::View {
        purpose: render::Purpose::Run,
        verbose: arguments.output.verbose,
        hint: hint(&pipeline, &report),
    };
    render::say(&report, &view, &requests)?;
    Ok(exit_code::of_report(&report))
}

fn prepare(arguments: &Arguments) -> Result<(Pipeline, Job), Failure> {
    let mut found = Diagnostics::default();
    let Some(pipeline) = documents::pipeline(&arguments.pipeline, &mut found) else {
        return Err(Failure::Documents(found));
    };
    let job = prepare::run_job(&pipeline, &arguments.judge.settings(), &mut found);
    diagnostics::settle(found)?;
    Ok((pipeline, job))
}

/// Where runs of a pipeline are remembered.
pub(crate) fn state_of(pipeline: &str, state: Option<&PathBuf>) -> PathBuf {
    match state {
        Some(place) => place.clone(),
        None => documents::folder_of(pipeline).join(".comporta").join("state.db"),
    }
}

fn hint(pipeline: &Pipeline, report: &Report) -> Option<String> {
    if report.decision == Decision::Hold {
        return Some("the target is as it was; `comporta history` lists the runs".into());
    }
    (report.rows.quarantined > 0 && pipeline.quarantine.is_none())
        .then(|| "the pipeline names no `quarantine:`, so the rows set aside are kept nowhere".into())
}
