//! `comporta check DATA…`

use crate::arguments::{JudgeArguments, OutputArguments, ReadArguments};
use crate::commands::Ended;
use crate::failure::Failure;
use crate::{diagnostics, exit_code, output, progress, render, runtime};
use clap::Args;
use comporta::contract::node::Text;
use comporta::contract::pipeline::{TargetSpec, WriteStrategy};
use comporta::contract::rules_file::RulesFile;
use comporta::contract::{Diagnostics, Report};
use comporta::engine::job::{Job, Outputs};
use comporta::lake::write::Role;
use comporta::world::World;
use comporta::{documents, prepare};
use std::path::Path;
use std::sync::Arc;

const AFTER_HELP: &str = "\
Examples:
  comporta check orders.csv
      types alone: every cell parses as the type of its column
  comporta check orders.csv --rule 'not_null: [order_id]' --rule '{unique: [order_id], severity: quarantine}'
      rules on the command line, as they stand in a rules file
  comporta check 'landing/2026-08-*.parquet' --rules orders.rules.yaml --sample 10
      several files are one batch
  comporta check s3://bucket/orders/ --rules orders.rules.yaml --valid good.parquet --invalid bad.parquet
      write the rows that keep the rules and those that break them, each with its reasons
  gunzip -c orders.csv.gz | comporta check - --input-format csv --rules orders.rules.yaml --format json

Exit codes: 0 would be published · 1 would be held · 2 the command line or a document is wrong · 3 could not tell";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// Files, globs, folders, Delta tables or URLs (s3://, gs://, az://), one batch together; `-` is standard input
    data: Vec<String>,
    #[command(flatten)]
    rules: RulesArguments,
    /// Write the valid rows here: .parquet, .csv, .jsonl, or delta:FOLDER
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    valid: Option<String>,
    /// Write the invalid rows here, each with its reasons
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    invalid: Option<String>,
    /// Write the report here, as JSON
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    report: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    #[command(flatten)]
    judge: JudgeArguments,
    #[command(flatten)]
    read: ReadArguments,
}

/// The rules that data is held against.
#[derive(Debug, Args)]
pub(crate) struct RulesArguments {
    /// A rules file, YAML or JSON; `-` is standard input
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<String>,
    /// A check, as it stands in a rules file; may be given several times
    #[arg(long = "rule", value_name = "YAML")]
    pub(crate) inline: Vec<String>,
}

/// A check, ready to be done: documents read and found good.
pub(crate) struct Prepared {
    pub(crate) document: RulesFile,
    pub(crate) job: Job,
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let requests = arguments.output.requests()?;
    let prepared = prepare(&arguments.data, &arguments.rules, &arguments.read, &arguments.judge)?;
    let report = judge(arguments, &prepared)?;
    if let Some(place) = &arguments.report {
        output::file(place, &render::json::render(&report)?)?;
    }
    let view = render::View {
        purpose: render::Purpose::Check,
        verbose: arguments.output.verbose,
        hint: hint(arguments, &prepared, &report),
    };
    render::say(&report, &view, &requests)?;
    Ok(exit_code::of_report(&report))
}

/// Reads the documents of a check and makes its job.
pub(crate) fn prepare(
    data: &[String],
    rules: &RulesArguments,
    read: &ReadArguments,
    judge: &JudgeArguments,
) -> Result<Prepared, Failure> {
    let mut found = Diagnostics::default();
    let (mut document, text) = read_rules(data, rules, &mut found)?;
    let mut source = document.source.take().unwrap_or_default();
    read.apply(&mut source, data);
    let (places, _) = source.places();
    if places.is_empty() && !found.has_errors() {
        return Err(Failure::usage(
            "no data is named",
            "name a file, a folder or a glob: `comporta check orders.csv`; `-` is standard input",
        ));
    }
    document.source = Some(source);
    let settings = judge.settings();
    let job = prepare::check_job(&name_of(&places), &document, text.as_ref(), &settings, &mut found);
    diagnostics::settle(found)?;
    Ok(Prepared { document, job })
}

/// What the report calls the data: the places, or the first of many.
fn name_of(places: &[String]) -> String {
    match places {
        [first, rest @ ..] if rest.len() > 2 => format!("{first} and {} more", rest.len()),
        places => places.join(", "),
    }
}

