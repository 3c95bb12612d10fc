//! CSV: typed as declared, or as every cell of the input allows.

use super::OpenOptions;
use super::cells::{Cells, Guess, marks};
use super::csv_records::{Dialect, Line, Records};
use super::files::{self, Input, Inputs};
use super::form::Form;
use super::partitions::Partitions;
use super::text_columns::{Declared, TextColumns};
use ::csv::ByteRecord;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use comporta_contract::source::SourceSpec;
use comporta_engine::chunk::BadLines;
use comporta_engine::world::ChunkStream;
use comporta_engine::{Chunk, Place, Result, ScanRequest, Source, Statistics};
use futures::future::BoxFuture;
use std::sync::Arc;

/// Rows and bytes of text of a chunk, at most.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: u64 = 16 << 20;

/// CSV files with one schema between them.
#[derive(Debug)]
pub struct CsvSource {
    shared: Arc<Shared>,
    names: Vec<String>,
    description: String,
    fingerprint: String,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    files: Vec<Input>,
    partitions: Partitions,
    dialect: Dialect,
    form: Form,
    nulls: Vec<String>,
    columns: TextColumns,
}

impl CsvSource {
    /// Reads headers, and everything where a column has no declared type.
    ///
    /// # Errors
    /// A file cannot be read, has no header, names a column twice, or a declared type is not one of cells.
    pub fn open(inputs: Inputs, spec: &SourceSpec, description: String, options: &OpenOptions) -> Result<Self> {
        let dialect = Dialect::of(spec)?;
        let form = Form::of(spec, options.timezone)?;
        let nulls = spec.nulls.as_ref().map(|nulls| nulls.0.clone()).unwrap_or_default();
        let partitions = Partitions::of(&inputs.files)?;
        let mut headers = Vec::with_capacity(inputs.files.len());
        for input in &inputs.files {
            headers.push(Records::open(input, &dialect)?.columns().to_vec());
        }
        let declared = Declared::new(spec, options);
        let mut columns = TextColumns::of(&headers, &partitions, &declared)?;
        if columns.any_open() {
            for (file, input) in inputs.files.iter().enumerate() {
                let guesses = guess(input, file, &dialect, &form, &nulls, &columns)?;
                columns.learn(file, &guesses);
            }
        }
        columns.settle();
        let mut notes = inputs.notes;
        notes.extend(columns.notes(&declared));
        Ok(CsvSource {
            names: inputs.files.iter().map(|file| file.name.clone()).collect(),
            fingerprint: files::fingerprint(&inputs.files),
            shared: Arc::new(Shared {
                files: inputs.files,
                partitions,
                dialect,
                form,
                nulls,
                columns,
            }),
            description,
            notes,
        })
    }
}

/// What the cells of a file look like, by field of the file.
fn guess(
    input: &Input,
    file: usize,
    dialect: &Dialect,
    form: &Form,
    nulls: &[String],
    columns: &TextColumns,
) -> Result<Vec<Guess>> {
    let mut records = Records::open(input, dialect)?;
    let open: Vec<usize> = (0..records.columns().len())
        .filter(|field| columns.is_open(file, *field))
        .collect();
    let mut guesses = vec![Guess::default(); records.columns().len()];
    let mut record = ByteRecord::new();
    let mut forgotten = 0;
    while let Some(line) = records.next(&mut record)? {
        if records.position() - forgotten > BATCH_BYTES {
            forgotten = records.position();
            records.forget();
        }
        if line != Line::Record {
            continue;
        }
        for field in &open {
            if let Some(text) = cell(&record, *field, nulls) {
                guesses[*field].see(text, form);
            }
        }
    }
    Ok(guesses)
}

/// A cell that is not NULL.
fn cell<'r>(record: &'r ByteRecord, field: usize, nulls: &[String]) -> Option<&'r str> {
    let text = std::str::from_utf8(record.get(field)?).ok()?;
    (!text.is_empty() && !nulls.iter().any(|null| null == text)).then_some(text)
}

