//! Text cells into typed columns: exact or not at all.

use super::form::Form;
use arrow::array::*;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, TimeUnit, i256};
use comporta_engine::chunk::BadCells;
use comporta_engine::{Error, Result};
use std::sync::Arc;

/// A column that is being filled cell by cell.
pub struct Cells {
    values: Values,
    rows: usize,
    bad: Vec<(usize, String)>,
}

enum Values {
    Text(StringBuilder),
    Binary(BinaryBuilder),
    Boolean(BooleanBuilder),
    Int8(Int8Builder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    UInt8(UInt8Builder),
    UInt16(UInt16Builder),
    UInt32(UInt32Builder),
    UInt64(UInt64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal128(Decimal128Builder, u8, i8),
    Decimal256(Decimal256Builder, u8, i8),
    Date(Date32Builder),
    Timestamp(TimestampMicrosecondBuilder, bool),
    Time(Time64MicrosecondBuilder),
}

impl Cells {
    /// An empty column of a type.
    ///
    /// # Errors
    /// The type cannot be read from a cell of text.
    pub fn new(data_type: &DataType) -> Result<Self> {
        let values = match data_type {
            DataType::Utf8 => Values::Text(StringBuilder::new()),
            DataType::Binary => Values::Binary(BinaryBuilder::new()),
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::Int8 => Values::Int8(Int8Builder::new()),
            DataType::Int16 => Values::Int16(Int16Builder::new()),
            DataType::Int32 => Values::Int32(Int32Builder::new()),
            DataType::Int64 => Values::Int64(Int64Builder::new()),
            DataType::UInt8 => Values::UInt8(UInt8Builder::new()),
            DataType::UInt16 => Values::UInt16(UInt16Builder::new()),
            DataType::UInt32 => Values::UInt32(UInt32Builder::new()),
            DataType::UInt64 => Values::UInt64(UInt64Builder::new()),
            DataType::Float32 => Values::Float32(Float32Builder::new()),
            DataType::Float64 => Values::Float64(Float64Builder::new()),
            DataType::Decimal128(precision, scale) => Values::Decimal128(
                Decimal128Builder::new().with_data_type(data_type.clone()),
                *precision,
                *scale,
            ),
            DataType::Decimal256(precision, scale) => Values::Decimal256(
                Decimal256Builder::new().with_data_type(data_type.clone()),
                *precision,
                *scale,
            ),
            DataType::Date32 => Values::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, zone) => Values::Timestamp(
                TimestampMicrosecondBuilder::new().with_data_type(data_type.clone()),
                zone.is_some(),
            ),
            DataType::Time64(TimeUnit::Microsecond) => Values::Time(Time64MicrosecondBuilder::new()),
            other => {
                let name = comporta_rules::literals::type_name(other);
                return Err(Error::invalid(format!("{name} cannot be read from a cell of text"))
                    .hint("declare the column as `string`"));
            }
        };
        Ok(Cells {
            values,
            rows: 0,
            bad: Vec::new(),
        })
    }

    /// Adds NULL.
    pub fn null(&mut self) {
        self.rows += 1;
        self.put(None, &mut |_| {});
    }

    /// Adds a cell; what does not parse is NULL and remembered.
    pub fn cell(&mut self, text: &str, form: &Form) {
        if !self.try_cell(text, form) {
            self.bad.push((self.rows, text.to_string()));
        }
        self.rows += 1;
    }

    /// Adds NULL for something that is no cell of this type at all, with its text.
    pub fn misfit(&mut self, text: String) {
        self.bad.push((self.rows, text));
        self.null();
    }

    fn try_cell(&mut self, text: &str, form: &Form) -> bool {
        let mut parsed = false;
        self.put(Some((text, form)), &mut |ok| parsed = ok);
        parsed
    }

    fn put(&mut self, cell: Option<(&str, &Form)>, told: &mut dyn FnMut(bool)) {
        macro_rules! put {
            ($builder:expr, $parse:expr) => {{
                let value = cell.and_then($parse);
                told(value.is_some());
                $builder.append_option(value);
            }};
        }
        fn trimmed<'t>((text, form): (&'t str, &'t Form)) -> (&'t str, &'t Form) {
            (text.trim_ascii(), form)
        }
        fn whole<T: std::str::FromStr>(cell: (&str, &Form)) -> Option<T> {
            let (text, form) = trimmed(cell);
            form.number(text)?.parse().ok()
        }
        match &mut self.values {
            Values::Text(builder) => put!(builder, |(text, _)| Some(text)),
            Values::Binary(builder) => put!(builder, |(text, _): (&str, _)| Some(text.as_bytes().to_vec())),
            Values::Boolean(builder) => put!(builder, |(text, _)| boolean(text.trim_ascii())),
            Values::Int8(builder) => put!(builder, whole),
            Values::Int16(builder) => put!(builder, whole),
            Values::Int32(builder) => put!(builder, whole),
            Values::Int64(builder) => put!(builder, whole),
            Values::UInt8(builder) => put!(builder, whole),
            Values::UInt16(builder) => put!(builder, whole),
            Values::UInt32(builder) => put!(builder, whole),
            Values::UInt64(builder) => put!(builder, whole),
            Values::Float32(builder) => put!(builder, |cell| {
                // Too large for the type is not infinity.
                float(cell)
                    .map(|wide| wide as f32)
                    .filter(|narrow| narrow.is_finite() || !float(cell).is_some_and(f64::is_finite))
            }),
            Values::Float64(builder) => put!(builder, float),
            Values::Decimal128(builder, precision, scale) => put!(builder, |cell| {
                let (text, form) = trimmed(cell);
                unscaled(&form.number(text)?, *precision, *scale)?.parse::<i128>().ok()
            }),
            Values::Decimal256(builder, precision, scale) => put!(builder, |cell| {
                let (text, form) = trimmed(cell);
                i256::from_string(&unscaled(&form.number(text)?, *precision, *scale)?)
            }),
            Values::Date(builder) => put!(builder, |cell| {
                let (text, form) = trimmed(cell);
                form.day(text)
            }),
            Values::Timestamp(builder, zoned) => put!(builder, |cell| {
                let (text, form) = trimmed(cell);
                form.micros(text, *zoned)
            }),
            Values::Time(builder) => put!(builder, |cell| {
                let (text, form) = trimmed(cell);
                form.time(text)
            }),
        }
    }

