//! JUnit XML: one test case per check, and one for the gate. Red is what holds or sets aside; skipped is what is
//! neither green nor red.

use crate::failure::Failure;
use crate::render::text;
use comporta::contract::report::CheckReport;
use comporta::contract::{Decision, Effect, Outcome, Report};
use comporta::engine::Error;
use quick_junit::{NonSuccessKind, Report as Junit, TestCase, TestCaseStatus, TestSuite};
use std::time::Duration;

/// The report as XML.
pub(crate) fn render(report: &Report) -> Result<String, Failure> {
    let mut suite = TestSuite::new(report.pipeline.as_str());
    suite.set_time(Duration::from_millis(report.duration_ms));
    for (name, value) in [
        ("run_id", report.run_id.as_str()),
        ("decision", report.decision.as_str()),
        ("rules_digest", report.rules_digest.as_str()),
    ] {
        suite.add_property((name, value));
    }
    for check in &report.checks {
        suite.add_test_case(test_case(check));
    }
    suite.add_test_case(gate(report));
    let mut junit = Junit::new("comporta");
    junit.add_test_suite(suite);
    junit
        .to_string()
        .map_err(|error| Error::internal(format!("the report could not be written as JUnit: {error}")).into())
}

fn test_case(check: &CheckReport) -> TestCase {
    let mut status = match (check.outcome, check.effect) {
        (Outcome::Pass, Effect::None | Effect::Warned) => TestCaseStatus::success(),
        (Outcome::Error, Effect::Held) => TestCaseStatus::non_success(NonSuccessKind::Error),
        (_, Effect::Held | Effect::Quarantined) => TestCaseStatus::non_success(NonSuccessKind::Failure),
        (_, Effect::None | Effect::Warned) => TestCaseStatus::skipped(),
    };
    if !matches!(status, TestCaseStatus::Success { .. }) {
        status.set_type(format!("{}/{}", check.outcome, check.effect));
        status.set_message(format!("{}: {}", check.outcome, check.message));
        if let Some(examples) = text::examples(check) {
            status.set_description(examples);
        }
    }
    let mut case = TestCase::new(check.name.as_str(), status);
    case.set_classname(check.rule.as_str());
    case.add_property(("check_id", check.id.as_str()));
    if let Some(source) = &check.source {
        case.add_property(("source", source.as_str()));
    }
    case
}

/// The gate holds for reasons of its own too (`min_valid_ratio`, an empty batch), which no check shows.
fn gate(report: &Report) -> TestCase {
    let mut status = match report.decision {
        Decision::Hold => TestCaseStatus::non_success(NonSuccessKind::Failure),
        Decision::Publish | Decision::PublishWithoutQuarantined => TestCaseStatus::success(),
    };
    if report.decision == Decision::Hold {
        status.set_type("hold");
        status.set_message(report.decision_reasons.join("; "));
    }
    let mut case = TestCase::new("gate", status);
    case.set_classname("gate");
    case
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    fn xml(report: &Report) -> String {
        render(report).unwrap_or_else(|failure| panic!("{failure:?}"))
    }

    #[test]
    fn outcomes_become_failures_errors_and_skips() {
        insta::assert_snapshot!(xml(&fixtures::held()), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="comporta" tests="8" failures="3" errors="0">
            <testsuite name="orders.csv" tests="8" disabled="4" errors="0" failures="3" time="0.012">
                <properties>
                    <property name="run_id" value="0198c0de-0000-7000-8000-000000000001"/>
                    <property name="decision" value="hold"/>
                    <property name="rules_digest" value="d1"/>
                </properties>
                <testcase name="unique(order_id)" classname="unique">
                    <properties>
                        <property name="check_id" value="id-unique(order_id)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <failure message="fail: 2 of 7 rows share 1 value of `order_id`" type="fail/quarantined">e.g. 2, 2</failure>
                </testcase>
                <testcase name="amounts agree" classname="compare">
                    <properties>
                        <property name="check_id" value="id-amounts agree"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <failure message="fail: 1 of 7 rows has `net` above `gross`" type="fail/held">e.g. net &quot;12.50&quot;, gross null …</failure>
                </testcase>
                <testcase name="missing_percent(discount)" classname="missing_percent">
                    <properties>
                        <property name="check_id" value="id-missing_percent(discount)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <skipped message="fail: 42.9 %, above 20 %" type="fail/warned"/>
                </testcase>
                <testcase name="freshness(updated_at)" classname="freshness">
                    <properties>
                        <property name="check_id" value="id-freshness(updated_at)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <skipped message="warn: 31 h old, target 24 h" type="warn/warned"/>
                </testcase>
                <testcase name="avg(amount)" classname="avg">
                    <properties>
                        <property name="check_id" value="id-avg(amount)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <skipped message="no_data: no values to average" type="no_data/none"/>
                </testcase>
                <testcase name="length(code)" classname="length">
                    <properties>
                        <property name="check_id" value="id-length(code)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                    <skipped message="not_evaluated: left out by `--skip`" type="not_evaluated/none"/>
                </testcase>
                <testcase name="not_null(id)" classname="not_null">
                    <properties>
                        <property name="check_id" value="id-not_null(id)"/>
                        <property name="source" value="rules.yml:3"/>
                    </properties>
                </testcase>
                <testcase name="gate" classname="gate">
                    <failure message="1 of 7 rows are valid (0.1428), below `min_valid_ratio` 0.99" type="hold"/>
                </testcase>
            </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn hostile_text_stays_text() {
        let xml = xml(&fixtures::hostile());
        assert!(!xml.contains('\u{1b}') && !xml.contains("<b>"), "{xml}");
        assert!(xml.contains("<error "), "{xml}");
    }
}
