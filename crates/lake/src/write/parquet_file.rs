//! One Parquet file, encoded by several tasks: each makes whole row groups, and only the copying of
//! finished ones into the file is one after the other.

use super::columns;
use super::disk::io_error;
use super::sink::Sink;
use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::row::{RowConverter, SortField};
use comporta_contract::pipeline::WriteCompression;
use comporta_engine::{Error, ErrorKind, Result, StageWriter};
use futures::future::BoxFuture;
use hashbrown::HashSet;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::arrow::arrow_writer::{
    ArrowColumnWriter, ArrowRowGroupWriterFactory, ArrowWriter, ArrowWriterOptions, compute_leaves,
};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows of a row group: large enough to read fast, small enough that each task can hold one.
const GROUP_ROWS: usize = 128 * 1024;
/// Bytes at which a row group is closed however few rows it has, so that wide rows do not fill the memory.
const GROUP_BYTES: usize = 128 * 1024 * 1024;
/// Rows from which it is judged whether a dictionary pays.
const SAMPLE_ROWS: usize = 8192;
/// The key of the footer under which the run is named.
const RUN_KEY: &str = "comporta.run_id";

/// A Parquet file that is being written.
pub(super) struct ParquetSink {
    path: PathBuf,
    schema: SchemaRef,
    compression: WriteCompression,
    run_id: String,
    open: Mutex<Option<OpenFile>>,
}

struct OpenFile {
    writer: SerializedFileWriter<File>,
    factory: Arc<ArrowRowGroupWriterFactory>,
}

impl ParquetSink {
    /// Begins a file. It is opened with the first rows, which decide about dictionaries.
    pub(super) fn create(path: &Path, schema: SchemaRef, compression: WriteCompression, run_id: &str) -> Result<Self> {
        Ok(ParquetSink {
            path: path.to_path_buf(),
            schema: columns::without_views(&schema),
            compression,
            run_id: run_id.to_owned(),
            open: Mutex::new(None),
        })
    }

    fn begin(&self, sample: Option<&RecordBatch>) -> Result<OpenFile> {
        let file = File::create(&self.path).map_err(|error| io_error("writing", &self.path, &error))?;
        let properties = properties(&self.schema, self.compression, sample);
        let options = ArrowWriterOptions::new().with_properties(properties);
        let (mut writer, factory) = ArrowWriter::try_new_with_options(file, self.schema.clone(), options)
            .and_then(ArrowWriter::into_serialized_writer)
            .map_err(|error| parquet_error("writing", &self.path, &error))?;
        writer.append_key_value_metadata(KeyValue::new(RUN_KEY.to_owned(), self.run_id.clone()));
        Ok(OpenFile {
            writer,
            factory: Arc::new(factory),
        })
    }

    fn factory(&self, sample: &RecordBatch) -> Result<Arc<ArrowRowGroupWriterFactory>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.as_ref() {
            return Ok(file.factory.clone());
        }
        let file = self.begin(Some(sample))?;
        let factory = file.factory.clone();
        *open = Some(file);
        Ok(factory)
    }

    fn append(&self, group: Group) -> Result<()> {
        let mut chunks = Vec::with_capacity(group.writers.len());
        for writer in group.writers {
            chunks.push(
                writer
                    .close()
                    .map_err(|error| parquet_error("encoding", &self.path, &error))?,
            );
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let file = open
            .as_mut()
            .ok_or_else(|| Error::internal("rows were written before the file was opened"))?;
        let append = || {
            let mut target = file.writer.next_row_group()?;
            for chunk in chunks {
                chunk.append_to_row_group(&mut target)?;
            }
            target.close()
        };
        append()
            .map(drop)
            .map_err(|error| parquet_error("writing", &self.path, &error))
    }
}

impl Sink for ParquetSink {
    fn writer(self: Arc<Self>) -> Result<Box<dyn StageWriter>> {
        Ok(Box::new(ParquetWriter {
            sink: self,
            group: None,
        }))
    }

    fn close(&self) -> Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match open.take() {
            Some(file) => file,
            None => self.begin(None)?,
        };
        let file = file
            .writer
            .into_inner()
            .map_err(|error| parquet_error("writing", &self.path, &error))?;
        file.sync_all().map_err(|error| io_error("writing", &self.path, &error))
    }
}

/// A row group that one task is filling.
struct Group {
    writers: Vec<ArrowColumnWriter>,
    rows: usize,
}

struct ParquetWriter {
    sink: Arc<ParquetSink>,
    group: Option<Group>,
}

