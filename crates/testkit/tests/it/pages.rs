//! Executes the tables of the rules' pages: what a page shows is what comes out.

use crate::spec::{NOW, Ran, run};
use comporta::contract::{Outcome, Report};
use comporta::prepare::{Settings, instant};
use comporta::rules::page::{self, Table as PageTable};
use comporta::rules::registry;
use comporta_testkit::memory::texts;
use comporta_testkit::table::Table;
use std::collections::BTreeSet;

/// The type that a person reading the cells would give the column.
fn type_of(cells: &[&str]) -> &'static str {
    let all = |test: fn(&str) -> bool| !cells.is_empty() && cells.iter().all(|cell| test(cell));
    let date = |cell: &str| cell.len() == 10 && chrono::NaiveDate::parse_from_str(cell, "%Y-%m-%d").is_ok();
    if all(|cell| cell.parse::<i64>().is_ok() && (cell == "0" || !cell.starts_with('0'))) {
        "int64"
    } else if all(|cell| cell.parse::<f64>().is_ok() && !cell.starts_with("00")) {
        match cells.iter().any(|cell| cell.contains("NaN") || cell.contains("inf")) {
            true => "double",
            false => "decimal(30,6)",
        }
    } else if all(|cell| cell == "true" || cell == "false") {
        "boolean"
    } else if all(date) {
        "date"
    } else if all(|cell| cell.contains('T') && instant(cell).is_ok()) {
        "timestamp_tz"
    } else {
        "string"
    }
}

fn table_of(page: &PageTable) -> Table {
    let quote = |cell: &str| format!("\"{}\"", cell.replace('\\', "\\\\").replace('"', "\\\""));
    let mut lines = Vec::new();
    let header: Vec<String> = page
        .columns
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let cells: Vec<&str> = page.rows.iter().filter_map(|row| row[index].as_deref()).collect();
            format!("{}:{}", quote(name), type_of(&cells))
        })
        .collect();
    lines.push(header.join(","));
    for row in &page.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| cell.as_deref().map_or("null".into(), quote))
            .collect();
        lines.push(cells.join(","));
    }
    Table::parse(&(lines.join("\n") + "\n"), false).unwrap()
}

fn judge(rules: &str, page: &PageTable) -> Result<(Report, BTreeSet<usize>), String> {
    let settings = Settings {
        now: instant(NOW).ok(),
        ..Settings::default()
    };
    match run(rules, &table_of(page), &[], &settings, 2) {
        Ran::Faults(faults) => Err(faults.join(" | ")),
        Ran::Error(error) => Err(error),
        Ran::Report(report, _, invalid) => {
            let rows = invalid
                .batches()
                .iter()
                .flat_map(|batch| texts(batch, "_source_row"))
                .flatten()
                .filter_map(|row| row.parse().ok())
                .collect();
            Ok((*report, rows))
        }
    }
}

#[test]
fn the_tables_of_every_page_come_out() {
    let mut wrong = Vec::new();
    for definition in registry::all() {
        for example in page::examples(definition) {
            let name = definition.name;
            match judge(&example.yaml, &example.holds) {
                Err(why) => wrong.push(format!("{name}, holds: {why}")),
                Ok((report, _)) => wrong.extend(
                    report
                        .checks
                        .iter()
                        .filter(|check| check.outcome != Outcome::Pass)
                        .map(|check| {
                            format!(
                                "{name}, holds: `{}` is {}: {}",
                                check.name, check.outcome, check.message
                            )
                        }),
                ),
            }
            match judge(&example.yaml, &example.broken) {
                Err(why) => wrong.push(format!("{name}, broken: {why}")),
                Ok((report, rows)) => {
                    if !report.checks.iter().any(|check| check.outcome == Outcome::Fail) {
                        wrong.push(format!("{name}, broken: no check fails"));
                    }
                    if let Some(broken) = &example.broken.broken {
                        let expected: BTreeSet<usize> = (1..=broken.len()).filter(|row| broken[row - 1]).collect();
                        if rows != expected {
                            wrong.push(format!("{name}, broken: rows {rows:?}, the page says {expected:?}"));
                        }
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
