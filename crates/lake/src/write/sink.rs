//! A staged file that several tasks write at once.

use super::{parquet_file, text_file};
use arrow::datatypes::SchemaRef;
use comporta_contract::pipeline::{TargetFormat, TargetSpec, WriteCompression};
use comporta_engine::{Error, Result, StageWriter};
use std::path::Path;
use std::sync::Arc;

/// A staged file, or a folder of them, on its way to disk.
pub(super) trait Sink: Send + Sync {
    /// A writer for one task.
    fn writer(self: Arc<Self>) -> Result<Box<dyn StageWriter>>;
    /// Completes the file and makes it last. All writers are finished.
    fn close(&self) -> Result<()>;
}

/// A format of files, with its compression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Encoding {
    /// Parquet, CSV or JSON lines.
    pub(super) format: TargetFormat,
    /// The compression.
    pub(super) compression: WriteCompression,
}

impl Encoding {
    /// The encoding of a target.
    ///
    /// # Errors
    /// The format has no such compression.
    pub(super) fn of(spec: &TargetSpec) -> Result<Self> {
        let format = spec.format();
        let text = matches!(format, TargetFormat::Csv | TargetFormat::Jsonl);
        let named_gzip = spec.is_single_file() && spec.place().ends_with(".gz");
        let compression = match spec.compression {
            Some(compression) => compression,
            None if named_gzip => WriteCompression::Gzip,
            None if text => WriteCompression::None,
            None => WriteCompression::Zstd,
        };
        if text && compression == WriteCompression::Snappy {
            return Err(Error::invalid("`compression: snappy` is not possible for text")
                .hint("use `zstd`, `gzip` or `none`, or write Parquet"));
        }
        if named_gzip && (compression != WriteCompression::Gzip || !text) {
            return Err(
                Error::invalid(format!("`{}` would not hold what its name says", spec.place()))
                    .hint("leave `.gz` away, or write text with `compression: gzip`"),
            );
        }
        Ok(Encoding { format, compression })
    }

    /// The end of file names, without the first dot.
    pub(super) fn extension(self) -> &'static str {
        use WriteCompression::{Gzip, None, Snappy, Zstd};
        match (self.format, self.compression) {
            (TargetFormat::Parquet | TargetFormat::Delta, _) => "parquet",
            (TargetFormat::Csv, None | Snappy) => "csv",
            (TargetFormat::Csv, Gzip) => "csv.gz",
            (TargetFormat::Csv, Zstd) => "csv.zst",
            (TargetFormat::Jsonl, None | Snappy) => "jsonl",
            (TargetFormat::Jsonl, Gzip) => "jsonl.gz",
            (TargetFormat::Jsonl, Zstd) => "jsonl.zst",
        }
    }

    /// What a document calls it.
    pub(super) fn word(self) -> &'static str {
        match self.format {
            TargetFormat::Delta => "delta",
            TargetFormat::Parquet => "parquet",
            TargetFormat::Csv => "csv",
            TargetFormat::Jsonl => "jsonl",
        }
    }

    /// Whether a file of this name can be data of this format, whatever its compression.
    pub(super) fn is_data(self, name: &str) -> bool {
        let stem = name
            .strip_suffix(".gz")
            .or_else(|| name.strip_suffix(".zst"))
            .unwrap_or(name);
        let end = format!(".{}", self.word());
        !name.starts_with(['.', '_']) && stem.ends_with(&end)
    }

    /// Begins a staged file.
    pub(super) fn open(self, path: &Path, schema: SchemaRef, run_id: &str) -> Result<Arc<dyn Sink>> {
        Ok(match self.format {
            TargetFormat::Parquet | TargetFormat::Delta => Arc::new(parquet_file::ParquetSink::create(
                path,
                schema,
                self.compression,
                run_id,
            )?),
            TargetFormat::Csv | TargetFormat::Jsonl => Arc::new(text_file::TextSink::create(path, schema, self)?),
        })
    }

    /// Rows of a file, counted from the file itself.
    pub(super) fn rows(self, path: &Path) -> Result<u64> {
        match self.format {
            TargetFormat::Parquet | TargetFormat::Delta => parquet_file::rows(path),
            TargetFormat::Csv | TargetFormat::Jsonl => text_file::rows(path, self),
        }
    }
}