impl ParquetWriter {
    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let path = &self.sink.path;
        let mut from = 0;
        while from < batch.num_rows() {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => Group {
                    writers: self
                        .sink
                        .factory(batch)?
                        .create_column_writers(0)
                        .map_err(|error| parquet_error("writing", path, &error))?,
                    rows: 0,
                },
            };
            let rows = (batch.num_rows() - from).min(GROUP_ROWS - group.rows);
            let part = batch.slice(from, rows);
            let mut writers = group.writers.iter_mut();
            for (field, column) in self.sink.schema.fields().iter().zip(part.columns()) {
                let leaves = compute_leaves(field, column).map_err(|error| parquet_error("encoding", path, &error))?;
                for leaf in leaves {
                    let writer = writers
                        .next()
                        .ok_or_else(|| Error::internal("more columns than writers"))?;
                    writer
                        .write(&leaf)
                        .map_err(|error| parquet_error("encoding", path, &error))?;
                }
            }
            from += rows;
            group.rows += rows;
            let bytes: usize = group
                .writers
                .iter()
                .map(ArrowColumnWriter::get_estimated_total_bytes)
                .sum();
            if group.rows >= GROUP_ROWS || bytes >= GROUP_BYTES {
                self.sink.append(group)?;
            } else {
                self.group = Some(group);
            }
        }
        Ok(())
    }
}

impl StageWriter for ParquetWriter {
    fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let batch = columns::fit(&batch, &self.sink.schema)?;
            self.add(&batch)
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            match self.group {
                Some(group) if group.rows > 0 => self.sink.append(group),
                _ => Ok(()),
            }
        })
    }
}

/// How a Parquet file is written: statistics per chunk only, and dictionaries only where the first rows
/// repeat their values; elsewhere a dictionary costs more than a third of the time and saves nothing.
pub(super) fn properties(
    schema: &SchemaRef,
    compression: WriteCompression,
    sample: Option<&RecordBatch>,
) -> WriterProperties {
    let properties = WriterProperties::builder()
        .set_compression(codec(compression))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_created_by(concat!("comporta ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    match sample {
        Some(sample) => with_dictionaries(properties, schema, sample),
        None => properties,
    }
}

/// The same, with dictionaries only where the sample repeats its values.
pub(super) fn with_dictionaries(
    properties: WriterProperties,
    schema: &SchemaRef,
    sample: &RecordBatch,
) -> WriterProperties {
    let mut builder = properties.into_builder();
    for (field, column) in schema.fields().iter().zip(sample.columns()) {
        if !field.data_type().is_nested() && !dictionary_pays(column) {
            let path = ColumnPath::new(vec![field.name().clone()]);
            builder = builder.set_column_dictionary_enabled(path, false);
        }
    }
    builder.build()
}

fn codec(compression: WriteCompression) -> Compression {
    match compression {
        WriteCompression::None => Compression::UNCOMPRESSED,
        WriteCompression::Snappy => Compression::SNAPPY,
        WriteCompression::Zstd => Compression::ZSTD(ZstdLevel::try_new(1).unwrap_or_default()),
        WriteCompression::Gzip => Compression::GZIP(GzipLevel::default()),
    }
}

/// Whether at most half of the values of a sample are distinct. Without enough values to tell, yes.
fn dictionary_pays(column: &ArrayRef) -> bool {
    if matches!(column.data_type(), DataType::Boolean | DataType::Null) {
        return true;
    }
    let sample = column.slice(0, column.len().min(SAMPLE_ROWS));
    let values = sample.len() - sample.null_count();
    if values < 64 {
        return true;
    }
    let rows = RowConverter::new(vec![SortField::new(sample.data_type().clone())])
        .and_then(|converter| converter.convert_columns(std::slice::from_ref(&sample)));
    let Ok(rows) = rows else {
        return true;
    };
    let distinct: HashSet<&[u8]> = (0..sample.len())
        .filter(|row| sample.is_valid(*row))
        .map(|row| rows.row(row).data())
        .collect();
    distinct.len() * 2 <= values
}

/// Rows of a file, from its footer.
pub(super) fn rows(path: &Path) -> Result<u64> {
    let metadata = footer(path)?;
    Ok(metadata.metadata().file_metadata().num_rows().max(0).unsigned_abs())
}

/// The run that wrote a file, if one of ours did.
pub(super) fn run_of(path: &Path) -> Result<Option<String>> {
    let metadata = footer(path)?;
    let pairs = metadata.metadata().file_metadata().key_value_metadata();
    Ok(pairs
        .into_iter()
        .flatten()
        .find(|pair| pair.key == RUN_KEY)
        .and_then(|pair| pair.value.clone()))
}

/// Names and types of a file.
pub(super) fn schema_of(path: &Path) -> Result<SchemaRef> {
    Ok(footer(path)?.schema().clone())
}

fn footer(path: &Path) -> Result<ArrowReaderMetadata> {
    let file = File::open(path).map_err(|error| io_error("reading", path, &error))?;
    ArrowReaderMetadata::load(&file, ArrowReaderOptions::new()).map_err(|error| {
        let mut error = parquet_error("reading", path, &error);
        if error.kind == ErrorKind::Internal {
            error.kind = ErrorKind::Corrupt;
        }
        error
    })
}

/// An error of the Parquet library; a full disk inside it is told as such.
pub(super) fn parquet_error(doing: &str, path: &Path, error: &ParquetError) -> Error {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    if let ParquetError::External(inner) = error {
        cause = Some(inner.as_ref());
    }
    while let Some(inner) = cause {
        if let Some(inner) = inner.downcast_ref::<io::Error>() {
            return io_error(doing, path, inner);
        }
        cause = inner.source();
    }
    Error::internal(format!("{doing} `{}`: {error}", path.display()))
}
