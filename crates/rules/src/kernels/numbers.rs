//! Columns of numbers by value, whatever their type: compared and added without rounding.

use crate::literals::value_type;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type,
    UInt64Type,
};
use arrow::error::ArrowError;
use bigdecimal::num_bigint::BigInt;
use bigdecimal::{BigDecimal, ToPrimitive};
use std::cmp::Ordering;

/// The numbers of a column.
#[derive(Debug)]
pub(crate) struct Numbers {
    values: Values,
    array: ArrayRef,
}

#[derive(Debug)]
enum Values {
    Scaled(Vec<i128>, i64),
    Wide(Vec<BigDecimal>),
    Float { values: Vec<f64>, narrow: bool },
    Nothing,
}

/// One number.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number<'a> {
    /// `unscaled / 10^scale`.
    Scaled(i128, i64),
    /// A decimal beyond 38 digits.
    Wide(&'a BigDecimal),
    /// A binary fraction; `narrow` has 32 bits.
    Float { value: f64, narrow: bool },
}

impl Numbers {
    /// Reads a column of integers, decimals or floats.
    pub(crate) fn of(array: &ArrayRef) -> Result<Self, ArrowError> {
        let data_type = value_type(array.data_type()).clone();
        let array = match array.data_type() == &data_type {
            true => array.clone(),
            false => cast(array, &data_type)?,
        };
        let scaled = |values: Vec<i128>, scale: i8| Values::Scaled(values, i64::from(scale));
        let values = match &data_type {
            DataType::Null => Values::Nothing,
            DataType::Decimal32(_, scale) => {
                let values = array.as_primitive::<Decimal32Type>().values();
                scaled(values.iter().map(|value| i128::from(*value)).collect(), *scale)
            }
            DataType::Decimal64(_, scale) => {
                let values = array.as_primitive::<Decimal64Type>().values();
                scaled(values.iter().map(|value| i128::from(*value)).collect(), *scale)
            }
            DataType::Decimal128(_, scale) => scaled(array.as_primitive::<Decimal128Type>().values().to_vec(), *scale),
            DataType::Decimal256(_, scale) => {
                let values = array.as_primitive::<Decimal256Type>().values().iter();
                let number = |unscaled: BigInt| BigDecimal::new(unscaled, i64::from(*scale));
                Values::Wide(
                    values
                        .map(|value| number(value.to_string().parse().unwrap_or_default()))
                        .collect(),
                )
            }
            DataType::Float64 => Values::Float {
                values: array.as_primitive::<Float64Type>().values().to_vec(),
                narrow: false,
            },
            DataType::Float32 | DataType::Float16 => {
                let narrow = cast(&array, &DataType::Float32)?;
                let values = narrow.as_primitive::<Float32Type>().values().iter();
                Values::Float {
                    values: values.map(|value| f64::from(*value)).collect(),
                    narrow: true,
                }
            }
            DataType::UInt64 => {
                let values = array.as_primitive::<UInt64Type>().values();
                scaled(values.iter().map(|value| i128::from(*value)).collect(), 0)
            }
            _ => {
                let whole = cast(&array, &DataType::Int64)?;
                let values = whole.as_primitive::<Int64Type>().values();
                scaled(values.iter().map(|value| i128::from(*value)).collect(), 0)
            }
        };
        Ok(Numbers { values, array })
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.array.len()
    }

    /// The number of a row; `None` for a null.
    pub(crate) fn at(&self, row: usize) -> Option<Number<'_>> {
        if self.array.is_null(row) {
            return None;
        }
        match &self.values {
            Values::Scaled(values, scale) => Some(Number::Scaled(values[row], *scale)),
            Values::Wide(values) => Some(Number::Wide(&values[row])),
            Values::Float { values, narrow } => Some(Number::Float {
                value: values[row],
                narrow: *narrow,
            }),
            Values::Nothing => None,
        }
    }
}

