//! `comporta history [PIPELINE]`

use crate::commands::Ended;
use crate::commands::run::state_of;
use crate::failure::Failure;
use crate::render::escape::terminal;
use crate::render::numbers::count;
use crate::{exit_code, output, runtime};
use clap::{Args, ValueEnum};
use comfy_table::{Table, presets};
use comporta::contract::Diagnostics;
use comporta::documents;
use comporta::state::{RunState, RunSummary, SqliteStore};
use std::path::{Path, PathBuf};

const AFTER_HELP: &str = "\
Examples:
  comporta history orders.yaml
  comporta history --state lake/.comporta/state.db --limit 100 --format json";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The pipeline whose runs are listed; all runs of the state database without it
    pipeline: Option<String>,
    /// List at most N runs, the newest first
    #[arg(long, value_name = "N", default_value_t = 20)]
    limit: u32,
    /// The state database [default: .comporta/state.db beside the pipeline, or in the current folder]
    #[arg(long, value_name = "PATH")]
    state: Option<PathBuf>,
    /// How they are shown
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
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
    let place = arguments.pipeline.as_deref().unwrap_or("-");
    let state = state_of(place, arguments.state.as_ref());
    let name = arguments.pipeline.as_deref().map(name_of).transpose()?;
    let runs = match state.exists() {
        true => runtime::block_on(Some(1), read(&state, arguments.limit, name.as_deref()))??,
        // Looking must not make a database.
        false if arguments.state.is_some() => {
            return Err(Failure::usage(
                format!("there is no state database `{}`", state.display()),
                "check the path; `comporta run` makes the database",
            ));
        }
        false => Vec::new(),
    };
    let said = match arguments.format {
        Format::Json => {
            let json = serde_json::to_string_pretty(&runs)
                .map_err(|error| comporta::engine::Error::internal(format!("the history as JSON: {error}")))?;
            format!("{json}\n")
        }
        Format::Text if runs.is_empty() => "no run yet\n".into(),
        Format::Text => text(&runs),
    };
    output::stdout(&said)?;
    Ok(exit_code::PUBLISHED)
}

/// The name under which a pipeline's runs are remembered. Faults elsewhere in the document do not matter here.
fn name_of(place: &str) -> Result<String, Failure> {
    let mut found = Diagnostics::default();
    match documents::pipeline(place, &mut found) {
        Some(pipeline) if !pipeline.name.is_empty() => Ok(pipeline.name),
        _ => Err(Failure::Documents(found)),
    }
}

async fn read(state: &Path, limit: u32, pipeline: Option<&str>) -> Result<Vec<RunSummary>, Failure> {
    Ok(SqliteStore::open(state).await?.history(limit, pipeline).await?)
}

fn text(runs: &[RunSummary]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).force_no_tty();
    table.set_header([
        "started",
        "pipeline",
        "decision",
        "read",
        "published",
        "quarantined",
        "score",
        "run",
    ]);
    for run in runs {
        let decision = match (run.state, &run.decision, &run.error) {
            (RunState::Running, _, _) => "not ended".to_string(),
            (RunState::Failed, _, Some(error)) => format!("failed: {error}"),
            (RunState::Failed, _, None) => "failed".to_string(),
            (RunState::Finished, decision, _) => decision.clone().unwrap_or_default(),
        };
        let number = |number: Option<u64>| number.map(count).unwrap_or_default();
        table.add_row([
            run.started_at.clone(),
            terminal(&run.pipeline),
            terminal(&decision),
            number(run.rows_read),
            number(run.rows_published),
            number(run.rows_quarantined),
            run.score
                .map(|score| format!("{:.4}", (score * 10_000.0).floor() / 10_000.0))
                .unwrap_or_default(),
            run.run_id.clone(),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    format!("{}\n", table.trim_fmt())
}
