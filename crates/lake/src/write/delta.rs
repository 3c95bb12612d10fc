//! Delta tables: files are staged in a folder of the run inside the table, and one entry of the log makes
//! them visible.
//!
//! The folder is called `run.<pipeline>.<run>` and holds a `.staging` mark until the commit, by which the
//! next run of the pipeline knows what a killed one left.

use super::columns;
use super::delta_files::{DeltaFiles, delta_error, writer_properties};
use super::disk::{self, check_writable, clean, io_error, name_of};
use super::sink::{Encoding, Sink};
use super::staging::check_rows;
use super::{Role, parquet_file};
use arrow::datatypes::{Schema, SchemaRef};
use chrono::Utc;
use comporta_contract::pipeline::{TargetSpec, WriteStrategy};
use comporta_engine::{
    CommitInfo, Committed, Error, ErrorKind, Result, RunIntent, StageWriter, Staging, Target, fault,
};
use deltalake::kernel::engine::arrow_conversion::{TryIntoArrow, TryIntoKernel};
use deltalake::kernel::transaction::{CommitBuilder, CommitProperties, TableReference};
use deltalake::kernel::{Action, Add, StructType, Transaction};
use deltalake::operations::create::CreateBuilder;
use deltalake::protocol::{DeltaOperation, SaveMode};
use deltalake::{DeltaTable, DeltaTableBuilder};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// The mark of a folder whose run has not committed.
const MARK: &str = ".staging";
/// The columns by which evidence is kept apart.
const EVIDENCE: [&str; 2] = ["_pipeline", "_unit"];
/// How many of the newest commits are searched for a run: far more than can follow a killed run before
/// its pipeline runs again.
const SEARCHED_COMMITS: usize = 10_000;
/// How often evidence is committed anew when another pipeline won.
const ATTEMPTS: usize = 8;

/// How staged files become part of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Append,
    Overwrite,
    /// In place of the files of the same pipeline and unit.
    Evidence,
}

/// A Delta table in a local folder.
#[derive(Debug, Clone)]
pub(super) struct DeltaTarget {
    path: PathBuf,
    description: String,
    encoding: Encoding,
    mode: Mode,
    partition_by: Vec<String>,
}

impl DeltaTarget {
    /// The table that a document names.
    ///
    /// # Errors
    /// The combination cannot be written.
    pub(super) fn new(spec: &TargetSpec, path: PathBuf, role: Role, strategy: WriteStrategy) -> Result<Self> {
        let mode = match (role, strategy) {
            (Role::Quarantine, _) => Mode::Evidence,
            (Role::Report, _) | (Role::Valid, WriteStrategy::Append) => Mode::Append,
            (Role::Valid, WriteStrategy::Overwrite) => Mode::Overwrite,
        };
        let partition_by = match mode {
            Mode::Evidence => EVIDENCE.map(str::to_owned).to_vec(),
            _ => spec.partition_by.clone(),
        };
        Ok(DeltaTarget {
            path: std::path::absolute(&path).map_err(|error| io_error("finding", &path, &error))?,
            description: format!("delta {}", spec.place()),
            encoding: Encoding::of(spec)?,
            mode,
            partition_by,
        })
    }

    fn log(&self) -> PathBuf {
        self.path.join("_delta_log")
    }

    fn builder(&self) -> Result<DeltaTableBuilder> {
        let url = Url::from_directory_path(&self.path)
            .map_err(|()| Error::invalid(format!("`{}` is no place for a table", self.path.display())))?;
        DeltaTableBuilder::from_url(url).map_err(|error| delta_error("opening", &self.path, error))
    }

    /// The table as it is now, if there is one.
    async fn open(&self) -> Result<Option<DeltaTable>> {
        let has_log = disk::entries(&self.log())?.iter().any(|path| {
            let name = name_of(path);
            name.ends_with(".json") || name.ends_with(".parquet")
        });
        if !has_log {
            return Ok(None);
        }
        let table = self.builder()?.load().await;
        table
            .map(Some)
            .map_err(|error| delta_error("opening", &self.path, error))
    }

