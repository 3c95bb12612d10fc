//! The seams to the world: where rows come from, where they go, what remembers, what time it is.

use crate::chunk::Chunk;
use crate::error::Result;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};
use comporta_contract::Report;
use datafusion::scalar::ScalarValue;
use futures::future::BoxFuture;
use futures::stream::BoxStream;
use std::collections::BTreeMap;
use std::fmt;

/// A stream of chunks, in order of rows within each file.
pub type ChunkStream = BoxStream<'static, Result<Chunk>>;

/// A batch that can be scanned again and again, with the same rows in the same places.
///
/// Opening a source reads what it takes to know the schema: footers of Parquet, the log of a Delta
/// table, and for text without declared types the whole input once, since types are inferred over all of
/// it (S17).
pub trait Source: fmt::Debug + Send + Sync {
    /// Names and types of the columns.
    fn schema(&self) -> SchemaRef;
    /// What the report calls it.
    fn description(&self) -> String;
    /// Files, by the index that a [`crate::Place`] gives.
    fn names(&self) -> &[String];
    /// Columns read from text as a type other than text, so that a cell can fail to parse: each has an
    /// implicit `type` check. Indices into the schema.
    fn parsed_columns(&self) -> &[usize];
    /// Whether a line can have the wrong shape, so that there is an implicit check of the row.
    fn has_lines(&self) -> bool;
    /// What is known without reading rows.
    fn statistics(&self) -> Statistics;
    /// A digest of names, sizes, times or versions: changes when the data does.
    fn fingerprint(&self) -> String;
    /// What the reader should know of how it was read (assumed encodings, skipped files).
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }
    /// How many bytes a scan would read, for progress and plans.
    fn bytes(&self) -> u64;
    /// Starts a scan. The streams are independent and may be read in parallel; together they give every
    /// row once. A source that cannot be scanned twice (standard input) keeps what it read.
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>>;
}

/// What a scan should give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScanRequest {
    /// Columns of the schema by index, in the order wanted. May be empty: rows are still counted.
    pub projection: Vec<usize>,
    /// At most this many streams.
    pub parallelism: usize,
    /// Whether raw text of bad cells and lines is wanted, or only the bits.
    pub raw: bool,
}

/// What a source knows without reading rows. Only what is exact is here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statistics {
    /// Rows.
    pub rows: Option<u64>,
    /// Facts per column, by index of the schema.
    pub columns: BTreeMap<usize, ColumnStatistics>,
}

/// What is known of a column. Bounds are exact, not merely bounds, and absent for types whose statistics
/// leave something out (floating point: NaN).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnStatistics {
    /// NULL values.
    pub null_count: Option<u64>,
    /// Smallest value.
    pub min: Option<ScalarValue>,
    /// Largest value.
    pub max: Option<ScalarValue>,
}

/// A place that rows are published to, or quarantined in.
pub trait Target: fmt::Debug + Send + Sync {
    /// What the report calls it: `delta lake/silver/orders`.
    fn description(&self) -> String;
    /// Checks that the place can be written to and takes this schema, before anything is read.
    fn prepare<'a>(&'a self, schema: &'a SchemaRef) -> BoxFuture<'a, Result<()>>;
    /// Begins to stage files for a run. Nothing becomes visible. What an earlier, dead run of the same
    /// pipeline left staged is removed.
    fn stage<'a>(&'a self, schema: SchemaRef, intent: &'a RunIntent) -> BoxFuture<'a, Result<Box<dyn Staging>>>;
    /// What a run committed here, if it did; asked when its record says that it began and not that it ended.
    fn committed<'a>(&'a self, run_id: &'a str) -> BoxFuture<'a, Result<Option<Committed>>>;
}

/// Files on their way into a target.
pub trait Staging: Send + Sync {
    /// A writer for one task; several may write at once.
    ///
    /// # Errors
    /// The place cannot be written to.
    fn writer(&self) -> Result<Box<dyn StageWriter>>;
    /// Makes everything visible in one commit. All writers must be finished.
    fn commit(self: Box<Self>, info: CommitInfo) -> BoxFuture<'static, Result<Committed>>;
    /// Removes what was staged.
    fn abort(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// Writes batches to staged files.
pub trait StageWriter: Send {
    /// Adds rows.
    fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>>;
    /// Closes the files.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// What a commit says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitInfo {
    /// The run.
    pub run_id: String,
    /// The pipeline.
    pub pipeline: String,
    /// The unit, or `all`.
    pub unit: String,
    /// The contract's version, if there is a contract.
    pub contract_version: Option<String>,
    /// The digest of the rules.
    pub rules_digest: String,
    /// Rows that the gate counted for this commit; the commit must hold exactly as many.
    pub rows: u64,
}

/// What a commit made visible, read back from the commit itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Committed {
    /// Rows.
    pub rows: u64,
    /// Version of the table, where it has versions.
    pub version: Option<u64>,
    /// Files.
    pub files: u64,
}

/// What a run is about to do; recorded before anything is staged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunIntent {
    /// The run.
    pub run_id: String,
    /// The pipeline.
    pub pipeline: String,
    /// The unit, or `all`.
    pub unit: String,
    /// The source's fingerprint.
    pub fingerprint: String,
    /// The digest of the rules.
    pub rules_digest: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
}

/// A run that began and did not end.
#[derive(Debug, Clone, PartialEq)]
pub struct Unfinished {
    /// What it was about to do.
    pub intent: RunIntent,
    /// Its report, if it came as far as publishing.
    pub report: Option<Report>,
}

/// What remembers runs.
pub trait RunStore: fmt::Debug + Send + Sync {
    /// The run of this pipeline and unit that began and did not end, if any. The caller holds the
    /// pipeline's lock, so such a run is dead.
    fn unfinished<'a>(&'a self, pipeline: &'a str, unit: &'a str) -> BoxFuture<'a, Result<Option<Unfinished>>>;
    /// Records that a run begins.
    fn begin<'a>(&'a self, intent: &'a RunIntent) -> BoxFuture<'a, Result<()>>;
    /// Keeps the report that will be true once the commit that follows succeeds, so that a run which dies
    /// right after it can still be recorded.
    fn publishing<'a>(&'a self, report: &'a Report) -> BoxFuture<'a, Result<()>>;
    /// Records how a run ended.
    fn finish<'a>(&'a self, report: &'a Report) -> BoxFuture<'a, Result<()>>;
    /// Records that a run ended without a report.
    fn fail<'a>(&'a self, run_id: &'a str, error: &'a str) -> BoxFuture<'a, Result<()>>;
}

/// What time it is, read once per run.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> DateTime<Utc>;
}

/// Told how far a scan is; for progress bars.
pub trait Progress: Send + Sync {
    /// A step of the flow begins, with the bytes or rows it will pass (0 if unknown).
    fn step(&self, name: &str, total: u64);
    /// So much more of the step is done.
    fn advance(&self, amount: u64);
    /// The step is done.
    fn done(&self);
}
