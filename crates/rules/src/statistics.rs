//! What the rules on sums, extremes and order have in common: exact arithmetic on measured values, and NaN.

use crate::literals::{is_decimal, type_name, value_type};
use crate::measure::Moments;
use crate::rule::{BindError, Finding};
use crate::scope::{Column, Scope};
use arrow::datatypes::DataType;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, FromPrimitive, RoundingMode, ToPrimitive};
use chrono::{DateTime, Days, NaiveDate, NaiveDateTime, NaiveTime, SecondsFormat, TimeZone, Utc};
use chrono_tz::Tz;
use comporta_contract::NanPolicy;
use comporta_contract::threshold::Metric;
use datafusion_common::ScalarValue;
use std::num::NonZeroU64;

/// Digits kept of a number that has no end, such as a third.
const DIGITS: u64 = 30;

/// Digits an exact sum may have (S22).
const SUM_DIGITS_MAX: u64 = 76;

/// A column of numbers.
///
/// # Errors
/// It is not there, or holds something else.
pub(crate) fn numeric_column(scope: &Scope, name: &str, rule: &str) -> Result<Column, BindError> {
    let column = scope.column(name)?;
    let data_type = value_type(&column.data_type);
    if data_type.is_numeric() || *data_type == DataType::Null {
        return Ok(column);
    }
    Err(BindError::new(format!(
        "`{rule}` is for numbers, column `{}` is {}",
        column.name,
        type_name(data_type)
    )))
}

/// Whether values of the column are binary fractions.
pub(crate) fn is_binary(column: &Column) -> bool {
    value_type(&column.data_type).is_floating()
}

/// An exact number as a metric: of binary fractions the nearest one, since the digits behind it say nothing.
pub(crate) fn number(exact: BigDecimal, binary: bool) -> Metric {
    match exact.to_f64().filter(|float| binary && float.is_finite()) {
        Some(float) => Metric::Float(float),
        None => Metric::Number(exact.normalized()),
    }
}

/// A quotient: exact where it ends, else to 30 digits.
pub(crate) fn quotient(dividend: &BigDecimal, divisor: &BigDecimal) -> BigDecimal {
    let long = dividend / divisor;
    match &long * divisor == *dividend {
        true => long.normalized(),
        false => rounded(&long),
    }
}

fn rounded(number: &BigDecimal) -> BigDecimal {
    match NonZeroU64::new(DIGITS) {
        Some(digits) => number.with_precision_round(digits, RoundingMode::HalfUp).normalized(),
        None => number.clone(),
    }
}

/// The sum: `None` without values.
///
/// # Errors
/// It needs more than 76 digits.
pub(crate) fn sum(moments: &Moments) -> Result<Option<Metric>, String> {
    if moments.count == 0 {
        return Ok(None);
    }
    if let Some(float) = infinite(moments) {
        return Ok(Some(Metric::Float(float)));
    }
    if !moments.binary && moments.sum.digits() > SUM_DIGITS_MAX {
        return Err(format!("the sum needs more than {SUM_DIGITS_MAX} digits"));
    }
    Ok(Some(number(moments.sum.clone(), moments.binary)))
}

/// The average: exact sum by count; `None` without values.
pub(crate) fn average(moments: &Moments) -> Option<Metric> {
    if moments.count == 0 {
        return None;
    }
    match infinite(moments) {
        Some(float) => Some(Metric::Float(float)),
        None => Some(number(mean(moments), moments.binary)),
    }
}

/// The sample standard deviation; `None` for fewer than two values.
pub(crate) fn deviation(moments: &Moments) -> Option<Metric> {
    if moments.count < 2 {
        return None;
    }
    if infinite(moments).is_some() {
        return Some(Metric::Float(f64::NAN));
    }
    Some(number(exact_deviation(moments)?, moments.binary))
}

/// Average without infinite values; only for a count above zero.
pub(crate) fn mean(moments: &Moments) -> BigDecimal {
    quotient(&moments.sum, &BigDecimal::from(moments.count))
}

/// √((n·Σx² − (Σx)²) / (n·(n−1))), from exact sums.
pub(crate) fn exact_deviation(moments: &Moments) -> Option<BigDecimal> {
    let count = BigDecimal::from(moments.count);
    let spread = &count * &moments.sum_squares - moments.sum.square();
    let pairs = &count * (&count - BigDecimal::from(1));
    let variance = &spread / &pairs;
    match variance <= BigDecimal::from(0) {
        true => Some(BigDecimal::from(0)),
        false => variance.sqrt().map(|root| rounded(&root)),
    }
}

