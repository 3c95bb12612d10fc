//! One pass over the batch: every chunk is judged by every check of a program, in as many tasks as there are
//! streams; what the tasks found is merged at the end.

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::keys::{KeyCollector, KeyResult, resolve};
use crate::measures::{Accumulator, Groups};
use crate::predicate::{self, evaluate, or, values, within, without};
use crate::program::{MeasureTest, Program, RowTest, Test, bad_rows, groups_of};
use crate::rows::{RowSet, Slots};
use crate::show::Shown;
use crate::world::{Progress, ScanRequest, Source};
use arrow::array::{Array, ArrayRef};
use arrow::buffer::BooleanBuffer;
use comporta_rules::MeasureValue;
use futures::StreamExt;
use futures::future::BoxFuture;
use indexmap::IndexMap;
use serde_json::Value;
use std::sync::Arc;

/// What a chunk's rows were found to be.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Per row test the rows that break it.
    pub(crate) broken: Vec<Option<BooleanBuffer>>,
    /// Rows to set aside.
    pub(crate) aside: Option<BooleanBuffer>,
}

/// Takes judged chunks somewhere: the split.
pub(crate) trait Sink: Send {
    /// Takes a chunk.
    fn take<'a>(&'a mut self, chunk: &'a Chunk, judged: &'a Judged) -> BoxFuture<'a, Result<()>>;
    /// There are no more chunks.
    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// Makes a sink for each task.
pub(crate) type MakeSink<'a> = &'a (dyn Fn() -> Result<Box<dyn Sink>> + Sync);

/// A failing row to show: its place and the values of the check's columns.
pub(crate) type Sample = ((u32, u64), IndexMap<String, Value>);

/// What was counted for a row check.
#[derive(Debug, Default, Clone)]
pub(crate) struct RowCount {
    pub(crate) evaluated: u64,
    pub(crate) broken: u64,
    pub(crate) unknown: u64,
    pub(crate) fault: Option<String>,
    pub(crate) samples: Vec<Sample>,
}

/// What a pass found.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) rows: u64,
    /// Rows with a violation that weighs.
    pub(crate) invalid: u64,
    /// Rows to set aside.
    pub(crate) aside: u64,
    /// Per row test of the program.
    pub(crate) row_counts: Vec<RowCount>,
    pub(crate) measures: Vec<MeasureValue>,
    pub(crate) keys: Vec<KeyResult>,
    /// Per group test its groups.
    pub(crate) groups: Vec<Vec<(Vec<ArrayRef>, Vec<MeasureValue>)>>,
}

/// How a pass is run.
pub(crate) struct PassOptions<'a> {
    pub(crate) parallelism: usize,
    pub(crate) sample: usize,
    /// Whether sets of rows are kept because `unique` checks add to them after the pass.
    pub(crate) keep_rows: bool,
    pub(crate) shown: &'a Shown,
    pub(crate) sink: Option<MakeSink<'a>>,
    pub(crate) progress: &'a dyn Progress,
}

/// The state of one task.
struct Task {
    rows: u64,
    invalid: Tally,
    aside: Tally,
    row_counts: Vec<RowCount>,
    accumulators: Vec<Accumulator>,
    collectors: Vec<KeyCollector>,
    groups: Vec<Groups>,
}

/// A number of rows, and which ones where that is needed later.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    rows: Option<RowSet>,
}

impl Tally {
    fn new(keep: bool) -> Self {
        Tally {
            count: 0,
            rows: keep.then(RowSet::default),
        }
    }

    fn add(&mut self, place: crate::chunk::Place, bits: &BooleanBuffer) {
        match &mut self.rows {
            Some(rows) => rows.add(place, bits),
            None => self.count += bits.count_set_bits() as u64,
        }
    }

    fn merge(&mut self, other: Tally) {
        self.count += other.count;
        if let (Some(mine), Some(theirs)) = (&mut self.rows, &other.rows) {
            mine.union(theirs);
        }
    }
}

