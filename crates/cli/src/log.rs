//! What the program is doing, on standard error, for those who ask with `COMPORTA_LOG`.

use tracing_subscriber::EnvFilter;

const CRATES: &[&str] = &[
    "comporta",
    "comporta_engine",
    "comporta_lake",
    "comporta_state",
    "comporta_rules",
];

/// Starts logging at the level that `COMPORTA_LOG` names. Only our own crates speak: the libraries below would
/// write out credentials and values of the data.
pub(crate) fn start() {
    let Ok(level) = std::env::var("COMPORTA_LOG") else {
        return;
    };
    if !["error", "warn", "info", "debug", "trace"].contains(&level.as_str()) {
        return;
    }
    let directives: Vec<String> = CRATES.iter().map(|name| format!("{name}={level}")).collect();
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_env_filter(EnvFilter::new(directives.join(",")))
        .init();
}
