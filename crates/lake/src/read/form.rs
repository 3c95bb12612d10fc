//! How dates, timestamps and numbers are written, and reading them exactly.

use chrono::format::{Item, Parsed, StrftimeItems, parse};
use chrono::{DateTime, FixedOffset, NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};
use chrono_tz::Tz;
use comporta_contract::source::SourceSpec;
use comporta_engine::{Error, Result};
use std::borrow::Cow;

/// The written forms of a source.
#[derive(Debug, Clone)]
pub struct Form {
    decimal: char,
    thousands: Option<char>,
    date: Option<Vec<Item<'static>>>,
    timestamp: Option<Vec<Item<'static>>>,
    /// Where timestamps without an offset are.
    pub timezone: Tz,
}

impl Form {
    /// Reads the forms that a source declares.
    ///
    /// # Errors
    /// A format is not understood, or the signs of numbers are the same.
    pub fn of(spec: &SourceSpec, timezone: Tz) -> Result<Self> {
        let (decimal, thousands) = match &spec.numbers {
            Some(numbers) => (numbers.decimal, numbers.thousands),
            None => ('.', None),
        };
        if Some(decimal) == thousands {
            return Err(Error::invalid(format!(
                "`{decimal}` cannot be both the decimal and the thousands sign"
            )));
        }
        Ok(Form {
            decimal,
            thousands,
            date: spec.date_format.as_deref().map(items).transpose()?,
            timestamp: spec.timestamp_format.as_deref().map(items).transpose()?,
            timezone,
        })
    }

    /// The number with a decimal point and without thousands signs; `None` if its groups are not of three.
    pub fn number<'t>(&self, text: &'t str) -> Option<Cow<'t, str>> {
        if self.decimal == '.' && self.thousands.is_none() {
            return Some(Cow::Borrowed(text));
        }
        let (whole, rest) = match text.find([self.decimal, 'e', 'E']) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        if self.decimal != '.' && self.thousands != Some('.') && text.contains('.') {
            return None;
        }
        let rest = match rest.strip_prefix(self.decimal) {
            Some(fraction) => format!(".{fraction}"),
            None => rest.to_string(),
        };
        let Some(thousands) = self.thousands.filter(|sign| whole.contains(*sign)) else {
            return Some(Cow::Owned(format!("{whole}{rest}")));
        };
        let (sign, digits) = match whole.strip_prefix(['-', '+']) {
            Some(digits) => (&whole[..1], digits),
            None => ("", whole),
        };
        let mut groups = digits.split(thousands);
        let first = groups.next().filter(|group| (1..=3).contains(&group.len()))?;
        let mut plain = format!("{sign}{first}");
        for group in groups {
            if group.len() != 3 {
                return None;
            }
            plain.push_str(group);
        }
        Some(Cow::Owned(plain + &rest))
    }

    /// A day, as days since 1970-01-01.
    pub fn day(&self, text: &str) -> Option<i32> {
        let date = match &self.date {
            None => iso_date(text.as_bytes())?,
            Some(items) => {
                let mut parsed = Parsed::new();
                parse(&mut parsed, text, items.iter()).ok()?;
                four_digits(parsed.to_naive_date().ok()?)?
            }
        };
        i32::try_from(date.signed_duration_since(NaiveDate::default()).num_days()).ok()
    }

    /// A day and time of day, with the offset if it is written.
    pub fn moment(&self, text: &str) -> Option<(NaiveDateTime, Option<FixedOffset>)> {
        let Some(items) = &self.timestamp else {
            return iso_moment(text);
        };
        let mut parsed = Parsed::new();
        parse(&mut parsed, text, items.iter()).ok()?;
        let offset = parsed.to_fixed_offset().ok();
        let day = four_digits(parsed.to_naive_date().ok()?)?;
        let time = parsed.to_naive_time().unwrap_or(NaiveTime::MIN);
        Some((day.and_time(time), offset))
    }

    /// Microseconds since 1970 of a column with or without a zone. Digits behind the sixth are cut off.
    pub fn micros(&self, text: &str, zoned: bool) -> Option<i64> {
        let (local, offset) = match self.moment(text) {
            Some(moment) => moment,
            // A bare day is its first instant.
            None => (
                NaiveDate::default().and_time(NaiveTime::MIN) + chrono::Duration::days(self.day(text)?.into()),
                None,
            ),
        };
        let local = match (offset, zoned) {
            (None, false) => local,
            (Some(offset), true) => local.checked_sub_offset(offset)?,
            (None, true) => {
                let at = self.timezone.from_local_datetime(&local).earliest()?;
                local.checked_sub_offset(at.offset().fix())?
            }
            (Some(offset), false) => {
                let at: DateTime<FixedOffset> = offset.from_local_datetime(&local).single()?;
                at.with_timezone(&self.timezone).naive_local()
            }
        };
        Some(local.and_utc().timestamp_micros())
    }

    /// A time of day, in microseconds.
    pub fn time(&self, text: &str) -> Option<i64> {
        let time = ["%H:%M:%S%.f", "%H:%M"]
            .iter()
            .find_map(|form| NaiveTime::parse_from_str(text, form).ok())?;
        time.signed_duration_since(NaiveTime::MIN).num_microseconds()
    }
}