/// Runs a program over a source.
pub(crate) async fn run_pass(
    program: &Arc<Program>,
    source: &dyn Source,
    options: PassOptions<'_>,
) -> Result<Measured> {
    let request = ScanRequest {
        projection: program.projection.clone(),
        parallelism: options.parallelism.max(1),
        raw: true,
    };
    let streams = source.scan(request).await?;
    let slots = Arc::new(Slots::default());
    let run_one = |stream, sink: Option<Box<dyn Sink>>| {
        run_task(
            program.clone(),
            stream,
            slots.clone(),
            options.sample,
            options.keep_rows,
            options.shown.clone(),
            sink,
        )
    };
    let mut running = Vec::with_capacity(streams.len());
    let several = streams.len() > 1;
    for stream in streams {
        let sink = options.sink.map(|make| make()).transpose()?;
        let task = run_one(stream, sink);
        running.push(if several {
            Running::Spawned(tokio::spawn(task))
        } else {
            Running::Here(Box::pin(task))
        });
    }
    let mut tasks = Vec::with_capacity(running.len());
    let mut fault = None;
    for task in running {
        let ended = match task {
            Running::Here(task) => task.await,
            Running::Spawned(task) => task
                .await
                .unwrap_or_else(|error| Err(Error::internal(format!("a task stopped: {error}")))),
        };
        match ended {
            Ok(task) => {
                options.progress.advance(task.rows);
                tasks.push(task);
            }
            Err(error) => fault = Some(fault.unwrap_or(error)),
        }
    }
    match fault {
        Some(error) => Err(error),
        None => merge(program, tasks, &slots, options),
    }
}

enum Running<F> {
    Here(std::pin::Pin<Box<F>>),
    Spawned(tokio::task::JoinHandle<Result<Task>>),
}

async fn run_task(
    program: Arc<Program>,
    mut stream: crate::world::ChunkStream,
    slots: Arc<Slots>,
    sample: usize,
    keep_rows: bool,
    shown: Shown,
    mut sink: Option<Box<dyn Sink>>,
) -> Result<Task> {
    let mut task = Task::new(&program, keep_rows)?;
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        let judged = task.judge(&program, &chunk, &slots, sample, &shown)?;
        if let Some(sink) = &mut sink {
            sink.take(&chunk, &judged).await?;
        }
    }
    if let Some(sink) = sink {
        sink.finish().await?;
    }
    Ok(task)
}

impl Task {
    fn new(program: &Program, keep_rows: bool) -> Result<Self> {
        Ok(Task {
            rows: 0,
            invalid: Tally::new(keep_rows),
            aside: Tally::new(keep_rows),
            row_counts: vec![RowCount::default(); program.rows.len()],
            accumulators: program
                .measures
                .iter()
                .map(|measure| measure.kind.accumulator())
                .collect::<Result<_>>()?,
            collectors: program
                .keys
                .iter()
                .map(|key| KeyCollector::new(&key.space))
                .collect::<Result<_>>()?,
            groups: program.groups.iter().map(groups_of).collect::<Result<_>>()?,
        })
    }

    fn judge(
        &mut self,
        program: &Program,
        chunk: &Chunk,
        slots: &Slots,
        sample: usize,
        shown: &Shown,
    ) -> Result<Judged> {
        self.rows += chunk.rows() as u64;
        let scopes = program.scopes(chunk)?;
        let mut judged = Judged {
            broken: Vec::with_capacity(program.rows.len()),
            aside: None,
        };
        let mut invalid = None;
        for (position, test) in program.rows.iter().enumerate() {
            let broken = self.judge_row(position, test, chunk, scope_of(&scopes, test.filter), sample, shown)?;
            if test.weighs {
                invalid = or(invalid, broken.clone());
            }
            if test.sets_aside {
                judged.aside = or(judged.aside, broken.clone());
            }
            judged.broken.push(broken);
        }
        if let Some(invalid) = &invalid {
            self.invalid.add(chunk.place, invalid);
        }
        if let Some(aside) = &judged.aside {
            self.aside.add(chunk.place, aside);
        }
        self.measure(program, chunk, &scopes, slots)?;
        Ok(judged)
    }

