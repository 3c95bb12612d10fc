//! Numbers as people read them.

use comporta::contract::Report;

/// With commas between groups of three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// With its noun, in the plural where it is not one.
pub(crate) fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// A share with four digits, cut off rather than rounded: only a whole is shown as 1.
pub(crate) fn score(report: &Report) -> String {
    let judged = report.rows.valid + report.rows.invalid;
    match report.score {
        None => "none".into(),
        Some(_) if judged > 0 && report.rows.invalid == 0 => "1".into(),
        Some(_) if report.rows.valid == 0 => "0".into(),
        Some(share) => format!("{:.4}", (share * 10_000.0).floor() / 10_000.0),
    }
}

/// A duration in the unit that suits it.
pub(crate) fn duration(milliseconds: u64) -> String {
    match milliseconds {
        0..1_000 => format!("{milliseconds} ms"),
        1_000..60_000 => format!("{:.1} s", milliseconds as f64 / 1_000.0),
        _ => format!("{} min {} s", milliseconds / 60_000, milliseconds % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    #[test]
    fn numbers_read_well() {
        assert_eq!(count(0), "0");
        assert_eq!(count(48_210), "48,210");
        assert_eq!(count(1_000_000), "1,000,000");
        assert_eq!(counted(1, "row"), "1 row");
        assert_eq!(duration(61_500), "1 min 1 s");
    }

    #[test]
    fn a_share_is_never_rounded_up_to_a_whole() {
        let mut report = fixtures::published();
        report.rows.valid = 999_999;
        report.rows.invalid = 1;
        report.score = Some(0.999_999);
        assert_eq!(score(&report), "0.9999");
        report.rows.invalid = 0;
        report.score = Some(1.0);
        assert_eq!(score(&report), "1");
    }
}