/// `%Y` reads `24` as the year 24, which nobody meant.
fn four_digits(date: NaiveDate) -> Option<NaiveDate> {
    use chrono::Datelike;
    (1000..=9999).contains(&date.year()).then_some(date)
}

fn digits(bytes: &[u8]) -> Option<u32> {
    bytes.iter().try_fold(0u32, |number, byte| match byte {
        b'0'..=b'9' => Some(number * 10 + u32::from(byte - b'0')),
        _ => None,
    })
}

fn iso_date(bytes: &[u8]) -> Option<NaiveDate> {
    if bytes.len() != 10 || bytes[4] != b'-' || bytes[7] != b'-' {
        return None;
    }
    let year = i32::try_from(digits(&bytes[..4])?).ok()?;
    NaiveDate::from_ymd_opt(year, digits(&bytes[5..7])?, digits(&bytes[8..])?)
}

/// `2024-12-31T12:00[:00[.123456]][Z|+01:00]`, with `T` or a blank.
fn iso_moment(text: &str) -> Option<(NaiveDateTime, Option<FixedOffset>)> {
    let bytes = text.as_bytes();
    if bytes.len() < 16 || !matches!(bytes[10], b'T' | b't' | b' ') || bytes[13] != b':' {
        return None;
    }
    let day = iso_date(&bytes[..10])?;
    let (hour, minute) = (digits(&bytes[11..13])?, digits(&bytes[14..16])?);
    let mut rest = &bytes[16..];
    let (mut second, mut nanos) = (0, 0);
    if let [b':', tens, ones, tail @ ..] = rest {
        second = digits(&[*tens, *ones])?;
        rest = tail;
        if let [b'.' | b',', tail @ ..] = rest {
            let length = tail.iter().take_while(|byte| byte.is_ascii_digit()).count();
            if length == 0 {
                return None;
            }
            let kept = length.min(9);
            nanos = digits(&tail[..kept])? * 10u32.pow(u32::try_from(9 - kept).ok()?);
            rest = &tail[length..];
        }
    }
    let at = day.and_time(NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)?);
    let rest = match rest {
        [b' ', b'+' | b'-' | b'Z', ..] => &rest[1..],
        rest => rest,
    };
    let (sign, rest) = match rest {
        [] => return Some((at, None)),
        [b'Z' | b'z'] => return Some((at, Some(FixedOffset::east_opt(0)?))),
        [b'+', rest @ ..] => (1, rest),
        [b'-', rest @ ..] => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = match rest.len() {
        2 => (digits(rest)?, 0),
        4 => (digits(&rest[..2])?, digits(&rest[2..])?),
        5 if rest[2] == b':' => (digits(&rest[..2])?, digits(&rest[3..])?),
        _ => return None,
    };
    if minutes > 59 {
        return None;
    }
    let seconds = i32::try_from(hours * 3600 + minutes * 60).ok()?;
    Some((at, Some(FixedOffset::east_opt(sign * seconds)?)))
}

/// A format in either spelling, as what `chrono` reads.
fn items(format: &str) -> Result<Vec<Item<'static>>> {
    let unknown = |what: &str| {
        Error::invalid(format!("the format `{format}` is not understood: {what}"))
            .hint("write it as `dd/MM/yyyy HH:mm:ss` or as `%d/%m/%Y %H:%M:%S`")
    };
    let strftime = match format.contains('%') {
        true => format.to_string(),
        false => translated(format).map_err(|letters| unknown(&format!("`{letters}`")))?,
    };
    StrftimeItems::new(&strftime)
        .parse_to_owned()
        .map_err(|error| unknown(&error.to_string()))
}

