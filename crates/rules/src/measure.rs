//! Numbers computed over a batch. Measures are data: equal ones are computed once, whatever
//! number of checks ask for them, and another engine can compute them in its own way.

use crate::rule::Reference;
use bigdecimal::BigDecimal;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use std::fmt;
use std::sync::Arc;

/// A number to compute over the rows in scope of a check.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Measure {
    /// How many rows there are. Value: [`MeasureValue::Count`].
    Rows,
    /// On how many rows the expression is TRUE, and on how many unknown. Value: [`MeasureValue::Matches`].
    Matches(Expr),
    /// Smallest and largest value. Value: [`MeasureValue::Extremes`].
    Extremes(Expr),
    /// Count, sum and sum of squares, exact. Value: [`MeasureValue::Moments`].
    Moments(Expr),
    /// How the rows spread over keys. Value: [`MeasureValue::Keys`].
    Keys {
        /// The key.
        keys: Vec<Expr>,
        /// Whether NULL parts compare like values; otherwise such rows are counted as unknown.
        nulls_equal: bool,
    },
    /// All values in order, for percentiles, outliers and gaps. Value: [`MeasureValue::Ranked`].
    Ranked(Expr),
    /// How rows match those of another table. Value: [`MeasureValue::Join`].
    Join {
        /// The key on our side.
        keys: Vec<Expr>,
        /// The other side.
        with: Reference,
    },
    /// A query for one boolean. Value: [`MeasureValue::Scalar`].
    ScalarQuery(String),
    /// A query for the rows that break a promise. Value: [`MeasureValue::Failures`].
    FailedRows(String),
}

/// The value of a [`Measure`].
#[derive(Debug, Clone)]
pub enum MeasureValue {
    /// A number of rows.
    Count(u64),
    /// Rows on which a predicate was true, unknown, and all rows in scope.
    Matches {
        /// TRUE.
        matched: u64,
        /// NULL, or a cell that did not parse.
        unknown: u64,
        /// Rows in scope.
        rows: u64,
    },
    /// Smallest and largest, without nulls and NaN.
    Extremes {
        /// Smallest; `None` without values.
        min: Option<ScalarValue>,
        /// Largest; `None` without values.
        max: Option<ScalarValue>,
        /// NaN values, left out.
        nan_count: u64,
    },
    /// Count, sum, sum of squares, without nulls and NaN.
    Moments(Moments),
    /// How rows spread over keys.
    Keys(KeyCounts),
    /// The values in order.
    Ranked(Arc<dyn Ranked>),
    /// How rows match another table's.
    Join(JoinCounts),
    /// What a scalar query returned: rows and columns as found, the value if it was one boolean.
    Scalar {
        /// Rows returned.
        rows: u64,
        /// Columns returned.
        columns: usize,
        /// The value, if the shape was one by one.
        value: Option<ScalarValue>,
    },
    /// Rows a `failed_rows` query returned.
    Failures(u64),
    /// The measure could not be computed.
    Error(String),
}

/// Count, sum and sum of squares of the values that are neither null nor NaN.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Moments {
    /// How many values.
    pub count: u64,
    /// Their sum, exact (also of binary fractions: the exact sum of the doubles).
    pub sum: BigDecimal,
    /// The sum of their squares, exact.
    pub sum_squares: BigDecimal,
    /// Values that are NaN, left out.
    pub nan_count: u64,
    /// Infinite values: positive and negative. With any, sums have no finite value.
    pub infinite: (u64, u64),
    /// Whether the values are binary fractions.
    pub binary: bool,
}

/// How rows spread over keys.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// Rows with a known key.
    pub rows: u64,
    /// Rows whose key has an unknown part.
    pub unknown: u64,
    /// Different keys.
    pub distinct: u64,
    /// Keys that more than one row has.
    pub repeated_keys: u64,
    /// Rows that share their key with another.
    pub repeated_rows: u64,
}

/// How rows match those of another table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JoinCounts {
    /// Rows with a known key.
    pub rows: u64,
    /// Rows whose key has an unknown part.
    pub unknown: u64,
    /// Rows whose key the other table does not have.
    pub unmatched: u64,
    /// Most rows of ours with one key.
    pub most_left: u64,
    /// Most rows of the other table with one key, among keys of ours.
    pub most_right: u64,
}

/// All values of a numeric or time column in order. Dates count in days, timestamps in their own unit,
/// everything else as the number itself.
pub trait Ranked: fmt::Debug + Send + Sync {
    /// How many values there are (nulls and NaN left out).
    fn count(&self) -> u64;
    /// The value at a rank from 0.
    fn at(&self, rank: u64) -> Option<BigDecimal>;
    /// How many values are below `low` or above `high`.
    fn count_outside(&self, low: &BigDecimal, high: &BigDecimal) -> u64;
    /// Walks the distinct values upwards.
    fn for_each_distinct(&self, visit: &mut dyn FnMut(&BigDecimal));
    /// NaN values, left out.
    fn nan_count(&self) -> u64;
}
