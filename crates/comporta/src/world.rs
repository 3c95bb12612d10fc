//! The world around the documents of one folder: opens what they name, keeps their secrets, and runs a job in it.

use crate::contract::Report;
use crate::contract::pipeline::{Pipeline, TargetSpec};
use crate::contract::rules_file::RulesFile;
use crate::contract::source::SourceSpec;
use crate::engine::job::{Job, Outputs, RunSetup, Tables};
use crate::engine::{Error, Progress, Result, Source, Target};
use crate::lake::read::{self, LakeTables, OpenOptions};
use crate::lake::write::{self, Role};
use crate::secrets::Secrets;
use crate::state::{PipelineLock, SqliteStore};
use crate::{documents, prepare};
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What the documents of a folder name, opened as it is asked for.
#[derive(Debug)]
pub struct World {
    folder: PathBuf,
    secrets: Mutex<Secrets>,
}

impl World {
    /// Around a document: its paths are relative to its folder, those of standard input to the current one.
    pub fn beside(place: &str) -> Self {
        World {
            folder: documents::folder_of(place),
            secrets: Mutex::default(),
        }
    }

    fn with_secrets<T>(&self, act: impl FnOnce(&mut Secrets) -> T) -> T {
        act(&mut self.secrets.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The error with resolved placeholders taken out.
    pub fn redact_error(&self, error: Error) -> Error {
        self.with_secrets(|secrets| secrets.redact_error(error))
    }

    /// Takes resolved placeholders out of a report.
    pub fn redact_report(&self, report: &mut Report) {
        self.with_secrets(|secrets| secrets.redact_report(report));
    }

    /// Opens the batch. Its places are relative to `folder`: the document's for a pipeline, the current one for
    /// places of the command line.
    ///
    /// # Errors
    /// Nothing is there, or it cannot be read.
    pub async fn source(
        &self,
        spec: &SourceSpec,
        folder: &Path,
        document: &RulesFile,
        job: &Job,
    ) -> Result<Arc<dyn Source>> {
        let resolved = self.with_secrets(|secrets| secrets.source(spec, folder))?;
        let declared = prepare::declared_types(document);
        let options = OpenOptions {
            types: declared.into_iter().map(|(name, ty)| (name, ty.0)).collect(),
            ..open_options(job)
        };
        read::open(&resolved, folder, &options).await
    }

    /// The other datasets that rules refer to.
    ///
    /// # Errors
    /// A placeholder has no value.
    pub fn tables(&self, document: &RulesFile, job: &Job) -> Result<Arc<dyn Tables>> {
        let mut resolved = IndexMap::new();
        for (name, spec) in &document.tables {
            let spec = self.with_secrets(|secrets| secrets.source(spec, &self.folder))?;
            resolved.insert(name.clone(), spec);
        }
        Ok(Arc::new(LakeTables {
            tables: resolved,
            base: self.folder.clone(),
            options: open_options(job),
        }))
    }

    /// A place to write to.
    ///
    /// # Errors
    /// It cannot be written to by this version, or a placeholder has no value.
    pub fn target(&self, spec: &TargetSpec, folder: &Path, role: Role) -> Result<Arc<dyn Target>> {
        let resolved = self.with_secrets(|secrets| secrets.target(spec, folder))?;
        write::target(&resolved, folder, role)
    }

    /// Judges the batch that the document's `source` names, relative to `folder`.
    ///
    /// # Errors
    /// As [`engine::check`](crate::engine::check).
    pub async fn check(
        &self,
        document: &RulesFile,
        folder: &Path,
        job: &Job,
        outputs: Outputs,
        progress: Arc<dyn Progress>,
    ) -> Result<Report> {
        let spec = document.source.clone().unwrap_or_default();
        let source = self.source(&spec, folder, document, job).await?;
        let tables = self.tables(document, job)?;
        crate::engine::check(job, source, tables, outputs, progress).await
    }

    /// Runs a pipeline, remembering it in the state database at `state`. One run of a pipeline at a time.
    ///
    /// # Errors
    /// As [`engine::run`](crate::engine::run); `Conflict` if the pipeline is being run already.
    pub async fn run(
        &self,
        pipeline: &Pipeline,
        job: &Job,
        state: &Path,
        progress: Arc<dyn Progress>,
    ) -> Result<Report> {
        let document = &pipeline.document;
        let target = pipeline
            .target
            .as_ref()
            .ok_or_else(|| Error::invalid("the pipeline names no target"))?;
        let target = self.target(target, &self.folder, Role::Valid)?;
        let optional = |spec: &Option<TargetSpec>, role| {
            spec.as_ref()
                .map(|spec| self.target(spec, &self.folder, role))
                .transpose()
        };
        let quarantine = optional(&pipeline.quarantine, Role::Quarantine)?;
        let report = optional(&pipeline.report, Role::Report)?;
        let state_folder = state.parent().filter(|folder| !folder.as_os_str().is_empty());
        let state_folder = state_folder.unwrap_or(Path::new("."));
        let lock = PipelineLock::acquire(state_folder, &job.pipeline)?;
        let setup = RunSetup {
            transform: pipeline.transform.clone(),
            target,
            quarantine,
            report,
            store: Arc::new(SqliteStore::open(state).await?),
            spill_dir: std::env::temp_dir(),
        };
        let spec = document.source.clone().unwrap_or_default();
        let source = self.source(&spec, &self.folder, document, job).await?;
        let tables = self.tables(document, job)?;
        let report = crate::engine::run(job, source, tables, setup, progress).await;
        // Held to here: the next run must find this one ended.
        drop(lock);
        report
    }
}

fn open_options(job: &Job) -> OpenOptions {
    OpenOptions {
        types: IndexMap::new(),
        timezone: job.surroundings.timezone,
        parallelism: job.parallelism,
    }
}
