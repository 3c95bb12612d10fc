//! What comporta remembers between runs: the runs themselves, and who is running now.

#![allow(
    clippy::disallowed_methods,
    reason = "when a run ended and who holds a lock are facts of the world, not readings that a verdict uses"
)]

mod lock;
mod store;

pub use lock::PipelineLock;
pub use store::{RunState, RunSummary, SqliteStore};
