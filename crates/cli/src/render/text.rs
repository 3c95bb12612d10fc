//! The report for people: the decision first, the rows, then every check that is not plainly green.

use crate::output;
use crate::render::escape::terminal;
use crate::render::numbers::{count, counted, duration, score};
use crate::render::{Purpose, View};
use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use comporta::contract::report::CheckReport;
use comporta::contract::{Decision, Effect, Outcome, Report};
use indexmap::IndexMap;
use serde_json::Value;
use std::fmt::Write;

/// The longest value shown of a failing row, in characters.
const VALUE_CHARACTERS_MAX: usize = 60;
/// Groups shown below a check that judges groups.
const GROUPS_SHOWN_MAX: usize = 3;

/// What the place that text goes to can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// Columns; lines are not broken without it.
    pub(crate) width: Option<usize>,
    /// Whether colours are used.
    pub(crate) colour: bool,
}

impl Look {
    /// For files and pipes.
    pub(crate) const PLAIN: Look = Look {
        width: None,
        colour: false,
    };

    /// As fits standard output.
    pub(crate) fn of_stdout() -> Self {
        match output::stdout_is_terminal() {
            true => Look {
                width: output::terminal_width(),
                colour: output::colours_wanted(),
            },
            false => Self::PLAIN,
        }
    }
}

/// The report as text.
pub(crate) fn render(report: &Report, view: &View, look: Look) -> String {
    let mut text = headline(report, view, look);
    // Only a hold needs explaining; the headline says the rest.
    let reasons = report
        .decision_reasons
        .iter()
        .filter(|_| report.decision == Decision::Hold);
    for reason in reasons {
        let _ = writeln!(text, "  {}", terminal(reason));
    }
    let _ = write!(text, "\nrows    {}\n", rows_line(report, view.purpose));
    let _ = writeln!(text, "score   {}", score_line(report));
    let _ = writeln!(text, "checks  {}", checks_line(report, view.verbose));
    let listed: Vec<&CheckReport> = report
        .checks
        .iter()
        .filter(|check| view.verbose || !is_quiet(check))
        .collect();
    if !listed.is_empty() {
        text.push('\n');
        text.push_str(&check_table(&listed, look));
    }
    for proof in report
        .reconciliation
        .iter()
        .filter(|proof| view.verbose || !proof.holds)
    {
        let sign = if proof.holds { "proved" } else { "NOT PROVED" };
        let _ = write!(
            text,
            "\n{sign}: {}: {}\n",
            terminal(&proof.name),
            terminal(&proof.message)
        );
    }
    text.push_str(&tail(report, view));
    text
}

/// A check that needs no line: green, and without rows that break it.
fn is_quiet(check: &CheckReport) -> bool {
    check.outcome == Outcome::Pass && check.effect == Effect::None
}

fn headline(report: &Report, view: &View, look: Look) -> String {
    let aside = counted(report.rows.quarantined, "row");
    let decision = match (report.decision, view.purpose) {
        (Decision::Publish, Purpose::Check) => "would publish".to_string(),
        (Decision::Publish, Purpose::Run) => "published".to_string(),
        (Decision::PublishWithoutQuarantined, Purpose::Check) => format!("would publish without {aside}"),
        (Decision::PublishWithoutQuarantined, Purpose::Run) => format!("published without {aside}"),
        (Decision::Hold, Purpose::Check) => "would hold".to_string(),
        (Decision::Hold, Purpose::Run) => "held".to_string(),
    };
    let mut about = terminal(&report.pipeline);
    if let Some(layer) = &report.layer {
        let _ = write!(about, " @ {}", terminal(layer));
    }
    if let Some(unit) = &report.unit {
        let _ = write!(about, " · unit {}", terminal(unit));
    }
    let decision = match look.colour {
        false => decision.to_uppercase(),
        true => {
            let code = match report.decision {
                Decision::Publish => 32,
                Decision::PublishWithoutQuarantined => 33,
                Decision::Hold => 31,
            };
            format!("\u{1b}[1;{code}m{}\u{1b}[0m", decision.to_uppercase())
        }
    };
    format!("{decision}  {about}\n")
}

/// Where the rows went, as a sum that adds up.
fn rows_line(report: &Report, purpose: Purpose) -> String {
    let rows = &report.rows;
    let mut left = format!("{} read", count(rows.read));
    if rows.added > 0 {
        let _ = write!(left, " + {} added", count(rows.added));
    }
    let mut parts: Vec<String> = match purpose {
        Purpose::Check => vec![
            format!("{} valid", count(rows.valid)),
            format!("{} invalid", count(rows.invalid)),
        ],
        Purpose::Run => {
            let named = [
                (rows.published, "published", report.decision != Decision::Hold),
                (rows.quarantined, "quarantined", false),
                (rows.held, "held", false),
            ];
            named
                .into_iter()
                .filter(|(number, _, always)| *always || *number > 0)
                .map(|(number, word, _)| format!("{} {word}", count(number)))
                .collect()
        }
    };
    for (step, number) in &rows.dropped {
        parts.push(format!("{} dropped by {}", count(*number), terminal(step)));
    }
    if parts.is_empty() {
        parts.push("0 published".into());
    }
    format!("{left} = {}", parts.join(" + "))
}

