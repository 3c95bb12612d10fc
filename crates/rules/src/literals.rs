//! Literals against columns: exact, typed by the column, never coerced (S15, S16).

use crate::rule::BindError;
use crate::scope::{Column, Scope, is_nan};
use arrow::datatypes::{DataType, TimeUnit};
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, RoundingMode, ToPrimitive};
use chrono::{DateTime, Duration, NaiveDate, NaiveDateTime, NaiveTime, TimeZone, Utc};
use comporta_contract::Literal;
use comporta_contract::threshold::Operator;
use datafusion_common::ScalarValue;
use datafusion_expr::{Expr, lit};

/// A predicate that compares a column with a literal: TRUE, FALSE, or NULL for a null. NaN satisfies
/// no bound.
///
/// # Errors
/// The literal is of another type than the column.
pub fn compare(column: &Column, operator: Operator, literal: &Literal, scope: &Scope) -> Result<Expr, BindError> {
    let data_type = value_type(&column.data_type);
    if data_type.is_numeric() {
        let Literal::Number(bound) = literal else {
            return Err(mismatch(column, literal));
        };
        return numeric(column, data_type, operator, bound);
    }
    match (data_type, literal) {
        (DataType::Date32 | DataType::Date64, Literal::Text(text)) => date(column, operator, text, scope),
        (DataType::Timestamp(..), Literal::Text(text)) => timestamp(column, operator, text, scope),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, Literal::Text(text)) => {
            Ok(apply(column.expr.clone(), operator, text_scalar(data_type, text)))
        }
        (DataType::Boolean, Literal::Bool(value)) => {
            Ok(apply(column.expr.clone(), operator, ScalarValue::Boolean(Some(*value))))
        }
        (DataType::Null, _) => Ok(lit(ScalarValue::Boolean(None))),
        _ => Err(mismatch(column, literal)),
    }
}

/// A member of a list as a value of the column's type; `None` where no value of the type can equal it
/// (300 for an int8).
///
/// # Errors
/// The literal is of another type (`"1"` is no integer, `1` is no text, `1.5` is no integer).
pub fn member(data_type: &DataType, literal: &Literal, scope: &Scope) -> Result<Option<ScalarValue>, BindError> {
    let data_type = value_type(data_type);
    let wrong = || Err(type_mismatch(data_type, literal));
    match (data_type, literal) {
        (ty, Literal::Number(number)) if ty.is_integer() => {
            if !number.is_integer() {
                return wrong();
            }
            Ok(integer_scalar(ty, number))
        }
        (ty, Literal::Number(number)) if ty.is_floating() => {
            let float = number.to_f64().filter(|f| f.is_finite());
            Ok(float.and_then(|f| ScalarValue::Float64(Some(f)).cast_to(ty).ok()))
        }
        (ty, Literal::Number(number)) if is_decimal(ty) => Ok(decimal_scalar(ty, number)),
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, Literal::Text(text)) => {
            Ok(Some(text_scalar(data_type, text)))
        }
        (DataType::Boolean, Literal::Bool(value)) => Ok(Some(ScalarValue::Boolean(Some(*value)))),
        (DataType::Date32 | DataType::Date64, Literal::Text(text)) => match iso(text) {
            Some(Iso::Day(day)) => Ok(ScalarValue::Date32(Some(days(day))).cast_to(data_type).ok()),
            _ => wrong(),
        },
        (DataType::Timestamp(unit, zone), Literal::Text(text)) => match instants(text, zone.is_some(), scope) {
            Some((first, _)) => Ok(timestamp_scalar(first, *unit, zone.clone())),
            None => wrong(),
        },
        (DataType::Null, _) => Ok(None),
        _ => wrong(),
    }
}

/// The instants that ISO text stands for, `[first, last]` in nanoseconds: a date is its whole day in the
/// document's time zone. For a column without a zone they count on the local clock.
pub fn instants(text: &str, zoned: bool, scope: &Scope) -> Option<(i128, i128)> {
    instants_in(text, zoned, scope.timezone)
}

/// [`instants`] for a time zone alone.
pub fn instants_in(text: &str, zoned: bool, timezone: chrono_tz::Tz) -> Option<(i128, i128)> {
    let nanos =
        |at: DateTime<Utc>| i128::from(at.timestamp()) * 1_000_000_000 + i128::from(at.timestamp_subsec_nanos());
    let local = |at: NaiveDateTime| match zoned {
        true => timezone
            .from_local_datetime(&at)
            .earliest()
            .map_or_else(|| at.and_utc(), |t| t.with_timezone(&Utc)),
        false => at.and_utc(),
    };
    match iso(text)? {
        Iso::Day(day) => {
            let start = local(day.and_time(NaiveTime::MIN));
            let end = local((day + Duration::days(1)).and_time(NaiveTime::MIN));
            Some((nanos(start), nanos(end) - 1))
        }
        Iso::Local(at) => Some((nanos(local(at)), nanos(local(at)))),
        Iso::Instant(at) => {
            let at = if zoned {
                at
            } else {
                at.with_timezone(&timezone).naive_local().and_utc()
            };
            Some((nanos(at), nanos(at)))
        }
    }
}

