//! Targets that are files: one file, a folder that grows, a folder that is replaced, a folder of evidence.

use super::columns;
use super::delta_files::{DeltaFiles, writer_properties};
use super::disk::{self, ASIDE, STAGING, check_writable, folder_of, io_error, leftovers, name_of, staged_name};
use super::marker::{self, FOLDER_MARKER, Marker};
use super::parquet_file;
use super::sink::{Encoding, Sink};
use super::staging::{FileStaging, Step};
use super::{Role, text_file};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comporta_contract::pipeline::{TargetFormat, TargetSpec, WriteStrategy};
use comporta_engine::{Committed, Error, Result, RunIntent, Staging, Target, fault};
use futures::future::BoxFuture;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How files become visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// The file takes the place of the one before.
    File,
    /// One more file in the folder.
    Append,
    /// The folder takes the place of the one before.
    Overwrite,
    /// One file per pipeline and unit in the folder.
    Evidence,
}

/// A target of plain files.
#[derive(Debug, Clone)]
pub(super) struct FileTarget {
    path: PathBuf,
    description: String,
    encoding: Encoding,
    mode: Mode,
    partition_by: Vec<String>,
}

impl FileTarget {
    /// The target that a document names.
    ///
    /// # Errors
    /// The combination cannot be written.
    pub(super) fn new(spec: &TargetSpec, path: PathBuf, role: Role, strategy: WriteStrategy) -> Result<Self> {
        let encoding = Encoding::of(spec)?;
        let mode = match (spec.is_single_file(), role, strategy) {
            (true, _, _) => Mode::File,
            (false, Role::Quarantine, _) => Mode::Evidence,
            (false, Role::Report, _) | (false, Role::Valid, WriteStrategy::Append) => Mode::Append,
            (false, Role::Valid, WriteStrategy::Overwrite) => Mode::Overwrite,
        };
        if !spec.partition_by.is_empty() && mode != Mode::Overwrite {
            return Err(Error::invalid(
                "`partition_by` needs a Delta table or a folder of Parquet that is overwritten",
            )
            .hint("leave `partition_by` away, or write to a Delta table"));
        }
        Ok(FileTarget {
            description: format!("{} {}", encoding.word(), spec.place()),
            path,
            encoding,
            mode,
            partition_by: spec.partition_by.clone(),
        })
    }

    fn name(&self) -> String {
        name_of(&self.path)
    }

    /// The folder that staged names stand in, and the name they are made of.
    fn staging_place(&self, inside: bool) -> (PathBuf, String) {
        if inside {
            (self.path.clone(), "part".to_owned())
        } else {
            (folder_of(&self.path).to_path_buf(), self.name())
        }
    }

    /// Puts back a folder that a killed run had moved aside, and removes what it had staged.
    fn clean_up(&self, pipeline: &str) -> Result<()> {
        let (folder, name) = self.staging_place(false);
        for aside in leftovers(&folder, &name, pipeline, ASIDE)? {
            if self.path.exists() {
                disk::remove(&aside)?;
            } else {
                disk::rename(&aside, &self.path)?;
            }
        }
        for inside in [false, true] {
            let (folder, name) = self.staging_place(inside);
            if inside && !folder.is_dir() {
                continue;
            }
            for staged in leftovers(&folder, &name, pipeline, STAGING)? {
                disk::remove(&staged)?;
            }
        }
        Ok(())
    }

    fn check(&self, schema: &SchemaRef) -> Result<()> {
        if self.mode == Mode::File {
            if self.path.is_dir() {
                return Err(
                    Error::invalid(format!("`{}` is a folder, not a file", self.path.display()))
                        .hint("name a file that is not there yet"),
                );
            }
            return check_writable(folder_of(&self.path));
        }
        if self.path.exists() && !self.path.is_dir() {
            return Err(Error::new(
                comporta_engine::ErrorKind::Refused,
                format!("`{}` is a file, not a folder", self.path.display()),
            )
            .hint(format!(
                "name a folder, or a file that ends in `.{}`",
                self.encoding.extension()
            )));
        }
        for name in &self.partition_by {
            if schema.index_of(name).is_err() {
                return Err(Error::invalid(format!(
                    "`partition_by` names `{name}`, which the rows do not have"
                )));
            }
        }
        if !self.path.exists() || self.mode == Mode::Overwrite {
            check_writable(folder_of(&self.path))?;
        }
        if self.path.is_dir() {
            check_writable(&self.path)?;
            match self.mode {
                Mode::Overwrite => self.check_ours(&self.path)?,
                _ => self.check_fits(schema)?,
            }
        }
        Ok(())
    }

