//! From what was measured to what is true of each check: outcomes, messages, report lines. Pure.

use crate::gate::Verdict;
use crate::pass::{Measured, RowCount, Sample};
use crate::program::{Program, Slot, ValueOf};
use crate::show::value_text;
use arrow::array::ArrayRef;
use comporta_contract::check::{NoDataPolicy, ShareOf};
use comporta_contract::report::CheckReport;
use comporta_contract::threshold::{Metric, Threshold};
use comporta_contract::{Effect, Outcome, RuleKind};
use comporta_rules::{Bound, Finding, MeasureValue};
use indexmap::IndexMap;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Groups listed in a report, worst first.
const GROUPS_MAX: usize = 10;

/// A check's report line without its effect, and what the gate sees of it.
#[derive(Debug, Clone)]
pub(crate) struct JudgedCheck {
    pub(crate) report: CheckReport,
    pub(crate) verdict: Verdict,
}

/// What judging needs beside the measured values.
pub(crate) struct Judging<'a> {
    pub(crate) program: &'a Program,
    pub(crate) measured: &'a Measured,
    /// Values of queries, by check and place among its measures.
    pub(crate) queries: &'a HashMap<(usize, usize), MeasureValue>,
    /// Row checks that statistics prove, with their unknown rows.
    pub(crate) proved: &'a HashMap<usize, u64>,
    /// What an earlier pass found out about `unique` checks.
    pub(crate) known_repeats: &'a HashMap<usize, crate::batch::Repeated>,
    /// Failing rows of `unique` checks, fetched after the pass.
    pub(crate) unique_samples: &'a HashMap<usize, Vec<Sample>>,
    /// Why a check could not be evaluated, beside what the program knows.
    pub(crate) faults: &'a HashMap<usize, String>,
    pub(crate) timezone: chrono_tz::Tz,
    /// Whether an empty batch may be published: no data weighs nothing then (S4).
    pub(crate) empty_may_pass: bool,
}

