//! Runs every case under `spec/`, each twice with different borders of chunks. `UPDATE=1` writes what came out
//! into the outcome blocks: facts keep their place and kind, an empty block gets the usual facts.

use comporta::contract::node::Text;
use comporta::contract::report::CheckReport;
use comporta::contract::rules_file::{NoIncludes, RulesFile};
use comporta::contract::{Decision, Diagnostics, Outcome, Report};
use comporta::engine::job::{Outputs, Silent};
use comporta::engine::{Source, Tables};
use comporta::prepare::{self, Settings};
use comporta::rules::registry;
use comporta_testkit::case::{self, Case};
use comporta_testkit::memory::{MemorySource, MemoryTables, MemoryTarget, texts};
use comporta_testkit::table::Table;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) const NOW: &str = "2026-01-02T00:00:00Z";

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a case gave.
pub(crate) enum Ran {
    Faults(Vec<String>),
    Error(String),
    Report(Box<Report>, MemoryTarget, MemoryTarget),
}

pub(crate) fn run(rules: &str, batch: &Table, tables: &[(String, Table)], settings: &Settings, chunk: usize) -> Ran {
    let mut found = Diagnostics::default();
    let text = Text::new("rules.yaml", rules);
    let file = RulesFile::parse(&text, &registry::names(), &NoIncludes, &mut found);
    let mut job = prepare::check_job("batch", &file, Some(&text), settings, &mut found);
    if found.has_errors() {
        found.sort();
        return Ran::Faults(found.0.iter().map(ToString::to_string).collect());
    }
    job.parallelism = 3;
    let source: Arc<dyn Source> = Arc::new(MemorySource::new(batch.clone(), chunk));
    let tables: Arc<dyn Tables> = Arc::new(MemoryTables(tables.iter().cloned().collect()));
    let (valid, invalid) = (MemoryTarget::default(), MemoryTarget::default());
    let outputs = Outputs {
        valid: Some(Arc::new(valid.clone())),
        invalid: Some(Arc::new(invalid.clone())),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    match runtime.block_on(comporta::engine::check(&job, source, tables, outputs, Arc::new(Silent))) {
        Ok(report) => Ran::Report(Box::new(report), valid, invalid),
        Err(error) => Ran::Error(error.to_string()),
    }
}

fn settings_of(case: &Case) -> Settings {
    let mut settings = Settings {
        now: Some(prepare::instant(NOW).unwrap()),
        ..Settings::default()
    };
    for (key, value) in &case.settings {
        match key.as_str() {
            "now" => settings.now = Some(prepare::instant(value).unwrap()),
            "strict" => settings.strict = value == "true",
            "only" => settings.only = vec![value.clone()],
            "skip" => settings.skip = vec![value.clone()],
            _ => panic!("`{key}` is no setting of a case"),
        }
    }
    settings
}

/// The facts of what came out, in the form of those that were asserted.
fn facts(ran: &Ran, asserted: &[String]) -> Vec<String> {
    let (report, valid, invalid) = match ran {
        Ran::Faults(faults) => return faulty("fault", faults, asserted),
        Ran::Error(error) => return faulty("error", std::slice::from_ref(error), asserted),
        Ran::Report(report, valid, invalid) => (report, valid, invalid),
    };
    if asserted.is_empty() {
        return usual(report);
    }
    let mut used = Vec::new();
    asserted
        .iter()
        .map(|line| fact(report, valid, invalid, line, &mut used))
        .collect()
}

/// Faults are asserted by a fragment; a fragment that occurs stands as it was.
fn faulty(word: &str, found: &[String], asserted: &[String]) -> Vec<String> {
    let kept = asserted.iter().map(|line| {
        let fragment = line.strip_prefix(&format!("{word}: "));
        match fragment.filter(|fragment| found.iter().any(|one| one.contains(fragment))) {
            Some(_) => line.clone(),
            None => format!("{word}: {}", found.join(" | ").replace('\n', " ")),
        }
    });
    match asserted.is_empty() {
        true => found
            .iter()
            .map(|one| format!("{word}: {}", one.replace('\n', " ")))
            .collect(),
        false => kept.collect(),
    }
}

fn usual(report: &Report) -> Vec<String> {
    let rows = &report.rows;
    let mut lines = vec![
        format!("decision {}", report.decision),
        format!("rows read={} valid={} invalid={}", rows.read, rows.valid, rows.invalid),
    ];
    for check in &report.checks {
        let implicit = check.source.is_none() && check.rule == "type";
        if !implicit || check.outcome != Outcome::Pass && check.outcome != Outcome::NoData {
            let keys = match check.outcome {
                Outcome::Error | Outcome::NotEvaluated => "",
                _ => " failed= evaluated= unknown=",
            };
            lines.push(check_fact(check, keys));
        }
    }
    lines
}

fn fact(report: &Report, valid: &MemoryTarget, invalid: &MemoryTarget, line: &str, used: &mut Vec<usize>) -> String {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "decision" => format!("decision {}", report.decision),
        "exit" => format!("exit {}", exit_code(report)),
        "score" => format!(
            "score {}",
            report.score.map_or("null".into(), |score| score.to_string())
        ),
        "rows" => format!("rows {}", pairs(rest, |key| of_rows(report, key))),
        "check" => {
            let (name, keys) = rest.rsplit_once(": ").unwrap_or((rest, ""));
            let place = (0..report.checks.len()).find(|at| report.checks[*at].name == name && !used.contains(at));
            let Some(place) = place else {
                let names: Vec<&str> = report.checks.iter().map(|check| check.name.as_str()).collect();
                return format!("check {name} is not among {names:?}");
            };
            used.push(place);
            let keys = keys
                .split_whitespace()
                .skip(2)
                .map(|key| format!(" {key}"))
                .collect::<String>();
            check_fact(&report.checks[place], &keys)
        }
        "says" | "reason:" | "note:" => {
            let found: Vec<&String> = match word {
                "says" => report.checks.iter().map(|check| &check.message).collect(),
                "reason:" => report.decision_reasons.iter().collect(),
                _ => report.notes.iter().collect(),
            };
            match found.iter().any(|one| one.contains(rest)) {
                true => line.to_string(),
                false => format!("{word} {found:?}"),
            }
        }
        "invalid" => format!("invalid {}", rows_of(invalid)),
        "published" => format!("published {}", valid.rows()),
        _ => format!("`{word}` is no fact"),
    }
}

