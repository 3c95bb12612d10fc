//! The decision: a pure function of outcomes and severities, and of what the batch as a whole must reach.

use bigdecimal::BigDecimal;
use comporta_contract::check::NoDataPolicy;
use comporta_contract::report::Rows;
use comporta_contract::rules_file::{Gate, OnEmpty};
use comporta_contract::{Decision, Effect, Outcome, RuleKind, Severity};

/// What the gate sees of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// What it is called in reasons.
    pub name: String,
    /// Row or table.
    pub kind: RuleKind,
    /// What a break asks for.
    pub severity: Severity,
    /// What is true.
    pub outcome: Outcome,
    /// Rows that violate it (row rules).
    pub violations: u64,
    /// Whether it has a `must_be`: for severity `quarantine` the tolerance of the batch (S6).
    pub has_tolerance: bool,
    /// What no data weighs.
    pub on_no_data: Option<NoDataPolicy>,
    /// Whether no data weighs anything: a row rule without a row in scope, or an empty batch that may be
    /// published (S3, S4).
    pub no_data_weighs: bool,
}

/// What was decided, why, and what was done about each check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// Why, one sentence each.
    pub reasons: Vec<String>,
    /// The effect of each check, in the order given.
    pub effects: Vec<Effect>,
    /// Whether a hold is due to the data (exit code 1).
    pub held_by_data: bool,
    /// Whether a hold is due to an error (exit code 3).
    pub held_by_error: bool,
}

/// Decides about a batch.
pub fn decide(verdicts: &[Verdict], gate: &Gate, on_empty: OnEmpty, rows: &Rows, strict: bool) -> Decided {
    let mut decided = Decided {
        decision: Decision::Publish,
        reasons: Vec::new(),
        effects: Vec::with_capacity(verdicts.len()),
        held_by_data: false,
        held_by_error: false,
    };
    for verdict in verdicts {
        let effect = effect_of(verdict, strict);
        if effect == Effect::Held {
            decided.reasons.push(reason(verdict));
            match verdict.outcome {
                Outcome::Error => decided.held_by_error = true,
                _ => decided.held_by_data = true,
            }
        }
        decided.effects.push(effect);
    }
    for broken in batch_faults(gate, on_empty, rows) {
        decided.reasons.push(broken);
        decided.held_by_data = true;
    }
    decided.decision = if decided.held_by_data || decided.held_by_error {
        Decision::Hold
    } else if rows.quarantined > 0 {
        decided
            .reasons
            .push(format!("{} set aside", rows_text(rows.quarantined)));
        Decision::PublishWithoutQuarantined
    } else {
        Decision::Publish
    };
    decided
}

/// What is done about one check: the strongest effect that it has (S1, S3, S6, S7, S8).
fn effect_of(verdict: &Verdict, strict: bool) -> Effect {
    let effect = match (verdict.severity, verdict.outcome) {
        (Severity::Observe, _) | (_, Outcome::NotEvaluated) => Effect::None,
        (_, Outcome::Warn) if verdict.severity == Severity::Quarantine && verdict.violations > 0 => Effect::Quarantined,
        (_, Outcome::Warn) => Effect::Warned,
        (Severity::Quarantine, Outcome::Pass) if verdict.violations > 0 => Effect::Quarantined,
        (_, Outcome::Pass) => Effect::None,
        (_, Outcome::NoData) if !verdict.no_data_weighs => Effect::None,
        (severity, Outcome::NoData) => match verdict.on_no_data {
            Some(NoDataPolicy::Pass) => Effect::None,
            Some(NoDataPolicy::Warn) => Effect::Warned,
            None => broken(severity, verdict, true),
        },
        (severity, Outcome::Error) => broken(severity, verdict, true),
        (severity, Outcome::Fail) => broken(severity, verdict, false),
    };
    let holds_under_strict = strict && verdict.severity != Severity::Observe && verdict.outcome != Outcome::Pass;
    if holds_under_strict { Effect::Held } else { effect }
}

/// What a broken check of a severity does; `quarantine` weighs as `fail` where rows could not be judged, and
/// where its tolerance is broken.
fn broken(severity: Severity, verdict: &Verdict, unjudged: bool) -> Effect {
    match severity {
        Severity::Observe => Effect::None,
        Severity::Warn => Effect::Warned,
        Severity::Quarantine if unjudged || verdict.has_tolerance || verdict.kind == RuleKind::Table => Effect::Held,
        Severity::Quarantine => Effect::Quarantined,
        Severity::Fail => Effect::Held,
    }
}

fn reason(verdict: &Verdict) -> String {
    match verdict.outcome {
        Outcome::Error => format!("`{}` could not be evaluated", verdict.name),
        Outcome::NoData => format!("`{}` had nothing to measure", verdict.name),
        Outcome::NotEvaluated => format!("`{}` was not evaluated, and the run is strict", verdict.name),
        Outcome::Warn => format!("`{}` missed its target, and the run is strict", verdict.name),
        Outcome::Pass | Outcome::Fail => format!("`{}` is broken", verdict.name),
    }
}