impl Judging<'_> {
    /// Judges a check.
    pub(crate) fn judge(&self, index: usize, slot: &Slot) -> JudgedCheck {
        let mut report = blank(slot);
        let fault = self.faults.get(&index).or_else(|| self.program.faults.get(&index));
        match (&slot.bound.bound, fault) {
            (Err(error), _) => {
                report.outcome = Outcome::Error;
                report.message = match &error.hint {
                    Some(hint) => format!("{}; {hint}", error.message),
                    None => error.message.clone(),
                };
            }
            (_, Some(fault)) => {
                report.outcome = Outcome::Error;
                report.message = fault.clone();
            }
            (Ok(Bound::Row(row)), None) => self.judge_row(index, slot, &row.reason, &mut report),
            (Ok(Bound::Table(table)), None) if !slot.bound.group_by.is_empty() => {
                self.judge_groups(index, slot, &*table.judge, &mut report);
            }
            (Ok(Bound::Table(table)), None) => {
                let values = self.values_of(index);
                let finding = (table.judge)(&values);
                self.apply(slot, finding, &mut report);
            }
        }
        if let Some(message) = &slot.check.attributes.message
            && matches!(report.outcome, Outcome::Fail | Outcome::Warn)
        {
            report.details.insert("found".into(), report.message.clone().into());
            report.message = message.clone();
        }
        let verdict = self.verdict(slot, &report);
        JudgedCheck { report, verdict }
    }

    fn verdict(&self, slot: &Slot, report: &CheckReport) -> Verdict {
        let is_row = slot.check.kind == RuleKind::Row;
        let empty = self.measured.rows == 0;
        Verdict {
            name: report.name.clone(),
            kind: slot.check.kind,
            severity: slot.check.severity,
            outcome: report.outcome,
            violations: if is_row { report.failed_count } else { 0 },
            has_tolerance: slot.check.must_be.is_some(),
            on_no_data: slot.check.attributes.on_no_data,
            // A row rule without known rows has broken no promise (S3); an empty batch is the document's to decide (S4).
            no_data_weighs: !(is_row || empty && self.empty_may_pass),
        }
    }

    fn judge_row(&self, index: usize, slot: &Slot, reason: &str, report: &mut CheckReport) {
        let proved = self.proved.get(&index).map(|unknown| RowCount {
            evaluated: self.measured.rows,
            unknown: *unknown,
            ..RowCount::default()
        });
        let counted = self
            .program
            .rows
            .iter()
            .position(|test| test.slot == index)
            .map(|at| self.measured.row_counts[at].clone());
        let Some(mut count) = proved.or(counted) else {
            report.outcome = Outcome::Error;
            report.message = "the check was not evaluated; this is a bug".into();
            return;
        };
        if let Some(samples) = self.unique_samples.get(&index) {
            count.samples.clone_from(samples);
        }
        report.evaluated = count.evaluated;
        report.failed_count = count.broken;
        report.unknown_count = count.unknown;
        let whole = self.whole(slot, count.evaluated, count.unknown);
        report.failed_ratio = (whole > 0).then(|| count.broken as f64 / whole as f64);
        let own = self
            .program
            .unique_keys
            .get(&index)
            .map(|key| self.measured.keys[*key].counts);
        if let Some(counts) = own.or_else(|| self.known_repeats.get(&index).map(|found| found.counts)) {
            report
                .details
                .insert("duplicated_keys".into(), counts.repeated_keys.into());
            report.details.insert(
                "surplus_rows".into(),
                (counts.repeated_rows - counts.repeated_keys).into(),
            );
        }
        if let Some(fault) = &count.fault {
            report.details.insert("cannot_compute".into(), fault.clone().into());
        }
        if count.broken > count.samples.len() as u64 && !count.samples.is_empty() {
            report.details.insert("sample_capped".into(), true.into());
        }
        report.sample = count.samples.iter().map(|(_, values)| values.clone()).collect();
        let metric = Metric::Rows {
            part: count.broken,
            whole,
        };
        let known = count.evaluated - count.unknown;
        report.outcome = if known == 0 && count.broken == 0 {
            Outcome::NoData
        } else {
            // Without thresholds one violation breaks the promise; a `warn` target alone is all there is to miss.
            let zero_tolerance = slot.check.must_be.is_none() && slot.check.attributes.warn.is_none();
            match self.thresholds(slot, &metric) {
                Some(outcome) => outcome,
                None if zero_tolerance && count.broken > 0 => Outcome::Fail,
                None => Outcome::Pass,
            }
        };
        report.message = row_message(report, slot, reason);
        if self.proved.contains_key(&index) {
            report.details.insert("proved_by".into(), "statistics".into());
        }
    }

    /// What a share is of (S10).
    fn whole(&self, slot: &Slot, evaluated: u64, unknown: u64) -> u64 {
        match slot.check.attributes.of {
            ShareOf::All => evaluated,
            ShareOf::Known => evaluated - unknown,
        }
    }

    /// `must_be` first, then `warn` (S6); `None` where neither is broken.
    fn thresholds(&self, slot: &Slot, metric: &Metric) -> Option<Outcome> {
        let instants = |text: &str| comporta_rules::literals::instants_in(text, true, self.timezone);
        let broken = |threshold: &Option<Threshold>| {
            threshold
                .as_ref()
                .is_some_and(|threshold| threshold.holds(metric, &instants) != Some(true))
        };
        if broken(&slot.check.must_be) {
            return Some(Outcome::Fail);
        }
        broken(&slot.check.attributes.warn).then_some(Outcome::Warn)
    }

    fn values_of(&self, index: usize) -> Vec<MeasureValue> {
        let missing = || MeasureValue::Error("it was not measured; this is a bug".into());
        self.program.values[index]
            .iter()
            .map(|value| match value {
                ValueOf::Measure(at) => self.measured.measures[*at].clone(),
                ValueOf::Keys(at) => MeasureValue::Keys(self.measured.keys[*at].counts),
                ValueOf::Query(at) => self.queries.get(&(index, *at)).cloned().unwrap_or_else(missing),
                ValueOf::Known(value) => value.clone(),
            })
            .collect()
    }

    /// Turns a table rule's finding into an outcome.
    fn apply(&self, slot: &Slot, finding: Finding, report: &mut CheckReport) {
        let outcome = self.outcome_of(slot, &finding);
        report.outcome = outcome;
        report.failed_count = finding.failed_count;
        report.evaluated = finding.evaluated.unwrap_or(self.measured.rows);
        report.failed_ratio = match finding.metric {
            Some(Metric::Rows { part, whole } | Metric::Percent { part, whole }) if whole > 0 => {
                Some(part as f64 / whole as f64)
            }
            _ => None,
        };
        report.metric_value = finding.metric.as_ref().map_or(Value::Null, Metric::to_json);
        report.details.extend(finding.details);
        report.message = match (outcome, finding.error) {
            (Outcome::Error, Some(error)) => error,
            (Outcome::NoData, _) if finding.message.is_empty() => "there is nothing to measure".into(),
            (Outcome::Fail, _) => with_threshold(finding.message, slot.check.must_be.as_ref(), finding.broken),
            (Outcome::Warn, _) => with_threshold(finding.message, slot.check.attributes.warn.as_ref(), None),
            _ => finding.message,
        };
    }

    fn outcome_of(&self, slot: &Slot, finding: &Finding) -> Outcome {
        if finding.error.is_some() {
            return Outcome::Error;
        }
        if finding.broken == Some(true) {
            return Outcome::Fail;
        }
        match &finding.metric {
            Some(metric) => self.thresholds(slot, metric).unwrap_or(Outcome::Pass),
            None if finding.broken == Some(false) => Outcome::Pass,
            None => Outcome::NoData,
        }
    }

    fn judge_groups(
        &self,
        index: usize,
        slot: &Slot,
        judge: &(dyn Fn(&[MeasureValue]) -> Finding + Send + Sync),
        report: &mut CheckReport,
    ) {
        let Some(position) = self.program.groups.iter().position(|group| group.slot == index) else {
            return;
        };
        let groups = &self.measured.groups[position];
        let names = &slot.check.attributes.group_by;
        let mut worst = None;
        let mut broken: Vec<(String, Value)> = Vec::new();
        let mut errors = None;
        let mut no_data = 0u64;
        for (key, values) in groups {
            let finding = judge(values);
            let outcome = self.outcome_of(slot, &finding);
            match outcome {
                Outcome::Error => errors = errors.or(finding.error.clone()),
                Outcome::NoData => no_data += 1,
                Outcome::Fail | Outcome::Warn => broken.push((
                    key_text(key),
                    json!({
                        "group": group_json(names, key),
                        "outcome": outcome,
                        "metric_value": finding.metric.as_ref().map_or(Value::Null, Metric::to_json),
                        "failed_count": finding.failed_count,
                    }),
                )),
                _ => {}
            }
            worst = worse(worst, outcome);
        }
        report.outcome = match worst {
            _ if errors.is_some() => Outcome::Error,
            Some(outcome) => outcome,
            None => Outcome::NoData,
        };
        let failed = broken.iter().filter(|(_, group)| group["outcome"] == "fail").count();
        report.failed_count = failed as u64;
        report.evaluated = groups.len() as u64;
        report.details.insert("groups_evaluated".into(), groups.len().into());
        if no_data > 0 {
            report.details.insert("groups_without_data".into(), no_data.into());
        }
        broken.sort_by(|(left, one), (right, other)| {
            let size = |group: &Value| group["failed_count"].as_u64().unwrap_or(0);
            size(other).cmp(&size(one)).then_with(|| left.cmp(right))
        });
        if broken.len() > GROUPS_MAX {
            report.details.insert("groups_capped".into(), true.into());
        }
        let listed: Vec<Value> = broken.into_iter().take(GROUPS_MAX).map(|(_, group)| group).collect();
        if !listed.is_empty() {
            report.details.insert("groups".into(), listed.into());
        }
        report.message = match (&report.outcome, errors) {
            (_, Some(error)) => error,
            (Outcome::NoData, _) => "there is no group to measure".into(),
            _ => format!(
                "{failed} of {} by {} break it",
                count_text(groups.len() as u64, "group"),
                names.join(", ")
            ),
        };
    }
}

