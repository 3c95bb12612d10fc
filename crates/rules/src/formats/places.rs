//! Countries, phone numbers, and the identity number of Chile.

/// A country by two or three capital letters (ISO 3166-1 alpha-2, alpha-3).
pub fn iso_3166(text: &str) -> bool {
    match text.len() {
        2 => has_code(ALPHA_2, text),
        3 => has_code(ALPHA_3, text),
        _ => false,
    }
}

/// Whether a list of codes with blanks between them, sorted, holds the code.
pub(super) fn has_code(codes: &str, code: &str) -> bool {
    let bytes = code.as_bytes();
    let width = bytes.len() + 1;
    let count = (codes.len() + 1) / width;
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = (low + high) / 2;
        let found = &codes.as_bytes()[middle * width..middle * width + bytes.len()];
        match found.cmp(bytes) {
            std::cmp::Ordering::Equal => return true,
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
        }
    }
    false
}

/// `+`, a digit that is not 0, and six to fourteen more (ITU-T E.164); no blanks.
pub fn phone(text: &str) -> bool {
    text.strip_prefix('+').is_some_and(|number| {
        (7..=15).contains(&number.len()) && !number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

/// Up to eight digits and a check sign (Registro Civil): weights 2 to 7 from the right and again, modulo 11; 11 less
/// the rest, where 11 is 0 and 10 is `K`. Dots between thousands and the hyphen are usual and may be left out.
pub fn rut(text: &str) -> bool {
    if !text.is_ascii() || text.len() < 2 {
        return false;
    }
    let (number, check) = text.split_at(text.len() - 1);
    let number = number.strip_suffix('-').unwrap_or(number);
    let bare = match number.contains('.') {
        true => match grouped_by_thousands(number) {
            true => number.replace('.', ""),
            false => return false,
        },
        false => number.to_string(),
    };
    let Some(digits) = super::digits(&bare).filter(|digits| (1..=8).contains(&digits.len()) && digits[0] != 0) else {
        return false;
    };
    let sum: u32 = digits
        .iter()
        .rev()
        .zip((2..=7).cycle())
        .map(|(digit, weight)| digit * weight)
        .sum();
    let expected = match 11 - sum % 11 {
        11 => '0',
        10 => 'K',
        digit => char::from_digit(digit, 10).unwrap_or('0'),
    };
    check.eq_ignore_ascii_case(expected.encode_utf8(&mut [0; 4]))
}

fn grouped_by_thousands(number: &str) -> bool {
    number.split('.').enumerate().all(|(position, group)| match position {
        0 => (1..=3).contains(&group.len()),
        _ => group.len() == 3,
    })
}

const ALPHA_2: &str = "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS \
BT BV BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ \
FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT \
JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP \
MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE \
RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV \
TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW";

const ALPHA_3: &str = "ABW AFG AGO AIA ALA ALB AND ARE ARG ARM ASM ATA ATF ATG AUS AUT AZE BDI BEL BEN BES BFA BGD BGR \
BHR BHS BIH BLM BLR BLZ BMU BOL BRA BRB BRN BTN BVT BWA CAF CAN CCK CHE CHL CHN CIV CMR COD COG COK COL COM CPV CRI \
CUB CUW CXR CYM CYP CZE DEU DJI DMA DNK DOM DZA ECU EGY ERI ESH ESP EST ETH FIN FJI FLK FRA FRO FSM GAB GBR GEO GGY \
GHA GIB GIN GLP GMB GNB GNQ GRC GRD GRL GTM GUF GUM GUY HKG HMD HND HRV HTI HUN IDN IMN IND IOT IRL IRN IRQ ISL ISR \
ITA JAM JEY JOR JPN KAZ KEN KGZ KHM KIR KNA KOR KWT LAO LBN LBR LBY LCA LIE LKA LSO LTU LUX LVA MAC MAF MAR MCO MDA \
MDG MDV MEX MHL MKD MLI MLT MMR MNE MNG MNP MOZ MRT MSR MTQ MUS MWI MYS MYT NAM NCL NER NFK NGA NIC NIU NLD NOR NPL \
NRU NZL OMN PAK PAN PCN PER PHL PLW PNG POL PRI PRK PRT PRY PSE PYF QAT REU ROU RUS RWA SAU SDN SEN SGP SGS SHN SJM \
SLB SLE SLV SMR SOM SPM SRB SSD STP SUR SVK SVN SWE SWZ SXM SYC SYR TCA TCD TGO THA TJK TKL TKM TLS TON TTO TUN TUR \
TUV TWN TZA UGA UKR UMI URY USA UZB VAT VCT VEN VGB VIR VNM VUT WLF WSM YEM ZAF ZMB ZWE";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn countries_are_those_of_the_standard() {
        assert_eq!(ALPHA_2.split(' ').count(), 249);
        assert_eq!(ALPHA_3.split(' ').count(), 249);
        for code in ALPHA_2.split(' ').chain(ALPHA_3.split(' ')) {
            assert!(iso_3166(code), "{code}");
        }
        assert_format(
            iso_3166,
            &["BR", "PT", "ESP", "ZWE", "AD"],
            &["UK", "XX", "br", "Brazil", "XKX", "B", "A ", "D A"],
        );
    }

    #[test]
    fn phone_numbers_are_international() {
        assert_format(
            phone,
            &["+5511987654321", "+14155552671", "+351210000000"],
            &[
                "5511987654321",
                "+0123456789",
                "+55 11 98765-4321",
                "+123456",
                "+1234567890123456",
                "+",
            ],
        );
    }

    #[test]
    fn a_rut_has_a_right_check_sign() {
        assert_format(
            rut,
            &[
                "12.345.678-5",
                "12345678-5",
                "123456785",
                "10000013-K",
                "10000013-k",
                "6-K",
            ],
            &[
                "12.345.678-4",
                "12.345.6785.",
                "1234.5678-5",
                "12345678-",
                "-5",
                "0-0",
                "123456789-2",
            ],
        );
    }
}