fn score_line(report: &Report) -> String {
    let judged = report.rows.valid + report.rows.invalid;
    match report.score {
        None => "none: no row was judged".into(),
        Some(_) => format!(
            "{} ({} of {} valid)",
            score(report),
            count(report.rows.valid),
            counted(judged, "row")
        ),
    }
}

fn checks_line(report: &Report, verbose: bool) -> String {
    let mut parts = Vec::new();
    for outcome in Outcome::ALL {
        let number = report.checks.iter().filter(|check| check.outcome == *outcome).count();
        if number > 0 {
            parts.push(format!("{number} {}", outcome_word(*outcome)));
        }
    }
    if parts.is_empty() {
        return "none".into();
    }
    let hidden = report.checks.iter().any(is_quiet) && !verbose;
    let more = if hidden { " (--verbose lists all)" } else { "" };
    format!("{}{more}", parts.join(" · "))
}

fn outcome_word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::NoData => "no data",
        Outcome::NotEvaluated => "not evaluated",
        other => other.as_str(),
    }
}

fn effect_word(effect: Effect) -> Option<&'static str> {
    match effect {
        Effect::None => None,
        Effect::Warned => Some("warn"),
        Effect::Quarantined => Some("quarantine"),
        Effect::Held => Some("hold"),
    }
}

/// One line per check: what is true → what that leads to, the check, what was found; below it examples.
fn check_table(checks: &[&CheckReport], look: Look) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_content_arrangement(match look.width {
        Some(_) => ContentArrangement::Dynamic,
        None => ContentArrangement::Disabled,
    });
    if let Some(width) = look.width {
        table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    }
    match look.colour {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    for check in checks {
        let verdict = match (outcome_word(check.outcome), effect_word(check.effect)) {
            (outcome, None) => outcome.to_string(),
            (outcome, Some(effect)) => format!("{outcome} → {effect}"),
        };
        table.add_row([
            colour_of(check).map_or(Cell::new(&verdict), |colour| Cell::new(&verdict).fg(colour)),
            Cell::new(terminal(&check.name)),
            Cell::new(terminal(&check.message)),
        ]);
        if let Some(examples) = examples(check) {
            table.add_row([
                Cell::new(""),
                Cell::new(""),
                Cell::new(examples).add_attribute(Attribute::Dim),
            ]);
        }
    }
    if let Some(first) = table.column_mut(0) {
        first.set_padding((2, 2));
    }
    if let Some(second) = table.column_mut(1) {
        second.set_padding((0, 2));
    }
    if let Some(third) = table.column_mut(2) {
        third.set_padding((0, 0));
    }
    format!("{}\n", table.trim_fmt())
}

fn colour_of(check: &CheckReport) -> Option<Color> {
    match (check.outcome, check.effect) {
        (_, Effect::Held) => Some(Color::Red),
        (_, Effect::Quarantined | Effect::Warned) => Some(Color::Yellow),
        (Outcome::Pass, Effect::None) => Some(Color::Green),
        (_, Effect::None) => None,
    }
}

/// What stands below a check: `e.g. 2, 2, 5 …`, the worst groups, how many rows are unknown.
pub(crate) fn examples(check: &CheckReport) -> Option<String> {
    let mut parts = Vec::new();
    if !check.sample.is_empty() {
        let rows: Vec<String> = check.sample.iter().map(example).collect();
        let several = check.sample.iter().any(|row| row.len() > 1);
        let capped = check.details.get("sample_capped").and_then(Value::as_bool) == Some(true);
        let more = if capped { " …" } else { "" };
        parts.push(format!("e.g. {}{more}", rows.join(if several { "; " } else { ", " })));
    }
    if let Some(groups) = check.details.get("groups").and_then(Value::as_array) {
        let more = if groups.len() > GROUPS_SHOWN_MAX { " …" } else { "" };
        let shown: Vec<String> = groups.iter().take(GROUPS_SHOWN_MAX).map(group).collect();
        parts.push(format!("worst: {}{more}", shown.join("; ")));
    }
    if check.unknown_count > 0 {
        parts.push(format!("{} unknown", counted(check.unknown_count, "row")));
    }
    (!parts.is_empty()).then(|| parts.join(" · "))
}

/// `country "BR" (1200)`
fn group(group: &Value) -> String {
    let names = group["group"].as_object().into_iter().flatten();
    let cells: Vec<String> = names
        .map(|(name, value)| format!("{} {}", terminal(name), shown(value)))
        .collect();
    match &group["metric_value"] {
        Value::Null => cells.join(", "),
        metric => format!("{} ({})", cells.join(", "), shown(metric).trim_matches('"')),
    }
}

