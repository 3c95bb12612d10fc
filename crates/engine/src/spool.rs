//! A batch kept on disk between transforms and the gate: an Arrow stream with hidden columns for what could not
//! be read and where each row comes from.

use crate::chunk::{BadCells, BadLines, Chunk, Origin, Place};
use crate::error::{Error, Result};
use crate::world::{ChunkStream, ScanRequest, Source, Statistics};
use arrow::array::{
    Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions, StringArray, UInt64Array, new_null_array,
};
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, UInt64Type};
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use datafusion::execution::SendableRecordBatchStream;
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

/// Hidden column: the file a row comes from.
pub(crate) const ORIGIN: &str = "__comporta_origin";
/// Hidden column: the row in that file.
pub(crate) const ORIGIN_ROW: &str = "__comporta_origin_row";
/// Hidden column: the text of a line that is no row.
pub(crate) const LINE: &str = "__comporta_line";

/// Hidden column: the raw text of cells of a column that did not parse.
pub(crate) fn raw_name(column: &str) -> String {
    format!("__comporta_raw_{column}")
}

/// Whether a column is one of the hidden ones.
pub(crate) fn hidden(name: &str) -> bool {
    name.starts_with("__comporta_")
}

/// A finished spool file.
#[derive(Debug)]
pub(crate) struct Spooled {
    file: File,
    schema: SchemaRef,
    rows: u64,
    bytes: u64,
}

impl Spooled {
    /// Writes a stream to a file that vanishes with the process.
    pub(crate) async fn write(mut stream: SendableRecordBatchStream, dir: &Path) -> Result<Self> {
        let schema = stream.schema();
        let mut spool = Writer::open(&schema, dir)?;
        while let Some(batch) = stream.try_next().await? {
            spool.write(&batch)?;
        }
        spool.finish(schema)
    }

    /// Writes a source as it is, with its hidden columns.
    pub(crate) async fn of_source(source: &Arc<dyn Source>, dir: &Path) -> Result<Self> {
        let with_origins = WithOrigins::new(source.clone());
        let schema = with_origins.schema();
        let mut spool = Writer::open(&schema, dir)?;
        let projection = (0..schema.fields().len()).collect();
        for mut stream in with_origins
            .scan(ScanRequest {
                projection,
                parallelism: 1,
                raw: true,
            })
            .await?
        {
            while let Some(chunk) = stream.next().await {
                spool.write(&chunk?.batch)?;
            }
        }
        spool.finish(schema)
    }
}

struct Writer {
    writer: StreamWriter<BufWriter<File>>,
    rows: u64,
}

impl Writer {
    fn open(schema: &SchemaRef, dir: &Path) -> Result<Self> {
        let file = tempfile::tempfile_in(dir)
            .map_err(|error| Error::from(error).context(format!("no room to transform in {}", dir.display())))?;
        Ok(Writer {
            writer: StreamWriter::try_new(BufWriter::new(file), schema)?,
            rows: 0,
        })
    }

    fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        self.rows += batch.num_rows() as u64;
        self.writer.write(batch).map_err(|error| match error {
            arrow::error::ArrowError::IoError(_, io) => Error::from(io).context("writing a transformed batch"),
            other => Error::from(other),
        })
    }

    fn finish(mut self, schema: SchemaRef) -> Result<Spooled> {
        self.writer.finish()?;
        let mut file = self
            .writer
            .into_inner()?
            .into_inner()
            .map_err(|error| Error::from(error.into_error()).context("writing a transformed batch"))?;
        let bytes = file.stream_position()?;
        Ok(Spooled {
            file,
            schema,
            rows: self.rows,
            bytes,
        })
    }
}

/// A source whose hidden columns can be read like others: what transforms work on.
#[derive(Debug)]
pub(crate) struct WithOrigins {
    inner: Arc<dyn Source>,
    schema: SchemaRef,
}

impl WithOrigins {
    pub(crate) fn new(inner: Arc<dyn Source>) -> Self {
        let schema = inner.schema();
        let mut fields: Vec<Field> = schema
            .fields()
            .iter()
            .map(|field| field.as_ref().clone().with_nullable(true))
            .collect();
        for index in inner.parsed_columns() {
            fields.push(Field::new(raw_name(schema.field(*index).name()), DataType::Utf8, true));
        }
        fields.push(Field::new(LINE, DataType::Utf8, true));
        fields.push(Field::new(ORIGIN, DataType::Utf8, true));
        fields.push(Field::new(ORIGIN_ROW, DataType::UInt64, true));
        WithOrigins {
            inner,
            schema: Arc::new(Schema::new(fields)),
        }
    }
}