    fn judge_row(
        &mut self,
        position: usize,
        test: &RowTest,
        chunk: &Chunk,
        scope: Option<&BooleanBuffer>,
        sample: usize,
        shown: &Shown,
    ) -> Result<Option<BooleanBuffer>> {
        let truth = test_rows(test, chunk)?;
        let bad = bad_rows(chunk, &test.columns);
        let count = &mut self.row_counts[position];
        count.evaluated += scope.map_or(chunk.rows(), BooleanBuffer::count_set_bits) as u64;
        let mut broken = within(without(truth.broken, bad.as_ref()), scope);
        let mut unknown = within(or(truth.unknown, bad), scope);
        if test.nulls_violate {
            broken = or(broken, unknown.take());
        }
        count.unknown += unknown.as_ref().map_or(0, BooleanBuffer::count_set_bits) as u64;
        count.fault = count.fault.take().or(truth.fault);
        if let Some(broken) = &broken {
            count.broken += broken.count_set_bits() as u64;
            if count.samples.len() < sample {
                for at in broken.set_indices().take(sample - count.samples.len()) {
                    let place = (chunk.place.source, chunk.place.first_row + at as u64);
                    count.samples.push((place, shown.row(test.slot, chunk, at)));
                }
            }
        }
        Ok(broken)
    }

    fn measure(
        &mut self,
        program: &Program,
        chunk: &Chunk,
        scopes: &[Option<BooleanBuffer>],
        slots: &Slots,
    ) -> Result<()> {
        for (accumulator, test) in self.accumulators.iter_mut().zip(&program.measures) {
            let inputs = inputs_of(test, chunk)?;
            let bad = bad_rows(chunk, &test.columns);
            accumulator.add(&inputs, chunk.rows(), scope_of(scopes, test.filter), bad.as_ref())?;
        }
        for (collector, test) in self.collectors.iter_mut().zip(&program.keys) {
            let inputs: Vec<ArrayRef> = test
                .inputs
                .iter()
                .map(|expr| values(expr.as_ref(), &chunk.batch))
                .collect::<Result<_>>()?;
            let bad = bad_rows(chunk, &test.columns);
            collector.add(&inputs, scope_of(scopes, test.filter), bad.as_ref(), slots, chunk.place)?;
        }
        for (groups, test) in self.groups.iter_mut().zip(&program.groups) {
            let keys: Vec<ArrayRef> = test
                .group_by
                .iter()
                .map(|expr| values(expr.as_ref(), &chunk.batch))
                .collect::<Result<_>>()?;
            let inputs: Vec<Vec<ArrayRef>> = test
                .measures
                .iter()
                .map(|measure| inputs_of(measure, chunk))
                .collect::<Result<_>>()?;
            let bad = bad_rows(chunk, &test.columns);
            groups.add(
                &keys,
                &inputs,
                chunk.rows(),
                scope_of(scopes, test.filter),
                bad.as_ref(),
            )?;
        }
        Ok(())
    }
}

fn scope_of(scopes: &[Option<BooleanBuffer>], filter: Option<usize>) -> Option<&BooleanBuffer> {
    filter.and_then(|filter| scopes[filter].as_ref())
}

fn inputs_of(test: &MeasureTest, chunk: &Chunk) -> Result<Vec<ArrayRef>> {
    test.inputs
        .iter()
        .map(|expr| values(expr.as_ref(), &chunk.batch))
        .collect()
}

