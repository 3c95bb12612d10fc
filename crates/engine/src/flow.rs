//! The long story: what happens between opening a source and knowing what became of every row.

use crate::batch::{JudgedBatch, Plan, Walk, settle};
use crate::error::{Error, ErrorKind, Result};
use crate::fault;
use crate::gate::Decided;
use crate::job::{Job, Outputs, RunSetup, Tables};
use crate::program::Program;
use crate::report_rows;
use crate::split::{Marks, Split, SplitSink, quarantine_schema};
use crate::transform::{Transformed, transform};
use crate::world::{CommitInfo, Committed, Progress, RunIntent, Source, Staging, Unfinished};
use chrono::{DateTime, SecondsFormat, Utc};
use comporta_contract::report::{DimensionCount, FORMAT_VERSION, Reconciliation, Report, Rows};
use comporta_contract::{Decision, Outcome};
use indexmap::IndexMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The unit of a pipeline without units.
pub(crate) const WHOLE: &str = "all";

/// Judges a batch. Writes nothing, unless `outputs` names places for the rows.
///
/// # Errors
/// The source could not be read, or an output not be written. Broken data is never an error.
pub async fn check(
    job: &Job,
    source: Arc<dyn Source>,
    tables: Arc<dyn Tables>,
    outputs: Outputs,
    progress: Arc<dyn Progress>,
) -> Result<Report> {
    let began = Instant::now();
    let plan = Plan::new(job, source.as_ref());
    let spill_dir = std::env::temp_dir();
    let run = Run {
        job,
        plan: &plan,
        run_id: new_run_id(),
        started_at: job.surroundings.now,
    };
    let walk = Walk {
        job,
        plan: &plan,
        source: &source,
        tables: tables.as_ref(),
        spill_dir: &spill_dir,
        progress: progress.as_ref(),
    };
    let mut rows = Rows::default();
    if outputs.valid.is_none() && outputs.invalid.is_none() {
        let mut batch = walk.judge(None).await?;
        rows.read = batch.measured_rows;
        let decided = settle(job, &mut batch, &mut rows, false);
        return Ok(run.report(batch, decided, rows, source.as_ref(), Vec::new(), began));
    }
    let intent = run.intent(&source);
    let places = Places::stage(&outputs, &source, &intent).await?;
    let (mut batch, split, places) = places.write(&walk, &run, &source).await?;
    rows.read = batch.measured_rows;
    let decided = settle(job, &mut batch, &mut rows, false);
    let mut proofs = vec![conservation(&rows, &split)?];
    let described = places.describe(&outputs);
    places.commit(&run, &split, true, &mut proofs).await?;
    let mut report = run.report(batch, decided, rows, source.as_ref(), proofs, began);
    report.outputs = described;
    Ok(report)
}

/// Runs a pipeline for one unit: everything from the source to the record of what was done.
///
/// # Errors
/// Something could not be read, written or remembered. Nothing was published then, or everything was and the
/// next run records it.
pub async fn run(
    job: &Job,
    source: Arc<dyn Source>,
    tables: Arc<dyn Tables>,
    setup: RunSetup,
    progress: Arc<dyn Progress>,
) -> Result<Report> {
    let unit = job.unit.as_deref().unwrap_or(WHOLE);
    let fingerprint = source.fingerprint();
    if let Some(dead) = setup.store.unfinished(&job.pipeline, unit).await?
        && let Some(report) = recover(dead, &fingerprint, &setup).await?
    {
        return Ok(report);
    }
    let mut intent = RunIntent {
        run_id: new_run_id(),
        pipeline: job.pipeline.clone(),
        unit: unit.to_string(),
        fingerprint,
        rules_digest: String::new(),
        started_at: job.surroundings.now,
    };
    intent.rules_digest = Plan::new(job, source.as_ref()).rules_digest;
    setup.store.begin(&intent).await?;
    fault::point("begun");
    match run_recorded(job, source, tables, &setup, &intent, progress).await {
        Ok(report) => Ok(report),
        Err(error) => {
            // A commit whose outcome is unknown stays unfinished, so that the next run looks it up.
            if error.kind != ErrorKind::Internal && !is_published(&setup, &intent.run_id).await {
                setup.store.fail(&intent.run_id, &error.message).await?;
            }
            Err(error)
        }
    }
}

