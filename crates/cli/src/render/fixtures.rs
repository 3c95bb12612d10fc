//! Reports for the tests of the formats.

use comporta::contract::report::{CheckReport, DimensionCount, FORMAT_VERSION, Reconciliation, Rows};
use comporta::contract::{Decision, Dimension, Effect, Outcome, Report, RuleKind, Severity};
use indexmap::IndexMap;
use serde_json::{Value, json};

fn check(name: &str, rule: &str, severity: Severity, outcome: Outcome, effect: Effect, message: &str) -> CheckReport {
    CheckReport {
        id: format!("id-{name}"),
        name: name.into(),
        rule: rule.into(),
        columns: vec![],
        kind: RuleKind::Row,
        severity,
        dimension: Dimension::Validity,
        outcome,
        effect,
        filter: None,
        evaluated: 7,
        failed_count: 0,
        failed_ratio: Some(0.0),
        unknown_count: 0,
        metric_value: Value::Null,
        threshold: None,
        details: IndexMap::new(),
        message: message.into(),
        sample: vec![],
        tags: vec![],
        source: Some("rules.yml:3".into()),
    }
}

fn row(cells: &[(&str, Value)]) -> IndexMap<String, Value> {
    cells
        .iter()
        .map(|(name, value)| (name.to_string(), value.clone()))
        .collect()
}

/// A run that published everything.
pub(crate) fn published() -> Report {
    Report {
        format_version: FORMAT_VERSION,
        run_id: "0198c0de-0000-7000-8000-000000000001".into(),
        pipeline: "orders".into(),
        unit: None,
        layer: Some("silver".into()),
        contract: None,
        rules_digest: "d1".into(),
        engine: "local".into(),
        started_at: "2026-08-21T06:00:00Z".into(),
        now: "2026-08-21T06:00:00Z".into(),
        timezone: "UTC".into(),
        duration_ms: 12,
        decision: Decision::Publish,
        decision_reasons: vec![],
        rows: Rows {
            read: 48_210,
            valid: 48_210,
            published: 48_210,
            ..Rows::default()
        },
        score: Some(1.0),
        dimensions: IndexMap::from([(Dimension::Validity, DimensionCount { checks: 1, passed: 1 })]),
        checks: vec![check(
            "not_null(id)",
            "not_null",
            Severity::Fail,
            Outcome::Pass,
            Effect::None,
            "all 48210 rows have an `id`",
        )],
        reconciliation: vec![Reconciliation {
            name: "conservation".into(),
            holds: true,
            left: json!(48_210),
            right: json!(48_210),
            message: "48210 read = 48210 published".into(),
        }],
        outputs: IndexMap::from([("target".into(), "delta lake/silver/orders".into())]),
        notes: vec![],
        timings_ms: IndexMap::new(),
    }
}

/// A check of seven rows that would be held, with every outcome there is.
pub(crate) fn held() -> Report {
    use Effect::{Held, None as Nothing, Quarantined, Warned};
    let mut unique = check(
        "unique(order_id)",
        "unique",
        Severity::Quarantine,
        Outcome::Fail,
        Quarantined,
        "2 of 7 rows share 1 value of `order_id`",
    );
    unique.failed_count = 2;
    unique.sample = vec![row(&[("order_id", json!(2))]), row(&[("order_id", json!(2))])];
    let mut pair = check(
        "amounts agree",
        "compare",
        Severity::Fail,
        Outcome::Fail,
        Held,
        "1 of 7 rows has `net` above `gross`",
    );
    pair.failed_count = 1;
    pair.sample = vec![row(&[("net", json!("12.50")), ("gross", Value::Null)])];
    pair.details.insert("sample_capped".into(), json!(true));
    Report {
        pipeline: "orders.csv".into(),
        layer: None,
        decision: Decision::Hold,
        decision_reasons: vec!["1 of 7 rows are valid (0.1428), below `min_valid_ratio` 0.99".into()],
        rows: Rows {
            read: 7,
            valid: 1,
            invalid: 6,
            quarantined: 6,
            held: 1,
            ..Rows::default()
        },
        score: Some(1.0 / 7.0),
        checks: vec![
            unique,
            pair,
            check(
                "missing_percent(discount)",
                "missing_percent",
                Severity::Warn,
                Outcome::Fail,
                Warned,
                "42.9 %, above 20 %",
            ),
            check(
                "freshness(updated_at)",
                "freshness",
                Severity::Fail,
                Outcome::Warn,
                Warned,
                "31 h old, target 24 h",
            ),
            check(
                "avg(amount)",
                "avg",
                Severity::Observe,
                Outcome::NoData,
                Nothing,
                "no values to average",
            ),
            check(
                "length(code)",
                "length",
                Severity::Fail,
                Outcome::NotEvaluated,
                Nothing,
                "left out by `--skip`",
            ),
            check(
                "not_null(id)",
                "not_null",
                Severity::Fail,
                Outcome::Pass,
                Nothing,
                "all 7 rows have an `id`",
            ),
        ],
        reconciliation: vec![],
        outputs: IndexMap::new(),
        notes: vec!["timestamps without a zone were read as UTC".into()],
        ..published()
    }
}

/// The same with a check that could not be evaluated and names that are hostile.
pub(crate) fn hostile() -> Report {
    let mut report = held();
    let mut missing = check(
        "regex(ref\u{1b}[2J)",
        "regex",
        Severity::Fail,
        Outcome::Error,
        Effect::Held,
        "there is no column `ref|x`\n::error::<b>",
    );
    missing.source = Some("rules.yml:9".into());
    report.checks = vec![missing];
    report
}
