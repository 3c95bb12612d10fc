//! A batch on its way through the gate: bound to its schema, measured, judged, decided. `check` and `run` both
//! walk this way; `run` lets the rows go somewhere while it walks.

use crate::error::Result;
use crate::gate::{Decided, Verdict, decide};
use crate::implicit;
use crate::job::{Job, Tables};
use crate::judge::{JudgedCheck, Judging, left_out};
use crate::pass::{MakeSink, Measured, PassOptions, Sample, run_pass};
use crate::program::{Program, ProgramBuilder, Slot};
use crate::proof;
use crate::query::run_queries;
use crate::refer::{self, References};
use crate::rows::RowSet;
use crate::show::Shown;
use crate::world::{Progress, ScanRequest, Source};
use comporta_contract::Decision;
use comporta_contract::digest::{digest, short_digest};
use comporta_contract::report::Rows;
use comporta_contract::rules_file::OnEmpty;
use comporta_rules::{BindError, Bound, Holds, MeasureValue};
use futures::StreamExt;
use indexmap::IndexMap;
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// The checks of a job bound to a source: what is known before the first row is read.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The checks that are evaluated, then those left out.
    pub(crate) slots: Vec<Slot>,
    /// How many are evaluated.
    pub(crate) evaluated: usize,
    /// Row checks that statistics prove, with their unknown rows.
    pub(crate) proved: HashMap<usize, u64>,
    /// Measures that statistics know, by check.
    pub(crate) known: HashMap<usize, Vec<Option<MeasureValue>>>,
    /// Digest of all checks with thresholds and severities.
    pub(crate) rules_digest: String,
}

impl Plan {
    /// Binds the checks of a job.
    pub(crate) fn new(job: &Job, source: &dyn Source) -> Self {
        let schema = source.schema();
        let mut checks = job.checks.clone();
        let explicit: HashSet<String> = checks
            .iter()
            .chain(&job.left_out)
            .filter(|check| check.definition.name == "type")
            .flat_map(|check| check.bind(&schema, &job.surroundings).columns)
            .collect();
        for index in source.parsed_columns() {
            let name = schema.field(*index).name();
            if !explicit.contains(name) {
                checks.push(implicit::of_column(name, job.on_fail));
            }
        }
        if source.has_lines() {
            checks.push(implicit::of_row(job.on_fail));
        }
        let evaluated = checks.len();
        let rules_digest = digest(&checks.iter().map(|check| check.canonical()).collect());
        let mut slots: Vec<Slot> = checks
            .into_iter()
            .chain(job.left_out.iter().cloned())
            .map(|check| Slot {
                bound: check.bind(&schema, &job.surroundings),
                check,
            })
            .collect();
        tell_apart(&mut slots);
        let mut plan = Plan {
            slots,
            evaluated,
            proved: HashMap::new(),
            known: HashMap::new(),
            rules_digest,
        };
        if job.use_statistics {
            plan.use_statistics(source);
        }
        plan
    }

    fn use_statistics(&mut self, source: &dyn Source) {
        let (schema, statistics) = (source.schema(), source.statistics());
        if statistics.rows.is_none_or(|rows| rows == 0) {
            return;
        }
        for (index, slot) in self.slots[..self.evaluated].iter().enumerate() {
            if let Some(unknown) = proof::row_check(slot, &schema, &statistics) {
                self.proved.insert(index, unknown);
            }
            if let Ok(Bound::Table(table)) = &slot.bound.bound {
                let known = table
                    .measures
                    .iter()
                    .map(|measure| proof::measure(measure, slot, &schema, &statistics));
                self.known.insert(index, known.collect());
            }
        }
    }

    /// Whether a check is answered by statistics alone.
    pub(crate) fn is_proved(&self, index: usize) -> bool {
        self.proved.contains_key(&index)
            || self
                .known
                .get(&index)
                .is_some_and(|known| !known.is_empty() && known.iter().all(Option::is_some))
    }

