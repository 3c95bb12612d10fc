//! Two columns compared by value, where the engine would coerce one of them first: an integer becomes a double and
//! loses digits, a timestamp without zone is taken for UTC, NaN counts as the greatest number.

use crate::kernels::numbers::Numbers;
use crate::literals::{type_name, value_type};
use crate::rule::BindError;
use crate::scope::{Column, Scope};
use crate::statistics::{date_time, in_zone, nanoseconds};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use arrow::error::ArrowError;
use chrono_tz::Tz;
use comporta_contract::threshold::Operator;
use datafusion_common::{Result, internal_err};
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A predicate that compares two columns: TRUE, FALSE, or NULL where one of them is null. NaN satisfies no
/// comparison, not even `!=` (S12). A date beside a timestamp is the start of its day, and a timestamp without zone
/// beside one with a zone is read in the document's time zone (S16, S27).
///
/// # Errors
/// The two columns hold things that cannot be compared.
pub fn columns(left: &Column, operator: Operator, right: &Column, scope: &Scope) -> Result<Expr, BindError> {
    let (mine, other) = (value_type(&left.data_type), value_type(&right.data_type));
    let text = |ty: &DataType| matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let time = |ty: &DataType| matches!(ty, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..));
    let null = |ty: &DataType| *ty == DataType::Null;
    let same = mine == other && !mine.is_floating();
    let numbers = (mine.is_numeric() || null(mine)) && (other.is_numeric() || null(other));
    let times = (time(mine) || null(mine)) && (time(other) || null(other));
    let both = |test: &dyn Fn(&DataType) -> bool| test(mine) && test(other);
    // One type on both sides needs no coercion, and text compares byte by byte whatever its layout.
    if (same && (mine.is_numeric() || time(mine) || *mine == DataType::Boolean)) || both(&text) {
        return Ok(native(left.expr.clone(), operator, right.expr.clone()));
    }
    if !numbers && !times {
        return Err(BindError::new(format!(
            "`{}` of type {} and `{}` of type {} cannot be compared",
            left.name,
            type_name(mine),
            right.name,
            type_name(other)
        ))
        .hint("cast one of them in an `expression`"));
    }
    let kernel = Compare {
        operator,
        timezone: scope.timezone,
        signature: Signature::any(2, Volatility::Immutable),
    };
    Ok(ScalarUDF::from(kernel).call(vec![left.expr.clone(), right.expr.clone()]))
}

fn native(left: Expr, operator: Operator, right: Expr) -> Expr {
    match operator {
        Operator::Equal => left.eq(right),
        Operator::NotEqual => left.not_eq(right),
        Operator::Less => left.lt(right),
        Operator::LessOrEqual => left.lt_eq(right),
        Operator::Greater => left.gt(right),
        Operator::GreaterOrEqual => left.gt_eq(right),
    }
}

/// The comparison as a function of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Compare {
    operator: Operator,
    timezone: Tz,
    signature: Signature,
}

impl Hash for Compare {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(&self.operator).hash(state);
        self.timezone.hash(state);
    }
}

impl ScalarUDFImpl for Compare {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Equal => "equal_by_value",
            Operator::NotEqual => "not_equal_by_value",
            Operator::Less => "less_by_value",
            Operator::LessOrEqual => "less_or_equal_by_value",
            Operator::Greater => "greater_by_value",
            Operator::GreaterOrEqual => "greater_or_equal_by_value",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [left, right] = arrays.as_slice() else {
            return internal_err!("a comparison has two sides, not {}", arrays.len());
        };
        let truths = compare(left, self.operator, right, self.timezone)?;
        Ok(ColumnarValue::Array(Arc::new(truths)))
    }
}

/// Compares two columns row by row, by value.
///
/// # Errors
/// A column is neither of numbers nor of times.
pub fn compare(
    left: &ArrayRef,
    operator: Operator,
    right: &ArrayRef,
    timezone: Tz,
) -> Result<BooleanArray, ArrowError> {
    let numeric = |array: &ArrayRef| value_type(array.data_type()).is_numeric();
    if numeric(left) || numeric(right) {
        let (left, right) = (Numbers::of(left)?, Numbers::of(right)?);
        return Ok((0..left.len().min(right.len()))
            .map(|row| match (left.at(row), right.at(row)) {
                (Some(mine), Some(other)) => Some(mine.order(other).is_some_and(|order| holds(operator, order))),
                _ => None,
            })
            .collect());
    }
    let zoned = |array: &ArrayRef| matches!(value_type(array.data_type()), DataType::Timestamp(_, Some(_)));
    // Without a zone on either side the local clock is all there is to compare.
    let zone = (zoned(left) || zoned(right)).then_some(timezone);
    let (left, right) = (instants(left, zone)?, instants(right, zone)?);
    let pairs = left.into_iter().zip(right);
    Ok(pairs
        .map(|(mine, other)| Some(holds(operator, mine?.cmp(&other?))))
        .collect())
}

fn holds(operator: Operator, order: Ordering) -> bool {
    match operator {
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        Operator::GreaterOrEqual => order.is_ge(),
    }
}