/// A date, a local date and time, or an instant with its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Iso {
    /// `2024-12-31`
    Day(NaiveDate),
    /// `2024-12-31T12:00:00`
    Local(NaiveDateTime),
    /// `2024-12-31T12:00:00Z`, `…+01:00`
    Instant(DateTime<Utc>),
}

/// ISO 8601 text, with `T` or a blank between date and time.
pub fn iso(text: &str) -> Option<Iso> {
    let text = text.trim();
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return (text.len() == 10).then_some(Iso::Day(day));
    }
    let text = text.replacen(' ', "T", 1);
    for form in ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"] {
        if let Ok(at) = NaiveDateTime::parse_from_str(&text, form) {
            return Some(Iso::Local(at));
        }
    }
    for form in ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z"] {
        if let Ok(at) = DateTime::parse_from_str(&text, form) {
            return Some(Iso::Instant(at.with_timezone(&Utc)));
        }
    }
    None
}

/// The type of the values, whatever dictionary or run encoding they are in.
pub fn value_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value_type(value),
        DataType::RunEndEncoded(_, values) => value_type(values.data_type()),
        other => other,
    }
}

/// Whether the type is a decimal of any width.
pub fn is_decimal(data_type: &DataType) -> bool {
    matches!(
        data_type,
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..)
    )
}

fn apply(expr: Expr, operator: Operator, value: ScalarValue) -> Expr {
    let value = lit(value);
    match operator {
        Operator::Equal => expr.eq(value),
        Operator::NotEqual => expr.not_eq(value),
        Operator::Less => expr.lt(value),
        Operator::LessOrEqual => expr.lt_eq(value),
        Operator::Greater => expr.gt(value),
        Operator::GreaterOrEqual => expr.gt_eq(value),
    }
}

/// The same truth for every value; NULL stays unknown.
pub(crate) fn constant(expr: Expr, truth: bool) -> Expr {
    datafusion_expr::when(expr.is_not_null(), lit(truth))
        .end()
        .unwrap_or_else(|_| lit(ScalarValue::Boolean(None)))
}

fn numeric(column: &Column, ty: &DataType, operator: Operator, bound: &BigDecimal) -> Result<Expr, BindError> {
    if ty.is_floating() {
        return Ok(floating(column, ty, operator, bound));
    }
    let scale = match ty {
        DataType::Decimal32(_, s)
        | DataType::Decimal64(_, s)
        | DataType::Decimal128(_, s)
        | DataType::Decimal256(_, s) => i64::from(*s),
        _ => 0,
    };
    // A bound between two values of the type is moved to the value on the side that the comparison keeps.
    let exact = bound.with_scale_round(scale, RoundingMode::Floor) == *bound;
    let (operator, rounding) = match (operator, exact) {
        (operator, true) => (operator, RoundingMode::Floor),
        (Operator::Equal, false) => return Ok(constant(column.expr.clone(), false)),
        (Operator::NotEqual, false) => return Ok(constant(column.expr.clone(), true)),
        (Operator::Less | Operator::LessOrEqual, false) => (Operator::LessOrEqual, RoundingMode::Floor),
        (Operator::Greater | Operator::GreaterOrEqual, false) => (Operator::GreaterOrEqual, RoundingMode::Ceiling),
    };
    let rounded = bound.with_scale_round(scale, rounding);
    let scalar = if ty.is_integer() {
        integer_scalar(ty, &rounded)
    } else {
        decimal_scalar(ty, &rounded)
    };
    Ok(match scalar {
        Some(scalar) => apply(column.expr.clone(), operator, scalar),
        // No value of the type lies that far out.
        None => {
            let far_above = rounded > BigDecimal::from(0);
            let truth = match operator {
                Operator::Less | Operator::LessOrEqual => far_above,
                Operator::Greater | Operator::GreaterOrEqual => !far_above,
                Operator::Equal => false,
                Operator::NotEqual => true,
            };
            constant(column.expr.clone(), truth)
        }
    })
}