/// The rows that were set aside, by their place in the batch.
fn rows_of(target: &MemoryTarget) -> String {
    let mut rows: Vec<u64> = target
        .batches()
        .iter()
        .flat_map(|batch| texts(batch, "_source_row"))
        .filter_map(|row| row.and_then(|row| row.parse().ok()))
        .collect();
    rows.sort_unstable();
    let rows: Vec<String> = rows.iter().map(ToString::to_string).collect();
    if rows.is_empty() { "none".into() } else { rows.join(" ") }
}

fn exit_code(report: &Report) -> u8 {
    match report.decision {
        Decision::Hold if comporta::engine::held_by_error(report) => 3,
        Decision::Hold => 1,
        _ => 0,
    }
}

fn pairs(keys: &str, value: impl Fn(&str) -> String) -> String {
    let pairs = keys.split_whitespace().map(|pair| {
        let key = pair.split('=').next().unwrap_or(pair);
        format!("{key}={}", value(key))
    });
    pairs.collect::<Vec<_>>().join(" ")
}

fn of_rows(report: &Report, key: &str) -> String {
    let rows = serde_json::to_value(&report.rows).unwrap();
    rows.get(key).map_or("?".into(), ToString::to_string)
}

fn check_fact(check: &CheckReport, keys: &str) -> String {
    let value = |key: &str| -> String {
        let plain = |value: &Value| match value {
            Value::String(text) => text.replace(' ', "_"),
            other => other.to_string().replace(' ', ""),
        };
        match key {
            "failed" => check.failed_count.to_string(),
            "evaluated" => check.evaluated.to_string(),
            "unknown" => check.unknown_count.to_string(),
            "metric" => plain(&check.metric_value),
            "ratio" => check.failed_ratio.map_or("null".into(), |ratio| ratio.to_string()),
            "columns" => check.columns.join(","),
            "severity" => check.severity.to_string(),
            "kind" => check.kind.to_string(),
            "dimension" => check.dimension.to_string(),
            key => match key.strip_prefix("details.").and_then(|name| check.details.get(name)) {
                Some(value) => plain(value),
                None => "?".into(),
            },
        }
    };
    let line = format!(
        "check {}: {} {} {}",
        check.name,
        check.outcome,
        check.effect,
        pairs(keys, value)
    );
    line.trim_end().to_string()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") && !path.ends_with("README.md") {
            found.push(path);
        }
    }
    found.sort();
}

fn outcomes(case: &Case) -> Result<Vec<Vec<String>>, String> {
    let (text, parsed) = case.batch.clone().unwrap_or_else(|| ("id:int64\n".into(), false));
    let batch = Table::parse(&text, parsed)?;
    let mut tables = Vec::new();
    for (name, text) in &case.tables {
        tables.push((name.clone(), Table::parse(text, false)?));
    }
    let settings = settings_of(case);
    let both = [1024, 1].map(|chunk| facts(&run(&case.rules, &batch, &tables, &settings, chunk), &case.outcome));
    Ok(both.into())
}

#[test]
fn every_case_gives_its_outcome() {
    let update = std::env::var_os("UPDATE").is_some();
    let filter = std::env::var("CASE").unwrap_or_default();
    let (mut found, mut wrong, mut count) = (Vec::new(), Vec::new(), 0);
    files(&root().join("spec"), &mut found);
    for path in found {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let cases = case::parse(&text).unwrap_or_else(|why| panic!("{name}: {why}"));
        let mut lines: Vec<String> = text.lines().map(Into::into).collect();
        for case in cases
            .iter()
            .rev()
            .filter(|case| format!("{name} {}", case.title).contains(&filter))
        {
            count += 1;
            let place = format!("{name}:{} {}", case.line, case.title);
            match outcomes(case) {
                Err(why) => wrong.push(format!("{place}\n    {why}")),
                Ok(both) if both[0] != both[1] => {
                    wrong.push(format!("{place}\n    the borders of chunks matter: {both:#?}"))
                }
                Ok(both) if both[0] != case.outcome || case.outcome.is_empty() => {
                    lines.splice(case.outcome_lines.0..case.outcome_lines.1, both[0].clone());
                    let show = |lines: &[String]| lines.join("\n      ");
                    wrong.push(format!(
                        "{place}\n    expected\n      {}\n    found\n      {}",
                        show(&case.outcome),
                        show(&both[0])
                    ));
                }
                Ok(_) => {}
            }
        }
        if update {
            std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        }
    }
    #[expect(clippy::print_stdout, reason = "a run without a case must show")]
    {
        println!("{count} cases");
    }
    assert!(
        wrong.is_empty(),
        "{} of {count} cases are wrong\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
