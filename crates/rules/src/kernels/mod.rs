//! Tests that run over whole columns where the engine's own would round, wrap or coerce.

pub mod compare;
pub(crate) mod numbers;
pub mod sum_of;