async fn is_published(setup: &RunSetup, run_id: &str) -> bool {
    !matches!(setup.target.committed(run_id).await, Ok(None))
}

/// Ends the record of a run that died. If it had published, its report is kept, and returned where this run
/// would only do the same again.
async fn recover(dead: Unfinished, fingerprint: &str, setup: &RunSetup) -> Result<Option<Report>> {
    let committed = setup.target.committed(&dead.intent.run_id).await?;
    let (Some(_), Some(mut report)) = (committed, dead.report) else {
        setup
            .store
            .fail(&dead.intent.run_id, "the process died before it published anything")
            .await?;
        return Ok(None);
    };
    report.notes.push(format!(
        "run {} published this and died before it was recorded; this run found it published and recorded it",
        dead.intent.run_id
    ));
    append_report(setup, &report, &dead.intent).await?;
    setup.store.finish(&report).await?;
    Ok((dead.intent.fingerprint == fingerprint).then_some(report))
}

async fn run_recorded(
    job: &Job,
    source: Arc<dyn Source>,
    tables: Arc<dyn Tables>,
    setup: &RunSetup,
    intent: &RunIntent,
    progress: Arc<dyn Progress>,
) -> Result<Report> {
    let began = Instant::now();
    let transformed = match setup.transform.is_empty() {
        true => None,
        false => {
            progress.step("transform", 0);
            let done = transform(&setup.transform, job, &source, tables.as_ref(), &setup.spill_dir).await?;
            progress.done();
            Some(done)
        }
    };
    let transform_ms = crate::batch::millis(began);
    let batch_source = transformed
        .as_ref()
        .map_or_else(|| source.clone(), |done| done.source.clone());
    let plan = Plan::new(job, batch_source.as_ref());
    let run = Run {
        job,
        plan: &plan,
        run_id: intent.run_id.clone(),
        started_at: intent.started_at,
    };
    let walk = Walk {
        job,
        plan: &plan,
        source: &batch_source,
        tables: tables.as_ref(),
        spill_dir: &setup.spill_dir,
        progress: progress.as_ref(),
    };
    let outputs = Outputs {
        valid: Some(setup.target.clone()),
        invalid: setup.quarantine.clone(),
    };
    let intent = RunIntent {
        rules_digest: plan.rules_digest.clone(),
        ..intent.clone()
    };
    let places = Places::stage(&outputs, &batch_source, &intent).await?;
    fault::point("staging");
    let (mut batch, split, places) = places.write(&walk, &run, &batch_source).await?;
    fault::point("staged");
    let mut rows = rows_of(&transformed, batch.measured_rows);
    let mut decided = settle(job, &mut batch, &mut rows, true);
    hold_rows_without_place(setup, &mut decided, &mut rows, batch.measured_rows, batch.aside);
    let mut proofs = vec![conservation(&rows, &split)?];
    let publishes = decided.decision != Decision::Hold;
    let described = places.describe(&outputs);
    if transformed.is_some() {
        batch.timings_ms.shift_insert(0, "transform".into(), transform_ms);
    }
    let mut report = run.report(batch, decided, rows, batch_source.as_ref(), Vec::new(), began);
    report.outputs = described;
    report.reconciliation = proofs.clone();
    setup.store.publishing(&report).await?;
    fault::point("decided");
    places.commit(&run, &split, publishes, &mut proofs).await?;
    fault::point("published");
    report.reconciliation = proofs;
    report.duration_ms = crate::batch::millis(began);
    append_report(setup, &report, &intent).await?;
    fault::point("reported");
    setup.store.finish(&report).await?;
    Ok(report)
}