/// The rules of the file and of the command line, as one document.
fn read_rules(
    data: &[String],
    rules: &RulesArguments,
    found: &mut Diagnostics,
) -> Result<(RulesFile, Option<Arc<Text>>), Failure> {
    let from_stdin = |place: &str| place == "-";
    if rules.rules.as_deref().is_some_and(from_stdin) && data.iter().any(|place| from_stdin(place)) {
        return Err(Failure::usage(
            "both the rules and the data are to come from standard input",
            "give one of them as a file",
        ));
    }
    let (mut document, text) = match &rules.rules {
        None => (RulesFile::default(), None),
        Some(place) => match documents::rules_file(place, found) {
            Some((document, text)) => (document, Some(text)),
            None => (RulesFile::default(), None),
        },
    };
    for (position, written) in rules.inline.iter().enumerate() {
        let name = match rules.inline.len() {
            1 => "--rule".to_string(),
            _ => format!("--rule {}", position + 1),
        };
        document.rules.extend(documents::inline_rule(&name, written, found));
    }
    Ok((document, text))
}

fn judge(arguments: &Arguments, prepared: &Prepared) -> Result<Report, Failure> {
    let valid = target_of("--valid", arguments.valid.as_deref())?;
    let invalid = target_of("--invalid", arguments.invalid.as_deref())?;
    let world = World::beside(arguments.rules.rules.as_deref().unwrap_or("-"));
    // What the command line names is relative to where it is typed, not to the rules file.
    let here = Path::new(".");
    let open = |spec: &Option<TargetSpec>| {
        spec.as_ref()
            .map(|spec| world.target(spec, here, Role::Valid))
            .transpose()
    };
    let outputs = Outputs {
        valid: open(&valid)?,
        invalid: open(&invalid)?,
    };
    let progress = progress::for_terminal(!arguments.output.no_progress);
    let Prepared { document, job } = prepared;
    let checked = runtime::block_on(arguments.judge.threads.map(Into::into), async {
        world.check(document, here, job, outputs, progress).await
    })?;
    let mut report = checked.map_err(|error| world.redact_error(error))?;
    world.redact_report(&mut report);
    Ok(report)
}

/// A place to write rows to, by its extension or its prefix. It is replaced, so that a second check leaves the
/// same files as the first.
fn target_of(option: &str, place: Option<&str>) -> Result<Option<TargetSpec>, Failure> {
    let Some(place) = place else { return Ok(None) };
    let mut spec = TargetSpec {
        write: Some(WriteStrategy::Overwrite),
        ..TargetSpec::default()
    };
    let (named, path) = match place.split_once(':') {
        Some((format @ ("delta" | "parquet" | "csv" | "jsonl"), path)) => (Some(format), path),
        _ => (None, place),
    };
    let extension = |ending: &str| path.ends_with(ending) || path.ends_with(&format!("{ending}.gz"));
    let slot = match named {
        Some("delta") => &mut spec.delta,
        Some("parquet") => &mut spec.parquet,
        Some("csv") => &mut spec.csv,
        Some("jsonl") => &mut spec.jsonl,
        _ if path.ends_with(".parquet") => &mut spec.parquet,
        _ if extension(".csv") => &mut spec.csv,
        _ if extension(".jsonl") => &mut spec.jsonl,
        _ if Path::new(path).join("_delta_log").is_dir() => &mut spec.delta,
        _ => {
            return Err(Failure::usage(
                format!("`{option} {place}` does not say in which format rows are to be written"),
                "end the path in `.parquet`, `.csv` or `.jsonl`, or write `delta:FOLDER`",
            ));
        }
    };
    *slot = Some(path.to_string());
    Ok(Some(spec))
}

/// What to do next, where there is something to do.
fn hint(arguments: &Arguments, prepared: &Prepared, report: &Report) -> Option<String> {
    if prepared.job.checks.is_empty() && prepared.job.left_out.is_empty() {
        return Some("no rules were given, so only types were judged; `--rule 'not_null: [column]'` adds one, `comporta rules` lists them".into());
    }
    (report.rows.invalid > 0 && arguments.invalid.is_none())
        .then(|| "`--invalid bad.parquet` writes the invalid rows, each with its reasons".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_by_extension_or_prefix() {
        let place = |text: &str| target_of("--valid", Some(text)).ok().flatten();
        assert_eq!(
            place("a/good.parquet").unwrap().parquet.as_deref(),
            Some("a/good.parquet")
        );
        assert_eq!(place("good.csv.gz").unwrap().csv.as_deref(), Some("good.csv.gz"));
        assert_eq!(place("delta:lake/good").unwrap().delta.as_deref(), Some("lake/good"));
        assert_eq!(
            place("s3://b/good.jsonl").unwrap().jsonl.as_deref(),
            Some("s3://b/good.jsonl")
        );
        assert!(place("good.xlsx").is_none());
        assert!(place("good").is_none());
    }
}