    /// The column so far; the next starts empty.
    pub fn finish(&mut self, column: usize) -> (ArrayRef, Option<BadCells>) {
        let array: ArrayRef = match &mut self.values {
            Values::Text(builder) => Arc::new(builder.finish()),
            Values::Binary(builder) => Arc::new(builder.finish()),
            Values::Boolean(builder) => Arc::new(builder.finish()),
            Values::Int8(builder) => Arc::new(builder.finish()),
            Values::Int16(builder) => Arc::new(builder.finish()),
            Values::Int32(builder) => Arc::new(builder.finish()),
            Values::Int64(builder) => Arc::new(builder.finish()),
            Values::UInt8(builder) => Arc::new(builder.finish()),
            Values::UInt16(builder) => Arc::new(builder.finish()),
            Values::UInt32(builder) => Arc::new(builder.finish()),
            Values::UInt64(builder) => Arc::new(builder.finish()),
            Values::Float32(builder) => Arc::new(builder.finish()),
            Values::Float64(builder) => Arc::new(builder.finish()),
            Values::Decimal128(builder, ..) => Arc::new(builder.finish()),
            Values::Decimal256(builder, ..) => Arc::new(builder.finish()),
            Values::Date(builder) => Arc::new(builder.finish()),
            Values::Timestamp(builder, _) => Arc::new(builder.finish()),
            Values::Time(builder) => Arc::new(builder.finish()),
        };
        let rows = std::mem::take(&mut self.rows);
        let bad = marks(rows, std::mem::take(&mut self.bad));
        (array, bad.map(|(bad, raw)| BadCells { column, bad, raw }))
    }
}