/// Rows that are to be set aside need a place for that; without one the batch is held, since they may neither
/// be published nor lost.
fn hold_rows_without_place(setup: &RunSetup, decided: &mut Decided, rows: &mut Rows, measured: u64, aside: u64) {
    if setup.quarantine.is_none() && aside > 0 && decided.decision != Decision::Hold {
        decided.decision = Decision::Hold;
        decided.held_by_data = true;
        decided.reasons.push(format!(
            "{} would be set aside, and the pipeline names no `quarantine`",
            crate::judge::count_text(aside, "row")
        ));
        rows.published = 0;
        rows.held = measured - aside;
    }
    if setup.quarantine.is_none() && decided.decision == Decision::Hold {
        // Nothing was set aside anywhere, so everything is held.
        rows.held += rows.quarantined;
        rows.quarantined = 0;
    }
}

fn rows_of(transformed: &Option<Transformed>, measured: u64) -> Rows {
    match transformed {
        None => Rows {
            read: measured,
            ..Rows::default()
        },
        Some(done) => Rows {
            read: done.read,
            dropped: done.dropped.clone(),
            added: done.added,
            ..Rows::default()
        },
    }
}

/// Appends the report as rows, once per run.
async fn append_report(setup: &RunSetup, report: &Report, intent: &RunIntent) -> Result<()> {
    let Some(target) = &setup.report else { return Ok(()) };
    if target.committed(&report.run_id).await?.is_some() {
        return Ok(());
    }
    let batch = report_rows::rows(report, intent.started_at)?;
    let rows = batch.num_rows() as u64;
    let staging = target.stage(report_rows::schema(), intent).await?;
    let mut writer = staging.writer()?;
    writer.write(batch).await?;
    writer.finish().await?;
    let info = CommitInfo {
        run_id: report.run_id.clone(),
        pipeline: report.pipeline.clone(),
        unit: intent.unit.clone(),
        contract_version: report.contract.as_ref().map(|contract| contract.version.clone()),
        rules_digest: report.rules_digest.clone(),
        rows,
    };
    staging.commit(info).await.map(drop)
}

/// Staged files of the two ways a row can go.
struct Places {
    valid: Option<Box<dyn Staging>>,
    invalid: Option<Box<dyn Staging>>,
}

impl Places {
    async fn stage(outputs: &Outputs, source: &Arc<dyn Source>, intent: &RunIntent) -> Result<Self> {
        let schema = source.schema();
        let rejected = quarantine_schema(&schema, source.parsed_columns());
        if let Some(target) = &outputs.valid {
            target.prepare(&schema).await?;
        }
        if let Some(target) = &outputs.invalid {
            target.prepare(&rejected).await?;
        }
        let mut places = Places {
            valid: None,
            invalid: None,
        };
        if let Some(target) = &outputs.valid {
            places.valid = Some(target.stage(schema, intent).await?);
        }
        if let Some(target) = &outputs.invalid {
            places.invalid = match target.stage(rejected, intent).await {
                Ok(staging) => Some(staging),
                Err(error) => {
                    places.abort().await?;
                    return Err(error);
                }
            };
        }
        Ok(places)
    }

    /// Judges the batch while its rows are written to the staged files.
    /// Where that fails, the staged files are removed.
    async fn write(
        self,
        walk: &Walk<'_>,
        run: &Run<'_>,
        source: &Arc<dyn Source>,
    ) -> Result<(JudgedBatch, Arc<Split>, Places)> {
        match self.try_write(walk, run, source).await {
            Ok((batch, split)) => Ok((batch, split, self)),
            Err(error) => {
                self.abort().await?;
                Err(error)
            }
        }
    }

