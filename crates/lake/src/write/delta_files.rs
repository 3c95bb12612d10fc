//! Parquet files in folders named after values, and what a Delta log says of them.

use super::columns;
use super::disk::{self, io_error};
use super::parquet_file;
use super::sink::Sink;
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use comporta_contract::pipeline::WriteCompression;
use comporta_engine::{Error, ErrorKind, Result, StageWriter};
use deltalake::DeltaTableError;
use deltalake::datafile::writer::{DeltaWriter, WriterConfig};
use deltalake::kernel::Add;
use futures::future::BoxFuture;
use object_store::local::LocalFileSystem;
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes at which a file is closed and another begun.
const FILE_BYTES: u64 = 128 * 1024 * 1024;

/// Files that are being staged in a folder.
pub(super) struct DeltaFiles {
    folder: PathBuf,
    store: Arc<LocalFileSystem>,
    schema: SchemaRef,
    config: WriterConfig,
    compression: WriterProperties,
    adds: Mutex<Vec<Add>>,
}

/// How data files are written, before the first rows are seen.
pub(super) fn writer_properties(schema: &SchemaRef, compression: WriteCompression) -> WriterProperties {
    parquet_file::properties(schema, compression, None)
}

impl DeltaFiles {
    /// Begins to stage in a folder that exists.
    pub(super) fn create(
        folder: &Path,
        schema: &SchemaRef,
        partition_by: Vec<String>,
        properties: WriterProperties,
    ) -> Result<Self> {
        let schema = columns::without_views(schema);
        let store = LocalFileSystem::new_with_prefix(folder)
            .map_err(|error| Error::new(ErrorKind::Refused, format!("writing `{}`: {error}", folder.display())))?;
        let config = WriterConfig::new(
            schema.clone(),
            partition_by,
            Some(properties.clone()),
            NonZeroU64::new(FILE_BYTES),
            None,
            Default::default(),
            None,
        );
        Ok(DeltaFiles {
            folder: folder.to_path_buf(),
            store: Arc::new(store),
            schema,
            config,
            compression: properties,
            adds: Mutex::new(Vec::new()),
        })
    }

    /// What was staged, once all writers are finished; paths are relative to the folder.
    pub(super) fn take(&self) -> Vec<Add> {
        std::mem::take(&mut self.adds.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for DeltaFiles {
    fn writer(self: Arc<Self>) -> Result<Box<dyn StageWriter>> {
        Ok(Box::new(DeltaFilesWriter {
            files: self,
            writer: None,
        }))
    }

    fn close(&self) -> Result<()> {
        for path in disk::files_below(&self.folder)? {
            File::open(&path)
                .and_then(|file| file.sync_all())
                .map_err(|error| io_error("writing", &path, &error))?;
        }
        Ok(())
    }
}

struct DeltaFilesWriter {
    files: Arc<DeltaFiles>,
    writer: Option<DeltaWriter>,
}

impl StageWriter for DeltaFilesWriter {
    fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            let batch = columns::fit(&batch, &self.files.schema)?;
            let files = &self.files;
            let writer = self.writer.get_or_insert_with(|| {
                let properties = parquet_file::with_dictionaries(files.compression.clone(), &files.schema, &batch);
                DeltaWriter::new(files.store.clone(), files.config.clone()).with_writer_properties(properties)
            });
            writer
                .write(&batch)
                .await
                .map_err(|error| delta_error("writing", &files.folder, error))
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            let Some(writer) = self.writer else { return Ok(()) };
            let adds = writer
                .close()
                .await
                .map_err(|error| delta_error("writing", &self.files.folder, error))?;
            self.files
                .adds
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(adds);
            Ok(())
        })
    }
}

/// An error of the Delta library: conflicts and full disks are told as such.
pub(super) fn delta_error(doing: &str, place: &Path, error: DeltaTableError) -> Error {
    use deltalake::kernel::transaction::TransactionError;
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            return io_error(doing, place, inner);
        }
        cause = inner.source();
    }
    let kind = match &error {
        DeltaTableError::VersionAlreadyExists(_)
        | DeltaTableError::Transaction {
            source:
                TransactionError::CommitConflict(_)
                | TransactionError::VersionAlreadyExists(_)
                | TransactionError::MaxCommitAttempts(_),
        } => ErrorKind::Conflict,
        DeltaTableError::Transaction {
            source: TransactionError::UnsupportedTableFeatures(_) | TransactionError::TableFeaturesRequired(_),
        } => ErrorKind::Invalid,
        DeltaTableError::NotATable(_) => ErrorKind::NotFound,
        DeltaTableError::ObjectStore { .. } => ErrorKind::Unavailable,
        _ => ErrorKind::Internal,
    };
    let text = format!("{doing} `{}`: {error}", place.display());
    let error = Error::new(kind, text);
    if kind == ErrorKind::Conflict {
        error.hint("another writer changed the table meanwhile: run again")
    } else {
        error
    }
}
