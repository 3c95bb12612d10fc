//! What a check or a run would read, as far as the schema and the statistics of the source tell before the first
//! row is read.

use crate::batch::Plan;
use crate::job::Job;
use crate::world::Source;
use comporta_contract::{RuleKind, Severity};
use comporta_rules::{Bound, Measure};
use serde::Serialize;
use std::collections::BTreeSet;

/// What would be read, and what need not be.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanSummary {
    /// The source, as the report calls it.
    pub source: String,
    /// Rows of the source, where it knows them without reading them.
    pub rows: Option<u64>,
    /// Bytes of the source; a scan of some columns of a columnar file reads fewer.
    pub bytes: u64,
    /// The passes over the source.
    pub scans: Vec<Scan>,
    /// Checks that the statistics of the source answer without a row being read.
    pub proved_by_statistics: Vec<String>,
    /// Every check, in the order of the documents, implicit ones of types behind them.
    pub checks: Vec<PlannedCheck>,
    /// Places that would be written to.
    pub writes: Vec<String>,
}

/// One pass over the source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// What it is for.
    pub purpose: String,
    /// The columns it reads.
    pub columns: Vec<String>,
    /// Streams read at the same time, at most.
    pub streams: usize,
}

/// A check as it would be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCheck {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The rule.
    pub rule: String,
    /// Row or table.
    pub kind: RuleKind,
    /// What a break asks for.
    pub severity: Severity,
    /// The columns it reads, as they are called in the data.
    pub columns: Vec<String>,
    /// Why it cannot be evaluated on this schema.
    pub error: Option<String>,
    /// Whether it is left out on the command line.
    pub left_out: bool,
}

/// Plans a job on a source. With `split` the rows are written too, so that every column is read.
pub fn plan(job: &Job, source: &dyn Source, split: bool) -> PlanSummary {
    let plan = Plan::new(job, source);
    let schema = source.schema();
    let all: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
    let columns_of = |wanted: &dyn Fn(usize) -> bool| {
        let names: BTreeSet<&str> = (0..plan.evaluated)
            .filter(|index| wanted(*index) && plan.slots[*index].bound.bound.is_ok())
            .flat_map(|index| {
                let bound = &plan.slots[index].bound;
                bound.columns.iter().chain(&bound.scope_columns).map(String::as_str)
            })
            .collect();
        all.iter()
            .filter(|name| names.contains(name.as_str()))
            .cloned()
            .collect::<Vec<String>>()
    };
    let scan = |purpose: &str, columns: Vec<String>| Scan {
        purpose: purpose.to_string(),
        columns,
        streams: job.parallelism,
    };
    let mut scans = Vec::new();
    let unique = plan.unique_checks();
    if split && !unique.is_empty() {
        scans.push(scan("find repeated keys", columns_of(&|index| unique.contains(&index))));
    }
    let is_query = |index: usize| queries(&plan, index);
    let measured = |index: usize| plan.needs_rows(index) && !is_query(index);
    if split {
        scans.push(scan("measure and split", all.clone()));
    } else if source.statistics().rows.is_none() || (0..plan.evaluated).any(measured) {
        scans.push(scan("measure", columns_of(&measured)));
    }
    for index in (0..plan.evaluated).filter(|index| is_query(*index)) {
        let purpose = format!("query of {}", plan.slots[index].check.name);
        scans.push(scan(&purpose, columns_of(&|other| other == index)));
    }
    let checks = plan.slots.iter().enumerate().map(|(index, slot)| PlannedCheck {
        id: slot.bound.id.clone(),
        name: slot.check.name.clone(),
        rule: slot.check.definition.name.to_string(),
        kind: slot.check.kind,
        severity: slot.check.severity,
        columns: slot.bound.columns.clone(),
        error: slot.bound.bound.as_ref().err().map(ToString::to_string),
        left_out: index >= plan.evaluated,
    });
    let proved = (0..plan.evaluated).filter(|index| plan.is_proved(*index));
    PlanSummary {
        source: source.description(),
        rows: source.statistics().rows,
        bytes: source.bytes(),
        scans,
        proved_by_statistics: proved.map(|index| plan.slots[index].check.name.clone()).collect(),
        checks: checks.collect(),
        writes: Vec::new(),
    }
}

fn queries(plan: &Plan, index: usize) -> bool {
    match &plan.slots[index].bound.bound {
        Ok(Bound::Table(table)) => table
            .measures
            .iter()
            .any(|measure| matches!(measure, Measure::ScalarQuery(_) | Measure::FailedRows(_))),
        _ => false,
    }
}