    /// Refuses to replace a folder that holds somebody's files.
    fn check_ours(&self, folder: &Path) -> Result<()> {
        for path in disk::entries(folder)? {
            let name = name_of(&path);
            if path.is_dir() {
                if name == "_delta_log" || !name.contains('=') {
                    return Err(self.foreign(&path));
                }
                self.check_ours(&path)?;
            } else {
                let ours = name == FOLDER_MARKER
                    || name == "_SUCCESS"
                    || name.starts_with(".comporta-probe")
                    || (name.starts_with(".part.") && name.ends_with(STAGING));
                if !ours && !self.encoding.is_data(&name) {
                    return Err(self.foreign(&path));
                }
            }
        }
        Ok(())
    }

    fn foreign(&self, path: &Path) -> Error {
        Error::new(
            comporta_engine::ErrorKind::Refused,
            format!(
                "`{}` is not replaced, since it holds `{}`, which is no {} data",
                self.path.display(),
                path.strip_prefix(&self.path).unwrap_or(path).display(),
                self.encoding.word()
            ),
        )
        .hint("move that away, or write to a folder of its own")
    }

    /// Rows that are added must have the columns that are there.
    fn check_fits(&self, schema: &SchemaRef) -> Result<()> {
        let files = disk::entries(&self.path)?;
        let Some(newest) = files
            .iter()
            .filter(|path| path.is_file() && self.encoding.is_data(&name_of(path)))
            .max_by_key(|path| fs::metadata(path).and_then(|metadata| metadata.modified()).ok())
        else {
            return Ok(());
        };
        let place = format!("what is in `{}`", self.path.display());
        match self.encoding.format {
            TargetFormat::Csv => {
                let same_end = name_of(newest).ends_with(&format!(".{}", self.encoding.extension()));
                if !same_end {
                    return Ok(());
                }
                let there = text_file::header(newest, self.encoding)?;
                let as_text = |names: Vec<String>| {
                    Schema::new(
                        names
                            .into_iter()
                            .map(|name| Field::new(name, DataType::Utf8, true))
                            .collect::<Vec<_>>(),
                    )
                };
                let here = schema.fields().iter().map(|field| field.name().clone()).collect();
                columns::check_same(&as_text(here), &as_text(there), &place, true)
            }
            TargetFormat::Jsonl => Ok(()),
            TargetFormat::Parquet | TargetFormat::Delta => {
                let there = parquet_file::schema_of(newest)?;
                columns::check_same(schema, &there, &place, false)
            }
        }
    }

    fn part(&self, run_id: &str) -> String {
        format!("part-{}.{}", disk::clean(run_id), self.encoding.extension())
    }

    /// `quarantine-<pipeline>-<unit>`, with a digest where two pairs could give the same name.
    fn evidence(&self, pipeline: &str, unit: &str) -> String {
        let mut name = format!("quarantine-{}-{}", disk::clean(pipeline), disk::clean(unit));
        if pipeline.contains('-') || unit.contains('-') {
            name.push_str(&format!("-{}", disk::short_digest(&format!("{pipeline}\u{0}{unit}"))));
        }
        format!("{name}.{}", self.encoding.extension())
    }