/// What sums are when some values are infinite.
fn infinite(moments: &Moments) -> Option<f64> {
    match moments.infinite {
        (0, 0) => None,
        (_, 0) => Some(f64::INFINITY),
        (0, _) => Some(f64::NEG_INFINITY),
        _ => Some(f64::NAN),
    }
}

/// The finding with what NaN means to it (S12): a number beside the others, or a failure.
pub(crate) fn with_nan(mut finding: Finding, column: &str, nan_count: u64, policy: Option<NanPolicy>) -> Finding {
    if nan_count == 0 {
        return finding;
    }
    finding.details.insert("nan_count".into(), nan_count.into());
    if policy == Some(NanPolicy::Fail) {
        let values = if nan_count == 1 { "value" } else { "values" };
        finding.broken = Some(true);
        finding.failed_count = nan_count;
        finding.message = format!("`{column}` has {nan_count} {values} NaN");
    }
    finding
}

/// A finding without a value (S3).
pub(crate) fn no_data(column: &str) -> Finding {
    Finding {
        message: format!("`{column}` has no values"),
        ..Finding::default()
    }
}

/// The value at a share (0 to 1) of the ordered values, by linear interpolation between the two ranks around
/// `(n − 1) · share`, counted from 0 (definition 7 in Hyndman and Fan, "Sample quantiles in statistical
/// packages", 1996; what NumPy, R and spreadsheets give unless told otherwise).
pub(crate) fn quantile(ranked: &dyn crate::measure::Ranked, share: &BigDecimal) -> Option<BigDecimal> {
    let last = ranked.count().checked_sub(1)?;
    let place = share * BigDecimal::from(last);
    let rank = place.with_scale_round(0, RoundingMode::Floor);
    let fraction = &place - &rank;
    let rank = rank.to_u64()?.min(last);
    let low = ranked.at(rank)?;
    if fraction == BigDecimal::from(0) || rank == last {
        return Some(low);
    }
    let high = ranked.at(rank + 1)?;
    Some(&low + (&high - &low) * fraction)
}

/// A smallest or largest value as a metric; `None` for types without order.
pub(crate) fn value_metric(value: &ScalarValue, timezone: Tz) -> Option<Metric> {
    if let Some(text) = value.try_as_str().flatten() {
        return Some(Metric::Text(text.to_string()));
    }
    if let Some((nanos, text)) = instant(value, timezone) {
        return Some(Metric::Instant { nanos, text });
    }
    exact_number(value)
}

