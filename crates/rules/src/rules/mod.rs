//! One file per rule, in the order of names.

pub mod avg;
pub mod freshness;
pub mod max;
pub mod min;
pub mod no_gaps;
pub mod not_null;
pub mod outliers;
pub mod percentile;
pub mod range;
pub mod row_count;
pub mod stddev;
pub mod sum;
pub mod unique;
