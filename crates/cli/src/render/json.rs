//! The report as it is persisted (design §6).

use crate::failure::Failure;
use comporta::contract::Report;
use comporta::engine::Error;
use std::fmt::Write;

/// Pretty JSON with a line break at the end.
pub(crate) fn render(report: &Report) -> Result<String, Failure> {
    let json = serde_json::to_string_pretty(report)
        .map_err(|error| Error::internal(format!("the report could not be written as JSON: {error}")))?;
    Ok(without_controls(&json))
}

/// JSON may carry the control signs above 0x7e as they are; a terminal would obey them. They can only stand
/// inside texts, where their escaped form means the same.
fn without_controls(json: &str) -> String {
    let mut harmless = String::with_capacity(json.len() + 1);
    for sign in json.chars() {
        match sign {
            '\u{7f}'..='\u{9f}' => {
                let _ = write!(harmless, "\\u{:04x}", sign as u32);
            }
            sign => harmless.push(sign),
        }
    }
    harmless.push('\n');
    harmless
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    #[test]
    fn the_report_comes_back_as_it_went_out() {
        let mut report = fixtures::held();
        report.notes.push("\u{9b}31m \u{1b}[2J \u{7f}".into());
        let Ok(json) = render(&report) else { panic!("no JSON") };
        assert!(json.chars().all(|sign| sign == '\n' || !sign.is_control()));
        assert_eq!(serde_json::from_str::<Report>(&json).unwrap(), report);
    }
}
