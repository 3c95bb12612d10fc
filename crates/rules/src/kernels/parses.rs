//! Whether a text could be read as a type.

use super::TextTest;
use crate::formats::{plain, time};
use bigdecimal::BigDecimal;
use comporta_contract::types::LogicalType;
use std::str::FromStr;

/// The text is a value of a simple type.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parses {
    declared: LogicalType,
}

impl Parses {
    /// A test for the type; `None` for types that no plain text stands for (lists, structs, maps, bytes).
    pub fn new(declared: &LogicalType) -> Option<Self> {
        let nested = matches!(
            declared,
            LogicalType::List(_) | LogicalType::Struct(_) | LogicalType::Map(..) | LogicalType::Binary
        );
        (!nested).then(|| Parses {
            declared: declared.clone(),
        })
    }
}

impl TextTest for Parses {
    const NAME: &'static str = "parses";

    type Run<'a> = &'a LogicalType;

    fn begin(&self) -> &LogicalType {
        &self.declared
    }

    fn passes(declared: &mut &LogicalType, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(|text| parses(declared, text))
    }
}

/// Whether a text is a value of the type, exactly: no blanks around it, nothing rounded, nothing out of range.
pub fn parses(declared: &LogicalType, text: &str) -> bool {
    match declared {
        LogicalType::String => true,
        LogicalType::Boolean => plain::boolean(text),
        LogicalType::Integer(bits) => plain::integer(text) && signed_fits(text, bits.unwrap_or(64)),
        LogicalType::Unsigned(bits) => plain::integer(text) && unsigned_fits(text, *bits),
        LogicalType::Float(_) | LogicalType::Number => is_float(text),
        LogicalType::Decimal(size) => plain::decimal(text) && decimal_fits(text, size.unwrap_or((38, 9))),
        LogicalType::Date => time::date(text),
        LogicalType::Timestamp(zoned) => time::timestamp(text) && zoned.is_none_or(|zoned| zoned == has_offset(text)),
        LogicalType::Time => time::time(text),
        LogicalType::Binary | LogicalType::List(_) | LogicalType::Struct(_) | LogicalType::Map(..) => false,
    }
}

fn signed_fits(text: &str, bits: u8) -> bool {
    let limit = 1_i128 << (bits - 1);
    text.parse::<i128>()
        .is_ok_and(|number| (-limit..limit).contains(&number))
}

fn unsigned_fits(text: &str, bits: u8) -> bool {
    text.parse::<i128>()
        .is_ok_and(|number| (0..1_i128 << bits).contains(&number))
}

fn decimal_fits(text: &str, (precision, scale): (u8, i8)) -> bool {
    // Longer text has more digits than any decimal, leading zeros aside, which no writer of numbers produces.
    text.len() <= 1000
        && BigDecimal::from_str(text).is_ok_and(|number| {
            let number = number.normalized();
            let scaled = number.with_scale(i64::from(scale));
            scaled == number && scaled.digits() <= u64::from(precision)
        })
}

/// Digits with or without point and exponent, `NaN`, or an infinity; not the hexadecimal and `infinit` forms that
/// parsers differ on.
fn is_float(text: &str) -> bool {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    let named = ["nan", "inf", "infinity"]
        .iter()
        .any(|name| bare.eq_ignore_ascii_case(name));
    named || (bare.starts_with(|sign: char| sign.is_ascii_digit() || sign == '.') && bare.parse::<f64>().is_ok())
}

fn has_offset(text: &str) -> bool {
    text.ends_with(['Z', 'z']) || text.get(16..).is_some_and(|rest| rest.contains(['+', '-']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_read_exactly_or_not_at_all() {
        for (declared, yes, no) in [
            (
                "int",
                vec!["0", "-5", "9223372036854775807", "012"],
                vec!["1.0", "9223372036854775808", "", " 1", "1e3"],
            ),
            ("int8", vec!["127", "-128"], vec!["128", "-129"]),
            ("uint8", vec!["255"], vec!["256", "-1"]),
            (
                "decimal(5,2)",
                vec!["123.45", "-1", "1.50000", ".5"],
                vec!["1234.5", "1.234", "1e2", "NaN"],
            ),
            ("decimal", vec!["0.123456789"], vec!["0.1234567891"]),
            ("double", vec!["1e3", "NaN", "-inf", ".5"], vec!["abc", "", "0x1"]),
            ("boolean", vec!["true", "FALSE"], vec!["1", "yes"]),
            ("date", vec!["2024-02-29"], vec!["2024-02-30", "2024-02-29T00:00:00"]),
            (
                "timestamp",
                vec!["2024-02-29T10:00:00", "2024-02-29 10:00:00Z"],
                vec!["2024-02-29"],
            ),
            (
                "timestamp_tz",
                vec!["2024-02-29T10:00:00-03:00"],
                vec!["2024-02-29T10:00:00"],
            ),
            ("timestamp_ntz", vec!["2024-02-29T10:00"], vec!["2024-02-29T10:00Z"]),
            ("time", vec!["10:00"], vec!["25:00"]),
            ("string", vec!["", "anything"], vec![]),
        ] {
            let declared = LogicalType::parse(declared).unwrap();
            for text in yes {
                assert!(parses(&declared, text), "{text:?} as {declared}");
            }
            for text in no {
                assert!(!parses(&declared, text), "{text:?} as {declared}");
            }
        }
    }

    #[test]
    fn nested_types_have_no_plain_text() {
        assert_eq!(Parses::new(&LogicalType::parse("list<int>").unwrap()), None);
        assert!(Parses::new(&LogicalType::Date).is_some());
    }
}
