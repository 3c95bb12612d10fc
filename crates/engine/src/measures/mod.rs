//! Measures over chunks: one accumulator per measure and task, merged at the end. Every accumulator is exact,
//! so that neither the order of rows nor the number of tasks shows in the result.

mod extremes;
mod grouped;
mod join;
mod moments;
mod ranked;

pub(crate) use extremes::Extremes;
pub(crate) use grouped::{GroupedKeys, Groups};
pub(crate) use join::JoinSums;
pub(crate) use moments::MomentSums;
pub(crate) use ranked::RankedValues;

use crate::error::Result;
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::DataType;
use comporta_rules::measure::MeasureValue;

/// The state of a measure that is fed with arrays.
#[derive(Debug)]
pub(crate) enum Accumulator {
    Rows(u64),
    Matches { matched: u64, unknown: u64, rows: u64 },
    Extremes(Extremes),
    Moments(Box<MomentSums>),
    Ranked(RankedValues),
    Keys(GroupedKeys),
    Join(JoinSums),
}

impl Accumulator {
    /// Adds values: the rows of `scope` (`None`: all), less the bad ones.
    pub(crate) fn add(
        &mut self,
        values: &[ArrayRef],
        rows: usize,
        scope: Option<&BooleanBuffer>,
        bad: Option<&BooleanBuffer>,
    ) -> Result<()> {
        let in_scope = scope.map_or(rows, BooleanBuffer::count_set_bits) as u64;
        match self {
            Accumulator::Rows(count) => *count += in_scope,
            Accumulator::Matches {
                matched,
                unknown,
                rows: all,
            } => {
                *all += in_scope;
                let (true_rows, null_rows) = count_truth(&values[0], scope, bad);
                *matched += true_rows;
                *unknown += null_rows;
            }
            Accumulator::Extremes(extremes) => extremes.add(&kept(&values[0], scope, bad)?)?,
            Accumulator::Moments(moments) => moments.add(&kept(&values[0], scope, bad)?)?,
            Accumulator::Ranked(ranked) => ranked.add(&kept(&values[0], scope, bad)?)?,
            Accumulator::Keys(keys) => {
                let values: Vec<ArrayRef> = values
                    .iter()
                    .map(|column| kept(column, scope, bad))
                    .collect::<Result<_>>()?;
                keys.add(&values)?;
            }
            Accumulator::Join(join) => {
                let values: Vec<ArrayRef> = values
                    .iter()
                    .map(|column| kept(column, scope, bad))
                    .collect::<Result<_>>()?;
                join.add(&values)?;
            }
        }
        Ok(())
    }

    /// Takes in the state of another task.
    pub(crate) fn merge(&mut self, other: Accumulator) -> Result<()> {
        match (self, other) {
            (Accumulator::Rows(mine), Accumulator::Rows(theirs)) => *mine += theirs,
            (
                Accumulator::Matches { matched, unknown, rows },
                Accumulator::Matches {
                    matched: m,
                    unknown: u,
                    rows: r,
                },
            ) => {
                *matched += m;
                *unknown += u;
                *rows += r;
            }
            (Accumulator::Extremes(mine), Accumulator::Extremes(theirs)) => mine.merge(theirs)?,
            (Accumulator::Moments(mine), Accumulator::Moments(theirs)) => mine.merge(&theirs),
            (Accumulator::Ranked(mine), Accumulator::Ranked(theirs)) => mine.merge(theirs)?,
            (Accumulator::Keys(mine), Accumulator::Keys(theirs)) => mine.merge(theirs),
            (Accumulator::Join(mine), Accumulator::Join(theirs)) => mine.merge(theirs),
            _ => return Err(crate::Error::internal("accumulators of different measures were merged")),
        }
        Ok(())
    }

    /// The value.
    pub(crate) fn finish(self) -> MeasureValue {
        match self {
            Accumulator::Rows(count) => MeasureValue::Count(count),
            Accumulator::Matches { matched, unknown, rows } => MeasureValue::Matches { matched, unknown, rows },
            Accumulator::Extremes(extremes) => extremes.finish(),
            Accumulator::Moments(moments) => MeasureValue::Moments(moments.finish()),
            Accumulator::Ranked(ranked) => ranked.finish(),
            Accumulator::Keys(keys) => MeasureValue::Keys(keys.finish()),
            Accumulator::Join(join) => MeasureValue::Join(join.finish()),
        }
    }
}

/// The values of the rows in scope whose cell could be read.
fn kept(values: &ArrayRef, scope: Option<&BooleanBuffer>, bad: Option<&BooleanBuffer>) -> Result<ArrayRef> {
    let mask = match (scope, bad) {
        (None, None) => return Ok(values.clone()),
        (Some(scope), None) => scope.clone(),
        (None, Some(bad)) => !bad,
        (Some(scope), Some(bad)) => scope & &(!bad),
    };
    Ok(arrow::compute::filter(values, &BooleanArray::new(mask, None))?)
}

/// How many rows in scope are TRUE, and how many NULL or bad.
fn count_truth(values: &ArrayRef, scope: Option<&BooleanBuffer>, bad: Option<&BooleanBuffer>) -> (u64, u64) {
    let all = BooleanBuffer::new_set(values.len());
    let scope = scope.unwrap_or(&all);
    if values.data_type() != &DataType::Boolean {
        return (0, scope.count_set_bits() as u64);
    }
    let values = values.as_boolean();
    let known = match (values.nulls(), bad) {
        (None, None) => all.clone(),
        (Some(nulls), None) => nulls.inner().clone(),
        (None, Some(bad)) => !bad,
        (Some(nulls), Some(bad)) => nulls.inner() & &(!bad),
    };
    let known = &known & scope;
    let matched = (&known & values.values()).count_set_bits();
    (matched as u64, (scope.count_set_bits() - known.count_set_bits()) as u64)
}
