//! Accounts, cards, currencies.

use super::all_same;
use super::places::has_code;

/// Country, two check digits, and the length of the country (ISO 13616, SWIFT registry). The first four signs moved
/// to the end, letters counted from A = 10, the number modulo 97 is 1. Printed groups of four are taken too.
pub fn iban(text: &str) -> bool {
    let bare = match text.contains(' ') {
        true => {
            let groups: Vec<&str> = text.split(' ').collect();
            let (last, full) = groups.split_last().unwrap_or((&"", &[]));
            if !full.iter().all(|group| group.len() == 4) || !(1..=4).contains(&last.len()) {
                return false;
            }
            groups.concat()
        }
        false => text.to_string(),
    };
    let signs = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
    };
    if bare.len() < 15 || !signs(&bare) {
        return false;
    }
    let (head, rest) = bare.split_at(4);
    let (country, check) = head.split_at(2);
    let length = IBAN_LENGTHS
        .binary_search_by_key(&country, |(code, _)| code)
        .map(|at| IBAN_LENGTHS[at].1);
    // The computed check digits lie between 02 and 98; others could pass the sum as well.
    let check_fits = check.parse::<u8>().is_ok_and(|check| (2..=98).contains(&check));
    length == Ok(bare.len()) && check_fits && modulo_97(rest.bytes().chain(head.bytes())) == 1
}

fn modulo_97(signs: impl Iterator<Item = u8>) -> u32 {
    signs.fold(0, |rest, sign| match sign {
        b'0'..=b'9' => (rest * 10 + u32::from(sign - b'0')) % 97,
        _ => (rest * 100 + u32::from(sign.saturating_sub(b'A')) + 10) % 97,
    })
}

/// Twelve to nineteen digits (ISO/IEC 7812) with a right last one by Luhn: from the right, every second digit is
/// doubled and counted by its digits, and the sum is a multiple of ten. Groups may stand apart by single blanks or
/// hyphens.
pub fn credit_card(text: &str) -> bool {
    let sign = if text.contains('-') { '-' } else { ' ' };
    if text.split(sign).any(str::is_empty) {
        return false;
    }
    let Some(digits) = super::digits(&text.replace(sign, "")) else {
        return false;
    };
    (12..=19).contains(&digits.len()) && !all_same(&digits) && luhn(&digits)
}

fn luhn(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(position, digit)| match position % 2 {
            0 => *digit,
            _ => digit * 2 / 10 + digit * 2 % 10,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// A currency or fund in use, by three capital letters (ISO 4217, list one), with the codes that were replaced
/// less than two years ago.
pub fn iso_4217(text: &str) -> bool {
    text.len() == 3 && has_code(CURRENCIES, text)
}

const CURRENCIES: &str = "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BHD BIF BMD BND BOB BOV BRL BSD BTN \
BWP BYN BZD CAD CDF CHE CHF CHW CLF CLP CNY COP COU CRC CUP CVE CZK DJF DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL \
GHS GIP GMD GNF GTQ GYD HKD HNL HTG HUF IDR ILS INR IQD IRR ISK JMD JOD JPY KES KGS KHR KMF KPW KRW KWD KYD KZT LAK \
LBP LKR LRD LSL LYD MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD NGN NIO NOK NPR NZD OMR PAB PEN \
PGK PHP PKR PLN PYG QAR RON RSD RUB RWF SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TND \
TOP TRY TTD TWD TZS UAH UGX USD USN UYI UYU UYW UZS VED VES VND VUV WST XAD XAF XAG XAU XBA XBB XBC XBD XCD XCG XDR \
XOF XPD XPF XPT XSU XTS XUA XXX YER ZAR ZMW ZWG";

const IBAN_LENGTHS: &[(&str, usize)] = &[
    ("AD", 24),
    ("AE", 23),
    ("AL", 28),
    ("AT", 20),
    ("AZ", 28),
    ("BA", 20),
    ("BE", 16),
    ("BG", 22),
    ("BH", 22),
    ("BI", 27),
    ("BR", 29),
    ("BY", 28),
    ("CH", 21),
    ("CR", 22),
    ("CY", 28),
    ("CZ", 24),
    ("DE", 22),
    ("DJ", 27),
    ("DK", 18),
    ("DO", 28),
    ("EE", 20),
    ("EG", 29),
    ("ES", 24),
    ("FI", 18),
    ("FK", 18),
    ("FO", 18),
    ("FR", 27),
    ("GB", 22),
    ("GE", 22),
    ("GI", 23),
    ("GL", 18),
    ("GR", 27),
    ("GT", 28),
    ("HN", 28),
    ("HR", 21),
    ("HU", 28),
    ("IE", 22),
    ("IL", 23),
    ("IQ", 23),
    ("IS", 26),
    ("IT", 27),
    ("JO", 30),
    ("KW", 30),
    ("KZ", 20),
    ("LB", 28),
    ("LC", 32),
    ("LI", 21),
    ("LT", 20),
    ("LU", 20),
    ("LV", 21),
    ("LY", 25),
    ("MC", 27),
    ("MD", 24),
    ("ME", 22),
    ("MK", 19),
    ("MN", 20),
    ("MR", 27),
    ("MT", 31),
    ("MU", 30),
    ("NI", 28),
    ("NL", 18),
    ("NO", 15),
    ("OM", 23),
    ("PK", 24),
    ("PL", 28),
    ("PS", 29),
    ("PT", 25),
    ("QA", 29),
    ("RO", 24),
    ("RS", 22),
    ("RU", 33),
    ("SA", 24),
    ("SC", 31),
    ("SD", 18),
    ("SE", 24),
    ("SI", 19),
    ("SK", 24),
    ("SM", 27),
    ("SO", 23),
    ("ST", 25),
    ("SV", 28),
    ("TL", 23),
    ("TN", 24),
    ("TR", 26),
    ("UA", 29),
    ("VA", 22),
    ("VG", 24),
    ("XK", 20),
    ("YE", 30),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn accounts_have_the_length_and_the_sum() {
        assert!(IBAN_LENGTHS.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_format(
            iban,
            &[
                "DE89370400440532013000",
                "DE89 3704 0044 0532 0130 00",
                "GB82WEST12345698765432",
                "PT50000201231234567890154",
                "BR1800360305000010009795493C1",
                "NO9386011117947",
            ],
            &[
                "DE89370400440532013001",
                "DE8937040044053201300",
                "XX89370400440532013000",
                "de89370400440532013000",
                "DE89 37040044 0532013000",
                "DE00370400440532013000",
            ],
        );
    }

    #[test]
    fn cards_pass_luhn() {
        assert_format(
            credit_card,
            &[
                "4111111111111111",
                "4111 1111 1111 1111",
                "4111-1111-1111-1111",
                "378282246310005",
            ],
            &[
                "4111111111111112",
                "0000000000000000",
                "41111111111",
                "4111  1111 1111 1111",
                "4111-1111 1111-1111",
                "41111111111111111111",
            ],
        );
    }

    #[test]
    fn currencies_are_those_of_the_standard() {
        for code in CURRENCIES.split(' ') {
            assert!(iso_4217(code), "{code}");
        }
        assert_format(
            iso_4217,
            &["EUR", "BRL", "USD", "AED", "ZWG"],
            &["eur", "EURO", "DEM", "XYZ", "E R", "US"],
        );
    }
}
