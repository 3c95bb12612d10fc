//! Count, sum and sum of squares, exact for every numeric type (S22).

use crate::error::{Error, Result};
use crate::measures::extremes::nan_mask;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::*;
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::BigInt;
use comporta_rules::measure::Moments;
use std::str::FromStr;

/// Sums so far.
#[derive(Debug, Default)]
pub(crate) struct MomentSums {
    count: u64,
    nan_count: u64,
    infinite: (u64, u64),
    binary: bool,
    scale: i64,
    /// Sums of unscaled integers: the part that fits a word-sized accumulator, and what has spilled over.
    sum: i128,
    squares: u128,
    sum_big: BigInt,
    squares_big: BigInt,
    floats: Option<Box<(FloatSum, FloatSum)>>,
}

impl MomentSums {
    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        macro_rules! integers {
            ($ty:ty) => {{
                let values = values.as_primitive::<$ty>();
                self.count += (values.len() - values.null_count()) as u64;
                match values.null_count() {
                    0 => values
                        .values()
                        .iter()
                        .for_each(|value| self.add_integer(*value as i128)),
                    _ => values
                        .iter()
                        .flatten()
                        .for_each(|value| self.add_integer(value as i128)),
                }
            }};
        }
        match values.data_type() {
            DataType::Int8 => integers!(Int8Type),
            DataType::Int16 => integers!(Int16Type),
            DataType::Int32 => integers!(Int32Type),
            DataType::Int64 => integers!(Int64Type),
            DataType::UInt8 => integers!(UInt8Type),
            DataType::UInt16 => integers!(UInt16Type),
            DataType::UInt32 => integers!(UInt32Type),
            DataType::UInt64 => integers!(UInt64Type),
            DataType::Decimal32(_, scale) => {
                self.scale = i64::from(*scale);
                integers!(Decimal32Type)
            }
            DataType::Decimal64(_, scale) => {
                self.scale = i64::from(*scale);
                integers!(Decimal64Type)
            }
            DataType::Decimal128(_, scale) => {
                self.scale = i64::from(*scale);
                integers!(Decimal128Type)
            }
            DataType::Decimal256(_, scale) => {
                self.scale = i64::from(*scale);
                for value in values.as_primitive::<Decimal256Type>().iter().flatten() {
                    self.count += 1;
                    let value = BigInt::from_str(&value.to_string()).map_err(|e| Error::internal(e.to_string()))?;
                    self.squares_big += &value * &value;
                    self.sum_big += value;
                }
            }
            DataType::Float16 | DataType::Float32 => {
                let wide = arrow::compute::cast(values, &DataType::Float64)?;
                self.add_floats(&wide)?;
            }
            DataType::Float64 => self.add_floats(values)?,
            DataType::Null => {}
            other => return Err(Error::invalid(format!("values of type {other} cannot be summed"))),
        }
        Ok(())
    }

    #[inline]
    fn add_integer(&mut self, value: i128) {
        match self.sum.checked_add(value) {
            Some(sum) => self.sum = sum,
            None => {
                self.sum_big += std::mem::take(&mut self.sum);
                self.sum = value;
            }
        }
        let size = value.unsigned_abs();
        if size <= u64::MAX as u128 {
            let square = u128::from(size as u64) * u128::from(size as u64);
            match self.squares.checked_add(square) {
                Some(squares) => self.squares = squares,
                None => {
                    self.squares_big += std::mem::take(&mut self.squares);
                    self.squares = square;
                }
            }
        } else {
            let size = BigInt::from(size);
            self.squares_big += &size * &size;
        }
    }

    fn add_floats(&mut self, values: &ArrayRef) -> Result<()> {
        self.binary = true;
        let values = match nan_mask(values) {
            None => values.clone(),
            Some(nan) => {
                self.nan_count += nan.true_count() as u64;
                arrow::compute::filter(
                    values,
                    &arrow::compute::not(&BooleanArray::new(nan.values().clone(), None))?,
                )?
            }
        };
        let (sum, squares) = &mut **self.floats.get_or_insert_default();
        for value in values.as_primitive::<Float64Type>().iter().flatten() {
            self.count += 1;
            if value == f64::INFINITY {
                self.infinite.0 += 1;
            } else if value == f64::NEG_INFINITY {
                self.infinite.1 += 1;
            } else {
                sum.add(value);
                squares.add_square(value);
            }
        }
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: &MomentSums) {
        self.count += other.count;
        self.nan_count += other.nan_count;
        self.infinite.0 += other.infinite.0;
        self.infinite.1 += other.infinite.1;
        self.binary |= other.binary;
        self.scale = self.scale.max(other.scale);
        self.sum_big += &other.sum_big;
        self.sum_big += other.sum;
        self.squares_big += &other.squares_big;
        self.squares_big += other.squares;
        if let Some(theirs) = &other.floats {
            let mine = &mut **self.floats.get_or_insert_default();
            mine.0.merge(&theirs.0);
            mine.1.merge(&theirs.1);
        }
    }

    pub(crate) fn finish(self) -> Moments {
        let (sum, sum_squares) = match self.floats {
            Some(floats) => (floats.0.value(), floats.1.value()),
            None => (
                BigDecimal::new(self.sum_big + self.sum, self.scale),
                BigDecimal::new(self.squares_big + self.squares, 2 * self.scale),
            ),
        };
        Moments {
            count: self.count,
            sum,
            sum_squares,
            nan_count: self.nan_count,
            infinite: self.infinite,
            binary: self.binary,
        }
    }
}

