//! Whether a total is the sum of its parts, row by row.

use crate::kernels::numbers::{Number, Numbers, add_scaled};
use arrow::array::BooleanArray;
use arrow::datatypes::DataType;
use bigdecimal::{BigDecimal, ToPrimitive, Zero as _};
use datafusion_common::Result;
use datafusion_expr::{ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use std::sync::Arc;

/// How far the two may lie apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Tolerance {
    /// So much.
    Absolute(BigDecimal),
    /// Such a share of the larger of the two.
    Relative(BigDecimal),
}

/// A predicate that is TRUE where the first expression is the sum of the others: exact for integers and decimals.
/// A null in any of them is unknown; NaN and infinite values have no sum, so such a row is FALSE.
pub fn is_sum_of(total: Expr, parts: Vec<Expr>, tolerance: Tolerance) -> Expr {
    let kernel = SumOf {
        tolerance,
        signature: Signature::variadic_any(Volatility::Immutable),
    };
    let arguments = std::iter::once(total).chain(parts).collect();
    ScalarUDF::from(kernel).call(arguments)
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SumOf {
    tolerance: Tolerance,
    signature: Signature,
}

impl ScalarUDFImpl for SumOf {
    fn name(&self) -> &str {
        "is_sum_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let columns = arrays.iter().map(Numbers::of).collect::<Result<Vec<_>, _>>()?;
        let rows = columns.iter().map(Numbers::len).min().unwrap_or(0);
        let truths: BooleanArray = (0..rows).map(|row| self.tolerance.holds(&columns, row)).collect();
        Ok(ColumnarValue::Array(Arc::new(truths)))
    }
}

impl Tolerance {
    fn holds(&self, columns: &[Numbers], row: usize) -> Option<bool> {
        let numbers = columns
            .iter()
            .map(|column| column.at(row))
            .collect::<Option<Vec<Number>>>()?;
        let (total, parts) = numbers.split_first()?;
        let float = numbers.iter().any(|number| matches!(number, Number::Float { .. }));
        Some(match float {
            true => self.holds_of_floats(*total, parts),
            false => self.holds_exactly(*total, parts),
        })
    }

    fn holds_exactly(&self, total: Number, parts: &[Number]) -> bool {
        let scaled: Option<Vec<(i128, i64)>> = parts
            .iter()
            .map(|part| match part {
                Number::Scaled(value, scale) => Some((*value, *scale)),
                _ => None,
            })
            .collect();
        // Most rows keep to their total to the last digit, and are done without long numbers.
        if let Some((sum, scale)) = scaled.as_deref().and_then(add_scaled)
            && total
                .order(Number::Scaled(sum, scale))
                .is_some_and(std::cmp::Ordering::is_eq)
        {
            return true;
        }
        let sum: Option<BigDecimal> = parts.iter().map(|part| part.exact()).sum();
        match (total.exact(), sum) {
            (Some(total), Some(sum)) => (&total - &sum).abs() <= self.allowed(&total, &sum),
            _ => false,
        }
    }

    fn allowed(&self, total: &BigDecimal, sum: &BigDecimal) -> BigDecimal {
        match self {
            Tolerance::Absolute(limit) => limit.clone(),
            Tolerance::Relative(share) => share * total.abs().max(sum.abs()),
        }
    }

    fn holds_of_floats(&self, total: Number, parts: &[Number]) -> bool {
        let total = total.nearest(false).unwrap_or(f64::NAN);
        let sum: f64 = parts.iter().map(|part| part.nearest(false).unwrap_or(f64::NAN)).sum();
        let largest = total.abs().max(sum.abs());
        let limit = match self {
            // The limit of a difference that floats cannot hold: 0.30 − 0.29 is not above 0.01.
            Tolerance::Absolute(limit) if !limit.is_zero() => {
                limit.to_f64().unwrap_or(f64::INFINITY) + 4.0 * f64::EPSILON * largest
            }
            Tolerance::Absolute(_) => 0.0,
            Tolerance::Relative(share) => share.to_f64().unwrap_or(f64::INFINITY) * largest,
        };
        // With NaN or infinity the difference is NaN or infinite, and no limit holds.
        let difference = (total - sum).abs();
        difference.is_finite() && difference <= limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int64Array};

    fn truths(tolerance: &Tolerance, columns: &[ArrayRef]) -> Vec<Option<bool>> {
        let numbers: Vec<Numbers> = columns.iter().map(|column| Numbers::of(column).unwrap()).collect();
        (0..columns[0].len())
            .map(|row| tolerance.holds(&numbers, row))
            .collect()
    }

    fn exact() -> Tolerance {
        Tolerance::Absolute(BigDecimal::from(0))
    }

    fn decimals(values: Vec<i128>, scale: i8) -> ArrayRef {
        Arc::new(
            Decimal128Array::from(values)
                .with_precision_and_scale(38, scale)
                .unwrap(),
        )
    }

    fn floats(values: &[f64]) -> ArrayRef {
        Arc::new(Float64Array::from(values.to_vec()))
    }

    #[test]
    fn integers_and_decimals_are_added_exactly() {
        let total: ArrayRef = Arc::new(Int64Array::from(vec![Some(3), Some(3), None, Some(i64::MAX)]));
        let parts = decimals(vec![150, 151, 0, i128::from(i64::MAX) * 100], 2);
        let more = decimals(vec![1500, 1500, 0, 0], 3);
        assert_eq!(
            truths(&exact(), &[total, parts, more]),
            [Some(true), Some(false), None, Some(true)]
        );
    }

    #[test]
    fn a_sum_beyond_38_digits_is_still_exact() {
        let nines = 10_i128.pow(38) - 1;
        let sum = truths(
            &exact(),
            &[
                decimals(vec![nines], 0),
                decimals(vec![nines], 0),
                decimals(vec![nines], 0),
            ],
        );
        assert_eq!(sum, [Some(false)]);
    }

    #[test]
    fn floats_keep_to_their_tolerance() {
        let relative = Tolerance::Relative("1e-9".parse().unwrap());
        let rows = [
            floats(&[0.3, 0.3, f64::NAN, f64::INFINITY]),
            floats(&[0.1, 0.1, 1.0, f64::INFINITY]),
            floats(&[0.2, 0.21, 1.0, 1.0]),
        ];
        assert_eq!(
            truths(&relative, &rows),
            [Some(true), Some(false), Some(false), Some(false)]
        );
        assert_eq!(truths(&exact(), &rows)[0], Some(false), "no tolerance is no tolerance");
        let cent = Tolerance::Absolute("0.01".parse().unwrap());
        assert_eq!(truths(&cent, &rows)[..2], [Some(true), Some(true)]);
    }

    #[test]
    fn a_tolerance_of_decimals_is_exact() {
        let cent = Tolerance::Absolute("0.01".parse().unwrap());
        let found = truths(&cent, &[decimals(vec![100, 100], 2), decimals(vec![99, 98], 2)]);
        assert_eq!(found, [Some(true), Some(false)]);
    }
}
