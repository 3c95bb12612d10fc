//! The world of a test: sources, targets, tables, clock and store that live in memory.

use crate::table::Table;
use arrow::array::{Array, RecordBatch, StringArray};
use arrow::datatypes::SchemaRef;
use chrono::{DateTime, Utc};
use comporta_contract::Report;
use comporta_engine::world::ChunkStream;
use comporta_engine::{
    BadCells, BadLines, Chunk, Clock, CommitInfo, Committed, Error, ErrorKind, Place, Result, RunIntent, RunStore,
    ScanRequest, Source, StageWriter, Staging, Statistics, Tables, Target, Unfinished,
};
use futures::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A batch in memory, given in chunks of a size of one's choice.
#[derive(Debug)]
pub struct MemorySource {
    table: Table,
    chunk_rows: usize,
    names: Vec<String>,
    parsed: Vec<usize>,
    scans: Mutex<Vec<ScanRequest>>,
}

impl MemorySource {
    /// A source of the table's rows. `chunk_rows` shows that borders of chunks change nothing.
    pub fn new(table: Table, chunk_rows: usize) -> Self {
        let schema = table.batch.schema();
        let parsed = match table.parsed {
            true => (0..schema.fields().len())
                .filter(|index| !comporta_rules::types::is_text(schema.field(*index).data_type()))
                .collect(),
            false => Vec::new(),
        };
        MemorySource {
            table,
            chunk_rows: chunk_rows.max(1),
            names: vec!["batch".into()],
            parsed,
            scans: Mutex::new(Vec::new()),
        }
    }

    /// The scans so far.
    pub fn scans(&self) -> Vec<ScanRequest> {
        lock(&self.scans).clone()
    }

    fn chunk(&self, first: usize, rows: usize, request: &ScanRequest) -> Result<Chunk> {
        let batch = self.table.batch.slice(first, rows).project(&request.projection)?;
        let place = Place {
            source: 0,
            first_row: first as u64 + 1,
        };
        let mut chunk = Chunk::new(batch, place);
        for (position, column) in request.projection.iter().enumerate() {
            for cells in self.table.bad_cells.iter().filter(|cells| cells.column == *column) {
                let bad = cells.bad.slice(first, rows);
                if bad.count_set_bits() > 0 {
                    let raw = cells.raw.slice(first, rows);
                    chunk.bad_cells.push(BadCells {
                        column: position,
                        bad,
                        raw,
                    });
                }
            }
        }
        if let Some(lines) = &self.table.bad_lines {
            let bad = lines.bad.slice(first, rows);
            if bad.count_set_bits() > 0 {
                let raw: StringArray = lines.raw.slice(first, rows);
                chunk.bad_lines = Some(BadLines { bad, raw });
            }
        }
        Ok(chunk)
    }
}

impl Source for MemorySource {
    fn schema(&self) -> SchemaRef {
        self.table.batch.schema()
    }
    fn description(&self) -> String {
        "batch".into()
    }
    fn names(&self) -> &[String] {
        &self.names
    }
    fn parsed_columns(&self) -> &[usize] {
        &self.parsed
    }
    fn has_lines(&self) -> bool {
        self.table.parsed
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn fingerprint(&self) -> String {
        format!("{:?}", self.table.batch)
    }
    fn bytes(&self) -> u64 {
        self.table.batch.get_array_memory_size() as u64
    }
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>> {
        lock(&self.scans).push(request.clone());
        let streams = request.parallelism.max(1);
        let mut parts: Vec<Vec<Result<Chunk>>> = (0..streams).map(|_| Vec::new()).collect();
        let rows = self.table.batch.num_rows();
        // Neighbouring chunks go to different streams, so that nothing can lean on their order.
        for (number, first) in (0..rows).step_by(self.chunk_rows).enumerate() {
            let size = self.chunk_rows.min(rows - first);
            parts[number % streams].push(self.chunk(first, size, &request));
        }
        let streams = parts
            .into_iter()
            .map(|part| Box::pin(futures::stream::iter(part)) as ChunkStream)
            .collect();
        Box::pin(async move { Ok(streams) })
    }
}

/// Declared tables by name, and files by path; any other place is unreachable.
#[derive(Debug, Default)]
pub struct MemoryTables(pub BTreeMap<String, Table>);

impl MemoryTables {
    fn get(&self, name: &str) -> Result<Arc<dyn Source>> {
        match self.0.get(name) {
            Some(table) => Ok(Arc::new(MemorySource::new(table.clone(), 1024))),
            None => Err(Error::new(ErrorKind::NotFound, format!("`{name}` cannot be reached"))),
        }
    }
}

impl Tables for MemoryTables {
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move { self.get(name) })
    }
    fn open_path<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move { self.get(path) })
    }
}

