//! One file per rule, in the order of names.

pub mod accepted_values;
pub mod avg;
pub mod column_order;
pub mod compare;
pub mod custom;
pub mod distinct_count;
pub mod duplicate_count;
pub mod duplicate_percent;
pub mod event_order;
pub mod expression;
pub mod forbidden_values;
pub mod foreign_key;
pub mod format;
pub mod freshness;
pub mod invalid_count;
pub mod invalid_percent;
pub mod join_cardinality;
pub mod length;
pub mod max;
pub mod min;
pub mod missing_count;
pub mod missing_percent;
pub mod no_gaps;
pub mod not_blank;
pub mod not_null;
pub mod outliers;
pub mod percentile;
pub mod range;
pub mod regex;
pub mod required_columns;
pub mod row_count;
pub mod schema;
pub mod sql;
pub mod stddev;
pub mod sum;
pub mod sum_of;
pub mod r#type;
pub mod unique;

#[cfg(test)]
mod tests;