/// What is wrong with the batch as a whole.
fn batch_faults(gate: &Gate, on_empty: OnEmpty, rows: &Rows) -> Vec<String> {
    let mut faults = Vec::new();
    let judged = rows.valid + rows.invalid;
    if judged == 0 && on_empty == OnEmpty::Hold {
        faults.push("the batch is empty".to_string());
    }
    if let Some(ratio) = gate.min_valid_ratio() {
        // Compared as integers: valid · 1 against ratio · judged (S23); never passes on nothing (S4).
        if judged == 0 {
            if on_empty == OnEmpty::Publish {
                faults.push(format!(
                    "an empty batch has no share of valid rows, and {ratio} is required"
                ));
            }
        } else if BigDecimal::from(rows.valid) < ratio * BigDecimal::from(judged) {
            let share = rows.valid as f64 / judged as f64;
            faults.push(format!(
                "{} of {} rows are valid ({:.4}), below `min_valid_ratio` {ratio}",
                rows.valid, judged, share
            ));
        }
    }
    if let Some(max) = gate.max_invalid
        && rows.invalid > max
    {
        faults.push(format!(
            "{} invalid, above `max_invalid` {max}",
            rows_text(rows.invalid)
        ));
    }
    faults
}

fn rows_text(rows: u64) -> String {
    if rows == 1 {
        "1 row".into()
    } else {
        format!("{rows} rows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(kind: RuleKind, severity: Severity, outcome: Outcome) -> Verdict {
        let violations = u64::from(outcome == Outcome::Fail);
        Verdict {
            name: "check".into(),
            kind,
            severity,
            outcome,
            violations,
            has_tolerance: false,
            on_no_data: None,
            no_data_weighs: true,
        }
    }

    fn rows(valid: u64, invalid: u64, quarantined: u64) -> Rows {
        Rows {
            read: valid + invalid,
            valid,
            invalid,
            quarantined,
            ..Rows::default()
        }
    }

    fn one(verdict: Verdict, strict: bool) -> (Decision, Effect) {
        let decided = decide(&[verdict], &Gate::default(), OnEmpty::Hold, &rows(9, 1, 1), strict);
        (decided.decision, decided.effects[0])
    }

    #[test]
    fn every_outcome_and_severity_has_its_effect() {
        use Effect::{Held, None, Quarantined, Warned};
        use Outcome::{Error, Fail, NoData, NotEvaluated, Pass, Warn};
        let table = [
            (Severity::Observe, [None, None, None, None, None, None]),
            (Severity::Warn, [None, Warned, Warned, Warned, None, Warned]),
            (Severity::Quarantine, [None, Warned, Quarantined, Held, None, Held]),
            (Severity::Fail, [None, Warned, Held, Held, None, Held]),
        ];
        for (severity, effects) in table {
            for (outcome, expected) in [Pass, Warn, Fail, NoData, NotEvaluated, Error].into_iter().zip(effects) {
                let (decision, effect) = one(verdict(RuleKind::Row, severity, outcome), false);
                assert_eq!(effect, expected, "{severity} {outcome}");
                assert_eq!(decision == Decision::Hold, expected == Held, "{severity} {outcome}");
            }
        }
    }

    #[test]
    fn strict_holds_on_everything_but_pass_and_observe() {
        for severity in Severity::ALL {
            for outcome in Outcome::ALL {
                let (decision, _) = one(verdict(RuleKind::Row, *severity, *outcome), true);
                let holds = *outcome != Outcome::Pass && *severity != Severity::Observe;
                assert_eq!(decision == Decision::Hold, holds, "{severity} {outcome}");
            }
        }
    }

    #[test]
    fn the_ratio_is_compared_exactly_and_never_passes_on_nothing() {
        let gate = |ratio: &str| Gate {
            min_valid_ratio: Some(comporta_contract::Literal::Number(ratio.parse().unwrap())),
            max_invalid: None,
        };
        let hold = |ratio: &str, rows: &Rows, on_empty| {
            decide(&[], &gate(ratio), on_empty, rows, false).decision == Decision::Hold
        };
        assert!(!hold("0.9", &rows(9, 1, 0), OnEmpty::Hold));
        assert!(hold("0.91", &rows(9, 1, 0), OnEmpty::Hold));
        assert!(hold("0", &rows(0, 0, 0), OnEmpty::Publish));
    }

    #[test]
    fn an_error_and_a_broken_check_are_told_apart() {
        let error = decide(
            &[verdict(RuleKind::Table, Severity::Fail, Outcome::Error)],
            &Gate::default(),
            OnEmpty::Hold,
            &rows(1, 0, 0),
            false,
        );
        assert!(error.held_by_error && !error.held_by_data);
        let fail = decide(
            &[verdict(RuleKind::Table, Severity::Fail, Outcome::Fail)],
            &Gate::default(),
            OnEmpty::Hold,
            &rows(1, 0, 0),
            false,
        );
        assert!(fail.held_by_data && !fail.held_by_error);
    }

    #[test]
    fn a_broken_tolerance_holds_what_it_would_have_set_aside() {
        let mut check = verdict(RuleKind::Row, Severity::Quarantine, Outcome::Fail);
        check.has_tolerance = true;
        assert_eq!(one(check, false), (Decision::Hold, Effect::Held));
    }
}