    /// Whether a check needs rows to be read.
    pub(crate) fn needs_rows(&self, index: usize) -> bool {
        index < self.evaluated && !self.is_proved(index)
    }

    /// Checks whose violations only the keys of all rows show, and that decide where rows go.
    pub(crate) fn unique_checks(&self) -> Vec<usize> {
        (0..self.evaluated)
            .filter(|index| is_unique(&self.slots[*index]))
            .collect()
    }
}

pub(crate) fn is_unique(slot: &Slot) -> bool {
    matches!(&slot.bound.bound, Ok(Bound::Row(row)) if matches!(row.holds, Holds::Unique { .. }))
}

/// Checks that share an id are told apart by their names; where the names are the same too, the later one is an
/// error (S31).
fn tell_apart(slots: &mut [Slot]) {
    let mut by_id: HashMap<String, Vec<usize>> = HashMap::new();
    for (index, slot) in slots.iter().enumerate() {
        by_id.entry(slot.bound.id.clone()).or_default().push(index);
    }
    let shared: Vec<Vec<usize>> = by_id.into_values().filter(|group| group.len() > 1).collect();
    for group in shared {
        for (position, index) in group.iter().enumerate() {
            let earlier = group[..position]
                .iter()
                .find(|other| slots[**other].check.name == slots[*index].check.name);
            if let Some(first) = earlier {
                let place = slots[*first].check.place.clone();
                slots[*index].bound.bound = Err(BindError::new(format!("it says the same as the check at {place}"))
                    .hint("remove one, or give each a name of its own"));
            }
        }
        for index in group {
            let slot = &slots[index];
            let mut identity = slot.check.identity(&slot.bound.columns);
            identity["name"] = slot.check.name.clone().into();
            slots[index].bound.id = short_digest(&identity);
        }
    }
}

/// A batch that was measured and judged.
pub(crate) struct JudgedBatch {
    pub(crate) checks: Vec<JudgedCheck>,
    pub(crate) measured_rows: u64,
    pub(crate) invalid: u64,
    pub(crate) aside: u64,
    pub(crate) timings_ms: IndexMap<String, u64>,
}

/// Measures and judges a batch. With a sink every row also goes somewhere, which takes a pass over the keys of
/// `unique` checks before.
pub(crate) struct Walk<'a> {
    pub(crate) job: &'a Job,
    pub(crate) plan: &'a Plan,
    pub(crate) source: &'a Arc<dyn Source>,
    pub(crate) tables: &'a dyn Tables,
    pub(crate) spill_dir: &'a Path,
    pub(crate) progress: &'a dyn Progress,
}

/// Makes the sinks of a split once its program is known.
pub(crate) type MakeSplit<'a> =
    &'a dyn Fn(&Program) -> Box<dyn Fn() -> Result<Box<dyn crate::pass::Sink>> + Send + Sync>;