/// Doubles are compared with the double nearest to the bound, which is the one that people mean who write
/// it: 0.1 keeps to `max: 0.1`. NaN satisfies nothing.
fn floating(column: &Column, ty: &DataType, operator: Operator, bound: &BigDecimal) -> Expr {
    let nearest = bound.to_f64().unwrap_or(f64::NAN);
    // A narrow float is compared with the narrow float nearest to the bound, for the same reason.
    let scalar = ScalarValue::Float64(Some(nearest))
        .cast_to(ty)
        .unwrap_or(ScalarValue::Float64(Some(nearest)));
    let compared = match nearest == 0.0 {
        true => against_zero(&column.expr, ty, operator),
        false => apply(column.expr.clone(), operator, scalar),
    };
    match operator {
        Operator::NotEqual => compared,
        _ => compared.and(is_nan(column.expr.clone()).is_not_true()),
    }
}

/// The engine orders -0.0 below 0.0; here the two are equal, so each operator takes the zero that lets both of
/// them through or neither.
fn against_zero(expr: &Expr, ty: &DataType, operator: Operator) -> Expr {
    let zero = |sign: f64| {
        let zero = ScalarValue::Float64(Some(sign * 0.0));
        zero.cast_to(ty).unwrap_or(zero)
    };
    let with = |operator, sign| apply(expr.clone(), operator, zero(sign));
    match operator {
        Operator::Equal => with(Operator::GreaterOrEqual, -1.0).and(with(Operator::LessOrEqual, 1.0)),
        Operator::NotEqual => with(Operator::Less, -1.0).or(with(Operator::Greater, 1.0)),
        Operator::Less | Operator::GreaterOrEqual => with(operator, -1.0),
        Operator::LessOrEqual | Operator::Greater => with(operator, 1.0),
    }
}