/// An exact sum of doubles: a fixed-point number wide enough for every finite double and every square of one,
/// in limbs of 32 bits held in 64, so that carries are settled only now and then. The idea is the small
/// superaccumulator of R. Neal, "Fast exact summation using small and large superaccumulators" (2015).
#[derive(Debug)]
pub(crate) struct FloatSum {
    limbs: Vec<i64>,
    added: u32,
}

/// Exponent of the lowest bit: that of the square of the smallest double, 2^-2148, rounded to whole limbs.
const LOWEST_BIT: i32 = -2176;
/// Limbs up to the square of the largest double, 2^2048, with room for carries.
const LIMBS: usize = ((2048 + 2176) / 32 + 4) as usize;
/// Additions between carries: 2^30 additions of 32 bits fit 63 bits.
const ADDITIONS_MAX: u32 = 1 << 29;

impl Default for FloatSum {
    fn default() -> Self {
        FloatSum {
            limbs: vec![0; LIMBS],
            added: 0,
        }
    }
}

impl FloatSum {
    /// Adds a finite double.
    pub(crate) fn add(&mut self, value: f64) {
        let (mantissa, exponent, negative) = parts(value);
        self.add_scaled(u128::from(mantissa), exponent, negative);
    }

    /// Adds the square of a finite double, exactly.
    fn add_square(&mut self, value: f64) {
        let (mantissa, exponent, _) = parts(value);
        self.add_scaled(u128::from(mantissa) * u128::from(mantissa), 2 * exponent, false);
    }

    fn add_scaled(&mut self, mantissa: u128, exponent: i32, negative: bool) {
        if mantissa == 0 {
            return;
        }
        let position = (exponent - LOWEST_BIT) as usize;
        let (mut limb, shift) = (position / 32, position % 32);
        let low = mantissa << shift;
        let high = if shift == 0 { 0 } else { mantissa >> (128 - shift) };
        for mut word in [low, high] {
            for _ in 0..4 {
                let part = (word & 0xffff_ffff) as i64;
                if part != 0 {
                    self.limbs[limb] += if negative { -part } else { part };
                }
                word >>= 32;
                limb += 1;
            }
            if high == 0 {
                break;
            }
        }
        self.added += 1;
        if self.added >= ADDITIONS_MAX {
            self.carry();
        }
    }

