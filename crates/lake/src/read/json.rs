//! JSON lines and arrays of objects: typed as declared, or as every value of the input allows. Objects and
//! lists inside are text, as they stand in the file.

use super::OpenOptions;
use super::cells::{Cells, Guess, marks};
use super::decode;
use super::files::{self, Input, Inputs};
use super::form::Form;
use super::json_lines::{Objects, fields};
use super::partitions::Partitions;
use super::text_columns::{Declared, TextColumns};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::SchemaRef;
use comporta_contract::source::SourceSpec;
use comporta_engine::chunk::BadLines;
use comporta_engine::world::ChunkStream;
use comporta_engine::{Chunk, Place, Result, ScanRequest, Source, Statistics};
use encoding_rs::Encoding;
use futures::future::BoxFuture;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows and bytes of text of a chunk, at most.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 16 << 20;

/// JSON files with one schema between them.
#[derive(Debug)]
pub struct JsonSource {
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
    encoding: Option<&'static Encoding>,
    form: Form,
    nulls: Vec<String>,
    columns: TextColumns,
}

impl JsonSource {
    /// Reads everything once: objects name their fields one by one.
    ///
    /// # Errors
    /// A file cannot be read, or a declared type is not one of cells.
    pub fn open(inputs: Inputs, spec: &SourceSpec, description: String, options: &OpenOptions) -> Result<Self> {
        let encoding = decode::encoding(spec.encoding.as_deref())?;
        let form = Form::of(spec, options.timezone)?;
        let nulls = spec.nulls.as_ref().map(|nulls| nulls.0.clone()).unwrap_or_default();
        let partitions = Partitions::of(&inputs.files)?;
        let (mut headers, mut guesses) = (Vec::new(), Vec::new());
        for input in &inputs.files {
            let (names, looks) = learn(input, encoding, &form, &nulls)?;
            headers.push(names);
            guesses.push(looks);
        }
        let declared = Declared::new(spec, options);
        let mut columns = TextColumns::of(&headers, &partitions, &declared)?;
        for (file, guesses) in guesses.iter().enumerate() {
            columns.learn(file, guesses);
        }
        columns.settle();
        let mut notes = inputs.notes;
        notes.extend(columns.notes(&declared));
        Ok(JsonSource {
            names: inputs.files.iter().map(|file| file.name.clone()).collect(),
            fingerprint: files::fingerprint(&inputs.files),
            shared: Arc::new(Shared {
                files: inputs.files,
                partitions,
                encoding,
                form,
                nulls,
                columns,
            }),
            description,
            notes,
        })
    }
}

/// The fields of a file in the order of first appearance, and what their values look like.
fn learn(
    input: &Input,
    encoding: Option<&'static Encoding>,
    form: &Form,
    nulls: &[String],
) -> Result<(Vec<String>, Vec<Guess>)> {
    let mut objects = Objects::open(input, encoding)?;
    let mut known: HashMap<String, usize> = HashMap::new();
    let (mut names, mut guesses) = (Vec::new(), Vec::new());
    let mut text = Vec::new();
    while objects.next(&mut text)? {
        for (name, value) in fields(&text).unwrap_or_default() {
            let column = match known.get(&name) {
                Some(column) => *column,
                None => {
                    known.insert(name.clone(), names.len());
                    names.push(name);
                    guesses.push(Guess::default());
                    names.len() - 1
                }
            };
            match cell(value, nulls) {
                Some(Cow::Borrowed(plain)) => guesses[column].see(plain, form),
                Some(Cow::Owned(quoted)) => guesses[column].see_text(&quoted, form),
                None => {}
            }
        }
    }
    Ok((names, guesses))
}

/// A value that is not NULL: text without its quotes is owned, anything else stands as it was written.
fn cell<'v>(value: &'v str, nulls: &[String]) -> Option<Cow<'v, str>> {
    if value == "null" {
        return None;
    }
    if !value.starts_with('"') {
        return Some(Cow::Borrowed(value));
    }
    let text: String = serde_json::from_str(value).ok()?;
    (!nulls.contains(&text)).then_some(Cow::Owned(text))
}

