//! One file per rule, in the order of names.

pub mod avg;
pub mod column_order;
pub mod compare;
pub mod custom;
pub mod event_order;
pub mod expression;
pub mod freshness;
pub mod max;
pub mod min;
pub mod no_gaps;
pub mod not_null;
pub mod outliers;
pub mod percentile;
pub mod range;
pub mod required_columns;
pub mod row_count;
pub mod schema;
pub mod sql;
pub mod stddev;
pub mod sum;
pub mod sum_of;
pub mod unique;