    async fn try_write(
        &self,
        walk: &Walk<'_>,
        run: &Run<'_>,
        source: &Arc<dyn Source>,
    ) -> Result<(JudgedBatch, Arc<Split>)> {
        let split = std::sync::OnceLock::new();
        let maker = |program: &Program| -> Box<dyn Fn() -> Result<Box<dyn crate::pass::Sink>> + Send + Sync> {
            let made = Arc::new(Split::new(
                program,
                &run.plan.slots,
                &source.schema(),
                source.parsed_columns(),
                source.names(),
                run.marks(),
            ));
            let _ = split.set(made.clone());
            let valid = self.valid.as_deref();
            let invalid = self.invalid.as_deref();
            // The writers are made now, one per task, since a sink outlives this borrow.
            let sinks: Vec<Result<SplitSink>> = (0..walk.job.parallelism.max(1))
                .map(|_| SplitSink::open(&made, valid, invalid))
                .collect();
            let sinks = std::sync::Mutex::new(sinks);
            Box::new(move || {
                let next = sinks.lock().ok().and_then(|mut sinks| sinks.pop());
                let sink = next.ok_or_else(|| Error::internal("more streams than were asked for"))??;
                Ok(Box::new(sink) as Box<dyn crate::pass::Sink>)
            })
        };
        let batch = walk.judge(Some(&maker)).await?;
        let split = split
            .get()
            .cloned()
            .ok_or_else(|| Error::internal("the batch was not split"))?;
        Ok((batch, split))
    }

    async fn abort(self) -> Result<()> {
        for staging in [self.valid, self.invalid].into_iter().flatten() {
            staging.abort().await?;
        }
        Ok(())
    }

    /// Makes the quarantined rows visible, then the valid ones if the gate lets them; proves that each commit
    /// holds what the gate counted.
    async fn commit(
        self,
        run: &Run<'_>,
        split: &Split,
        publishes: bool,
        proofs: &mut Vec<Reconciliation>,
    ) -> Result<()> {
        if let Some(staging) = self.invalid {
            let rows = split.counts.aside.load(Ordering::Relaxed);
            let committed = staging.commit(run.commit_info(rows)).await?;
            proofs.push(committed_proof("quarantined rows", rows, &committed)?);
            fault::point("quarantined");
        }
        let Some(staging) = self.valid else { return Ok(()) };
        if !publishes {
            return staging.abort().await;
        }
        let rows = split.counts.valid.load(Ordering::Relaxed);
        let committed = staging.commit(run.commit_info(rows)).await?;
        proofs.push(committed_proof("published rows", rows, &committed)?);
        Ok(())
    }

    fn describe(&self, outputs: &Outputs) -> IndexMap<String, String> {
        let mut described = IndexMap::new();
        if let Some(target) = &outputs.valid {
            described.insert("valid".to_string(), target.description());
        }
        if let Some(target) = &outputs.invalid {
            described.insert("quarantine".to_string(), target.description());
        }
        described
    }
}

fn committed_proof(name: &str, counted: u64, committed: &Committed) -> Result<Reconciliation> {
    let holds = committed.rows == counted;
    let message = format!("{counted} counted by the gate, {} in the commit", committed.rows);
    if !holds {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("{name} do not agree: {message}"),
        ));
    }
    Ok(Reconciliation {
        name: name.to_string(),
        holds,
        left: counted.into(),
        right: committed.rows.into(),
        message,
    })
}

/// `read + added = published + quarantined + held + dropped`, and the split's own count agrees.
fn conservation(rows: &Rows, split: &Split) -> Result<Reconciliation> {
    let dropped: u64 = rows.dropped.values().sum();
    let left = rows.read + rows.added;
    let gone = rows.valid + rows.invalid + dropped;
    let routed = split.counts.valid.load(Ordering::Relaxed) + split.counts.aside.load(Ordering::Relaxed) + dropped;
    let message = format!(
        "{} read + {} added = {} published + {} quarantined + {} held + {dropped} dropped",
        rows.read, rows.added, rows.published, rows.quarantined, rows.held
    );
    let counted = rows.published + rows.quarantined + rows.held + dropped;
    let checks_only = rows.published == 0 && rows.held == 0;
    if gone != left || routed != left || (counted != left && !checks_only) {
        return Err(Error::internal(format!(
            "rows were lost or doubled: {message}; the split wrote {routed} of {left}"
        )));
    }
    Ok(Reconciliation {
        name: "conservation".into(),
        holds: true,
        left: left.into(),
        right: routed.into(),
        message,
    })
}