impl Source for WithOrigins {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
    fn description(&self) -> String {
        self.inner.description()
    }
    fn names(&self) -> &[String] {
        self.inner.names()
    }
    fn parsed_columns(&self) -> &[usize] {
        &[]
    }
    fn has_lines(&self) -> bool {
        false
    }
    fn statistics(&self) -> Statistics {
        Statistics {
            rows: self.inner.statistics().rows,
            ..Statistics::default()
        }
    }
    fn fingerprint(&self) -> String {
        self.inner.fingerprint()
    }
    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>> {
        Box::pin(async move {
            let visible: Vec<usize> = (0..self.inner.schema().fields().len()).collect();
            let inner = ScanRequest {
                projection: visible,
                parallelism: request.parallelism,
                raw: true,
            };
            let projected = Arc::new(self.schema.project(&request.projection)?);
            let names: Arc<Vec<String>> = Arc::new(self.inner.names().to_vec());
            let streams = self.inner.scan(inner).await?;
            Ok(streams
                .into_iter()
                .map(|stream| {
                    let (projected, names) = (projected.clone(), names.clone());
                    stream.map(move |chunk| unfold(&chunk?, &projected, &names)).boxed()
                })
                .collect())
        })
    }
}

/// A chunk with the hidden columns that are asked for.
fn unfold(chunk: &Chunk, wanted: &SchemaRef, names: &[String]) -> Result<Chunk> {
    let rows = chunk.rows();
    let columns: Vec<ArrayRef> = wanted
        .fields()
        .iter()
        .map(|field| {
            let name = field.name();
            Ok(match name.as_str() {
                LINE => match &chunk.bad_lines {
                    Some(lines) => Arc::new(lines.raw.clone()) as ArrayRef,
                    None => new_null_array(&DataType::Utf8, rows),
                },
                ORIGIN => match &chunk.origin {
                    Some(origin) => Arc::new(origin.source.clone()) as ArrayRef,
                    None => {
                        let name = names.get(chunk.place.source as usize).map(String::as_str);
                        Arc::new(StringArray::from(vec![name; rows]))
                    }
                },
                ORIGIN_ROW => match &chunk.origin {
                    Some(origin) => Arc::new(origin.row.clone()) as ArrayRef,
                    None => {
                        let first = chunk.place.first_row;
                        Arc::new(UInt64Array::from_iter_values(first..first + rows as u64))
                    }
                },
                _ => match chunk.batch.schema_ref().index_of(name) {
                    Ok(index) => chunk.batch.column(index).clone(),
                    Err(_) => raw_of(chunk, name, rows),
                },
            })
        })
        .collect::<Result<_>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(Chunk::new(
        RecordBatch::try_new_with_options(wanted.clone(), columns, &options)?,
        chunk.place,
    ))
}

fn raw_of(chunk: &Chunk, name: &str, rows: usize) -> ArrayRef {
    let schema = chunk.batch.schema_ref();
    let found = chunk
        .bad_cells
        .iter()
        .find(|cells| raw_name(schema.field(cells.column).name()) == name);
    match found {
        Some(cells) => Arc::new(cells.raw.clone()),
        None => new_null_array(&DataType::Utf8, rows),
    }
}

/// A transformed batch as a source of its own.
#[derive(Debug)]
pub(crate) struct SpoolSource {
    spooled: Spooled,
    schema: SchemaRef,
    parsed: Vec<usize>,
    origin: Arc<dyn Source>,
    names: Vec<String>,
}

impl SpoolSource {
    pub(crate) fn new(spooled: Spooled, origin: &Arc<dyn Source>) -> Result<Self> {
        let visible: Vec<Field> = spooled
            .schema
            .fields()
            .iter()
            .filter(|field| !hidden(field.name()))
            .map(|field| field.as_ref().clone())
            .collect();
        if visible.is_empty() {
            return Err(Error::invalid("the transform leaves no column"));
        }
        for (position, field) in visible.iter().enumerate() {
            if visible[..position].iter().any(|other| other.name() == field.name()) {
                return Err(Error::invalid(format!(
                    "the transform gives two columns `{}`",
                    field.name()
                )));
            }
        }
        let parsed = (0..visible.len())
            .filter(|index| {
                spooled
                    .schema
                    .column_with_name(&raw_name(visible[*index].name()))
                    .is_some()
            })
            .collect();
        let names = vec![format!("{} (transformed)", origin.description())];
        Ok(SpoolSource {
            spooled,
            schema: Arc::new(Schema::new(visible)),
            parsed,
            origin: origin.clone(),
            names,
        })
    }
}