    async fn check(&self, schema: &SchemaRef) -> Result<()> {
        if self.path.exists() && !self.path.is_dir() {
            let message = format!("`{}` is a file, not the folder of a table", self.path.display());
            return Err(Error::new(ErrorKind::Refused, message).hint("name a folder"));
        }
        if self.path.is_dir() {
            check_writable(&self.path)?;
        } else {
            check_writable(disk::folder_of(&self.path))?;
        }
        for name in &self.partition_by {
            if schema.index_of(name).is_err() {
                return Err(Error::invalid(format!(
                    "`partition_by` names `{name}`, which the rows do not have"
                )));
            }
        }
        match self.open().await? {
            Some(table) => self.check_table(&table, schema),
            None => {
                let _: StructType = columns::for_delta(schema)
                    .as_ref()
                    .try_into_kernel()
                    .map_err(|error| unsupported(&error.to_string()))?;
                self.check_empty()
            }
        }
    }

    /// A new table is not begun among somebody's files.
    fn check_empty(&self) -> Result<()> {
        let foreign = disk::entries(&self.path)?.into_iter().find(|path| {
            let name = name_of(path);
            !name.starts_with("run.") && !name.starts_with(".comporta-probe") && name != "_delta_log"
        });
        match foreign {
            None => Ok(()),
            Some(path) => {
                let message = format!(
                    "`{}` is no Delta table and holds `{}`",
                    self.path.display(),
                    name_of(&path)
                );
                Err(Error::new(ErrorKind::Refused, message).hint("name an empty folder or one that is a table"))
            }
        }
    }

    /// Refuses what the commit would not honour, and rows that do not fit.
    fn check_table(&self, table: &DeltaTable, schema: &SchemaRef) -> Result<()> {
        let state = table
            .snapshot()
            .map_err(|error| delta_error("opening", &self.path, error))?;
        let place = format!("the table `{}`", self.path.display());
        let refuse = |what: &str| {
            Err(Error::invalid(format!("{place} cannot be written to: it uses {what}"))
                .hint("write to a table without it"))
        };
        let metadata = serde_json::to_value(state.metadata()).map_err(|error| Error::internal(error.to_string()))?;
        let setting = |name: &str| metadata["configuration"][name].as_str().map(str::to_owned);
        if setting("delta.columnMapping.mode").is_some_and(|mode| mode != "none") {
            return refuse("column mapping");
        }
        let constrained = metadata["configuration"]
            .as_object()
            .is_some_and(|settings| settings.keys().any(|key| key.starts_with("delta.constraints.")));
        if constrained {
            return refuse("constraints, which this version does not check");
        }
        let fields = metadata["schemaString"].as_str().unwrap_or_default();
        for (key, what) in [
            ("delta.generationExpression", "generated columns"),
            ("delta.invariants", "invariants"),
            ("delta.identity.", "identity columns"),
        ] {
            if fields.contains(key) {
                return refuse(what);
            }
        }
        if self.mode != Mode::Append {
            if setting("delta.appendOnly").as_deref() == Some("true") {
                return refuse("`delta.appendOnly`, and this write would remove rows");
            }
            if state
                .log_data()
                .iter()
                .any(|file| file.deletion_vector_descriptor().is_some())
            {
                return refuse("deletion vectors");
            }
        }
        let there = self.table_schema(table)?;
        columns::check_same(&columns::for_delta(schema), &there, &place, false)?;
        let partitions: Vec<String> = partitions(&metadata);
        if !self.partition_by.is_empty() && partitions != self.partition_by {
            let words = |names: &[String]| match names {
                [] => "nothing".to_owned(),
                names => format!("`{}`", names.join("`, `")),
            };
            return Err(Error::invalid(format!(
                "{place} is partitioned by {}, not by {}",
                words(&partitions),
                words(&self.partition_by)
            ))
            .hint("name the columns of the table, or write to another place"));
        }
        Ok(())
    }