fn integer_scalar(ty: &DataType, number: &BigDecimal) -> Option<ScalarValue> {
    Some(match ty {
        DataType::Int8 => ScalarValue::Int8(Some(number.to_i8()?)),
        DataType::Int16 => ScalarValue::Int16(Some(number.to_i16()?)),
        DataType::Int32 => ScalarValue::Int32(Some(number.to_i32()?)),
        DataType::Int64 => ScalarValue::Int64(Some(number.to_i64()?)),
        DataType::UInt8 => ScalarValue::UInt8(Some(number.to_u8()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(number.to_u16()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(number.to_u32()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(number.to_u64()?)),
        _ => return None,
    })
}

fn decimal_scalar(ty: &DataType, number: &BigDecimal) -> Option<ScalarValue> {
    let (precision, scale) = match ty {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => (*p, *s),
        _ => return None,
    };
    let scaled = number.with_scale(i64::from(scale));
    if scaled != *number || scaled.digits() > u64::from(precision) {
        return None;
    }
    let (unscaled, _) = scaled.into_bigint_and_exponent();
    match ty {
        DataType::Decimal256(..) => {
            let text = unscaled.to_string();
            let value = arrow::datatypes::i256::from_string(&text)?;
            Some(ScalarValue::Decimal256(Some(value), precision, scale))
        }
        _ => {
            let value: i128 = BigInt::to_i128(&unscaled)?;
            match ty {
                DataType::Decimal32(..) => Some(ScalarValue::Decimal32(
                    Some(i32::try_from(value).ok()?),
                    precision,
                    scale,
                )),
                DataType::Decimal64(..) => Some(ScalarValue::Decimal64(
                    Some(i64::try_from(value).ok()?),
                    precision,
                    scale,
                )),
                _ => Some(ScalarValue::Decimal128(Some(value), precision, scale)),
            }
        }
    }
}

fn text_scalar(ty: &DataType, text: &str) -> ScalarValue {
    let text = Some(text.to_string());
    match ty {
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(text),
        DataType::Utf8View => ScalarValue::Utf8View(text),
        _ => ScalarValue::Utf8(text),
    }
}

fn days(day: NaiveDate) -> i32 {
    let epoch = NaiveDate::default();
    i32::try_from(day.signed_duration_since(epoch).num_days()).unwrap_or(i32::MAX)
}

/// A date column counts as the start of its day, so a bound inside a day lies between two of its values.
fn date(column: &Column, operator: Operator, text: &str, scope: &Scope) -> Result<Expr, BindError> {
    let literal = Literal::Text(text.to_string());
    let (day, inside) = match iso(text) {
        Some(Iso::Day(day)) => (day, false),
        Some(Iso::Local(at)) => (at.date(), at.time() != NaiveTime::MIN),
        Some(Iso::Instant(at)) => {
            let local = at.with_timezone(&scope.timezone).naive_local();
            (local.date(), local.time() != NaiveTime::MIN)
        }
        None => return Err(mismatch(column, &literal)),
    };
    let operator = match (operator, inside) {
        (operator, false) => operator,
        (Operator::Equal, true) => return Ok(constant(column.expr.clone(), false)),
        (Operator::NotEqual, true) => return Ok(constant(column.expr.clone(), true)),
        (Operator::Less | Operator::LessOrEqual, true) => Operator::LessOrEqual,
        (Operator::Greater | Operator::GreaterOrEqual, true) => Operator::Greater,
    };
    let scalar = ScalarValue::Date32(Some(days(day)))
        .cast_to(value_type(&column.data_type))
        .map_err(|e| BindError::new(e.to_string()))?;
    Ok(apply(column.expr.clone(), operator, scalar))
}

fn timestamp(column: &Column, operator: Operator, text: &str, scope: &Scope) -> Result<Expr, BindError> {
    let DataType::Timestamp(unit, zone) = value_type(&column.data_type) else {
        return Err(mismatch(column, &Literal::Text(text.to_string())));
    };
    let Some((first, last)) = instants(text, zone.is_some(), scope) else {
        return Err(mismatch(column, &Literal::Text(text.to_string())));
    };
    let scalar = |nanos: i128| timestamp_scalar(nanos, *unit, zone.clone());
    let (Some(first), Some(last)) = (scalar(first), scalar(last)) else {
        return Err(BindError::new(format!(
            "`{text}` is out of the range of column `{}`",
            column.name
        )));
    };
    let expr = column.expr.clone();
    Ok(match operator {
        Operator::Equal => {
            apply(expr.clone(), Operator::GreaterOrEqual, first).and(apply(expr, Operator::LessOrEqual, last))
        }
        Operator::NotEqual => apply(expr.clone(), Operator::Less, first).or(apply(expr, Operator::Greater, last)),
        Operator::Less | Operator::GreaterOrEqual => apply(expr, operator, first),
        Operator::LessOrEqual | Operator::Greater => apply(expr, operator, last),
    })
}

/// Nanoseconds as a value of a timestamp type; the part below its unit is cut off downwards.
pub fn timestamp_scalar(nanos: i128, unit: TimeUnit, zone: Option<std::sync::Arc<str>>) -> Option<ScalarValue> {
    let per = match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let value = Some(i64::try_from(nanos.div_euclid(per)).ok()?);
    Some(match unit {
        TimeUnit::Second => ScalarValue::TimestampSecond(value, zone),
        TimeUnit::Millisecond => ScalarValue::TimestampMillisecond(value, zone),
        TimeUnit::Microsecond => ScalarValue::TimestampMicrosecond(value, zone),
        TimeUnit::Nanosecond => ScalarValue::TimestampNanosecond(value, zone),
    })
}

fn mismatch(column: &Column, literal: &Literal) -> BindError {
    let error = type_mismatch(value_type(&column.data_type), literal);
    BindError {
        message: format!("{} for column `{}`", error.message, column.name),
        hint: error.hint,
    }
}

fn type_mismatch(data_type: &DataType, literal: &Literal) -> BindError {
    let named = type_name(data_type);
    let error = BindError::new(format!("{} `{literal}` is no value of type {named}", literal.kind()));
    match (data_type, literal) {
        (ty, Literal::Text(text)) if ty.is_numeric() && text.trim().parse::<f64>().is_ok() => {
            error.hint(format!("write it without quotes: {text}"))
        }
        (DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View, other) => {
            error.hint(format!("write it in quotes: \"{other}\""))
        }
        (DataType::Date32 | DataType::Date64 | DataType::Timestamp(..), _) => {
            error.hint("write dates as 2024-12-31 and timestamps as 2024-12-31T23:59:59Z")
        }
        _ => error,
    }
}

/// A type in the words of documents.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "string".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Int8 => "int8".into(),
        DataType::Int16 => "int16".into(),
        DataType::Int32 => "int32".into(),
        DataType::Int64 => "int64".into(),
        DataType::UInt8 => "uint8".into(),
        DataType::UInt16 => "uint16".into(),
        DataType::UInt32 => "uint32".into(),
        DataType::UInt64 => "uint64".into(),
        DataType::Float16 | DataType::Float32 => "float".into(),
        DataType::Float64 => "double".into(),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            format!("decimal({p},{s})")
        }
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(_, None) => "timestamp_ntz".into(),
        DataType::Timestamp(_, Some(_)) => "timestamp_tz".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "binary".into()
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item) => {
            format!("list<{}>", type_name(item.data_type()))
        }
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{}: {}", field.name(), type_name(field.data_type())))
                .collect();
            format!("struct<{}>", fields.join(", "))
        }
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(fields) if fields.len() == 2 => {
                format!(
                    "map<{}, {}>",
                    type_name(fields[0].data_type()),
                    type_name(fields[1].data_type())
                )
            }
            _ => "map".into(),
        },
        DataType::Dictionary(_, value) => type_name(value),
        other => other.to_string().to_lowercase(),
    }
}