impl Source for SpoolSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
    fn description(&self) -> String {
        self.origin.description()
    }
    fn names(&self) -> &[String] {
        &self.names
    }
    fn parsed_columns(&self) -> &[usize] {
        &self.parsed
    }
    fn has_lines(&self) -> bool {
        self.origin.has_lines()
    }
    fn statistics(&self) -> Statistics {
        Statistics {
            rows: Some(self.spooled.rows),
            ..Statistics::default()
        }
    }
    fn fingerprint(&self) -> String {
        self.origin.fingerprint()
    }
    fn bytes(&self) -> u64 {
        self.spooled.bytes
    }
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>> {
        Box::pin(async move {
            let mut file = self.spooled.file.try_clone()?;
            let schema = self.schema.clone();
            // The descriptor's position is shared by its clones, so each scan reads the file from its start
            // through a reader of its own.
            file.seek(SeekFrom::Start(0))?;
            let reader = StreamReader::try_new(BufReader::with_capacity(1 << 20, PositionedFile::new(file)), None)?;
            let mut next_row = 1u64;
            let chunks = reader.map(move |batch| {
                let batch = batch?;
                let chunk = fold(&batch, &schema, &request.projection, next_row)?;
                next_row += batch.num_rows() as u64;
                Ok(chunk)
            });
            Ok(vec![futures::stream::iter(chunks).boxed()])
        })
    }
}

/// Reads a file by position, so that several readers of one descriptor do not disturb each other.
#[derive(Debug)]
struct PositionedFile {
    file: File,
    at: u64,
}

impl PositionedFile {
    fn new(file: File) -> Self {
        PositionedFile { file, at: 0 }
    }
}

impl std::io::Read for PositionedFile {
    #[cfg(unix)]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        use std::os::unix::fs::FileExt;
        let read = self.file.read_at(buffer, self.at)?;
        self.at += read as u64;
        Ok(read)
    }

    #[cfg(not(unix))]
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let read = std::io::Read::read(&mut self.file, buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

/// A batch of the spool as a chunk: hidden columns become what they stand for.
fn fold(batch: &RecordBatch, schema: &SchemaRef, projection: &[usize], first_row: u64) -> Result<Chunk> {
    let rows = batch.num_rows();
    let by_name = |name: &str| batch.column_by_name(name);
    let mut columns = Vec::with_capacity(projection.len());
    let mut bad_cells = Vec::new();
    for (position, index) in projection.iter().enumerate() {
        let name = schema.field(*index).name();
        let column = by_name(name).ok_or_else(|| Error::internal(format!("the spool has no column `{name}`")))?;
        columns.push(column.clone());
        let raw = by_name(&raw_name(name)).filter(|raw| raw.null_count() < rows);
        if let Some(raw) = raw {
            let raw = raw.as_string::<i32>().clone();
            let bad = BooleanBuffer::collect_bool(rows, |at| raw.is_valid(at));
            bad_cells.push(BadCells {
                column: position,
                bad,
                raw,
            });
        }
    }
    let bad_lines = by_name(LINE).filter(|line| line.null_count() < rows).map(|line| {
        let raw = line.as_string::<i32>().clone();
        BadLines {
            bad: BooleanBuffer::collect_bool(rows, |at| raw.is_valid(at)),
            raw,
        }
    });
    let origin = match (by_name(ORIGIN), by_name(ORIGIN_ROW)) {
        (Some(source), Some(row)) => Origin {
            source: source.as_string::<i32>().clone(),
            row: row.as_primitive::<UInt64Type>().clone(),
        },
        _ => Origin {
            source: StringArray::new_null(rows),
            row: UInt64Array::new_null(rows),
        },
    };
    let projected = Arc::new(schema.project(projection)?);
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(Chunk {
        batch: RecordBatch::try_new_with_options(projected, columns, &options)?,
        place: Place { source: 0, first_row },
        bad_cells,
        bad_lines,
        origin: Some(origin),
    })
}