/// The worse of two outcomes of groups: a failure, then an error, a warning, a pass; no data says least.
fn worse(one: Option<Outcome>, other: Outcome) -> Option<Outcome> {
    let weight = |outcome: Outcome| match outcome {
        Outcome::Error => 5,
        Outcome::Fail => 4,
        Outcome::NoData => 3,
        Outcome::Warn => 2,
        Outcome::Pass => 1,
        Outcome::NotEvaluated => 0,
    };
    match one {
        Some(one) if weight(one) >= weight(other) => Some(one),
        _ => Some(other),
    }
}

fn key_text(key: &[ArrayRef]) -> String {
    key.iter()
        .map(|column| value_text(column, 0))
        .collect::<Vec<_>>()
        .join("\u{1f}")
}

fn group_json(names: &[String], key: &[ArrayRef]) -> Value {
    let group: serde_json::Map<String, Value> = names
        .iter()
        .zip(key)
        .map(|(name, column)| (name.clone(), crate::show::value_json(column, 0)))
        .collect();
    group.into()
}

/// "3 rows", "1 row".
pub(crate) fn count_text(count: u64, noun: &str) -> String {
    if count == 1 {
        format!("1 {noun}")
    } else {
        format!("{count} {noun}s")
    }
}

fn row_message(report: &CheckReport, slot: &Slot, reason: &str) -> String {
    let rows = count_text(report.evaluated, "row");
    match report.outcome {
        Outcome::NoData if report.evaluated == 0 => "no row is in scope".into(),
        Outcome::NoData => format!("all {rows} are unknown"),
        _ if report.failed_count == 0 => format!("{rows} keep it"),
        _ => {
            let duplicated = report.details.get("duplicated_keys").and_then(Value::as_u64);
            let found = match duplicated {
                Some(keys) => format!(
                    "{} of {rows} share {} of {}",
                    report.failed_count,
                    count_text(keys, "value"),
                    comporta_contract::nearest::list(&slot.bound.columns)
                ),
                None => format!(
                    "{} of {rows}: {}",
                    report.failed_count,
                    reason_in_general(reason, report)
                ),
            };
            match (report.outcome, &slot.check.must_be, &slot.check.attributes.warn) {
                (Outcome::Fail, Some(limit), _) => format!("{found}; must be {}", limit.text),
                (Outcome::Warn, _, Some(limit)) => format!("{found}; should be {}", limit.text),
                (Outcome::Pass, Some(limit), _) => format!("{found}; tolerated ({})", limit.text),
                _ => found,
            }
        }
    }
}