impl Source for CsvSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.shared.columns.schema)
    }
    fn description(&self) -> String {
        self.description.clone()
    }
    fn names(&self) -> &[String] {
        &self.names
    }
    fn parsed_columns(&self) -> &[usize] {
        &self.shared.columns.parsed
    }
    fn has_lines(&self) -> bool {
        true
    }
    fn statistics(&self) -> Statistics {
        Statistics::default()
    }
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
    fn bytes(&self) -> u64 {
        self.shared.files.iter().map(|file| file.bytes).sum()
    }
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>> {
        Box::pin(async move {
            let schema = Arc::new(self.shared.columns.schema.project(&request.projection)?);
            let shared = Arc::clone(&self.shared);
            Ok(super::streams::by_file(
                self.shared.files.len(),
                request.parallelism,
                move |file| FileScan::open(&shared, file, &request, &schema),
            ))
        })
    }
}

/// One file on its way into chunks.
struct FileScan {
    shared: Arc<Shared>,
    schema: SchemaRef,
    file: usize,
    records: Records,
    /// For each column wanted: where it is in the file and what is read of it.
    columns: Vec<Option<(usize, Cells)>>,
    raw: bool,
    next_row: u64,
}

impl FileScan {
    fn open(shared: &Arc<Shared>, file: usize, request: &ScanRequest, schema: &SchemaRef) -> Result<Self> {
        let records = Records::open(&shared.files[file], &shared.dialect)?;
        let columns = request
            .projection
            .iter()
            .map(|column| match shared.columns.field_of(file, *column) {
                Some(field) => Ok(Some((
                    field,
                    Cells::new(shared.columns.schema.field(*column).data_type())?,
                ))),
                None => Ok(None),
            })
            .collect::<Result<_>>()?;
        Ok(FileScan {
            shared: Arc::clone(shared),
            schema: Arc::clone(schema),
            file,
            records,
            columns,
            raw: request.raw,
            next_row: 1,
        })
    }
}

impl super::streams::Chunks for FileScan {
    fn next(&mut self) -> Result<Option<Chunk>> {
        let mut record = ByteRecord::new();
        let mut broken: Vec<(usize, String)> = Vec::new();
        let mut rows = 0;
        let start = self.records.position();
        while rows < BATCH_ROWS && self.records.position() - start < BATCH_BYTES {
            let Some(line) = self.records.next(&mut record)? else {
                break;
            };
            match line {
                Line::Record => {
                    for (field, cells) in self.columns.iter_mut().flatten() {
                        match cell(&record, *field, &self.shared.nulls) {
                            Some(text) => cells.cell(text, &self.shared.form),
                            None => cells.null(),
                        }
                    }
                }
                Line::Broken(raw) => {
                    self.columns.iter_mut().flatten().for_each(|(_, cells)| cells.null());
                    broken.push((rows, if self.raw { raw } else { String::new() }));
                }
            }
            rows += 1;
        }
        self.records.forget();
        if rows == 0 {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut bad_cells = Vec::new();
        for (index, column) in self.columns.iter_mut().enumerate() {
            let field = self.schema.field(index);
            let partition = self.shared.partitions.index_of(field.name());
            arrays.push(match (partition, column) {
                (Some(partition), _) => self.shared.partitions.array(self.file, partition, rows)?,
                (None, Some((_, cells))) => {
                    let (array, bad) = cells.finish(index);
                    bad_cells.extend(bad);
                    array
                }
                (None, None) => new_null_array(field.data_type(), rows),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        let place = Place {
            source: u32::try_from(self.file).unwrap_or(u32::MAX),
            first_row: self.next_row,
        };
        self.next_row += rows as u64;
        let mut chunk = Chunk::new(batch, place);
        chunk.bad_cells = bad_cells;
        chunk.bad_lines = marks(rows, broken).map(|(bad, raw)| BadLines { bad, raw });
        Ok(Some(chunk))
    }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
