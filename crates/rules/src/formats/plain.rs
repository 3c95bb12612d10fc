//! Plain values written as text: numbers, truth, JSON, UUIDs.

/// `true` or `false`, in any case.
pub fn boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Digits with or without a sign; any number of them.
pub fn integer(text: &str) -> bool {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit())
}

/// Digits with or without a sign and a decimal point; no exponent, no grouping.
pub fn decimal(text: &str) -> bool {
    let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (whole, fraction) = bare.split_once('.').unwrap_or((bare, ""));
    let mut bytes = whole.bytes().chain(fraction.bytes());
    bare.bytes().any(|byte| byte.is_ascii_digit()) && bytes.all(|byte| byte.is_ascii_digit())
}

/// One JSON value and nothing behind it (RFC 8259), nested at most 128 deep.
pub fn json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// Groups of 8, 4, 4, 4 and 12 hexadecimal digits (RFC 9562), in any case and of any version.
pub fn uuid(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() == 36
        && bytes.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn truth_and_numbers() {
        assert_format(boolean, &["true", "False", "TRUE"], &["yes", "1", "tru", "true "]);
        assert_format(
            integer,
            &["0", "-12", "+7", "007", "123456789012345678901234567890"],
            &["1.0", "1e3", "--1", "1 000", "-", "0x1f"],
        );
        assert_format(
            decimal,
            &["0", "-12.50", ".5", "5.", "+1.25"],
            &[".", "-", "1,5", "1e3", "1.2.3", "NaN", "+-1", "1_000"],
        );
    }

    #[test]
    fn json_is_one_whole_value() {
        assert_format(
            json,
            &["{}", "[1, 2]", "null", "\"a\"", " 1 ", "{\"a\": {\"b\": [true]}}"],
            &["{a: 1}", "[1,]", "{} {}", "'a'", "{\"a\"}", "NaN", "01"],
        );
    }

    #[test]
    fn uuids_of_any_version() {
        assert_format(
            uuid,
            &[
                "123e4567-e89b-12d3-a456-426614174000",
                "00000000-0000-0000-0000-000000000000",
                "0192F3A4-B5C6-7D8E-9F00-112233445566",
            ],
            &[
                "123e4567e89b12d3a456426614174000",
                "123e4567-e89b-12d3-a456-42661417400",
                "{123e4567-e89b-12d3-a456-42661417400}",
                "g23e4567-e89b-12d3-a456-426614174000",
            ],
        );
    }
}