    fn begin(&self, schema: &SchemaRef, intent: &RunIntent) -> Result<FileStaging> {
        self.clean_up(&intent.pipeline)?;
        fault::point("write:before_stage");
        let visible = match self.mode {
            Mode::Evidence => self.evidence(&intent.pipeline, &intent.unit),
            _ => self.part(&intent.run_id),
        };
        let inside = self.path.is_dir() && matches!(self.mode, Mode::Append | Mode::Evidence);
        let (folder, name) = self.staging_place(inside);
        disk::make_folder(&folder)?;
        let staged = folder.join(staged_name(&name, &intent.pipeline, &intent.run_id, STAGING));
        let (data, step) = if self.mode == Mode::File {
            (
                staged.clone(),
                Step::ReplaceFile {
                    target: self.path.clone(),
                    reused: true,
                },
            )
        } else if inside {
            let target = self.path.join(&visible);
            let reused = self.mode == Mode::Evidence;
            (staged.clone(), Step::ReplaceFile { target, reused })
        } else {
            disk::remove(&staged)?;
            disk::make_folder(&staged)?;
            let aside = folder.join(staged_name(&name, &intent.pipeline, &intent.run_id, ASIDE));
            let replace = self.mode == Mode::Overwrite;
            (
                staged.join(&visible),
                Step::ReplaceFolder {
                    target: self.path.clone(),
                    aside,
                    replace,
                },
            )
        };
        let sink: Arc<dyn Sink> = if self.partition_by.is_empty() {
            self.encoding.open(&data, schema.clone(), &intent.run_id)?
        } else {
            let properties = writer_properties(schema, self.encoding.compression);
            Arc::new(DeltaFiles::create(
                &staged,
                schema,
                self.partition_by.clone(),
                properties,
            )?)
        };
        fault::point("write:staging");
        Ok(FileStaging {
            sink,
            staged,
            data: self.partition_by.is_empty().then_some(data),
            step,
            encoding: self.encoding,
        })
    }

    fn find(&self, run_id: &str) -> Result<Option<Committed>> {
        let found = match self.mode {
            Mode::File => self.file_of(&self.path, run_id)?,
            Mode::Append => Some(self.path.join(self.part(run_id))).filter(|part| part.is_file()),
            Mode::Evidence => {
                let mut found = None;
                for file in disk::entries(&self.path)? {
                    if name_of(&file).starts_with("quarantine-") && self.encoding.is_data(&name_of(&file)) {
                        found = found.or(self.file_of(&file, run_id)?);
                    }
                }
                found
            }
            Mode::Overwrite => return self.find_folder(run_id),
        };
        let Some(file) = found else { return Ok(None) };
        Ok(Some(Committed {
            rows: self.encoding.rows(&file)?,
            version: None,
            files: 1,
        }))
    }

    fn file_of(&self, file: &Path, run_id: &str) -> Result<Option<PathBuf>> {
        let run = marker::run_of_file(file, self.encoding)?;
        Ok((run.as_deref() == Some(run_id)).then(|| file.to_path_buf()))
    }

    fn find_folder(&self, run_id: &str) -> Result<Option<Committed>> {
        if Marker::read(&self.path.join(FOLDER_MARKER))?.is_none_or(|marker| marker.run_id != run_id) {
            return Ok(None);
        }
        super::staging::count(&self.path, self.encoding).map(Some)
    }
}

impl Target for FileTarget {
    fn description(&self) -> String {
        self.description.clone()
    }

    fn prepare<'a>(&'a self, schema: &'a SchemaRef) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { self.check(schema) })
    }

    fn stage<'a>(&'a self, schema: SchemaRef, intent: &'a RunIntent) -> BoxFuture<'a, Result<Box<dyn Staging>>> {
        Box::pin(async move { Ok(Box::new(self.begin(&schema, intent)?) as Box<dyn Staging>) })
    }

    fn committed<'a>(&'a self, run_id: &'a str) -> BoxFuture<'a, Result<Option<Committed>>> {
        Box::pin(async move {
            match self.path.try_exists() {
                Ok(true) => self.find(run_id),
                Ok(false) => Ok(None),
                Err(error) => Err(io_error("looking for", &self.path, &error)),
            }
        })
    }
}