/// What a row test says of a chunk, before scope and bad cells.
fn test_rows(test: &RowTest, chunk: &Chunk) -> Result<predicate::Truth> {
    let keys_of = |keys: &[Arc<dyn datafusion::physical_expr::PhysicalExpr>]| -> Result<Vec<ArrayRef>> {
        keys.iter().map(|expr| values(expr.as_ref(), &chunk.batch)).collect()
    };
    Ok(match &test.test {
        Test::Expr(expr) => evaluate(expr.as_ref(), &chunk.batch)?,
        Test::Unique {
            keys,
            nulls_equal,
            repeated,
        } => {
            let unknown = match nulls_equal {
                true => None,
                false => null_rows(&keys_of(keys)?),
            };
            let broken = repeated.as_ref().and_then(|rows| rows.bits(chunk.place, chunk.rows()));
            predicate::Truth {
                broken,
                unknown,
                fault: None,
            }
        }
        Test::Member { keys, table } => {
            let counts = table.counts(&keys_of(keys)?)?;
            let unknown = counts
                .nulls()
                .filter(|nulls| nulls.null_count() > 0)
                .map(|nulls| !nulls.inner());
            let broken = BooleanBuffer::collect_bool(counts.len(), |at| counts.is_valid(at) && counts.value(at) == 0);
            predicate::Truth {
                broken: (broken.count_set_bits() > 0).then_some(broken),
                unknown,
                fault: None,
            }
        }
        Test::Cell(column) => {
            let broken = chunk.bad_cells_of(*column).map(|cells| cells.bad.clone());
            let unknown = chunk.bad_lines.as_ref().map(|lines| lines.bad.clone());
            predicate::Truth {
                broken,
                unknown,
                fault: None,
            }
        }
        Test::Line => {
            let broken = chunk.bad_lines.as_ref().map(|lines| lines.bad.clone());
            predicate::Truth {
                broken,
                unknown: None,
                fault: None,
            }
        }
    })
}

fn null_rows(columns: &[ArrayRef]) -> Option<BooleanBuffer> {
    let nulls = columns.iter().fold(None, |nulls, column| {
        arrow::buffer::NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
    })?;
    (nulls.null_count() > 0).then(|| !nulls.inner())
}

fn merge(program: &Program, tasks: Vec<Task>, slots: &Slots, options: PassOptions<'_>) -> Result<Measured> {
    let mut whole = Task::new(program, options.keep_rows)?;
    let mut collectors: Vec<Vec<KeyCollector>> = program.keys.iter().map(|_| Vec::new()).collect();
    for task in tasks {
        whole.rows += task.rows;
        whole.invalid.merge(task.invalid);
        whole.aside.merge(task.aside);
        for (mine, theirs) in whole.row_counts.iter_mut().zip(task.row_counts) {
            mine.merge(theirs, options.sample);
        }
        for (mine, theirs) in whole.accumulators.iter_mut().zip(task.accumulators) {
            mine.merge(theirs)?;
        }
        for (mine, theirs) in whole.groups.iter_mut().zip(task.groups) {
            mine.merge(theirs)?;
        }
        for (mine, theirs) in collectors.iter_mut().zip(task.collectors) {
            mine.push(theirs);
        }
    }
    let mut keys: Vec<KeyResult> = collectors
        .into_iter()
        .map(|collectors| resolve(collectors, slots))
        .collect::<Result<_>>()?;
    add_repeated(program, &mut whole, &mut keys);
    let tally = |tally: Tally| tally.rows.map_or(tally.count, |rows| rows.len());
    Ok(Measured {
        rows: whole.rows,
        invalid: tally(whole.invalid),
        aside: tally(whole.aside),
        row_counts: whole.row_counts,
        measures: whole.accumulators.into_iter().map(Accumulator::finish).collect(),
        keys,
        groups: whole.groups.into_iter().map(Groups::finish).collect::<Result<_>>()?,
    })
}

/// Adds the rows with repeated keys, which only the end of the pass knows.
fn add_repeated(program: &Program, whole: &mut Task, keys: &mut [KeyResult]) {
    for (position, test) in program.rows.iter().enumerate() {
        let Some(key) = program.unique_keys.get(&test.slot) else {
            continue;
        };
        let repeated = &keys[*key].repeated;
        whole.row_counts[position].broken += repeated.len();
        if test.weighs
            && let Some(rows) = &mut whole.invalid.rows
        {
            rows.union(repeated);
        }
        if test.sets_aside
            && let Some(rows) = &mut whole.aside.rows
        {
            rows.union(repeated);
        }
    }
}

impl RowCount {
    fn merge(&mut self, other: RowCount, sample: usize) {
        self.evaluated += other.evaluated;
        self.broken += other.broken;
        self.unknown += other.unknown;
        self.fault = match (self.fault.take(), other.fault) {
            (Some(mine), Some(theirs)) => Some(mine.min(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self.samples.extend(other.samples);
        self.samples.sort_by_key(|(place, _)| *place);
        self.samples.truncate(sample);
    }
}