    fn carry(&mut self) {
        self.added = 0;
        for at in 0..self.limbs.len() - 1 {
            let carry = self.limbs[at] >> 32;
            self.limbs[at] &= 0xffff_ffff;
            self.limbs[at + 1] += carry;
        }
    }

    fn merge(&mut self, other: &FloatSum) {
        self.carry();
        self.limbs
            .iter_mut()
            .zip(&other.limbs)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.carry();
    }

    /// The sum as an exact decimal.
    fn value(mut self) -> BigDecimal {
        self.carry();
        let mut whole = BigInt::from(0);
        for limb in self.limbs.iter().rev() {
            whole = (whole << 32) + limb;
        }
        if whole == BigInt::from(0) {
            return BigDecimal::from(0);
        }
        // whole · 2^LOWEST_BIT, and 2^-n = 5^n · 10^-n; trailing zero bits are taken out first.
        let zeros = whole.trailing_zeros().unwrap_or(0) as i32;
        let exponent = LOWEST_BIT + zeros;
        let whole = whole >> zeros;
        match exponent {
            0.. => BigDecimal::from(whole << exponent),
            _ => BigDecimal::new(
                whole * BigInt::from(5).pow(exponent.unsigned_abs()),
                i64::from(-exponent),
            ),
        }
    }
}

/// A finite double as `mantissa · 2^exponent` and its sign.
fn parts(value: f64) -> (u64, i32, bool) {
    let bits = value.to_bits();
    let field = (bits >> 52 & 0x7ff) as i32;
    let fraction = bits & 0x000f_ffff_ffff_ffff;
    let (mantissa, exponent) = if field == 0 {
        (fraction, -1074)
    } else {
        (fraction | 1 << 52, field - 1075)
    };
    (mantissa, exponent, bits >> 63 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{Decimal128Array, Float64Array, Int64Array};
    use std::sync::Arc;

    fn moments(values: ArrayRef) -> Moments {
        let mut sums = MomentSums::default();
        sums.add(&values).unwrap();
        sums.finish()
    }

    #[test]
    fn integers_do_not_wrap() {
        let found = moments(Arc::new(Int64Array::from(vec![
            9_000_000_000_000_000_000,
            9_000_000_000_000_000_000,
        ])));
        assert_eq!(found.sum, BigDecimal::from_str("18000000000000000000").unwrap());
    }

    #[test]
    fn decimals_keep_their_cents() {
        let values = Decimal128Array::from(vec![10, 20, -30])
            .with_precision_and_scale(12, 2)
            .unwrap();
        assert_eq!(moments(Arc::new(values)).sum, BigDecimal::from(0));
    }

    #[test]
    fn doubles_sum_exactly_in_any_order() {
        let values = [1e308, 1.0, -1e308, 0.1, 1e-300, -0.1];
        let forward = moments(Arc::new(Float64Array::from(values.to_vec())));
        let backward = moments(Arc::new(Float64Array::from(
            values.iter().rev().copied().collect::<Vec<_>>(),
        )));
        assert_eq!(forward.sum, backward.sum);
        let exact = BigDecimal::from(1) + BigDecimal::try_from(1e-300).unwrap();
        assert_eq!(forward.sum, exact);
        assert_eq!(forward.sum_squares, backward.sum_squares);
    }

    #[test]
    fn nan_and_infinity_are_counted_apart() {
        let found = moments(Arc::new(Float64Array::from(vec![
            Some(1.5),
            None,
            Some(f64::NAN),
            Some(f64::INFINITY),
        ])));
        assert_eq!((found.count, found.nan_count, found.infinite), (2, 1, (1, 0)));
        assert_eq!(found.sum, BigDecimal::try_from(1.5).unwrap());
        assert_eq!(found.sum_squares, BigDecimal::try_from(2.25).unwrap());
    }
}
