//! One file of CSV or JSON lines, formatted by several tasks, each into its own buffer.

use super::columns;
use super::disk::io_error;
use super::sink::{Encoding, Sink};
use arrow::array::{Array, ArrayRef, RecordBatch, StringBuilder};
use arrow::csv::WriterBuilder as CsvWriterBuilder;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use arrow::error::ArrowError;
use arrow::json::writer::{EncoderOptions, LineDelimited, WriterBuilder as JsonWriterBuilder, make_encoder};
use comporta_contract::pipeline::{TargetFormat, WriteCompression};
use comporta_engine::{Error, ErrorKind, Result, StageWriter};
use flate2::write::GzEncoder;
use futures::future::BoxFuture;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A text file that is being written.
pub(super) struct TextSink {
    path: PathBuf,
    schema: SchemaRef,
    format: TargetFormat,
    out: Mutex<Option<Out>>,
}

#[expect(clippy::large_enum_variant, reason = "one per file that is written")]
enum Out {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(Box<zstd::Encoder<'static, BufWriter<File>>>),
}

impl Out {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Out::Plain(out) => out.write_all(bytes),
            Out::Gzip(out) => out.write_all(bytes),
            Out::Zstd(out) => out.write_all(bytes),
        }
    }

    fn close(self) -> io::Result<()> {
        let buffer = match self {
            Out::Plain(out) => out,
            Out::Gzip(out) => out.finish()?,
            Out::Zstd(out) => out.finish()?,
        };
        buffer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
    }
}

impl TextSink {
    /// Begins a file; CSV with its header.
    pub(super) fn create(path: &Path, schema: SchemaRef, encoding: Encoding) -> Result<Self> {
        let failed = |error: &io::Error| io_error("writing", path, error);
        let buffer = BufWriter::with_capacity(1 << 18, File::create(path).map_err(|error| failed(&error))?);
        let out = match encoding.compression {
            WriteCompression::Gzip => Out::Gzip(GzEncoder::new(buffer, flate2::Compression::default())),
            WriteCompression::Zstd => {
                Out::Zstd(Box::new(zstd::Encoder::new(buffer, 1).map_err(|error| failed(&error))?))
            }
            WriteCompression::None | WriteCompression::Snappy => Out::Plain(buffer),
        };
        let sink = TextSink {
            path: path.to_path_buf(),
            schema: columns::without_views(&schema),
            format: encoding.format,
            out: Mutex::new(Some(out)),
        };
        if encoding.format == TargetFormat::Csv {
            let mut header = Vec::new();
            let empty = flatten(&RecordBatch::new_empty(sink.schema.clone()))?;
            CsvWriterBuilder::new()
                .with_header(true)
                .build(&mut header)
                .write(&empty)?;
            sink.append(&header)?;
        }
        Ok(sink)
    }

    fn append(&self, bytes: &[u8]) -> Result<()> {
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        let out = out
            .as_mut()
            .ok_or_else(|| Error::internal("rows were written after the file was closed"))?;
        out.write_all(bytes)
            .map_err(|error| io_error("writing", &self.path, &error))
    }

    fn format(&self, batch: &RecordBatch, buffer: &mut Vec<u8>) -> Result<()> {
        if self.format == TargetFormat::Csv {
            let flat = flatten(batch)?;
            CsvWriterBuilder::new().with_header(false).build(buffer).write(&flat)?;
        } else {
            let mut writer = JsonWriterBuilder::new()
                .with_explicit_nulls(true)
                .build::<_, LineDelimited>(buffer);
            writer.write(batch)?;
            writer.finish()?;
        }
        Ok(())
    }
}

impl Sink for TextSink {
    fn writer(self: Arc<Self>) -> Result<Box<dyn StageWriter>> {
        Ok(Box::new(TextWriter {
            sink: self,
            buffer: Vec::new(),
        }))
    }