/// Dates and timestamps in nanoseconds: of UTC if a zone is given, in which local ones are read, else of the local
/// clock.
fn instants(array: &ArrayRef, zone: Option<Tz>) -> Result<Vec<Option<i128>>, ArrowError> {
    let data_type = value_type(array.data_type()).clone();
    let array = match array.data_type() == &data_type {
        true => array.clone(),
        false => cast(array, &data_type)?,
    };
    let (per_unit, local) = match &data_type {
        DataType::Null => return Ok(vec![None; array.len()]),
        DataType::Date32 => (86_400_000_000_000_i128, true),
        DataType::Date64 => (1_000_000, true),
        DataType::Timestamp(unit, zone) => {
            let nanos = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1_000,
                TimeUnit::Nanosecond => 1,
            };
            (nanos, zone.is_none())
        }
        other => return Err(ArrowError::InvalidArgumentError(format!("{other} is no time"))),
    };
    let counts = match &data_type {
        DataType::Date32 => cast(&cast(&array, &DataType::Int32)?, &DataType::Int64)?,
        _ => cast(&array, &DataType::Int64)?,
    };
    let counts = counts.as_primitive::<Int64Type>();
    let instant = |count: i64| {
        let nanos = i128::from(count) * per_unit;
        match zone.filter(|_| local) {
            None => Ok(nanos),
            Some(zone) => date_time(nanos)
                .map(|at| nanoseconds(in_zone(at.naive_utc(), zone)))
                .ok_or_else(|| ArrowError::ComputeError("a time is beyond the calendar".into())),
        }
    };
    counts.iter().map(|count| count.map(instant).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{
        Date32Array, Decimal128Array, Float64Array, Int64Array, StringArray, TimestampMicrosecondArray,
        TimestampSecondArray, UInt64Array,
    };

    fn truths(left: impl Array + 'static, operator: Operator, right: impl Array + 'static) -> Vec<Option<bool>> {
        in_zone_of(Tz::UTC, left, operator, right)
    }

    fn in_zone_of(
        zone: Tz,
        left: impl Array + 'static,
        operator: Operator,
        right: impl Array + 'static,
    ) -> Vec<Option<bool>> {
        let (left, right): (ArrayRef, ArrayRef) = (Arc::new(left), Arc::new(right));
        compare(&left, operator, &right, zone).unwrap().iter().collect()
    }

    #[test]
    fn numbers_of_different_types_are_compared_by_value() {
        let big = 9_007_199_254_740_993_i64;
        assert_eq!(
            truths(
                Int64Array::from(vec![Some(big), Some(-1), None]),
                Operator::Equal,
                Float64Array::from(vec![9_007_199_254_740_992.0, -1.0, 1.0])
            ),
            [Some(false), Some(true), None]
        );
        assert_eq!(
            truths(
                Int64Array::from(vec![-1]),
                Operator::Less,
                UInt64Array::from(vec![u64::MAX])
            ),
            [Some(true)]
        );
        let decimals = Decimal128Array::from(vec![1999, 2000])
            .with_precision_and_scale(10, 2)
            .unwrap();
        assert_eq!(
            truths(decimals, Operator::Equal, Float64Array::from(vec![19.99, 20.0])),
            [Some(true), Some(true)]
        );
    }

    #[test]
    fn nan_satisfies_nothing_and_null_stays_unknown() {
        let left = || Float64Array::from(vec![Some(f64::NAN), Some(f64::NAN), Some(-0.0), None]);
        let right = || Float64Array::from(vec![Some(f64::NAN), None, Some(0.0), Some(1.0)]);
        for operator in [Operator::Equal, Operator::NotEqual, Operator::GreaterOrEqual] {
            let found = truths(left(), operator, right());
            assert_eq!(found[0], Some(false), "{operator:?}");
            assert_eq!((found[1], found[3]), (None, None), "{operator:?}");
        }
        assert_eq!(
            truths(left(), Operator::Equal, right())[2],
            Some(true),
            "there is one zero"
        );
    }

    #[test]
    fn a_date_is_the_start_of_its_day_and_local_times_have_the_zone_of_the_document() {
        let day = || Date32Array::from(vec![20_455]);
        let midnight = || TimestampMicrosecondArray::from(vec![1_767_312_000_000_000]);
        assert_eq!(truths(day(), Operator::Equal, midnight()), [Some(true)]);
        let zoned = || TimestampSecondArray::from(vec![1_767_312_000]).with_timezone("+00:00");
        assert_eq!(truths(day(), Operator::Equal, zoned()), [Some(true)]);
        assert_eq!(truths(midnight(), Operator::Equal, zoned()), [Some(true)]);
        let later = in_zone_of(Tz::America__Sao_Paulo, midnight(), Operator::Greater, zoned());
        assert_eq!(later, [Some(true)], "midnight in São Paulo comes three hours later");
        assert_eq!(
            in_zone_of(Tz::America__Sao_Paulo, day(), Operator::Equal, midnight()),
            [Some(true)]
        );
    }

    #[test]
    fn what_is_no_number_and_no_time_is_refused() {
        let (text, number): (ArrayRef, ArrayRef) = (
            Arc::new(StringArray::from(vec!["x"])),
            Arc::new(Date32Array::from(vec![1])),
        );
        assert!(compare(&text, Operator::Equal, &number, Tz::UTC).is_err());
    }
}