impl Walk<'_> {
    pub(crate) async fn judge(&self, split: Option<MakeSplit<'_>>) -> Result<JudgedBatch> {
        let mut timings_ms = IndexMap::new();
        let slots = &self.plan.slots;
        let evaluated = &slots[..self.plan.evaluated];
        let shown = Shown::new(slots, &self.job.masked);
        let schema = self.source.schema();
        let began = Instant::now();
        let references = refer::load(evaluated, &schema, self.tables, self.job.parallelism).await;
        if !references.tables.is_empty() {
            timings_ms.insert("references".into(), millis(began));
        }
        let repeated = match split {
            None => HashMap::new(),
            Some(_) => self.find_repeated(&references, &shown, &mut timings_ms).await?,
        };
        let began = Instant::now();
        let program = Arc::new(self.program(&references, split.is_some(), &repeated)?);
        let maker = split.map(|make| make(&program));
        let make: Option<MakeSink> = maker.as_ref().map(|maker| &**maker as &(dyn Fn() -> _ + Sync));
        let options = PassOptions {
            parallelism: self.job.parallelism,
            sample: self.job.sample,
            keep_rows: !program.unique_keys.is_empty(),
            shown: &shown,
            sink: make,
            progress: self.progress,
        };
        let mut measured = match self.statistics_alone(&program, split.is_some()) {
            Some(measured) => measured,
            None => {
                self.progress
                    .step("measure", self.source.statistics().rows.unwrap_or(0));
                let measured = run_pass(&program, self.source.as_ref(), options).await?;
                self.progress.done();
                measured
            }
        };
        timings_ms.insert("measure".into(), millis(began));
        let began = Instant::now();
        let queries = run_queries(self.job, evaluated, self.source, self.tables, self.spill_dir).await;
        if !queries.is_empty() {
            timings_ms.insert("queries".into(), millis(began));
        }
        let unique_samples = self.unique_samples(&program, &mut measured, &shown).await?;
        let judging = Judging {
            program: &program,
            measured: &measured,
            queries: &queries,
            proved: &self.plan.proved,
            known_repeats: &repeated,
            unique_samples: &unique_samples,
            faults: &references.faults,
            timezone: self.job.surroundings.timezone,
            empty_may_pass: self.job.on_empty == OnEmpty::Publish,
        };
        let checks = slots
            .iter()
            .enumerate()
            .map(|(index, slot)| match index < self.plan.evaluated {
                true => judging.judge(index, slot),
                false => left_out(slot),
            })
            .collect();
        Ok(JudgedBatch {
            checks,
            measured_rows: measured.rows,
            invalid: measured.invalid,
            aside: measured.aside,
            timings_ms,
        })
    }

    /// The pass over keys that must come before rows are split.
    async fn find_repeated(
        &self,
        references: &References,
        shown: &Shown,
        timings_ms: &mut IndexMap<String, u64>,
    ) -> Result<HashMap<usize, Repeated>> {
        let unique = self.plan.unique_checks();
        if unique.is_empty() {
            return Ok(HashMap::new());
        }
        let began = Instant::now();
        let schema = self.source.schema();
        let wanted = |index: usize| unique.contains(&index);
        let slots = &self.plan.slots[..self.plan.evaluated];
        let mut builder = ProgramBuilder::new(
            &schema,
            slots,
            &wanted,
            false,
            &references.tables,
            self.job.memory_bytes,
            self.spill_dir,
        )?;
        unique.iter().for_each(|index| builder.add_keys_of(*index));
        let program = Arc::new(builder.finish());
        self.progress.step("keys", self.source.statistics().rows.unwrap_or(0));
        let options = PassOptions {
            parallelism: self.job.parallelism,
            sample: 0,
            keep_rows: false,
            shown,
            sink: None,
            progress: self.progress,
        };
        let measured = run_pass(&program, self.source.as_ref(), options).await?;
        self.progress.done();
        timings_ms.insert("keys".into(), millis(began));
        let shared: Vec<Repeated> = measured
            .keys
            .into_iter()
            .map(|result| Repeated {
                rows: Arc::new(result.repeated),
                counts: result.counts,
            })
            .collect();
        Ok(program
            .unique_keys
            .iter()
            .map(|(index, key)| (*index, shared[*key].clone()))
            .collect())
    }

    fn program(
        &self,
        references: &References,
        all_columns: bool,
        repeated: &HashMap<usize, Repeated>,
    ) -> Result<Program> {
        let schema = self.source.schema();
        let slots = &self.plan.slots[..self.plan.evaluated];
        let wanted = |index: usize| self.plan.needs_rows(index) && !references.faults.contains_key(&index);
        let mut builder = ProgramBuilder::new(
            &schema,
            slots,
            &wanted,
            all_columns,
            &references.tables,
            self.job.memory_bytes,
            self.spill_dir,
        )?;
        for (index, slot) in slots.iter().enumerate() {
            if references.faults.contains_key(&index) {
                continue;
            }
            match &slot.bound.bound {
                Ok(Bound::Row(_)) if !self.plan.proved.contains_key(&index) => {
                    builder.add_row(index, repeated.get(&index).map(|found| found.rows.clone()));
                }
                Ok(Bound::Table(_)) => {
                    builder.add_table(index, self.plan.known.get(&index).cloned().unwrap_or_default());
                }
                _ => {}
            }
        }
        Ok(builder.finish())
    }

    /// What a pass would find where statistics answer everything and no row goes anywhere.
    fn statistics_alone(&self, program: &Program, split: bool) -> Option<Measured> {
        let nothing_to_read = program.rows.is_empty()
            && program.measures.is_empty()
            && program.keys.is_empty()
            && program.groups.is_empty();
        let rows = self.source.statistics().rows?;
        (nothing_to_read && !split && self.job.use_statistics).then(|| Measured {
            rows,
            invalid: 0,
            aside: 0,
            row_counts: Vec::new(),
            measures: Vec::new(),
            keys: Vec::new(),
            groups: Vec::new(),
        })
    }

    /// Failing rows of `unique` checks, which only the end of the pass knows: the first ones in order of place
    /// are read again.
    async fn unique_samples(
        &self,
        program: &Program,
        measured: &mut Measured,
        shown: &Shown,
    ) -> Result<HashMap<usize, Vec<Sample>>> {
        let mut samples = HashMap::new();
        let unique: std::collections::BTreeMap<&usize, &usize> = program.unique_keys.iter().collect();
        for (index, key) in unique {
            let wanted = measured.keys[*key].repeated.first(self.job.sample);
            if wanted.is_empty() {
                continue;
            }
            samples.insert(*index, self.fetch(*index, &wanted, shown).await?);
        }
        Ok(samples)
    }

    async fn fetch(&self, index: usize, wanted: &[(u32, u64)], shown: &Shown) -> Result<Vec<Sample>> {
        let schema = self.source.schema();
        let columns = &self.plan.slots[index].bound.columns;
        let projection: Vec<usize> = (0..schema.fields().len())
            .filter(|index| columns.contains(schema.field(*index).name()))
            .collect();
        let mut found: Vec<Sample> = Vec::new();
        let streams = self
            .source
            .scan(ScanRequest {
                projection,
                parallelism: 1,
                raw: true,
            })
            .await?;
        for mut stream in streams {
            while found.len() < wanted.len() {
                let Some(chunk) = stream.next().await else { break };
                let chunk = chunk?;
                let first = chunk.place.first_row;
                for (source, row) in wanted {
                    let inside = *source == chunk.place.source && (first..first + chunk.rows() as u64).contains(row);
                    if inside {
                        found.push(((*source, *row), shown.row(index, &chunk, (row - first) as usize)));
                    }
                }
            }
        }
        found.sort_by_key(|(place, _)| *place);
        Ok(found)
    }
}

