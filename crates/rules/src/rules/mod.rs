//! One file per rule, in the order of names.

pub mod not_null;
pub mod range;
pub mod row_count;
pub mod unique;
