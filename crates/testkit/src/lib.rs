//! For tests only: tables as text, a world in memory, cases of `spec/` read from Markdown.

pub mod case;
pub mod memory;
pub mod s3;
pub mod table;
