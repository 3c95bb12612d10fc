//! A table for comments on pull requests.

use crate::render::escape::markdown;
use crate::render::numbers::{count, score};
use crate::render::{Purpose, View, text};
use comporta::contract::report::CheckReport;
use comporta::contract::{Decision, Effect, Outcome, Report};
use std::fmt::Write;

/// The report as Markdown: the decision, the rows, a table of what is not green, the rest folded away.
pub(crate) fn render(report: &Report, view: &View) -> String {
    let (sign, decision) = match (report.decision, view.purpose) {
        (Decision::Publish, Purpose::Check) => ("✅", "would publish"),
        (Decision::Publish, Purpose::Run) => ("✅", "published"),
        (Decision::PublishWithoutQuarantined, Purpose::Check) => ("⚠️", "would publish without the invalid rows"),
        (Decision::PublishWithoutQuarantined, Purpose::Run) => ("⚠️", "published without the invalid rows"),
        (Decision::Hold, Purpose::Check) => ("⛔", "would hold"),
        (Decision::Hold, Purpose::Run) => ("⛔", "held"),
    };
    let mut said = format!("### {sign} {decision}: {}\n\n", markdown(&report.pipeline));
    for reason in &report.decision_reasons {
        let _ = writeln!(said, "- {}", markdown(reason));
    }
    let rows = &report.rows;
    let _ = write!(
        said,
        "\n{} rows read, {} valid, {} invalid; score {}\n",
        count(rows.read),
        count(rows.valid),
        count(rows.invalid),
        score(report)
    );
    let (green, rest): (Vec<&CheckReport>, Vec<&CheckReport>) = report
        .checks
        .iter()
        .partition(|check| check.outcome == Outcome::Pass && check.effect == Effect::None);
    if !rest.is_empty() {
        said.push('\n');
        said.push_str(&table(&rest));
    }
    if !green.is_empty() {
        let _ = write!(
            said,
            "\n<details><summary>{} checks pass</summary>\n\n{}\n</details>\n",
            green.len(),
            table(&green)
        );
    }
    said
}

fn table(checks: &[&CheckReport]) -> String {
    let mut said = String::from("| outcome | effect | check | found |\n|---|---|---|---|\n");
    for check in checks {
        let examples =
            text::examples(check).map_or_else(String::new, |examples| format!("<br>{}", markdown(&examples)));
        let _ = writeln!(
            said,
            "| {} | {} | {} | {}{examples} |",
            markdown(check.outcome.as_str()),
            check.effect,
            markdown(&check.name),
            markdown(&check.message),
        );
    }
    said
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
    fn what_is_not_green_stands_in_a_table() {
        insta::assert_snapshot!(render(&fixtures::held(), &view()), @r#"
        ### ⛔ would hold: orders.csv

        - 1 of 7 rows are valid (0.1428), below `min_valid_ratio` 0.99

        7 rows read, 1 valid, 6 invalid; score 0.1428

        | outcome | effect | check | found |
        |---|---|---|---|
        | fail | quarantined | unique(order\_id) | 2 of 7 rows share 1 value of `order_id`<br>e.g. 2, 2 |
        | fail | held | amounts agree | 1 of 7 rows has `net` above `gross`<br>e.g. net "12.50", gross null … |
        | fail | warned | missing\_percent(discount) | 42.9 %, above 20 % |
        | warn | warned | freshness(updated\_at) | 31 h old, target 24 h |
        | no\_data | none | avg(amount) | no values to average |
        | not\_evaluated | none | length(code) | left out by `--skip` |

        <details><summary>1 checks pass</summary>

        | outcome | effect | check | found |
        |---|---|---|---|
        | pass | none | not\_null(id) | all 7 rows have an `id` |

        </details>
        "#);
    }

    #[test]
    fn hostile_text_stays_in_its_cell() {
        let said = render(&fixtures::hostile(), &view());
        assert!(!said.contains("<b>") && said.contains("ref\\|x"), "{said}");
    }
}