/// Bits and texts of the rows that are bad, ascending; `None` if none is.
pub fn marks(rows: usize, bad: Vec<(usize, String)>) -> Option<(BooleanBuffer, StringArray)> {
    if bad.is_empty() {
        return None;
    }
    let mut bits = BooleanBufferBuilder::new(rows);
    bits.append_n(rows, false);
    let mut raw = StringBuilder::new();
    let mut next = 0;
    for (row, text) in bad {
        bits.set_bit(row, true);
        raw.append_nulls(row - next);
        raw.append_value(text);
        next = row + 1;
    }
    raw.append_nulls(rows - next);
    Some((bits.finish(), raw.finish()))
}

fn boolean(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| text.eq_ignore_ascii_case(word));
    match () {
        () if is(&["true", "t", "yes", "y", "1"]) => Some(true),
        () if is(&["false", "f", "no", "n", "0"]) => Some(false),
        () => None,
    }
}

/// A binary fraction; what is too large is no number rather than infinity.
fn float((text, form): (&str, &Form)) -> Option<f64> {
    let text = text.trim_ascii();
    let number: f64 = form.number(text)?.parse().ok()?;
    (!number.is_infinite() || !text.bytes().any(|byte| byte.is_ascii_digit())).then_some(number)
}

/// The digits of a decimal at a scale, exactly; `None` if it is no number, is too large, or has more digits
/// behind the point than the scale, other than zeros.
fn unscaled(text: &str, precision: u8, scale: i8) -> Option<String> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (
            &text[..at],
            text[at + 1..].parse::<i64>().ok().filter(|e| e.abs() <= 200)?,
        ),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + fraction.len() == 0 || !whole.bytes().chain(fraction.bytes()).all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let mut digits = format!("{whole}{fraction}");
    // How many digits stand behind the point must become exactly `scale`.
    let behind = i64::try_from(fraction.len()).ok()? - exponent;
    let shift = i64::from(scale) - behind;
    let all_zero = digits.bytes().all(|byte| byte == b'0');
    if all_zero {
        return Some("0".into());
    }
    if shift >= 0 {
        digits.extend(std::iter::repeat_n(
            '0',
            usize::try_from(shift).ok().filter(|more| *more < 600)?,
        ));
    } else {
        let cut = usize::try_from(-shift).ok()?;
        let keep = digits.len().checked_sub(cut)?;
        if digits[keep..].bytes().any(|byte| byte != b'0') {
            return None;
        }
        digits.truncate(keep);
    }
    let digits = digits.trim_start_matches('0');
    if digits.len() > usize::from(precision) {
        return None;
    }
    Some(format!("{}{digits}", if negative { "-" } else { "" }))
}

/// What the cells of a column look like so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guess {
    seen: u8,
}

const WHOLE: u8 = 1;
const BIG: u8 = 2;
const FRACTION: u8 = 4;
const TRUTH: u8 = 8;
const DAY: u8 = 16;
const LOCAL: u8 = 32;
const ZONED: u8 = 64;
const TEXT: u8 = 128;

impl Guess {
    /// Adds what a cell that is not NULL looks like.
    pub fn see(&mut self, text: &str, form: &Form) {
        if self.seen & TEXT == 0 {
            self.seen |= look(text, form);
        }
    }

    /// Adds a cell that is marked as text: it may be a day or an instant, and is never a number.
    pub fn see_text(&mut self, text: &str, form: &Form) {
        if self.seen & TEXT == 0 {
            self.seen |= match look(text, form) {
                time @ (DAY | LOCAL | ZONED) => time,
                _ => TEXT,
            };
        }
    }

    /// Adds what another part of the input looks like.
    pub fn and(&mut self, other: Guess) {
        self.seen |= other.seen;
    }

    /// The type that holds every cell without losing anything; text if there is no other, or no cell.
    pub fn data_type(self) -> DataType {
        match self.seen {
            WHOLE | BIG | 3 => DataType::Int64,
            FRACTION | 5 => DataType::Float64,
            TRUTH => DataType::Boolean,
            DAY => DataType::Date32,
            LOCAL => DataType::Timestamp(TimeUnit::Microsecond, None),
            ZONED => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ => DataType::Utf8,
        }
    }
}