/// A date or timestamp in nanoseconds since 1970 UTC, with its text. Dates are the start of their day;
/// timestamps without zone are read in `timezone`.
pub(crate) fn instant(value: &ScalarValue, timezone: Tz) -> Option<(i128, String)> {
    if let ScalarValue::Dictionary(_, inner) = value {
        return instant(inner, timezone);
    }
    if let Some(day) = day_of(value) {
        let nanos = nanoseconds(in_zone(day.and_time(NaiveTime::MIN), timezone));
        return Some((nanos, day.to_string()));
    }
    let (nanos, zoned) = match value {
        ScalarValue::TimestampSecond(Some(v), zone) => (i128::from(*v) * 1_000_000_000, zone.is_some()),
        ScalarValue::TimestampMillisecond(Some(v), zone) => (i128::from(*v) * 1_000_000, zone.is_some()),
        ScalarValue::TimestampMicrosecond(Some(v), zone) => (i128::from(*v) * 1_000, zone.is_some()),
        ScalarValue::TimestampNanosecond(Some(v), zone) => (i128::from(*v), zone.is_some()),
        _ => return None,
    };
    let at = date_time(nanos)?;
    Some(match zoned {
        true => (nanos, at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
        false => {
            let local = at.naive_utc();
            let text = local.format("%Y-%m-%dT%H:%M:%S%.f").to_string();
            (nanoseconds(in_zone(local, timezone)), text)
        }
    })
}

fn day_of(value: &ScalarValue) -> Option<NaiveDate> {
    let days = match value {
        ScalarValue::Date32(Some(days)) => i64::from(*days),
        ScalarValue::Date64(Some(millis)) => millis.div_euclid(86_400_000),
        _ => return None,
    };
    date(days)
}

/// The date so many days after 1970-01-01.
pub(crate) fn date(days: i64) -> Option<NaiveDate> {
    let epoch = NaiveDate::default();
    match u64::try_from(days) {
        Ok(days) => epoch.checked_add_days(Days::new(days)),
        Err(_) => epoch.checked_sub_days(Days::new(days.unsigned_abs())),
    }
}

/// The instant of a local time. One that a change of the clocks leaves out is the instant of the change as
/// the clock before it would have shown it; one that comes twice is the earlier.
pub(crate) fn in_zone(local: NaiveDateTime, timezone: Tz) -> DateTime<Utc> {
    if let Some(at) = timezone.from_local_datetime(&local).earliest() {
        return at.with_timezone(&Utc);
    }
    let before = local.checked_sub_signed(chrono::Duration::hours(3)).unwrap_or(local);
    match timezone.from_local_datetime(&before).earliest() {
        Some(at) => at.with_timezone(&Utc) + chrono::Duration::hours(3),
        None => local.and_utc(),
    }
}

pub(crate) fn nanoseconds(at: DateTime<Utc>) -> i128 {
    i128::from(at.timestamp()) * 1_000_000_000 + i128::from(at.timestamp_subsec_nanos())
}

pub(crate) fn date_time(nanos: i128) -> Option<DateTime<Utc>> {
    let seconds = i64::try_from(nanos.div_euclid(1_000_000_000)).ok()?;
    let rest = u32::try_from(nanos.rem_euclid(1_000_000_000)).ok()?;
    DateTime::from_timestamp(seconds, rest)
}

fn exact_number(value: &ScalarValue) -> Option<Metric> {
    let metric = |unscaled: BigInt, scale: i8| Metric::Number(BigDecimal::new(unscaled, i64::from(scale)).normalized());
    match value {
        ScalarValue::Dictionary(_, inner) => exact_number(inner),
        ScalarValue::Float64(Some(float)) => Some(Metric::Float(*float)),
        // The digits that a narrow float is written with, not those of the double it is stored in.
        ScalarValue::Float32(Some(float)) => match float.is_finite() {
            true => float.to_string().parse().ok().map(Metric::Float),
            false => Some(Metric::Float(f64::from(*float))),
        },
        ScalarValue::Float16(Some(float)) => Some(Metric::Float(float.to_f64()?)),
        ScalarValue::Decimal32(Some(v), _, scale) => Some(metric(BigInt::from(*v), *scale)),
        ScalarValue::Decimal64(Some(v), _, scale) => Some(metric(BigInt::from(*v), *scale)),
        ScalarValue::Decimal128(Some(v), _, scale) => Some(metric(BigInt::from(*v), *scale)),
        ScalarValue::Decimal256(Some(v), _, scale) => Some(metric(v.to_string().parse().ok()?, *scale)),
        ScalarValue::UInt64(Some(v)) => Some(Metric::Number(BigDecimal::from(*v))),
        other if other.data_type().is_integer() => match other.cast_to(&DataType::Int64) {
            Ok(ScalarValue::Int64(Some(v))) => BigDecimal::from_i64(v).map(Metric::Number),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a type has the smallest and largest value that `min` and `max` speak of.
pub(crate) fn has_extremes(data_type: &DataType) -> bool {
    let data_type = value_type(data_type);
    data_type.is_numeric()
        || is_decimal(data_type)
        || matches!(
            data_type,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Date32
                | DataType::Date64
                | DataType::Timestamp(..)
                | DataType::Null
        )
}

/// Whether values of the type are local times whose zone the document gives.
pub(crate) fn is_local(data_type: &DataType) -> bool {
    matches!(
        value_type(data_type),
        DataType::Timestamp(_, None) | DataType::Date32 | DataType::Date64
    )
}

/// The judgement of `min` and `max`.
#[derive(Debug, Clone)]
pub(crate) struct Extreme {
    column: String,
    timezone: Tz,
    nan: Option<NanPolicy>,
    /// Whether the document's time zone was needed to read the values.
    assumed_zone: bool,
}

impl Extreme {
    /// For a column whose type has an order that people mean.
    ///
    /// # Errors
    /// It has none.
    pub(crate) fn of(column: &Column, rule: &str, scope: &Scope) -> Result<Self, BindError> {
        if !has_extremes(&column.data_type) {
            return Err(BindError::new(format!(
                "`{rule}` is for numbers, dates, timestamps and text, column `{}` is {}",
                column.name,
                type_name(&column.data_type)
            )));
        }
        Ok(Extreme {
            column: column.name.clone(),
            timezone: scope.timezone,
            nan: scope.nan,
            assumed_zone: matches!(value_type(&column.data_type), DataType::Timestamp(_, None)),
        })
    }

    /// What a smallest or largest value says.
    pub(crate) fn judge(&self, which: &str, value: Option<&ScalarValue>, nan_count: u64) -> Finding {
        let mut finding = match value.map(|value| (value, value_metric(value, self.timezone))) {
            None => no_data(&self.column),
            Some((value, None)) => {
                return Finding::error(format!(
                    "`{}`: {value} is out of the range of numbers and dates",
                    self.column
                ));
            }
            Some((_, Some(metric))) => Finding {
                message: format!("the {which} `{}` is {metric}", self.column),
                metric: Some(metric),
                ..Finding::default()
            },
        };
        if self.assumed_zone && finding.metric.is_some() {
            finding
                .details
                .insert("assumed_timezone".into(), self.timezone.name().into());
        }
        with_nan(finding, &self.column, nan_count, self.nan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instant_of(value: ScalarValue, timezone: Tz) -> (i128, String) {
        instant(&value, timezone).unwrap()
    }

    #[test]
    fn quotients_are_exact_where_they_end() {
        let number = |text: &str| text.parse::<BigDecimal>().unwrap();
        assert_eq!(quotient(&number("1"), &number("8")), number("0.125"));
        assert_eq!(
            quotient(&number("2"), &number("3")).to_string(),
            "0.666666666666666666666666666667"
        );
        let long = number("12345678901234567890123456789012345678.90");
        assert_eq!(
            quotient(&long, &number("1")),
            long,
            "no digit of an exact value is cut off"
        );
    }

    #[test]
    fn dates_and_local_times_are_read_in_the_zone_of_the_document() {
        let midnight = ScalarValue::Date32(Some(20_455));
        assert_eq!(
            instant_of(midnight.clone(), Tz::UTC),
            (1_767_312_000_000_000_000, "2026-01-02".into())
        );
        let lisbon_less_hours = instant_of(midnight, Tz::America__Sao_Paulo).0 - 1_767_312_000_000_000_000;
        assert_eq!(lisbon_less_hours, 3 * 3_600_000_000_000);
        let local = ScalarValue::TimestampMillisecond(Some(1_767_312_000_500), None);
        assert_eq!(instant_of(local, Tz::UTC).1, "2026-01-02T00:00:00.500");
        let zoned = ScalarValue::TimestampSecond(Some(1_767_312_000), Some("+01:00".into()));
        assert_eq!(
            instant_of(zoned, Tz::America__Sao_Paulo),
            (1_767_312_000_000_000_000, "2026-01-02T00:00:00Z".into())
        );
    }

    #[test]
    fn a_local_time_that_the_clocks_leave_out_is_an_instant_all_the_same() {
        let left_out = NaiveDate::from_ymd_opt(2024, 3, 31)
            .unwrap()
            .and_hms_opt(2, 30, 0)
            .unwrap();
        assert_eq!(
            in_zone(left_out, Tz::Europe__Berlin).to_rfc3339(),
            "2024-03-31T01:30:00+00:00"
        );
    }

    #[test]
    fn extremes_of_decimals_and_floats_are_the_numbers_as_written() {
        let decimal = ScalarValue::Decimal128(Some(-1050), 10, 2);
        assert_eq!(
            value_metric(&decimal, Tz::UTC),
            Some(Metric::Number("-10.5".parse().unwrap()))
        );
        assert_eq!(
            value_metric(&ScalarValue::Float32(Some(0.1)), Tz::UTC),
            Some(Metric::Float(0.1))
        );
        assert_eq!(
            value_metric(&ScalarValue::UInt64(Some(u64::MAX)), Tz::UTC),
            Some(Metric::Number(BigDecimal::from(u64::MAX)))
        );
        assert_eq!(
            value_metric(&ScalarValue::Utf8View(Some("x".into())), Tz::UTC),
            Some(Metric::Text("x".into()))
        );
    }
}

/// Values in order, for tests of what is judged by them.
#[cfg(test)]
pub(crate) mod fixtures {
    use crate::measure::Ranked;
    use bigdecimal::BigDecimal;

    #[derive(Debug)]
    pub(crate) struct Values(Vec<BigDecimal>);

    impl Values {
        pub(crate) fn of(values: &[i64]) -> Self {
            let mut values: Vec<BigDecimal> = values.iter().map(|value| BigDecimal::from(*value)).collect();
            values.sort();
            Values(values)
        }
    }

    impl Ranked for Values {
        fn count(&self) -> u64 {
            self.0.len() as u64
        }
        fn at(&self, rank: u64) -> Option<BigDecimal> {
            self.0.get(rank as usize).cloned()
        }
        fn count_outside(&self, low: &BigDecimal, high: &BigDecimal) -> u64 {
            self.0.iter().filter(|value| *value < low || *value > high).count() as u64
        }
        fn for_each_distinct(&self, visit: &mut dyn FnMut(&BigDecimal)) {
            let mut values = self.0.clone();
            values.dedup();
            values.iter().for_each(visit);
        }
        fn nan_count(&self) -> u64 {
            0
        }
    }
}