    fn close(&self) -> Result<()> {
        let out = self.out.lock().unwrap_or_else(PoisonError::into_inner).take();
        match out {
            Some(out) => out.close().map_err(|error| io_error("writing", &self.path, &error)),
            None => Ok(()),
        }
    }
}

struct TextWriter {
    sink: Arc<TextSink>,
    buffer: Vec<u8>,
}

impl StageWriter for TextWriter {
    fn write(&mut self, batch: RecordBatch) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if batch.num_rows() == 0 {
                return Ok(());
            }
            let batch = columns::fit(&batch, &self.sink.schema)?;
            self.buffer.clear();
            self.sink.format(&batch, &mut self.buffer)?;
            self.sink.append(&self.buffer)
        })
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

/// The batch with lists and structs as JSON text, since a field of CSV is one text.
fn flatten(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    if !schema.fields().iter().any(|field| field.data_type().is_nested()) {
        return Ok(batch.clone());
    }
    let mut fields: Vec<FieldRef> = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            fields.push(Arc::new(Field::new(field.name(), DataType::Utf8, true)));
            arrays.push(as_json(field, column)?);
        } else {
            fields.push(field.clone());
            arrays.push(column.clone());
        }
    }
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

fn as_json(field: &FieldRef, column: &ArrayRef) -> Result<ArrayRef> {
    let options = EncoderOptions::default().with_explicit_nulls(true);
    let mut encoder = make_encoder(field, column.as_ref(), &options)?;
    let mut texts = StringBuilder::new();
    let mut buffer = Vec::new();
    for row in 0..column.len() {
        if column.is_null(row) {
            texts.append_null();
            continue;
        }
        buffer.clear();
        encoder.encode(row, &mut buffer);
        texts.append_value(String::from_utf8_lossy(&buffer));
    }
    Ok(Arc::new(texts.finish()))
}

fn open(path: &Path, encoding: Encoding) -> io::Result<Box<dyn Read>> {
    let file = File::open(path)?;
    Ok(match encoding.compression {
        WriteCompression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(BufReader::new(file))),
        WriteCompression::Zstd => Box::new(zstd::Decoder::new(file)?),
        WriteCompression::None | WriteCompression::Snappy => Box::new(file),
    })
}

/// Rows of a file, by reading it again.
pub(super) fn rows(path: &Path, encoding: Encoding) -> Result<u64> {
    let failed = |error: &io::Error| io_error("reading back", path, error);
    let input = open(path, encoding).map_err(|error| failed(&error))?;
    let mut rows = 0;
    if encoding.format == TargetFormat::Csv {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(true)
            .buffer_capacity(1 << 18)
            .from_reader(input);
        let mut record = csv::ByteRecord::new();
        loop {
            match reader.read_byte_record(&mut record) {
                Ok(true) => rows += 1,
                Ok(false) => return Ok(rows),
                Err(error) => {
                    let message = format!("reading back `{}`: {error}", path.display());
                    return Err(Error::new(ErrorKind::Corrupt, message));
                }
            }
        }
    }
    let mut reader = BufReader::with_capacity(1 << 18, input);
    loop {
        let bytes = reader.fill_buf().map_err(|error| failed(&error))?;
        if bytes.is_empty() {
            return Ok(rows);
        }
        rows += bytes.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        let length = bytes.len();
        reader.consume(length);
    }
}

/// The names in the header of a CSV file.
pub(super) fn header(path: &Path, encoding: Encoding) -> Result<Vec<String>> {
    let input = open(path, encoding).map_err(|error| io_error("reading", path, &error))?;
    let mut reader = csv::ReaderBuilder::new().has_headers(true).from_reader(input);
    let names = reader.headers().map_err(|error| {
        let error = ArrowError::CsvError(error.to_string());
        Error::new(
            ErrorKind::Corrupt,
            format!("reading the header of `{}`: {error}", path.display()),
        )
    })?;
    Ok(names.iter().map(str::to_owned).collect())
}
