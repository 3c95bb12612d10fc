//! Numbers of goods and books.

/// Thirteen digits (GS1): weights 1 and 3 in turn, the whole sum a multiple of ten.
pub fn ean13(text: &str) -> bool {
    super::digits(text).is_some_and(|digits| {
        let sum: u32 = digits
            .iter()
            .zip([1, 3].into_iter().cycle())
            .map(|(digit, weight)| digit * weight)
            .sum();
        digits.len() == 13 && sum.is_multiple_of(10)
    })
}

/// Ten or thirteen digits (ISO 2108), with or without hyphens or blanks between groups. Of ten, weights 10 to 1
/// give a multiple of eleven and the last may be `X` for ten; thirteen are an EAN that begins with 978 or 979.
pub fn isbn(text: &str) -> bool {
    let edges = text.starts_with(['-', ' ']) || text.ends_with(['-', ' ']);
    let doubled = ["--", "  ", "- ", " -"].iter().any(|pair| text.contains(pair));
    if edges || doubled || (text.contains('-') && text.contains(' ')) {
        return false;
    }
    let bare: String = text.chars().filter(|sign| !matches!(sign, '-' | ' ')).collect();
    match bare.len() {
        10 => isbn10(&bare),
        13 => (bare.starts_with("978") || bare.starts_with("979")) && ean13(&bare),
        _ => false,
    }
}

fn isbn10(bare: &str) -> bool {
    let (number, last) = bare.as_bytes().split_at(9);
    let last = match last {
        b"X" => 10,
        [digit] if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    if !number.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let digits = number.iter().map(|digit| u32::from(digit - b'0'));
    let sum: u32 = digits.zip((2..=10).rev()).map(|(digit, weight)| digit * weight).sum();
    (sum + last).is_multiple_of(11)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn goods_have_a_right_check_digit() {
        assert_format(
            ean13,
            &["4006381333931", "9780306406157"],
            &["4006381333930", "400638133393", "40063813339310", "400638133393X"],
        );
    }

    #[test]
    fn books_of_ten_and_thirteen_digits() {
        assert_format(
            isbn,
            &[
                "0306406152",
                "0-306-40615-2",
                "080442957X",
                "978-0-306-40615-7",
                "9780306406157",
                "979 10 90636 07 1",
            ],
            &[
                "0306406153",
                "9780306406158",
                "4006381333931",
                "080442957x",
                "X306406152",
                "0--306406152",
                "-0306406152",
                "0-306 406152",
            ],
        );
    }
}
