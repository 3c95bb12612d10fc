//! Smallest and largest value, without nulls and NaN.

use crate::error::Result;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::{DataType, Float16Type, Float32Type, Float64Type};
use comporta_rules::measure::MeasureValue;
use datafusion::scalar::ScalarValue;
use std::cmp::Ordering;

/// Smallest and largest so far.
#[derive(Debug, Default)]
pub(crate) struct Extremes {
    min: Option<ScalarValue>,
    max: Option<ScalarValue>,
    nan_count: u64,
}

impl Extremes {
    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        let values = self.without_nan(values)?;
        if values.null_count() == values.len() {
            return Ok(());
        }
        let (min, max) = extremes_of(&values)?;
        self.keep(min, max)
    }

    fn keep(&mut self, min: ScalarValue, max: ScalarValue) -> Result<()> {
        if !min.is_null()
            && self
                .min
                .as_ref()
                .is_none_or(|mine| min.partial_cmp(mine) == Some(Ordering::Less))
        {
            self.min = Some(min);
        }
        if !max.is_null()
            && self
                .max
                .as_ref()
                .is_none_or(|mine| max.partial_cmp(mine) == Some(Ordering::Greater))
        {
            self.max = Some(max);
        }
        Ok(())
    }

    /// NaN is counted and left out (S12).
    fn without_nan(&mut self, values: &ArrayRef) -> Result<ArrayRef> {
        let nan = nan_mask(values);
        let Some(nan) = nan else { return Ok(values.clone()) };
        self.nan_count += nan.true_count() as u64;
        Ok(arrow::compute::filter(values, &arrow::compute::not(&nan)?)?)
    }

    pub(crate) fn merge(&mut self, other: Extremes) -> Result<()> {
        self.nan_count += other.nan_count;
        if let (Some(min), Some(max)) = (other.min, other.max) {
            self.keep(min, max)?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> MeasureValue {
        MeasureValue::Extremes {
            min: self.min,
            max: self.max,
            nan_count: self.nan_count,
        }
    }
}

/// Which values are NaN; `None` if none is, or the type has none. Nulls are not NaN.
pub(crate) fn nan_mask(values: &ArrayRef) -> Option<BooleanArray> {
    let mask = match values.data_type() {
        DataType::Float64 => BooleanArray::from_unary(values.as_primitive::<Float64Type>(), f64::is_nan),
        DataType::Float32 => BooleanArray::from_unary(values.as_primitive::<Float32Type>(), f32::is_nan),
        DataType::Float16 => BooleanArray::from_unary(values.as_primitive::<Float16Type>(), |value| value.is_nan()),
        _ => return None,
    };
    let found = mask.iter().flatten().any(|nan| nan);
    found.then(|| mask.iter().map(|nan| Some(nan.unwrap_or(false))).collect())
}

fn extremes_of(values: &ArrayRef) -> Result<(ScalarValue, ScalarValue)> {
    use datafusion_functions_aggregate_common::min_max;
    let min = min_max::min_batch(values)?;
    let max = min_max::max_batch(values)?;
    Ok((min, max))
}