impl Source for JsonSource {
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

struct FileScan {
    shared: Arc<Shared>,
    schema: SchemaRef,
    file: usize,
    objects: Objects,
    /// For each column wanted, what is read of it; `None` for partitions.
    columns: Vec<Option<Cells>>,
    /// Which columns wanted bear a name.
    by_name: HashMap<String, Vec<usize>>,
    raw: bool,
    next_row: u64,
}

impl FileScan {
    fn open(shared: &Arc<Shared>, file: usize, request: &ScanRequest, schema: &SchemaRef) -> Result<Self> {
        let mut columns = Vec::new();
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (index, field) in schema.fields().iter().enumerate() {
            if shared.partitions.index_of(field.name()).is_some() {
                columns.push(None);
                continue;
            }
            columns.push(Some(Cells::new(field.data_type())?));
            by_name.entry(field.name().clone()).or_default().push(index);
        }
        Ok(FileScan {
            objects: Objects::open(&shared.files[file], shared.encoding)?,
            shared: Arc::clone(shared),
            schema: Arc::clone(schema),
            file,
            columns,
            by_name,
            raw: request.raw,
            next_row: 1,
        })
    }

    fn row(&mut self, found: Vec<(String, &str)>) {
        let mut values: Vec<Option<Cow<'_, str>>> = vec![None; self.columns.len()];
        for (name, value) in found {
            for index in self.by_name.get(&name).into_iter().flatten() {
                values[*index] = cell(value, &self.shared.nulls);
            }
        }
        for (cells, value) in self.columns.iter_mut().zip(values) {
            match (cells, value) {
                (Some(cells), Some(value)) => cells.cell(&value, &self.shared.form),
                (Some(cells), None) => cells.null(),
                (None, _) => {}
            }
        }
    }
}

impl super::streams::Chunks for FileScan {
    fn next(&mut self) -> Result<Option<Chunk>> {
        let mut broken: Vec<(usize, String)> = Vec::new();
        let (mut rows, mut bytes) = (0, 0);
        let mut text = Vec::new();
        while rows < BATCH_ROWS && bytes < BATCH_BYTES && self.objects.next(&mut text)? {
            bytes += text.len();
            match fields(&text) {
                Some(found) => self.row(found),
                None => {
                    self.columns.iter_mut().flatten().for_each(Cells::null);
                    let raw = if self.raw {
                        String::from_utf8_lossy(&text).trim_end().to_string()
                    } else {
                        String::new()
                    };
                    broken.push((rows, raw));
                }
            }
            rows += 1;
        }
        if rows == 0 {
            return Ok(None);
        }
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        let mut bad_cells = Vec::new();
        for (index, cells) in self.columns.iter_mut().enumerate() {
            let field = self.schema.field(index);
            arrays.push(match (self.shared.partitions.index_of(field.name()), cells) {
                (Some(partition), _) => self.shared.partitions.array(self.file, partition, rows)?,
                (None, Some(cells)) => {
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
mod tests {
    use crate::read::{OpenOptions, open};
    use arrow::datatypes::DataType;
    use comporta_contract::source::{OneOrMany, SourceSpec};
    use comporta_engine::{Chunk, ScanRequest};
    use futures::TryStreamExt;

    async fn read(text: &str) -> comporta_engine::Result<(Vec<DataType>, Vec<Chunk>)> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.json"), text).unwrap();
        let spec = SourceSpec {
            path: Some(OneOrMany(vec!["a.json".into()])),
            ..SourceSpec::default()
        };
        let source = open(&spec, folder.path(), &OpenOptions::default()).await?;
        let schema = source.schema();
        let projection = (0..schema.fields().len()).collect();
        let streams = source
            .scan(ScanRequest {
                projection,
                parallelism: 1,
                raw: true,
            })
            .await?;
        let chunks = futures::stream::select_all(streams).try_collect().await?;
        Ok((
            schema.fields().iter().map(|field| field.data_type().clone()).collect(),
            chunks,
        ))
    }

    #[tokio::test]
    async fn lines_and_arrays_read_the_same_and_quoted_numbers_stay_text() {
        let objects = [
            r#"{"id": 1, "code": "7", "day": "2024-01-02"}"#,
            r#"{"id": null, "price": 1.5}"#,
        ];
        for text in [objects.join("\n"), format!("[\n{}\n]\n", objects.join(",\n"))] {
            let (types, chunks) = read(&text).await.unwrap();
            assert_eq!(
                types,
                [DataType::Int64, DataType::Utf8, DataType::Date32, DataType::Float64]
            );
            assert_eq!((chunks[0].rows(), chunks[0].is_clean()), (2, true));
        }
    }

    #[tokio::test]
    async fn a_broken_line_is_kept_and_an_open_array_is_corrupt() {
        let (_, chunks) = read("{\"id\":1}\n{\"id\":\n[2]\n{\"id\":3}").await.unwrap();
        let lines = chunks[0].bad_lines.as_ref().unwrap();
        assert_eq!(lines.bad.iter().collect::<Vec<_>>(), [false, true, true, false]);
        assert_eq!(lines.raw.value(1), "{\"id\":");
        assert!(read("[{\"id\":1},").await.unwrap_err().message.contains("not closed"));
    }
}