fn example(row: &IndexMap<String, Value>) -> String {
    let cells: Vec<String> = row
        .iter()
        .map(|(name, value)| match row.len() {
            1 => shown(value),
            _ => format!("{} {}", terminal(name), shown(value)),
        })
        .collect();
    cells.join(", ")
}

/// A value as JSON, harmless and not too long.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => format!("\"{}\"", terminal(text)),
        other => terminal(&other.to_string()),
    };
    match text.char_indices().nth(VALUE_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn tail(report: &Report, view: &View) -> String {
    let mut text = String::new();
    if !report.outputs.is_empty() {
        text.push('\n');
        let width = report
            .outputs
            .keys()
            .map(|name| name.chars().count())
            .max()
            .unwrap_or(0)
            .max(6);
        for (name, place) in &report.outputs {
            let _ = writeln!(text, "{:width$}  {}", terminal(name), terminal(place));
        }
    }
    for note in &report.notes {
        let _ = write!(text, "\nnote: {}", terminal(note));
    }
    if !report.notes.is_empty() {
        text.push('\n');
    }
    match view.purpose {
        Purpose::Run => {
            let _ = write!(
                text,
                "\nrun {} · {}\n",
                terminal(&report.run_id),
                duration(report.duration_ms)
            );
        }
        Purpose::Check => {
            let _ = write!(text, "\n{}\n", duration(report.duration_ms));
        }
    }
    if let Some(hint) = &view.hint {
        let _ = write!(text, "\nhint: {hint}\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    fn view(purpose: Purpose) -> View {
        View {
            purpose,
            verbose: false,
            hint: Some("`--invalid bad.parquet` writes them".into()),
        }
    }

    #[test]
    fn a_check_that_would_hold() {
        insta::assert_snapshot!(render(&fixtures::held(), &view(Purpose::Check), Look::PLAIN), @r#"
        WOULD HOLD  orders.csv
          1 of 7 rows are valid (0.1428), below `min_valid_ratio` 0.99

        rows    7 read = 1 valid + 6 invalid
        score   0.1428 (1 of 7 rows valid)
        checks  1 pass · 1 warn · 3 fail · 1 no data · 1 not evaluated (--verbose lists all)

          fail → quarantine  unique(order_id)           2 of 7 rows share 1 value of `order_id`
                                                        e.g. 2, 2
          fail → hold        amounts agree              1 of 7 rows has `net` above `gross`
                                                        e.g. net "12.50", gross null …
          fail → warn        missing_percent(discount)  42.9 %, above 20 %
          warn → warn        freshness(updated_at)      31 h old, target 24 h
          no data            avg(amount)                no values to average
          not evaluated      length(code)               left out by `--skip`

        note: timestamps without a zone were read as UTC

        12 ms

        hint: `--invalid bad.parquet` writes them
        "#);
    }

    #[test]
    fn a_run_that_published() {
        let view = View {
            hint: None,
            verbose: true,
            ..view(Purpose::Run)
        };
        insta::assert_snapshot!(render(&fixtures::published(), &view, Look::PLAIN), @"
        PUBLISHED  orders @ silver

        rows    48,210 read = 48,210 published
        score   1 (48,210 of 48,210 rows valid)
        checks  1 pass

          pass  not_null(id)  all 48210 rows have an `id`

        proved: conservation: 48210 read = 48210 published

        target  delta lake/silver/orders

        run 0198c0de-0000-7000-8000-000000000001 · 12 ms
        ");
    }

    #[test]
    fn lines_are_broken_at_the_width_of_the_terminal() {
        let look = Look {
            width: Some(60),
            colour: false,
        };
        let text = render(&fixtures::held(), &view(Purpose::Check), look);
        let table: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  fail")).collect();
        assert!(table.iter().take(8).all(|line| line.chars().count() <= 60), "{text}");
    }

    #[test]
    fn groups_and_unknown_rows_are_shown_below_their_check() {
        let mut check = fixtures::held().checks.remove(2);
        check.unknown_count = 1;
        let groups = serde_json::json!([{ "group": { "country": "BR" }, "metric_value": "12.5", "failed_count": 1 }]);
        check.details.insert("groups".into(), groups);
        assert_eq!(
            examples(&check).unwrap(),
            "worst: country \"BR\" (12.5) · 1 row unknown"
        );
    }

    #[test]
    fn data_cannot_speak_to_the_terminal() {
        let text = render(&fixtures::hostile(), &view(Purpose::Check), Look::PLAIN);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("\\n::error::"), "{text:?}");
    }

    #[test]
    fn colours_are_used_only_where_asked_for() {
        let look = Look {
            width: Some(100),
            colour: true,
        };
        assert!(render(&fixtures::held(), &view(Purpose::Check), look).contains("\u{1b}[1;31mWOULD HOLD"));
    }
}
