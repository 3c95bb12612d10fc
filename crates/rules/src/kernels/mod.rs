//! Tests that run over whole columns: of text, compiled once and fed with raw bytes; of numbers, where the engine's own
//! would round, wrap or coerce.

pub mod compare;
pub mod format;
pub mod length;
pub(crate) mod numbers;
pub mod parses;
pub mod regex;
pub mod sum_of;
mod text;

pub use text::{TextTest, holds};