fn look(text: &str, form: &Form) -> u8 {
    if text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false") {
        return TRUTH;
    }
    if text.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        && let Some(kind) = form.number(text).and_then(|number| look_number(&number))
    {
        return kind;
    }
    if text.trim_ascii() != text {
        return TEXT;
    }
    if form.day(text).is_some() {
        return DAY;
    }
    match form.moment(text) {
        Some((_, None)) => LOCAL,
        Some((_, Some(_))) => ZONED,
        None => TEXT,
    }
}

/// A number as machines write it: no leading zeros, no plus. What would lose digits is none.
fn look_number(text: &str) -> Option<u8> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    if whole == 0 || (whole > 1 && digits.starts_with('0')) {
        return None;
    }
    if whole == digits.len() {
        let number: i64 = text.parse().ok()?;
        return Some(if number.unsigned_abs() > 1 << 53 { BIG } else { WHOLE });
    }
    let rest = &digits[whole..];
    let well_formed = match rest.strip_prefix('.') {
        Some(fraction) => fraction.starts_with(|c: char| c.is_ascii_digit()),
        None => rest.starts_with(['e', 'E']),
    };
    (well_formed && text.parse::<f64>().is_ok_and(f64::is_finite)).then_some(FRACTION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono_tz::Tz;
    use comporta_contract::source::SourceSpec;

    fn form() -> Form {
        Form::of(&SourceSpec::default(), Tz::UTC).unwrap()
    }

    fn guess(cells: &[&str]) -> DataType {
        let mut guess = Guess::default();
        cells.iter().for_each(|cell| guess.see(cell, &form()));
        guess.data_type()
    }

    #[test]
    fn types_are_guessed_only_where_nothing_is_lost() {
        assert_eq!(guess(&["1", "-20", "9223372036854775807"]), DataType::Int64);
        assert_eq!(guess(&["1", "2.5", "1e3"]), DataType::Float64);
        assert_eq!(guess(&["9007199254740993", "2.5"]), DataType::Utf8);
        assert_eq!(guess(&["true", "FALSE"]), DataType::Boolean);
        assert_eq!(guess(&["2024-02-29"]), DataType::Date32);
        assert_eq!(
            guess(&["2024-02-29T10:00:00"]),
            DataType::Timestamp(TimeUnit::Microsecond, None)
        );
        assert_eq!(
            guess(&["2024-02-29T10:00:00Z"]),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
        );
        for text in [
            &["007"][..],
            &["+1"],
            &[" 1"],
            &["1", "x"],
            &["2024-02-30"],
            &["1e999"],
            &["true", "1"],
            &[],
        ] {
            assert_eq!(guess(text), DataType::Utf8, "{text:?}");
        }
        assert_eq!(guess(&["99999999999999999999"]), DataType::Utf8);
        assert_eq!(guess(&["2024-02-29T10:00:00Z", "2024-02-29T10:00:00"]), DataType::Utf8);
    }

    #[test]
    fn decimals_are_exact_or_bad() {
        assert_eq!(unscaled("12.5", 12, 2).as_deref(), Some("1250"));
        assert_eq!(unscaled("-0012.500", 12, 2).as_deref(), Some("-1250"));
        assert_eq!(unscaled("1.2e3", 12, 2).as_deref(), Some("120000"));
        assert_eq!(unscaled("1200", 4, -2).as_deref(), Some("12"));
        for broken in ["12.505", "99999999999", "", ".", "1.2.3", "x", "1e9999", "--1"] {
            assert_eq!(unscaled(broken, 12, 2), None, "{broken}");
        }
    }

    #[test]
    fn what_does_not_parse_is_null_and_keeps_its_text() {
        let mut cells = Cells::new(&DataType::Int8).unwrap();
        for text in ["1", "300", "1.0"] {
            cells.cell(text, &form());
        }
        cells.null();
        let (array, bad) = cells.finish(4);
        let bad = bad.unwrap();
        assert_eq!((array.null_count(), array.len(), bad.column), (3, 4, 4));
        assert_eq!(bad.bad.iter().collect::<Vec<_>>(), [false, true, true, false]);
        assert_eq!(
            (bad.raw.value(1), bad.raw.value(2), bad.raw.is_null(3)),
            ("300", "1.0", true)
        );
        assert!(cells.finish(4).1.is_none());
    }
}
