//! All values of a column in order, for percentiles, outliers and gaps: sorted runs in memory, on disk above
//! a limit, merged when they are read.

use crate::error::{Error, Result};
use crate::measures::extremes::nan_mask;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::*;
use bigdecimal::{BigDecimal, FromPrimitive};
use comporta_rules::measure::{MeasureValue, Ranked};
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};

/// Values held in memory by one task before they are sorted and written out: 128 MiB of them.
const IN_MEMORY_MAX: usize = 8 * 1024 * 1024;

/// Values so far, as integers in their order.
#[derive(Debug)]
pub(crate) struct RankedValues {
    decode: Decode,
    values: Vec<i128>,
    runs: Vec<(Arc<Mutex<File>>, u64)>,
    nan_count: u64,
    fault: Option<String>,
}

/// How an ordered integer becomes a number again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decode {
    /// An unscaled integer with so many decimals.
    Scaled(i64),
    /// The bits of a double, folded so that integers order as the doubles do.
    Double,
}

impl Decode {
    fn number(self, value: i128) -> BigDecimal {
        match self {
            Decode::Scaled(scale) => BigDecimal::new(value.into(), scale),
            Decode::Double => BigDecimal::from_f64(unfold(value as i64)).unwrap_or_default(),
        }
    }
}

/// The bits of a double as an integer of the same order.
fn fold(value: f64) -> i64 {
    let bits = (if value == 0.0 { 0.0 } else { value }).to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

fn unfold(value: i64) -> f64 {
    f64::from_bits((value ^ (((value >> 63) as u64) >> 1) as i64) as u64)
}

impl RankedValues {
    pub(crate) fn new(data_type: &DataType) -> Self {
        let decode = match data_type {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => Decode::Double,
            DataType::Decimal32(_, s) | DataType::Decimal64(_, s) | DataType::Decimal128(_, s) => {
                Decode::Scaled(i64::from(*s))
            }
            _ => Decode::Scaled(0),
        };
        RankedValues {
            decode,
            values: Vec::new(),
            runs: Vec::new(),
            nan_count: 0,
            fault: None,
        }
    }

    pub(crate) fn add(&mut self, values: &ArrayRef) -> Result<()> {
        macro_rules! extend {
            ($ty:ty) => {
                self.values.extend(
                    values
                        .as_primitive::<$ty>()
                        .iter()
                        .flatten()
                        .map(|value| value as i128),
                )
            };
        }
        match values.data_type() {
            DataType::Int8 => extend!(Int8Type),
            DataType::Int16 => extend!(Int16Type),
            DataType::Int32 => extend!(Int32Type),
            DataType::Int64 => extend!(Int64Type),
            DataType::UInt8 => extend!(UInt8Type),
            DataType::UInt16 => extend!(UInt16Type),
            DataType::UInt32 => extend!(UInt32Type),
            DataType::UInt64 => extend!(UInt64Type),
            DataType::Decimal32(..) => extend!(Decimal32Type),
            DataType::Decimal64(..) => extend!(Decimal64Type),
            DataType::Decimal128(..) => extend!(Decimal128Type),
            DataType::Date32 => extend!(Date32Type),
            DataType::Date64 => {
                let days = arrow::compute::cast(values, &DataType::Date32)?;
                return self.add(&days);
            }
            DataType::Timestamp(TimeUnit::Second, _) => extend!(TimestampSecondType),
            DataType::Timestamp(TimeUnit::Millisecond, _) => extend!(TimestampMillisecondType),
            DataType::Timestamp(TimeUnit::Microsecond, _) => extend!(TimestampMicrosecondType),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => extend!(TimestampNanosecondType),
            DataType::Float16 | DataType::Float32 | DataType::Float64 => self.add_floats(values)?,
            DataType::Null => {}
            other => self.fault = Some(format!("values of type {other} have no order to rank by")),
        }
        if self.values.len() >= IN_MEMORY_MAX {
            self.write_run()?;
        }
        Ok(())
    }

    fn add_floats(&mut self, values: &ArrayRef) -> Result<()> {
        self.nan_count += nan_mask(values).map_or(0, |nan| nan.true_count() as u64);
        let wide = arrow::compute::cast(values, &DataType::Float64)?;
        for value in wide
            .as_primitive::<Float64Type>()
            .iter()
            .flatten()
            .filter(|value| !value.is_nan())
        {
            if value.is_infinite() {
                self.fault = Some("infinite values cannot be ranked as numbers".into());
            }
            self.values.push(i128::from(fold(value)));
        }
        Ok(())
    }

    fn write_run(&mut self) -> Result<()> {
        self.values.sort_unstable();
        let mut file =
            tempfile::tempfile().map_err(|error| Error::from(error).context("spilling values to be ranked"))?;
        let mut bytes = Vec::with_capacity(16 * 65_536);
        for part in self.values.chunks(65_536) {
            bytes.clear();
            part.iter()
                .for_each(|value| bytes.extend_from_slice(&value.to_ne_bytes()));
            file.write_all(&bytes)
                .map_err(|error| Error::from(error).context("spilling values to be ranked"))?;
        }
        self.runs.push((Arc::new(Mutex::new(file)), self.values.len() as u64));
        self.values.clear();
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: RankedValues) -> Result<()> {
        self.nan_count += other.nan_count;
        self.fault = self.fault.take().or(other.fault);
        self.runs.extend(other.runs);
        self.values.extend(other.values);
        if self.values.len() >= IN_MEMORY_MAX {
            self.write_run()?;
        }
        Ok(())
    }

    pub(crate) fn finish(mut self) -> MeasureValue {
        if let Some(fault) = self.fault {
            return MeasureValue::Error(fault);
        }
        self.values.sort_unstable();
        let count = self.values.len() as u64 + self.runs.iter().map(|(_, count)| count).sum::<u64>();
        MeasureValue::Ranked(Arc::new(Sorted {
            decode: self.decode,
            values: self.values,
            runs: self.runs,
            count,
            nan_count: self.nan_count,
        }))
    }
}

/// Sorted values in memory and in sorted runs on disk.
#[derive(Debug)]
struct Sorted {
    decode: Decode,
    values: Vec<i128>,
    runs: Vec<(Arc<Mutex<File>>, u64)>,
    count: u64,
    nan_count: u64,
}

impl Sorted {
    /// Walks all values upwards until told to stop.
    fn walk(&self, visit: &mut dyn FnMut(i128) -> bool) {
        let mut readers: Vec<(Option<i128>, BufReader<File>)> = Vec::new();
        for (file, _) in &self.runs {
            let Ok(file) = file.lock() else { continue };
            let Ok(mut file) = file.try_clone() else { continue };
            if file.seek(SeekFrom::Start(0)).is_ok() {
                let mut reader = BufReader::with_capacity(1 << 20, file);
                readers.push((next_value(&mut reader), reader));
            }
        }
        let mut memory = self.values.iter().copied().peekable();
        loop {
            let smallest = readers
                .iter()
                .enumerate()
                .filter_map(|(at, (head, _))| head.map(|head| (head, at)))
                .min();
            let value = match (smallest, memory.peek().copied()) {
                (None, None) => return,
                (Some((head, at)), other) if other.is_none_or(|other| head <= other) => {
                    let (slot, reader) = &mut readers[at];
                    *slot = next_value(reader);
                    head
                }
                (_, Some(_)) => match memory.next() {
                    Some(value) => value,
                    None => return,
                },
                (Some(_), None) => return,
            };
            if !visit(value) {
                return;
            }
        }
    }
}

fn next_value(reader: &mut BufReader<File>) -> Option<i128> {
    let mut bytes = [0u8; 16];
    reader.read_exact(&mut bytes).ok().map(|()| i128::from_ne_bytes(bytes))
}

impl Ranked for Sorted {
    fn count(&self) -> u64 {
        self.count
    }

    fn at(&self, rank: u64) -> Option<BigDecimal> {
        if self.runs.is_empty() {
            return self
                .values
                .get(usize::try_from(rank).ok()?)
                .map(|value| self.decode.number(*value));
        }
        let (mut left, mut found) = (rank, None);
        self.walk(&mut |value| {
            if left == 0 {
                found = Some(value);
                return false;
            }
            left -= 1;
            true
        });
        found.map(|value| self.decode.number(value))
    }

    fn count_outside(&self, low: &BigDecimal, high: &BigDecimal) -> u64 {
        let mut outside = 0;
        let mut last: Option<(i128, bool)> = None;
        self.walk(&mut |value| {
            let is_outside = match last {
                Some((known, is_outside)) if known == value => is_outside,
                _ => {
                    let number = self.decode.number(value);
                    number < *low || number > *high
                }
            };
            last = Some((value, is_outside));
            outside += u64::from(is_outside);
            true
        });
        outside
    }

    fn for_each_distinct(&self, visit: &mut dyn FnMut(&BigDecimal)) {
        let mut last = None;
        self.walk(&mut |value| {
            if last != Some(value) {
                visit(&self.decode.number(value));
                last = Some(value);
            }
            true
        });
    }

    fn nan_count(&self) -> u64 {
        self.nan_count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::Float64Array;

    #[test]
    fn doubles_rank_in_their_order_and_come_back_exactly() {
        let mut ranked = RankedValues::new(&DataType::Float64);
        let values = vec![0.1, -5.5, f64::NAN, 3.0, -0.0];
        ranked.add(&(Arc::new(Float64Array::from(values)) as ArrayRef)).unwrap();
        ranked.write_run().unwrap();
        ranked
            .add(&(Arc::new(Float64Array::from(vec![1.0])) as ArrayRef))
            .unwrap();
        let MeasureValue::Ranked(sorted) = ranked.finish() else {
            panic!("no ranks")
        };
        let all: Vec<String> = (0..sorted.count())
            .map(|rank| sorted.at(rank).unwrap().to_string())
            .collect();
        assert_eq!(sorted.nan_count(), 1);
        assert_eq!(all[0], "-5.5");
        assert_eq!(all[1], "0");
        assert!(all[2].starts_with("0.1000000000000000055"));
        assert_eq!(all[4], "3");
    }
}