    fn table_schema(&self, table: &DeltaTable) -> Result<Schema> {
        let state = table
            .snapshot()
            .map_err(|error| delta_error("opening", &self.path, error))?;
        state
            .schema()
            .as_ref()
            .try_into_arrow()
            .map_err(|error| Error::internal(format!("the schema of `{}`: {error}", self.path.display())))
    }

    /// Removes what killed runs of the pipeline left; what they committed stays.
    fn clean_up(&self, pipeline: &str) -> Result<()> {
        let start = format!("run.{}.", clean(pipeline));
        for folder in disk::entries(&self.path)? {
            let name = name_of(&folder);
            let Some(run) = name.strip_prefix(&start) else { continue };
            if run.contains('.') || !folder.join(MARK).exists() {
                continue;
            }
            if self.is_referenced(&name)? {
                disk::remove(&folder.join(MARK))?;
            } else {
                disk::remove(&folder)?;
            }
        }
        Ok(())
    }

    /// Whether a commit names files of the folder.
    fn is_referenced(&self, folder: &str) -> Result<bool> {
        let needle = format!("\"path\":\"{folder}/");
        for (_, path) in self.commits()? {
            let text = fs::read_to_string(&path).map_err(|error| io_error("reading", &path, &error))?;
            if text.contains(&needle) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The newest commits, newest first.
    fn commits(&self) -> Result<Vec<(u64, PathBuf)>> {
        let mut commits: Vec<(u64, PathBuf)> = disk::entries(&self.log())?
            .into_iter()
            .filter_map(|path| {
                let version = name_of(&path).strip_suffix(".json")?.parse().ok()?;
                Some((version, path))
            })
            .collect();
        commits.sort();
        commits.reverse();
        commits.truncate(SEARCHED_COMMITS);
        Ok(commits)
    }

    /// What a run committed, read from the log.
    fn find(&self, run_id: &str) -> Result<Option<Committed>> {
        for (version, path) in self.commits()? {
            let text = fs::read_to_string(&path).map_err(|error| io_error("reading", &path, &error))?;
            if !text.contains(run_id) {
                continue;
            }
            let actions: Vec<Value> = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            if !actions
                .iter()
                .any(|action| action["commitInfo"]["comporta.run_id"] == run_id)
            {
                continue;
            }
            let mut committed = Committed {
                version: Some(version),
                ..Committed::default()
            };
            for add in actions.iter().filter_map(|action| action.get("add")) {
                let stats: Option<Value> = add["stats"].as_str().and_then(|text| serde_json::from_str(text).ok());
                committed.rows += stats.and_then(|stats| stats["numRecords"].as_u64()).unwrap_or(0);
                committed.files += 1;
            }
            return Ok(Some(committed));
        }
        Ok(None)
    }

    async fn begin(&self, schema: &SchemaRef, intent: &RunIntent) -> Result<DeltaStaging> {
        self.clean_up(&intent.pipeline)?;
        fault::point("write:before_stage");
        let table = self.open().await?;
        let schema = columns::for_delta(schema);
        let partition_by = match &table {
            Some(table) => {
                self.check_table(table, &schema)?;
                let state = table
                    .snapshot()
                    .map_err(|error| delta_error("opening", &self.path, error))?;
                partitions(&serde_json::to_value(state.metadata()).unwrap_or_default())
            }
            None => self.partition_by.clone(),
        };
        let made_folder = !self.path.exists();
        let folder_name = format!("run.{}.{}", clean(&intent.pipeline), clean(&intent.run_id));
        let folder = self.path.join(&folder_name);
        disk::make_folder(&folder)?;
        let mark = folder.join(MARK);
        fs::write(&mark, b"").map_err(|error| io_error("writing", &mark, &error))?;
        let properties = writer_properties(&schema, self.encoding.compression);
        let files = DeltaFiles::create(&folder, &schema, partition_by.clone(), properties)?;
        fault::point("write:staging");
        Ok(DeltaStaging {
            target: self.clone(),
            files: Arc::new(files),
            folder,
            folder_name,
            made_folder,
            schema,
            partition_by,
            table,
        })
    }
}

fn partitions(metadata: &Value) -> Vec<String> {
    let names = metadata["partitionColumns"].as_array();
    names
        .into_iter()
        .flatten()
        .filter_map(|name| name.as_str().map(str::to_owned))
        .collect()
}

fn unsupported(message: &str) -> Error {
    Error::invalid(format!("a Delta table cannot hold these columns: {message}"))
        .hint("add a `cast` to a type that Delta has, or write Parquet")
}

impl Target for DeltaTarget {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn prepare<'a>(&'a self, schema: &'a SchemaRef) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.check(schema))
    }

    fn stage<'a>(&'a self, schema: SchemaRef, intent: &'a RunIntent) -> BoxFuture<'a, Result<Box<dyn Staging>>> {
        Box::pin(async move { Ok(Box::new(self.begin(&schema, intent).await?) as Box<dyn Staging>) })
    }

    fn committed<'a>(&'a self, run_id: &'a str) -> BoxFuture<'a, Result<Option<Committed>>> {
        Box::pin(async move { self.find(run_id) })
    }
}

/// Staged files of one run.
struct DeltaStaging {
    target: DeltaTarget,
    files: Arc<DeltaFiles>,
    folder: PathBuf,
    folder_name: String,
    made_folder: bool,
    schema: SchemaRef,
    partition_by: Vec<String>,
    /// The table as it was when staging began, if there was one.
    table: Option<DeltaTable>,
}

impl DeltaStaging {
    /// The staged files, with paths from the table.
    fn adds(&self, info: &CommitInfo) -> Result<Vec<Add>> {
        self.files.close()?;
        let mut adds = self.files.take();
        let mut rows = 0;
        let mut files = 0;
        for path in disk::files_below(&self.folder)? {
            if name_of(&path).ends_with(".parquet") {
                rows += parquet_file::rows(&path)?;
                files += 1;
            }
        }
        if files != adds.len() {
            return Err(Error::internal(format!(
                "nothing was published: {} files were reported and {files} were staged",
                adds.len()
            )));
        }
        check_rows(rows, info.rows)?;
        for add in &mut adds {
            add.path = format!("{}/{}", self.folder_name, add.path);
        }
        Ok(adds)
    }