/// The reason with the value of the first failing row, or without one.
fn reason_in_general(reason: &str, report: &CheckReport) -> String {
    let example = report
        .sample
        .first()
        .and_then(|row| row.values().next())
        .map(|value| match value {
            Value::String(text) => format!("\"{text}\""),
            other => other.to_string(),
        });
    match example {
        Some(example) => reason.replace("{value}", &example),
        None => reason.replace("{value}", "…"),
    }
}

fn with_threshold(message: String, threshold: Option<&Threshold>, own: Option<bool>) -> String {
    match threshold {
        Some(threshold) if own != Some(true) => format!("{message}; must be {}", threshold.text),
        _ => message,
    }
}

/// A check's line before it was judged.
pub(crate) fn blank(slot: &Slot) -> CheckReport {
    let check = &slot.check;
    let thresholds = match (&check.must_be, &check.attributes.warn) {
        (Some(must_be), Some(warn)) => Some(format!("{} (warn {})", must_be.text, warn.text)),
        (Some(must_be), None) => Some(must_be.text.clone()),
        (None, Some(warn)) => Some(format!("(warn {})", warn.text)),
        (None, None) => None,
    };
    CheckReport {
        id: slot.bound.id.clone(),
        name: check.name.clone(),
        rule: check.definition.name.to_string(),
        columns: slot.bound.columns.clone(),
        kind: check.kind,
        severity: check.severity,
        dimension: check.dimension,
        outcome: Outcome::NotEvaluated,
        effect: Effect::None,
        filter: check
            .attributes
            .filter
            .as_ref()
            .and_then(|node| node.as_text())
            .map(str::to_string),
        evaluated: 0,
        failed_count: 0,
        failed_ratio: None,
        unknown_count: 0,
        metric_value: Value::Null,
        threshold: thresholds,
        details: IndexMap::new(),
        message: String::new(),
        sample: Vec::new(),
        tags: check.attributes.tags.clone(),
        source: (!check.place.is_empty()).then(|| check.place.clone()),
    }
}

/// A check that was left out on purpose.
pub(crate) fn left_out(slot: &Slot) -> JudgedCheck {
    let mut report = blank(slot);
    report.message = "left out on the command line".into();
    let verdict = Verdict {
        name: report.name.clone(),
        kind: slot.check.kind,
        severity: slot.check.severity,
        outcome: Outcome::NotEvaluated,
        violations: 0,
        has_tolerance: false,
        on_no_data: Some(NoDataPolicy::Pass),
        no_data_weighs: false,
    };
    JudgedCheck { report, verdict }
}
