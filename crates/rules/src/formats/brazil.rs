//! Numbers of Brazil: people (CPF), companies (CNPJ), postal codes (CEP).

use super::{all_same, unpunctuated};

/// Eleven digits, the last two computed from the others (Receita Federal): weights 10 to 2 for the first check
/// digit, 11 to 2 for the second, modulo 11. One digit eleven times passes the sum and is nobody.
pub fn cpf(text: &str) -> bool {
    let Some(digits) = unpunctuated(text, "___.___.___-__").and_then(|bare| super::digits(&bare)) else {
        return false;
    };
    digits.len() == 11
        && !all_same(&digits)
        && check_digit(&digits[..9], 11) == digits[9]
        && check_digit(&digits[..10], 11) == digits[10]
}

/// Twelve digits or capital letters and two check digits (Receita Federal; letters since July 2026, IN RFB
/// 2229/2024). A sign counts as its ASCII code less 48; weights run from 2 to 9 from the right and begin again,
/// modulo 11.
pub fn cnpj(text: &str) -> bool {
    let Some(bare) = unpunctuated(text, "__.___.___/____-__") else {
        return false;
    };
    let bytes = bare.as_bytes();
    let signs = |bytes: &[u8]| bytes.iter().all(|b| b.is_ascii_digit() || b.is_ascii_uppercase());
    if bytes.len() != 14 || !signs(&bytes[..12]) || !bytes[12..].iter().all(u8::is_ascii_digit) || all_same(bytes) {
        return false;
    }
    let values: Vec<u32> = bytes.iter().map(|byte| u32::from(byte - b'0')).collect();
    check_digit(&values[..12], 9) == values[12] && check_digit(&values[..13], 9) == values[13]
}

/// Weights 2, 3, … from the right, beginning again behind `last_weight`; 11 less the rest, where 10 and 11 are 0.
fn check_digit(values: &[u32], last_weight: u32) -> u32 {
    let weights = (2..=last_weight).cycle();
    let sum: u32 = values
        .iter()
        .rev()
        .zip(weights)
        .map(|(value, weight)| value * weight)
        .sum();
    match sum % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    }
}

/// Eight digits, with or without a hyphen before the last three (Correios); none begins below 01000.
pub fn cep(text: &str) -> bool {
    unpunctuated(text, "_____-___").is_some_and(|bare| {
        bare.bytes().all(|byte| byte.is_ascii_digit()) && bare.len() == 8 && bare.as_str() >= "01000000"
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::tests::assert_format;

    #[test]
    fn a_cpf_has_right_check_digits() {
        assert_format(
            cpf,
            &["52998224725", "529.982.247-25", "11144477735", "123.456.789-09"],
            &[
                "52998224724",
                "111.111.111-11",
                "00000000000",
                "529.982.24725",
                "5299822472",
                "529-982-247.25",
                "529982247255",
            ],
        );
    }

    #[test]
    fn a_cnpj_has_right_check_digits_with_and_without_letters() {
        assert_format(
            cnpj,
            &[
                "11222333000181",
                "11.222.333/0001-81",
                "12ABC34501DE35",
                "12.ABC.345/01DE-35",
            ],
            &[
                "11222333000180",
                "00000000000000",
                "11.222.333/000181",
                "12abc34501de35",
                "12ABC34501DE36",
                "12ABC34501DEAB",
                "1122233300018",
            ],
        );
    }

    #[test]
    fn a_cep_is_eight_digits() {
        assert_format(
            cep,
            &["01310-100", "01310100", "69900-000"],
            &["00000-000", "0131-0100", "013101000", "ABCDE-FGH"],
        );
    }
}