/// What all steps of a run know.
struct Run<'a> {
    job: &'a Job,
    plan: &'a Plan,
    run_id: String,
    started_at: DateTime<Utc>,
}

impl Run<'_> {
    fn intent(&self, source: &Arc<dyn Source>) -> RunIntent {
        RunIntent {
            run_id: self.run_id.clone(),
            pipeline: self.job.pipeline.clone(),
            unit: self.job.unit.clone().unwrap_or_else(|| WHOLE.to_string()),
            fingerprint: source.fingerprint(),
            rules_digest: self.plan.rules_digest.clone(),
            started_at: self.started_at,
        }
    }

    fn marks(&self) -> Marks {
        Marks {
            run_id: self.run_id.clone(),
            pipeline: self.job.pipeline.clone(),
            unit: self.job.unit.clone().unwrap_or_else(|| WHOLE.to_string()),
            contract_version: self.job.contract.as_ref().map(|contract| contract.version.clone()),
            rules_digest: self.plan.rules_digest.clone(),
            ingested_at: self.started_at,
            now: self.job.surroundings.now,
        }
    }

    fn commit_info(&self, rows: u64) -> CommitInfo {
        CommitInfo {
            run_id: self.run_id.clone(),
            pipeline: self.job.pipeline.clone(),
            unit: self.job.unit.clone().unwrap_or_else(|| WHOLE.to_string()),
            contract_version: self.job.contract.as_ref().map(|contract| contract.version.clone()),
            rules_digest: self.plan.rules_digest.clone(),
            rows,
        }
    }

    fn report(
        &self,
        batch: JudgedBatch,
        decided: Decided,
        rows: Rows,
        source: &dyn Source,
        reconciliation: Vec<Reconciliation>,
        began: Instant,
    ) -> Report {
        let judged = rows.valid + rows.invalid;
        let checks: Vec<_> = batch.checks.into_iter().map(|check| check.report).collect();
        let mut dimensions: IndexMap<_, DimensionCount> = IndexMap::new();
        for check in &checks {
            let count = dimensions.entry(check.dimension).or_default();
            count.checks += 1;
            count.passed += u64::from(check.outcome == Outcome::Pass);
        }
        dimensions.sort_keys();
        let time = |at: DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Millis, true);
        Report {
            format_version: FORMAT_VERSION,
            run_id: self.run_id.clone(),
            pipeline: self.job.pipeline.clone(),
            unit: self.job.unit.clone(),
            layer: self.job.layer.clone(),
            contract: self.job.contract.clone(),
            rules_digest: self.plan.rules_digest.clone(),
            engine: "local".into(),
            started_at: time(self.started_at),
            now: time(self.job.surroundings.now),
            timezone: self.job.surroundings.timezone.to_string(),
            duration_ms: crate::batch::millis(began),
            decision: decided.decision,
            decision_reasons: decided.reasons,
            score: (judged > 0).then(|| rows.valid as f64 / judged as f64),
            rows,
            dimensions,
            checks,
            reconciliation,
            outputs: IndexMap::new(),
            notes: source.notes(),
            timings_ms: batch.timings_ms,
        }
    }
}

/// A run id: unique, and in order of time (UUID version 7, RFC 9562).
pub fn new_run_id() -> String {
    uuid::Uuid::now_v7().to_string()
}

/// Whether a report's hold is due to an error rather than to the data (exit code 3 rather than 1).
pub fn held_by_error(report: &Report) -> bool {
    report.decision == Decision::Hold
        && report
            .checks
            .iter()
            .any(|check| check.outcome == Outcome::Error && check.effect == comporta_contract::Effect::Held)
}
