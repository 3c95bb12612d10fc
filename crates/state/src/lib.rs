//! What comporta remembers between runs: the runs themselves, and who is running now.

mod lock;
mod store;

pub use lock::PipelineLock;
pub use store::{RunState, RunSummary, SqliteStore};