    async fn publish(&mut self, info: &CommitInfo) -> Result<Committed> {
        if let Some(committed) = self.target.find(&info.run_id)? {
            // A run that is picked up again after its commit must not add its rows twice.
            self.discard()?;
            return Ok(committed);
        }
        let adds = self.adds(info)?;
        fault::point("write:staged");
        let mut attempt = 1;
        loop {
            fault::point("write:before_commit");
            match self.try_commit(&adds, info).await {
                Ok(()) => break,
                // Evidence of other pipelines may have come in between; ours does not depend on it.
                Err(error)
                    if error.kind == ErrorKind::Conflict
                        && self.target.mode == Mode::Evidence
                        && attempt < ATTEMPTS =>
                {
                    attempt += 1;
                    self.table = self.target.open().await?;
                }
                // The commit may have happened although what comes after it failed.
                Err(error) => match self.target.find(&info.run_id) {
                    Ok(Some(_)) => break,
                    _ => return Err(error),
                },
            }
        }
        fault::point("write:after_commit");
        if let Err(error) = disk::remove(&self.folder.join(MARK)) {
            tracing::warn!("{error}; the next run of the pipeline will try again");
        }
        if adds.is_empty()
            && let Err(error) = disk::remove(&self.folder)
        {
            tracing::warn!("{error}");
        }
        self.target
            .find(&info.run_id)?
            .ok_or_else(|| Error::internal("the commit is not in the log of the table"))
    }

