//! The asynchronous runtime, started by the commands that read data and by no other.

use crate::failure::Failure;
use comporta::engine::{Error, ErrorKind};

/// Runs a future to its end on all cores, or on as many as asked for.
pub(crate) fn block_on<T>(threads: Option<usize>, future: impl Future<Output = T>) -> Result<T, Failure> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    let runtime = builder
        .enable_all()
        .build()
        .map_err(|error| Error::new(ErrorKind::Refused, format!("threads could not be started: {error}")))?;
    let result = runtime.block_on(future);
    // Readers of files that are no longer wanted are not waited for.
    runtime.shutdown_background();
    Ok(result)
}
