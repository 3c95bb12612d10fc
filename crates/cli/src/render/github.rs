//! Annotations of a GitHub workflow, at the line of the rules file that a check stands in.

use crate::render::escape::{github_message, github_property};
use crate::render::{Purpose, View, text};
use comporta::contract::report::CheckReport;
use comporta::contract::{Decision, Effect, Outcome, Report};
use std::fmt::Write;

/// One workflow command per check that is not green, and one for a hold.
pub(crate) fn render(report: &Report, view: &View) -> String {
    let mut said = String::new();
    for check in &report.checks {
        if let Some(level) = level(check) {
            annotate(&mut said, level, check);
        }
    }
    let about = github_message(&report.pipeline);
    if report.decision == Decision::Hold {
        let what = match view.purpose {
            Purpose::Check => "would be held",
            Purpose::Run => "held",
        };
        let reasons = github_message(&report.decision_reasons.join("; "));
        let _ = writeln!(
            said,
            "::error title={}::{about} {what}: {reasons}",
            github_property("comporta")
        );
    }
    said
}

fn level(check: &CheckReport) -> Option<&'static str> {
    match (check.effect, check.outcome) {
        (Effect::Held, _) => Some("error"),
        (Effect::Quarantined | Effect::Warned, _) => Some("warning"),
        (Effect::None, Outcome::Pass) => None,
        (Effect::None, _) => Some("notice"),
    }
}

fn annotate(said: &mut String, level: &str, check: &CheckReport) {
    let mut properties = Vec::new();
    if let Some((file, line)) = check.source.as_deref().and_then(|source| source.rsplit_once(':')) {
        // Rules of the command line or of standard input stand in no file of the repository.
        if !file.starts_with(['-', '<']) {
            properties.push(format!("file={}", github_property(file)));
            properties.push(format!("line={}", github_property(line)));
        }
    }
    properties.push(format!("title={}", github_property(&check.name)));
    let examples = text::examples(check).map_or_else(String::new, |examples| format!(" ({examples})"));
    let message = github_message(&format!("{}: {}{examples}", check.outcome, check.message));
    let _ = writeln!(said, "::{level} {}::{message}", properties.join(","));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    fn view() -> View {
        View {
            purpose: Purpose::Check,
            verbose: false,
            hint: None,
        }
    }

    #[test]
    fn every_check_that_is_not_green_is_annotated() {
        insta::assert_snapshot!(render(&fixtures::held(), &view()), @r#"
        ::warning file=rules.yml,line=3,title=unique(order_id)::fail: 2 of 7 rows share 1 value of `order_id` (e.g. 2, 2)
        ::error file=rules.yml,line=3,title=amounts agree::fail: 1 of 7 rows has `net` above `gross` (e.g. net "12.50", gross null …)
        ::warning file=rules.yml,line=3,title=missing_percent(discount)::fail: 42.9 %25, above 20 %25
        ::warning file=rules.yml,line=3,title=freshness(updated_at)::warn: 31 h old, target 24 h
        ::notice file=rules.yml,line=3,title=avg(amount)::no_data: no values to average
        ::notice file=rules.yml,line=3,title=length(code)::not_evaluated: left out by `--skip`
        ::error title=comporta::orders.csv would be held: 1 of 7 rows are valid (0.1428), below `min_valid_ratio` 0.99
        "#);
    }

    #[test]
    fn a_hostile_message_starts_no_command_of_its_own() {
        let said = render(&fixtures::hostile(), &view());
        assert!(said.lines().all(|line| line.starts_with("::error ")), "{said}");
        assert_eq!(said.lines().count(), 2);
    }

    #[test]
    fn nothing_is_said_of_what_is_green() {
        assert_eq!(render(&fixtures::published(), &view()), "");
    }
}
