//! Reading: files of every format as a [`Source`] that can be scanned again and again.

pub mod cells;
pub mod csv;
pub mod csv_records;
pub mod decode;
pub mod delta;
pub mod files;
pub mod form;
pub mod json;
pub mod json_lines;
pub mod parquet;
pub mod partitions;
pub mod streams;
pub mod tape;
pub mod text_columns;

use chrono_tz::Tz;
use comporta_contract::source::{Format, OneOrMany, SourceSpec};
use comporta_contract::types::LogicalType;
use comporta_engine::job::Tables;
use comporta_engine::{Error, Result, Source};
use futures::future::BoxFuture;
use indexmap::IndexMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is known about how to read, apart from the place itself.
#[derive(Debug, Clone)]
pub struct OpenOptions {
    /// Types of columns that a contract declares; those of the source's own `schema:` win.
    pub types: IndexMap<String, LogicalType>,
    /// Where timestamps without an offset are, when the declared type has a zone.
    pub timezone: Tz,
    /// How many tasks may read at once.
    pub parallelism: usize,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            types: IndexMap::new(),
            timezone: Tz::UTC,
            parallelism: 1,
        }
    }
}

/// Opens a source: finds its files and learns its schema.
///
/// # Errors
/// Nothing is there, the place may not be read, the format cannot be told, or a file is damaged.
pub async fn open(spec: &SourceSpec, base: &Path, options: &OpenOptions) -> Result<Arc<dyn Source>> {
    let (places, format) = spec.places();
    if let [place] = places.as_slice()
        && is_delta(place, format, base)
    {
        return Ok(Arc::new(delta::open(spec, place, base).await?));
    }
    if spec.version.is_some() || spec.timestamp.is_some() {
        return Err(Error::invalid(
            "`version` and `timestamp` choose the version of a Delta table, and this is none",
        ));
    }
    let (spec, base, options) = (spec.clone(), base.to_path_buf(), options.clone());
    blocking(move || open_local(&spec, &base, &options)).await
}

/// Whether a place is said to be a Delta table, or is a folder with a log.
fn is_delta(place: &str, format: Option<Format>, base: &Path) -> bool {
    match format {
        Some(format) => format == Format::Delta,
        None => base.join(place).join("_delta_log").is_dir(),
    }
}

/// Runs work that waits on files apart from the tasks that serve others.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Error::internal(format!("a reading task ended early: {error}"))),
    }
}

fn open_local(spec: &SourceSpec, base: &Path, options: &OpenOptions) -> Result<Arc<dyn Source>> {
    let inputs = files::find(spec, base)?;
    let description = spec.places().0.join(", ");
    match inputs.format {
        Format::Parquet => Ok(Arc::new(parquet::ParquetSource::open(inputs, description)?)),
        Format::Csv | Format::Tsv => Ok(Arc::new(csv::CsvSource::open(inputs, spec, description, options)?)),
        Format::Json | Format::Jsonl => Ok(Arc::new(json::JsonSource::open(inputs, spec, description, options)?)),
        format => Err(Error::invalid(
            format!("{format:?} files cannot be read by this version").to_lowercase(),
        )),
    }
}

/// The tables that a document declares, and files that rules name.
#[derive(Debug, Clone)]
pub struct LakeTables {
    /// What `tables:` declares.
    pub tables: IndexMap<String, SourceSpec>,
    /// The folder that relative places start from.
    pub base: PathBuf,
    /// How they are read. Types of the batch's own contract do not belong here.
    pub options: OpenOptions,
}

impl Tables for LakeTables {
    fn open<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move {
            let Some(spec) = self.tables.get(name) else {
                return Err(Error::invalid(format!("table `{name}` is not declared"))
                    .hint("declare it under `tables:` with the place of its data"));
            };
            open(spec, &self.base, &self.options)
                .await
                .map_err(|error| error.context(format!("table `{name}`")))
        })
    }

    fn open_path<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<Arc<dyn Source>>> {
        Box::pin(async move {
            let spec = SourceSpec {
                path: Some(OneOrMany(vec![path.to_string()])),
                ..SourceSpec::default()
            };
            open(&spec, &self.base, &self.options).await
        })
    }
}
