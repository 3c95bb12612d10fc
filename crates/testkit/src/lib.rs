//! What only tests use.

pub mod s3;
