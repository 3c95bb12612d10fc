//! Dates and times as ISO 8601 writes them, if the calendar and the clock have them.

use crate::literals::{Iso, iso};
use chrono::NaiveDate;

/// `2024-12-31`: four digits, two, two, and a day that there was.
pub fn date(text: &str) -> bool {
    let shaped = text.len() == 10
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    shaped && NaiveDate::parse_from_str(text, "%Y-%m-%d").is_ok()
}

/// `2024-12-31T23:59:59`, with `T` or a blank, with or without seconds, their fraction, and an offset or `Z`.
pub fn timestamp(text: &str) -> bool {
    let date_first = text.get(..10).is_some_and(date);
    let clock = text.get(11..).unwrap_or_default();
    // 23:59:60 is a leap second to the parser; clocks of data have none.
    let leap = clock.get(6..8) == Some("60");
    date_first
        && !leap
        && matches!(text.as_bytes().get(10), Some(b'T' | b' '))
        && !text.ends_with(char::is_whitespace)
        && clock.get(..5).is_some_and(time)
        && matches!(iso(text), Some(Iso::Local(_) | Iso::Instant(_)))
}

/// `23:59`, `23:59:59` or `23:59:59.999`, up to nine digits of a second.
pub fn time(text: &str) -> bool {
    let (clock, fraction) = match text.split_once('.') {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let part = |part: &str, below: u8| {
        part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit()) && part.parse::<u8>().is_ok_and(|n| n < below)
    };
    let parts: Vec<&str> = clock.split(':').collect();
    let whole = match parts.as_slice() {
        [hour, minute] => part(hour, 24) && part(minute, 60) && fraction.is_none(),
        [hour, minute, second] => part(hour, 24) && part(minute, 60) && part(second, 60),
        _ => false,
    };
    let fraction_fits =
        |digits: &str| (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    whole && fraction.is_none_or(fraction_fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn dates_are_of_the_calendar() {
        assert_format(
            date,
            &["2024-02-29", "2000-02-29", "1999-12-31", "0001-01-01"],
            &[
                "2024-02-30",
                "2023-02-29",
                "1900-02-29",
                "2024-13-01",
                "2024-1-1",
                "31/12/2024",
                "20241231",
                "2024-12-31 ",
                "+024-01-01",
                "2024-12-31T00:00:00",
            ],
        );
    }

    #[test]
    fn timestamps_have_a_date_and_a_clock() {
        assert_format(
            timestamp,
            &[
                "2024-12-31T23:59:59Z",
                "2024-12-31 23:59",
                "2024-02-29T00:00:00.123456",
                "2024-12-31T23:59:59+01:00",
            ],
            &[
                "2024-12-31",
                "2024-02-30T00:00:00Z",
                "2024-12-31T24:00:00",
                "2024-12-31T23:59:60",
                "2024-12-31T23:59:59 ",
                "12:00",
                "2024-12-31X10:00",
                "2024-12-31T1:00",
            ],
        );
    }

    #[test]
    fn times_are_of_the_clock() {
        assert_format(
            time,
            &["00:00", "23:59:59", "12:30:00.5", "12:30:00.123456789"],
            &[
                "24:00",
                "12:60",
                "12:00:60",
                "1:00",
                "12",
                "12:00.5",
                "12:00:00.",
                "12:00:00.1234567890",
                "12:00Z",
            ],
        );
    }
}