    async fn try_commit(&self, adds: &[Add], info: &CommitInfo) -> Result<()> {
        let place = &self.target.path;
        let failed = |error| delta_error("committing to", place, error);
        let mut actions: Vec<Action> = adds.iter().cloned().map(Action::Add).collect();
        let Some(table) = &self.table else {
            return self.create(actions, info).await;
        };
        let state = table.snapshot().map_err(failed)?;
        for file in state.log_data().iter() {
            if self.replaces(&file.partition_values_map(), info) {
                actions.push(Action::Remove(file.remove_action(true)));
            }
        }
        let operation = DeltaOperation::Write {
            mode: match self.target.mode {
                Mode::Append => SaveMode::Append,
                Mode::Overwrite | Mode::Evidence => SaveMode::Overwrite,
            },
            partition_by: (!self.partition_by.is_empty()).then(|| self.partition_by.clone()),
            predicate: None,
        };
        CommitBuilder::from(properties(info))
            .with_actions(actions)
            .build(Some(state as &dyn TableReference), table.log_store(), operation)
            .await
            .map(drop)
            .map_err(failed)
    }

    fn replaces(&self, values: &HashMap<String, Option<String>>, info: &CommitInfo) -> bool {
        let is = |name: &str, wanted: &str| {
            values
                .get(name)
                .and_then(Option::as_deref)
                .is_some_and(|value| value == wanted)
        };
        match self.target.mode {
            Mode::Append => false,
            Mode::Overwrite => true,
            Mode::Evidence => is("_pipeline", &info.pipeline) && is("_unit", &info.unit),
        }
    }

    async fn create(&self, actions: Vec<Action>, info: &CommitInfo) -> Result<()> {
        let place = &self.target.path;
        let table: StructType = self
            .schema
            .as_ref()
            .try_into_kernel()
            .map_err(|error| unsupported(&error.to_string()))?;
        let log_store = self
            .target
            .builder()?
            .build()
            .map_err(|error| delta_error("making", place, error))?
            .log_store();
        CreateBuilder::new()
            .with_log_store(log_store)
            .with_columns(table.fields().cloned())
            .with_partition_columns(self.partition_by.clone())
            .with_actions(actions)
            .with_commit_properties(properties(info))
            .await
            .map(drop)
            .map_err(|error| {
                let exists = error.to_string().contains("already exists");
                let mut error = delta_error("making the table", place, error);
                if exists {
                    error.kind = ErrorKind::Conflict;
                    error.hint = Some("another writer made it meanwhile: run again".to_owned());
                }
                error
            })
    }

    /// Removes what was staged, and the folder of a table that did not come to be.
    fn discard(&self) -> Result<()> {
        disk::remove(&self.folder)?;
        if self.made_folder && disk::entries(&self.target.path)?.is_empty() {
            disk::remove(&self.target.path)?;
        }
        Ok(())
    }
}

fn properties(info: &CommitInfo) -> CommitProperties {
    let mut metadata = vec![
        ("comporta.run_id".to_owned(), json!(info.run_id)),
        ("comporta.pipeline".to_owned(), json!(info.pipeline)),
        ("comporta.unit".to_owned(), json!(info.unit)),
        ("comporta.rules_digest".to_owned(), json!(info.rules_digest)),
    ];
    if let Some(version) = &info.contract_version {
        metadata.push(("comporta.contract_version".to_owned(), json!(version)));
    }
    let application = format!("comporta/{}/{}", info.pipeline, info.unit);
    #[expect(
        clippy::disallowed_methods,
        reason = "only orders the transactions of one application"
    )]
    let version = Utc::now().timestamp_millis();
    CommitProperties::default()
        .with_metadata(metadata)
        .with_application_transaction(Transaction::new(application, version))
}

impl Staging for DeltaStaging {
    fn writer(&self) -> Result<Box<dyn StageWriter>> {
        self.files.clone().writer()
    }

    fn commit(mut self: Box<Self>, info: CommitInfo) -> BoxFuture<'static, Result<Committed>> {
        Box::pin(async move {
            let result = self.publish(&info).await;
            // A commit that may have happened is left to the next run, which looks before it removes.
            if result.is_err()
                && matches!(self.target.find(&info.run_id), Ok(None))
                && let Err(error) = self.discard()
            {
                tracing::warn!("{error}");
            }
            result
        })
    }

    fn abort(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move { self.discard() })
    }
}