impl Number<'_> {
    /// The order of two numbers by value; `None` with NaN.
    ///
    /// A whole number is compared with a float exactly. A fraction is compared with a float as the float nearest
    /// to it, since a float can hold hardly any decimal fraction and 0.1 is the one that is written so.
    pub(crate) fn order(self, other: Number<'_>) -> Option<Ordering> {
        match (self, other) {
            (Number::Float { value, .. }, Number::Float { value: other, .. }) => value.partial_cmp(&other),
            (Number::Float { value, narrow }, exact) => exact.order_to_float(value, narrow).map(Ordering::reverse),
            (exact, Number::Float { value, narrow }) => exact.order_to_float(value, narrow),
            (Number::Scaled(left, scale), Number::Scaled(right, other)) if scale == other => Some(left.cmp(&right)),
            (Number::Scaled(left, scale), Number::Scaled(right, other)) => {
                let common = scale.max(other);
                match (scaled_up(left, common - scale), scaled_up(right, common - other)) {
                    (Some(left), Some(right)) => Some(left.cmp(&right)),
                    _ => Some(self.exact()?.cmp(&other_exact(right, other))),
                }
            }
            (left, right) => Some(left.exact()?.cmp(&right.exact()?)),
        }
    }

    fn order_to_float(self, float: f64, narrow: bool) -> Option<Ordering> {
        if float.is_nan() {
            return None;
        }
        if float.is_infinite() {
            return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
        }
        match self.whole() {
            // 2^126 and beyond: floats out there are whole, so the long way is exact as well.
            Some(whole) if float.abs() < 8.5e37 => {
                let truncated = float.trunc();
                let order = whole.cmp(&(truncated as i128));
                Some(order.then_with(|| 0.0_f64.total_cmp(&(float - truncated + 0.0))))
            }
            Some(whole) => Some(BigDecimal::from(whole).cmp(&BigDecimal::try_from(float).ok()?)),
            None => {
                let exact = self.exact()?;
                if exact.is_integer() {
                    return Some(exact.cmp(&BigDecimal::try_from(float).ok()?));
                }
                self.nearest(narrow)?.partial_cmp(&float)
            }
        }
    }

    /// The number itself, if it is whole and has at most 38 digits.
    fn whole(self) -> Option<i128> {
        match self {
            Number::Scaled(value, 0) => Some(value),
            Number::Scaled(value, scale) if scale < 0 => scaled_up(value, -scale),
            Number::Scaled(value, scale) => {
                let unit = 10_i128.checked_pow(u32::try_from(scale).ok()?)?;
                (value % unit == 0).then_some(value / unit)
            }
            _ => None,
        }
    }

    /// The float nearest to the number.
    pub(crate) fn nearest(self, narrow: bool) -> Option<f64> {
        const EXACT: i128 = 1 << 53;
        match self {
            Number::Float { value, .. } => Some(value),
            // Both operands are exact, so the quotient is the nearest double.
            Number::Scaled(value, scale) if !narrow && value.abs() <= EXACT && (0..=22).contains(&scale) => {
                Some(value as f64 / 10_f64.powi(i32::try_from(scale).ok()?))
            }
            Number::Scaled(value, scale) => parsed(&format!("{value}e{}", -scale), narrow),
            Number::Wide(number) => parsed(&number.to_scientific_notation(), narrow),
        }
    }

    /// The number as a decimal; `None` for NaN and infinite ones.
    pub(crate) fn exact(self) -> Option<BigDecimal> {
        match self {
            Number::Scaled(value, scale) => Some(other_exact(value, scale)),
            Number::Wide(number) => Some(number.clone()),
            Number::Float { value, .. } => BigDecimal::try_from(value).ok(),
        }
    }
}

fn parsed(text: &str, narrow: bool) -> Option<f64> {
    match narrow {
        true => text.parse::<f32>().ok()?.to_f64(),
        false => text.parse().ok(),
    }
}

fn other_exact(value: i128, scale: i64) -> BigDecimal {
    BigDecimal::new(BigInt::from(value), scale)
}

fn scaled_up(value: i128, digits: i64) -> Option<i128> {
    value.checked_mul(10_i128.checked_pow(u32::try_from(digits).ok()?)?)
}

/// Adds scaled numbers without rounding; `None` where 38 digits are not enough.
pub(crate) fn add_scaled(parts: &[(i128, i64)]) -> Option<(i128, i64)> {
    let common = parts.iter().map(|(_, scale)| *scale).max().unwrap_or(0);
    let mut sum = 0_i128;
    for (value, scale) in parts {
        sum = sum.checked_add(scaled_up(*value, common - scale)?)?;
    }
    Some((sum, common))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaled(value: i128, scale: i64) -> Number<'static> {
        Number::Scaled(value, scale)
    }

    fn float(value: f64) -> Number<'static> {
        Number::Float { value, narrow: false }
    }

    #[test]
    fn whole_numbers_and_floats_are_compared_exactly() {
        let big = 9_007_199_254_740_993;
        assert_eq!(
            scaled(big, 0).order(float(9_007_199_254_740_992.0)),
            Some(Ordering::Greater)
        );
        assert_eq!(
            scaled(big * 100, 2).order(float(9_007_199_254_740_992.0)),
            Some(Ordering::Greater)
        );
        assert_eq!(
            float(9_007_199_254_740_992.0).order(scaled(big - 1, 0)),
            Some(Ordering::Equal)
        );
        assert_eq!(scaled(3, 0).order(float(3.5)), Some(Ordering::Less));
        assert_eq!(scaled(-3, 0).order(float(-3.5)), Some(Ordering::Greater));
        assert_eq!(scaled(0, 0).order(float(-0.0)), Some(Ordering::Equal));
        assert_eq!(scaled(0, 0).order(float(0.5)), Some(Ordering::Less));
        assert_eq!(scaled(i128::MAX, 0).order(float(1e300)), Some(Ordering::Less));
        assert_eq!(scaled(1, 0).order(float(f64::NEG_INFINITY)), Some(Ordering::Greater));
        assert_eq!(scaled(1, 0).order(float(f64::NAN)), None);
    }

    #[test]
    fn a_decimal_fraction_is_the_float_that_is_written_so() {
        assert_eq!(scaled(1, 1).order(float(0.1)), Some(Ordering::Equal));
        assert_eq!(scaled(1999, 2).order(float(19.99)), Some(Ordering::Equal));
        assert_eq!(scaled(11, 2).order(float(0.1)), Some(Ordering::Greater));
        let narrow = Number::Float {
            value: f64::from(0.1_f32),
            narrow: true,
        };
        assert_eq!(scaled(1, 1).order(narrow), Some(Ordering::Equal));
    }

    #[test]
    fn decimals_of_any_scale_are_compared_by_value() {
        assert_eq!(scaled(150, 2).order(scaled(15, 1)), Some(Ordering::Equal));
        assert_eq!(scaled(i128::MAX, 0).order(scaled(1, 30)), Some(Ordering::Greater));
        let wide: BigDecimal = "1e60".parse().unwrap();
        assert_eq!(scaled(i128::MAX, 0).order(Number::Wide(&wide)), Some(Ordering::Less));
        assert_eq!(add_scaled(&[(150, 2), (5, 1), (-2, 0)]), Some((0, 2)));
        assert_eq!(add_scaled(&[(i128::MAX, 0), (1, 0)]), None);
    }
}