/// What a [`MemoryTarget`] holds.
#[derive(Debug, Default)]
struct Held {
    commits: Vec<(CommitInfo, Vec<RecordBatch>)>,
}

/// A target in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryTarget {
    held: Arc<Mutex<Held>>,
}

impl MemoryTarget {
    /// Everything that was committed.
    pub fn batches(&self) -> Vec<RecordBatch> {
        let held = lock(&self.held);
        held.commits.iter().flat_map(|(_, batches)| batches.clone()).collect()
    }

    /// Rows that were committed.
    pub fn rows(&self) -> usize {
        self.batches().iter().map(RecordBatch::num_rows).sum()
    }
}

impl Target for MemoryTarget {
    fn description(&self) -> String {
        "memory".into()
    }
    fn prepare<'a>(&'a self, _: &'a SchemaRef) -> BoxFuture<'a, Result<()>> {
        Box::pin(async { Ok(()) })
    }
    fn stage<'a>(&'a self, _: SchemaRef, _: &'a RunIntent) -> BoxFuture<'a, Result<Box<dyn Staging>>> {
        let staging: Box<dyn Staging> = Box::new(MemoryStaging {
            target: self.clone(),
            staged: Arc::default(),
        });
        Box::pin(async move { Ok(staging) })
    }
    fn committed<'a>(&'a self, run_id: &'a str) -> BoxFuture<'a, Result<Option<Committed>>> {
        let held = lock(&self.held);
        let commit = held.commits.iter().find(|(info, _)| info.run_id == run_id);
        let found = commit.map(|(info, _)| Committed {
            rows: info.rows,
            version: None,
            files: 1,
        });
        Box::pin(async move { Ok(found) })
    }
}

struct MemoryStaging {
    target: MemoryTarget,
    staged: Arc<Mutex<Vec<RecordBatch>>>,
}

impl Staging for MemoryStaging {
    fn writer(&self) -> Result<Box<dyn StageWriter>> {
        Ok(Box::new(MemoryWriter(Arc::clone(&self.staged))))
    }
    fn commit(self: Box<Self>, info: CommitInfo) -> BoxFuture<'static, Result<Committed>> {
        let staged = std::mem::take(&mut *lock(&self.staged));
        let rows = staged.iter().map(|batch| batch.num_rows() as u64).sum();
        lock(&self.target.held).commits.push((info, staged));
        Box::pin(async move {
            Ok(Committed {
                rows,
                version: None,
                files: 1,
            })
        })
    }
    fn abort(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

struct MemoryWriter(Arc<Mutex<Vec<RecordBatch>>>);

impl StageWriter for MemoryWriter {
    fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        lock(&self.0).push(batch);
        Box::pin(async { Ok(()) })
    }
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// A clock that stands still until it is set.
#[derive(Debug)]
pub struct ManualClock(Mutex<DateTime<Utc>>);

impl ManualClock {
    /// A clock that shows `now`.
    pub fn at(now: DateTime<Utc>) -> Self {
        ManualClock(Mutex::new(now))
    }

    /// Sets it.
    pub fn set(&self, now: DateTime<Utc>) {
        *lock(&self.0) = now;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> DateTime<Utc> {
        *lock(&self.0)
    }
}

/// A store of runs that answers nothing but an error.
#[derive(Debug, Clone, Copy)]
pub struct FailingStore;

impl FailingStore {
    fn refuse<T: Send + 'static>() -> BoxFuture<'static, Result<T>> {
        Box::pin(async { Err(Error::new(ErrorKind::Unavailable, "the state does not answer")) })
    }
}

impl RunStore for FailingStore {
    fn unfinished<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<Option<Unfinished>>> {
        Self::refuse()
    }
    fn begin<'a>(&'a self, _: &'a RunIntent) -> BoxFuture<'a, Result<()>> {
        Self::refuse()
    }
    fn publishing<'a>(&'a self, _: &'a Report) -> BoxFuture<'a, Result<()>> {
        Self::refuse()
    }
    fn finish<'a>(&'a self, _: &'a Report) -> BoxFuture<'a, Result<()>> {
        Self::refuse()
    }
    fn fail<'a>(&'a self, _: &'a str, _: &'a str) -> BoxFuture<'a, Result<()>> {
        Self::refuse()
    }
}

/// Values of a text column, for tests.
pub fn texts(batch: &RecordBatch, column: &str) -> Vec<Option<String>> {
    let Some(values) = batch.column_by_name(column) else {
        return Vec::new();
    };
    let Ok(values) = arrow::compute::cast(values, &arrow::datatypes::DataType::Utf8) else {
        return Vec::new();
    };
    let Some(values) = values.as_any().downcast_ref::<StringArray>() else {
        return Vec::new();
    };
    (0..values.len())
        .map(|row| values.is_valid(row).then(|| values.value(row).to_string()))
        .collect()
}
