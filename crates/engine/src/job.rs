//! What is to be done: the checks of a run with everything that judging them needs, and the places that
//! rows come from and go to.

use crate::error::Result;
use crate::world::{RunStore, Source, Target};
use comporta_contract::Severity;
use comporta_contract::pipeline::Transform;
use comporta_contract::report::ContractRef;
use comporta_contract::rules_file::{Gate, OnEmpty};
use comporta_rules::Check;
use comporta_rules::check::Surroundings;
use futures::future::BoxFuture;
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// A batch's checks and how they weigh.
#[derive(Debug, Clone)]
pub struct Job {
    /// The pipeline, or the data for a `check`.
    pub pipeline: String,
    /// The unit of work.
    pub unit: Option<String>,
    /// `bronze`, `silver` or `gold`.
    pub layer: Option<String>,
    /// The contract the batch is held against.
    pub contract: Option<ContractRef>,
    /// The checks, in document order.
    pub checks: Vec<Check>,
    /// Checks left out on the command line; reported as not evaluated.
    pub left_out: Vec<Check>,
    /// What the batch as a whole must reach.
    pub gate: Gate,
    /// What an empty batch does.
    pub on_empty: OnEmpty,
    /// The default severity, also that of implicit type checks.
    pub on_fail: Severity,
    /// Time zone, clock reading, declared tables.
    pub surroundings: Surroundings,
    /// Whether every outcome but `pass` holds, `observe` aside.
    pub strict: bool,
    /// Failing rows shown per check, at most.
    pub sample: usize,
    /// Columns with personal data: never shown.
    pub masked: BTreeSet<String>,
    /// Whether statistics of files may prove checks.
    pub use_statistics: bool,
    /// Streams read at the same time, at most.
    pub parallelism: usize,
    /// Memory for keys and ranks before they go to disk, in bytes.
    pub memory_bytes: usize,
}

/// Opens the other datasets that rules refer to.
pub trait Tables: Send + Sync + fmt::Debug {
    /// A table declared under `tables:`.
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>>;
    /// A file named in a rule.
    fn open_path<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>>;
}

/// No other datasets.
#[derive(Debug)]
pub struct NoTables;

impl Tables for NoTables {
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move { Err(crate::Error::invalid(format!("table `{name}` is not declared"))) })
    }
    fn open_path<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move { Err(crate::Error::invalid(format!("`{path}` cannot be opened here"))) })
    }
}

/// Where the rows of a check go, if anywhere.
#[derive(Debug, Clone, Default)]
pub struct Outputs {
    /// Valid rows.
    pub valid: Option<Arc<dyn Target>>,
    /// Invalid rows with their reasons.
    pub invalid: Option<Arc<dyn Target>>,
}

/// Everything a run has beyond a check.
#[derive(Debug, Clone)]
pub struct RunSetup {
    /// What happens to the batch before the gate.
    pub transform: Vec<Transform>,
    /// Where valid rows go.
    pub target: Arc<dyn Target>,
    /// Where rejected rows go.
    pub quarantine: Option<Arc<dyn Target>>,
    /// Where the report goes as a table.
    pub report: Option<Arc<dyn Target>>,
    /// What remembers runs.
    pub store: Arc<dyn RunStore>,
    /// Where transforms and keys are spilled to.
    pub spill_dir: PathBuf,
}

/// Shows no progress.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl crate::world::Progress for Silent {
    fn step(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn done(&self) {}
}
