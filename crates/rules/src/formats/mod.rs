//! Formats of text: pure functions that say whether a text *is* an e-mail address, a date, a tax number, not
//! only whether it looks like one (S19). Numbers with check digits may be written with the punctuation that
//! people print them with.

pub mod brazil;
pub mod commerce;
pub mod finance;
pub mod iberia;
pub mod network;
pub mod places;
pub mod plain;
pub mod time;

use comporta_contract::nearest::suggest;

/// A format by its name.
#[derive(Clone, Copy)]
pub struct Format {
    /// The word in documents.
    pub name: &'static str,
    /// What a text of the format is, with its article: "an e-mail address".
    pub noun: &'static str,
    /// Whether a text is of the format.
    pub test: fn(&str) -> bool,
}

impl std::fmt::Debug for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Format").field(&self.name).finish()
    }
}

impl PartialEq for Format {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Format {}

impl std::hash::Hash for Format {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

macro_rules! formats {
    ($($name:literal, $noun:literal, $test:path;)+) => {
        /// Every format, in the order of names.
        pub static FORMATS: &[Format] = &[$(Format { name: $name, noun: $noun, test: $test }),+];
    };
}

formats! {
    "boolean", "`true` or `false`", plain::boolean;
    "cep", "a Brazilian postal code", brazil::cep;
    "cnpj", "a CNPJ", brazil::cnpj;
    "cpf", "a CPF", brazil::cpf;
    "credit_card", "a card number", finance::credit_card;
    "date", "a date", time::date;
    "decimal", "a decimal number", plain::decimal;
    "dni", "a Spanish DNI", iberia::dni;
    "ean13", "an EAN-13", commerce::ean13;
    "email", "an e-mail address", network::email;
    "hostname", "a host name", network::hostname;
    "iban", "an IBAN", finance::iban;
    "integer", "a whole number", plain::integer;
    "ip", "an IP address", network::ip;
    "ipv4", "an IPv4 address", network::ipv4;
    "ipv6", "an IPv6 address", network::ipv6;
    "isbn", "an ISBN", commerce::isbn;
    "iso_3166", "a country code of ISO 3166-1", places::iso_3166;
    "iso_4217", "a currency code of ISO 4217", finance::iso_4217;
    "json", "JSON", plain::json;
    "mac", "a MAC address", network::mac;
    "nie", "a Spanish NIE", iberia::nie;
    "nif", "a Portuguese NIF", iberia::nif;
    "phone", "a phone number of E.164", places::phone;
    "rut", "a Chilean RUT", places::rut;
    "time", "a time of day", time::time;
    "timestamp", "a timestamp", time::timestamp;
    "url", "a URL", network::url;
    "uuid", "a UUID", plain::uuid;
}

/// The format of a name.
///
/// # Errors
/// There is none; the text is a hint with the nearest name.
pub fn find(name: &str) -> Result<Format, String> {
    FORMATS
        .iter()
        .find(|format| format.name == name)
        .copied()
        .ok_or_else(|| suggest(name, &names()))
}

/// The names of all formats.
pub fn names() -> Vec<&'static str> {
    FORMATS.iter().map(|format| format.name).collect()
}

/// The digits of a text that holds nothing else.
fn digits(text: &str) -> Option<Vec<u32>> {
    text.bytes()
        .map(|byte| byte.is_ascii_digit().then(|| u32::from(byte - b'0')))
        .collect()
}

/// Whether all are the same one.
fn all_same<T: PartialEq>(items: &[T]) -> bool {
    items.windows(2).all(|pair| pair[0] == pair[1])
}

/// Takes the printed punctuation out of a text, if every sign of it stands where `pattern` has it; `_` in the
/// pattern is any other character. A text without any of it is returned as it is.
fn unpunctuated(text: &str, pattern: &str) -> Option<String> {
    let signs = pattern.bytes().filter(|sign| *sign != b'_').count();
    if text.len() == pattern.len() - signs {
        return Some(text.to_string());
    }
    if text.len() != pattern.len() || !text.is_ascii() {
        return None;
    }
    let mut bare = String::with_capacity(text.len());
    for (found, sign) in text.chars().zip(pattern.chars()) {
        match sign {
            '_' => bare.push(found),
            sign if sign == found => {}
            _ => return None,
        }
    }
    Some(bare)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Asserts what is and what is not of a format.
    pub(crate) fn assert_format(test: fn(&str) -> bool, yes: &[&str], no: &[&str]) {
        for text in yes {
            assert!(test(text), "{text:?} should be one");
        }
        for text in no
            .iter()
            .chain(&["", " ", "\n", "é", "\u{0}", "１２３４５６７８９", "🙂🙂🙂🙂"])
        {
            assert!(!test(text), "{text:?} should be none");
        }
    }

    #[test]
    fn names_are_sorted_and_found_and_slips_get_a_hint() {
        let names = names();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(find("cpf").map(|format| format.name), Ok("cpf"));
        assert_eq!(find("emial"), Err("did you mean `email`?".to_string()));
    }

    #[test]
    fn no_format_panics_on_strange_text() {
        let long = "9".repeat(10_000);
        let nested = "[".repeat(100_000);
        let strange = [
            "",
            "-",
            "--",
            ".",
            "@",
            ":",
            "::",
            "á",
            "11\u{301}",
            "\u{feff}1",
            "٣٤٥",
            "A\u{0}B",
            "12345678é",
            "PTé",
            "XX-",
            "+",
            "K",
            "-K",
            "[]",
            "http://",
            "http://[",
            "http://:80",
            "999999999999999999999999",
            &long,
            &nested,
        ];
        for format in FORMATS {
            for text in strange {
                let _ = (format.test)(text);
            }
        }
    }
}
