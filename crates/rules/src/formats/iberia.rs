//! Tax and identity numbers of Portugal and Spain.

/// Nine digits (Autoridade Tributária): weights 9 to 2 over the first eight, modulo 11; the check digit is 11 less
/// the rest, where 10 and 11 are 0. The first digits say what the holder is; unassigned ones are none.
pub fn nif(text: &str) -> bool {
    let Some(digits) = super::digits(text).filter(|digits| digits.len() == 9) else {
        return false;
    };
    let assigned = match (digits[0], digits[1]) {
        (1 | 2 | 3 | 5 | 6 | 8, _) | (4, 5) => true,
        (7, second) => [0, 1, 2, 4, 5, 7, 8, 9].contains(&second),
        (9, second) => [0, 1, 8, 9].contains(&second),
        _ => false,
    };
    let sum: u32 = digits
        .iter()
        .zip((2..=9).rev())
        .map(|(digit, weight)| digit * weight)
        .sum();
    let check = match sum % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    assigned && check == digits[8]
}

/// Eight digits and a letter, with or without a hyphen before it: the letter at the number's rest modulo 23 in the
/// sequence of the Ministerio del Interior.
pub fn dni(text: &str) -> bool {
    split_letter(text).is_some_and(|(number, letter)| number.len() == 8 && control_letter(number) == Some(letter))
}

/// `X`, `Y` or `Z`, seven digits and a letter; the first letter counts as 0, 1 or 2 before the digits, the rest is
/// as for the DNI. Hyphens may stand around the digits.
pub fn nie(text: &str) -> bool {
    let mut signs = text.chars();
    let first = match signs.next() {
        Some('X') => '0',
        Some('Y') => '1',
        Some('Z') => '2',
        _ => return false,
    };
    let rest = signs.as_str();
    let rest = match (rest.strip_prefix('-'), text.len()) {
        (Some(rest), 11) => rest,
        (None, _) => rest,
        _ => return false,
    };
    split_letter(rest).is_some_and(|(number, letter)| {
        number.len() == 7 && control_letter(&format!("{first}{number}")) == Some(letter)
    })
}

fn split_letter(text: &str) -> Option<(&str, char)> {
    let letter = text.chars().next_back()?;
    let number = &text[..text.len() - letter.len_utf8()];
    Some((number.strip_suffix('-').unwrap_or(number), letter))
}

fn control_letter(number: &str) -> Option<char> {
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let rest = number.parse::<usize>().ok()? % 23;
    "TRWAGMYFPDXBNJZSQVHLCKE".chars().nth(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn a_nif_has_a_right_check_digit_and_an_assigned_beginning() {
        assert_format(
            nif,
            &["123456789", "501964843", "999999990"],
            &[
                "123456788",
                "501964842",
                "12345678",
                "1234567890",
                "000000000",
                "PT501964843",
                "412345678",
            ],
        );
    }

    #[test]
    fn a_dni_has_its_letter() {
        assert_format(
            dni,
            &["12345678Z", "12345678-Z", "00000000T"],
            &[
                "12345678A",
                "12345678z",
                "1234567L",
                "123456789Z",
                "12345678",
                "X2482300W",
                "12345678--Z",
            ],
        );
    }

    #[test]
    fn a_nie_has_its_letter() {
        assert_format(
            nie,
            &["X2482300W", "X-2482300-W", "Y1234567X", "Z1234567R"],
            &[
                "X2482300A",
                "A2482300W",
                "X248230W",
                "x2482300w",
                "12345678Z",
                "X-2482300W",
            ],
        );
    }
}