/// The rows that a `unique` check rejects, and its numbers.
#[derive(Debug, Clone)]
pub(crate) struct Repeated {
    pub(crate) rows: Arc<RowSet>,
    pub(crate) counts: comporta_rules::measure::KeyCounts,
}

pub(crate) fn millis(since: Instant) -> u64 {
    since.elapsed().as_millis() as u64
}

/// Decides about a judged batch and notes the effect on every check. `rows` gets the numbers that a decision
/// settles.
pub(crate) fn settle(job: &Job, batch: &mut JudgedBatch, rows: &mut Rows, publishes: bool) -> Decided {
    rows.invalid = batch.invalid;
    rows.valid = batch.measured_rows - batch.invalid;
    rows.quarantined = batch.aside;
    let verdicts: Vec<Verdict> = batch.checks.iter().map(|check| check.verdict.clone()).collect();
    let decided = decide(&verdicts, &job.gate, job.on_empty, rows, job.strict);
    for (check, effect) in batch.checks.iter_mut().zip(&decided.effects) {
        check.report.effect = *effect;
    }
    let through = batch.measured_rows - batch.aside;
    match (decided.decision, publishes) {
        (Decision::Hold, _) => rows.held = through,
        (_, true) => rows.published = through,
        (_, false) => {}
    }
    decided
}