/// `dd/MM/yyyy` as `%d/%m/%Y`; the letters that mean nothing otherwise.
fn translated(format: &str) -> Result<String, String> {
    let mut out = String::new();
    let letters: Vec<char> = format.chars().collect();
    let mut at = 0;
    while let Some(&letter) = letters.get(at) {
        if letter == '\'' {
            let end = letters[at + 1..].iter().position(|c| *c == '\'').ok_or("'")?;
            out.extend(match end {
                0 => vec!['\''],
                _ => letters[at + 1..at + 1 + end].to_vec(),
            });
            at += end + 2;
            continue;
        }
        let count = letters[at..].iter().take_while(|c| **c == letter).count();
        at += count;
        let directive = match (letter, count) {
            ('y' | 'u', 1 | 4) => "%Y",
            ('y', 2) => "%y",
            ('M', 1 | 2) => "%m",
            ('M', 3) => "%b",
            ('M', 4) => "%B",
            ('d', 1 | 2) => "%d",
            ('H', 1 | 2) => "%H",
            ('h', 1 | 2) => "%I",
            ('m', 1 | 2) => "%M",
            ('s', 1 | 2) => "%S",
            ('S', 3) => "%3f",
            ('S', 6) => "%6f",
            ('S', 9) => "%9f",
            ('a', 1) => "%p",
            ('E', 1..=3) => "%a",
            ('E', 4) => "%A",
            ('X' | 'x' | 'Z', _) => "%#z",
            (letter, _) if letter.is_ascii_alphabetic() => return Err(letter.to_string().repeat(count)),
            (letter, count) => {
                out.extend(std::iter::repeat_n(letter, count));
                ""
            }
        };
        out.push_str(directive);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta_contract::source::NumberForm;

    fn form(spec: SourceSpec) -> Form {
        Form::of(&spec, Tz::UTC).unwrap()
    }

    #[test]
    fn both_spellings_of_a_date_format_read_the_same() {
        for format in ["dd/MM/yyyy", "%d/%m/%Y"] {
            let form = form(SourceSpec {
                date_format: Some(format.into()),
                ..Default::default()
            });
            assert_eq!(form.day("02/01/1970"), Some(1), "{format}");
            assert_eq!(form.day("30/02/1970"), None);
            assert_eq!(form.day("02/01/70"), None, "a short year is not the year 70");
        }
        assert!(
            Form::of(
                &SourceSpec {
                    date_format: Some("qq".into()),
                    ..Default::default()
                },
                Tz::UTC
            )
            .is_err()
        );
    }

    #[test]
    fn iso_timestamps_are_read_with_and_without_offset() {
        let form = form(SourceSpec::default());
        assert_eq!(form.micros("1970-01-01T00:00:01.5", false), Some(1_500_000));
        assert_eq!(form.micros("1970-01-01 01:00:00+01:00", true), Some(0));
        assert_eq!(form.micros("1970-01-01 01:00", true), Some(3_600_000_000));
        assert_eq!(form.micros("1970-01-02", false), Some(86_400_000_000));
        for broken in [
            "1970-01-01T25:00:00",
            "1970-01-01T00:00:00+0",
            "1970-02-30",
            "now",
            "1970-01-01T00:00:00x",
        ] {
            assert_eq!(form.micros(broken, false), None, "{broken}");
        }
    }

    #[test]
    fn local_times_are_in_the_document_zone_for_a_zoned_column() {
        let form = Form::of(&SourceSpec::default(), Tz::Europe__Lisbon).unwrap();
        assert_eq!(
            form.micros("2024-07-01T01:00:00", true),
            form.micros("2024-07-01T00:00:00Z", true)
        );
        assert_eq!(
            form.micros("2024-07-01T00:00:00Z", false),
            form.micros("2024-07-01T01:00:00", false)
        );
    }

    #[test]
    fn groups_of_other_than_three_digits_are_no_number() {
        let numbers = Some(NumberForm {
            decimal: ',',
            thousands: Some('.'),
        });
        let form = form(SourceSpec {
            numbers,
            ..Default::default()
        });
        assert_eq!(form.number("-1.234.567,89").as_deref(), Some("-1234567.89"));
        assert_eq!(form.number("12,5").as_deref(), Some("12.5"));
        for broken in ["1.23", "1234.567", "1..234"] {
            assert_eq!(form.number(broken), None, "{broken}");
        }
    }
}
