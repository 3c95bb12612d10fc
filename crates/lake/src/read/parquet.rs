//! Parquet: footers are parsed once, row groups are decoded by several streams in parallel.

use super::files::{self, Input, Inputs};
use super::partitions::Partitions;
use arrow::array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, new_null_array};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comporta_engine::world::{ChunkStream, ColumnStatistics};
use comporta_engine::{Chunk, Error, ErrorKind, Place, Result, ScanRequest, Source, Statistics};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use futures::future::BoxFuture;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::statistics::StatisticsConverter;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use std::cmp::Ordering as Order;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8192;

/// Parquet files with one schema between them.
#[derive(Debug)]
pub struct ParquetSource {
    shared: Arc<Shared>,
    names: Vec<String>,
    description: String,
    notes: Vec<String>,
    fingerprint: String,
}

#[derive(Debug)]
struct Shared {
    schema: SchemaRef,
    partitions: Partitions,
    files: Vec<ParquetFile>,
    /// File, row group and number of the first row, ascending.
    groups: Vec<Group>,
}

#[derive(Debug)]
struct ParquetFile {
    input: Input,
    metadata: ArrowReaderMetadata,
    /// For each column of the schema, its index in the file.
    columns: Vec<Option<usize>>,
}

#[derive(Debug, Clone, Copy)]
struct Group {
    file: usize,
    group: usize,
    first_row: u64,
    rows: u64,
}

impl ParquetSource {
    /// Parses the footers.
    ///
    /// # Errors
    /// A file is damaged or may not be read, or two files hold a column with different types.
    pub fn open(inputs: Inputs, description: String) -> Result<Self> {
        let fingerprint = files::fingerprint(&inputs.files);
        let notes = inputs.notes.clone();
        Self::open_files(inputs.files, description, fingerprint, notes, None)
    }

    /// The same for files that something else listed, with the schema and partitions if it knows them.
    ///
    /// # Errors
    /// As [`ParquetSource::open`].
    pub fn open_files(
        inputs: Vec<Input>,
        description: String,
        fingerprint: String,
        notes: Vec<String>,
        known: Option<(SchemaRef, Partitions)>,
    ) -> Result<Self> {
        let (known, partitions) = match known {
            Some((schema, partitions)) => (Some(schema), partitions),
            None => (None, Partitions::of(&inputs)?),
        };
        let mut read = Vec::with_capacity(inputs.len());
        for input in inputs {
            let file = input.open()?;
            let metadata = ArrowReaderMetadata::load(&file, ArrowReaderOptions::new())
                .map_err(|error| input.corrupt(format!("not a readable Parquet file ({error})")))?;
            read.push((input, metadata));
        }
        let schema = match known {
            Some(schema) => schema,
            None => merged(&read, &partitions)?,
        };
        let names = read.iter().map(|(input, _)| input.name.clone()).collect();
        let mut parquet_files = Vec::with_capacity(read.len());
        for (input, metadata) in read {
            let columns = (0..schema.fields().len())
                .map(|column| match partitions.index_of(schema.field(column).name()) {
                    Some(_) => None,
                    None => metadata.schema().index_of(schema.field(column).name()).ok(),
                })
                .collect();
            parquet_files.push(ParquetFile {
                input,
                metadata,
                columns,
            });
        }
        let groups = groups(&parquet_files)?;
        Ok(ParquetSource {
            shared: Arc::new(Shared {
                schema,
                partitions,
                files: parquet_files,
                groups,
            }),
            names,
            description,
            notes,
            fingerprint,
        })
    }
}

/// Every column of every file, in the order of first appearance; partitions at the end.
fn merged(read: &[(Input, ArrowReaderMetadata)], partitions: &Partitions) -> Result<SchemaRef> {
    let mut fields: Vec<(Field, &str)> = Vec::new();
    let mut position: BTreeMap<String, usize> = BTreeMap::new();
    for (input, metadata) in read {
        let mut seen = std::collections::BTreeSet::new();
        for field in metadata.schema().fields() {
            if !seen.insert(field.name()) {
                return Err(Error::invalid(format!(
                    "`{}` has two columns `{}`",
                    input.name,
                    field.name()
                )));
            }
            if partitions.index_of(field.name()).is_some() {
                continue;
            }
            match position.get(field.name()) {
                None => {
                    position.insert(field.name().clone(), fields.len());
                    let field = Field::new(field.name(), field.data_type().clone(), true);
                    fields.push((field, &input.name));
                }
                Some(at) if fields[*at].0.data_type() != field.data_type() => {
                    let (known, first) = &fields[*at];
                    return Err(Error::invalid(format!(
                        "column `{}` is {} in `{first}` and {} in `{}`",
                        field.name(),
                        comporta_rules::literals::type_name(known.data_type()),
                        comporta_rules::literals::type_name(field.data_type()),
                        input.name
                    ))
                    .hint("check the files apart, or rewrite the older ones with the newer type"));
                }
                Some(_) => {}
            }
        }
    }
    let mut fields: Vec<Field> = fields.into_iter().map(|(field, _)| field).collect();
    fields.extend(partitions.fields());
    Ok(Arc::new(Schema::new(fields)))
}

fn groups(files: &[ParquetFile]) -> Result<Vec<Group>> {
    let mut groups = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let mut first_row = 1;
        for (group, metadata) in file.metadata.metadata().row_groups().iter().enumerate() {
            let rows = u64::try_from(metadata.num_rows())
                .map_err(|_| file.input.corrupt("a row group with a negative number of rows"))?;
            if rows > 0 {
                groups.push(Group {
                    file: index,
                    group,
                    first_row,
                    rows,
                });
            }
            first_row += rows;
        }
    }
    Ok(groups)
}

impl Source for ParquetSource {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.shared.schema)
    }
    fn description(&self) -> String {
        self.description.clone()
    }
    fn names(&self) -> &[String] {
        &self.names
    }
    fn parsed_columns(&self) -> &[usize] {
        &[]
    }
    fn has_lines(&self) -> bool {
        false
    }
    fn statistics(&self) -> Statistics {
        let shared = &self.shared;
        let columns = (0..shared.schema.fields().len())
            .filter_map(|column| Some((column, shared.column_statistics(column)?)))
            .collect();
        Statistics {
            rows: Some(shared.groups.iter().map(|group| group.rows).sum()),
            columns,
        }
    }
    fn fingerprint(&self) -> String {
        self.fingerprint.clone()
    }
    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
    fn bytes(&self) -> u64 {
        self.shared.files.iter().map(|file| file.input.bytes).sum()
    }
    fn scan(&self, request: ScanRequest) -> BoxFuture<'_, Result<Vec<ChunkStream>>> {
        Box::pin(async move {
            let schema = Arc::new(self.shared.schema.project(&request.projection)?);
            let next = Arc::new(AtomicUsize::new(0));
            let streams = request.parallelism.min(self.shared.groups.len()).max(1);
            Ok((0..streams)
                .map(|_| {
                    let scan = Scan {
                        shared: Arc::clone(&self.shared),
                        projection: request.projection.clone(),
                        schema: Arc::clone(&schema),
                        next: Arc::clone(&next),
                        current: None,
                    };
                    futures::stream::unfold(Some(scan), |scan| async move {
                        let mut scan = scan?;
                        match scan.advance() {
                            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(scan))),
                            Err(error) => Some((Err(error), None)),
                        }
                    })
                    .boxed()
                })
                .collect())
        })
    }
}

/// One stream's share of a scan: takes the next row group whenever it is done with one.
struct Scan {
    shared: Arc<Shared>,
    projection: Vec<usize>,
    schema: SchemaRef,
    next: Arc<AtomicUsize>,
    current: Option<Current>,
}

struct Current {
    group: Group,
    /// `None` where no column of the file is wanted: rows are then only counted.
    reader: Option<ParquetRecordBatchReader>,
    done: u64,
}

impl Scan {
    fn advance(&mut self) -> Result<Option<Chunk>> {
        loop {
            if self.current.is_none() {
                let index = self.next.fetch_add(1, Ordering::Relaxed);
                let Some(group) = self.shared.groups.get(index) else {
                    return Ok(None);
                };
                self.current = Some(self.start(*group)?);
            }
            if let Some(current) = &mut self.current {
                let file = &self.shared.files[current.group.file];
                let left = current.group.rows - current.done;
                let batch = match &mut current.reader {
                    Some(reader) => reader.next().transpose().map_err(|error| {
                        file.input
                            .corrupt(format!("row group {}: {error}", current.group.group + 1))
                    })?,
                    None => None,
                };
                let rows = match (&batch, &current.reader) {
                    (Some(batch), _) => batch.num_rows(),
                    (None, None) => usize::try_from(left).unwrap_or(BATCH_ROWS).min(BATCH_ROWS),
                    (None, Some(_)) => 0,
                };
                if rows == 0 {
                    if left != 0 {
                        return Err(file.input.corrupt(format!(
                            "row group {} has fewer rows than its footer says",
                            current.group.group + 1
                        )));
                    }
                    self.current = None;
                    continue;
                }
                let place = Place {
                    source: u32::try_from(current.group.file).unwrap_or(u32::MAX),
                    first_row: current.group.first_row + current.done,
                };
                current.done += rows as u64;
                if current.done > current.group.rows {
                    return Err(file.input.corrupt("a row group has more rows than its footer says"));
                }
                let file_index = current.group.file;
                return Ok(Some(Chunk::new(self.assemble(batch, rows, file_index)?, place)));
            }
        }
    }

    fn start(&self, group: Group) -> Result<Current> {
        let file = &self.shared.files[group.file];
        let mut roots: Vec<usize> = self
            .projection
            .iter()
            .filter_map(|column| file.columns[*column])
            .collect();
        if roots.is_empty() {
            return Ok(Current {
                group,
                reader: None,
                done: 0,
            });
        }
        roots.sort_unstable();
        roots.dedup();
        let mask = ProjectionMask::roots(file.metadata.parquet_schema(), roots);
        let reader = ParquetRecordBatchReaderBuilder::new_with_metadata(file.input.open()?, file.metadata.clone())
            .with_row_groups(vec![group.group])
            .with_batch_size(BATCH_ROWS)
            .with_projection(mask)
            .build()
            .map_err(|error| file.input.corrupt(error))?;
        Ok(Current {
            group,
            reader: Some(reader),
            done: 0,
        })
    }

    /// The columns in the order wanted, with partition values and NULLs for what the file lacks.
    fn assemble(&self, batch: Option<RecordBatch>, rows: usize, file: usize) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.projection.len());
        for column in &self.projection {
            let field = self.shared.schema.field(*column);
            let read = batch.as_ref().and_then(|batch| batch.column_by_name(field.name()));
            columns.push(match (self.shared.partitions.index_of(field.name()), read) {
                (Some(partition), _) => self.shared.partitions.array(file, partition, rows)?,
                (None, Some(array)) if array.data_type() == field.data_type() => Arc::clone(array),
                (None, Some(array)) => converted(array, field)?,
                (None, None) => new_null_array(field.data_type(), rows),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(
            Arc::clone(&self.schema),
            columns,
            &options,
        )?)
    }
}

/// An older file of a table whose type was widened since, or one that counts time in another unit.
fn converted(array: &ArrayRef, field: &Field) -> Result<ArrayRef> {
    let options = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    cast_with_options(array, field.data_type(), &options).map_err(|error| {
        Error::new(
            ErrorKind::Corrupt,
            format!("column `{}` is not of the type of the table: {error}", field.name()),
        )
    })
}

impl Shared {
    /// What the footers say of a column, if every row group of every file says it exactly.
    fn column_statistics(&self, column: usize) -> Option<ColumnStatistics> {
        let data_type = self.schema.field(column).data_type();
        let bounded = has_exact_bounds(data_type);
        let mut facts = Facts {
            nulls: Some(0),
            bounded,
            min: None,
            max: None,
        };
        for file in &self.files {
            facts.add(file, column, data_type)?;
        }
        Some(ColumnStatistics {
            null_count: facts.nulls,
            min: facts.min.filter(|_| facts.bounded),
            max: facts.max.filter(|_| facts.bounded),
        })
    }
}

/// Floats leave out NaN, text is cut short: neither is here.
fn has_exact_bounds(data_type: &DataType) -> bool {
    data_type.is_integer()
        || comporta_rules::literals::is_decimal(data_type)
        || matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

struct Facts {
    nulls: Option<u64>,
    bounded: bool,
    min: Option<ScalarValue>,
    max: Option<ScalarValue>,
}

impl Facts {
    fn add(&mut self, file: &ParquetFile, column: usize, wanted: &DataType) -> Option<()> {
        let in_file = file.columns[column]?;
        let groups = file.metadata.metadata().row_groups();
        let schema = file.metadata.schema();
        // A column that is converted on the way has other values than the footer says.
        if schema.field(in_file).data_type() != wanted {
            return None;
        }
        let converter =
            StatisticsConverter::try_new(schema.field(in_file).name(), schema, file.metadata.parquet_schema())
                .ok()?
                .with_missing_null_counts_as_zero(false);
        let leaf = converter.parquet_column_index()?;
        let nulls = converter.row_group_null_counts(groups.iter()).ok()?;
        let bounds = match self.bounded {
            true => converter
                .row_group_mins(groups.iter())
                .and_then(|mins| Ok((mins, converter.row_group_maxes(groups.iter())?)))
                .ok(),
            false => None,
        };
        for (index, group) in groups.iter().enumerate() {
            let missing = nulls.is_valid(index).then(|| nulls.value(index));
            self.nulls = self.nulls.zip(missing).map(|(sum, more)| sum + more);
            if missing == u64::try_from(group.num_rows()).ok() {
                continue;
            }
            let exact = group.column(leaf).statistics().is_some_and(|statistics| {
                statistics.min_is_exact() && statistics.max_is_exact() && !statistics.is_min_max_deprecated()
            });
            match &bounds {
                Some((mins, maxes)) if exact && mins.is_valid(index) && maxes.is_valid(index) => {
                    self.widen(ScalarValue::try_from_array(mins, index).ok()?, true);
                    self.widen(ScalarValue::try_from_array(maxes, index).ok()?, false);
                }
                _ => self.bounded = false,
            }
        }
        Some(())
    }

    fn widen(&mut self, value: ScalarValue, least: bool) {
        let (bound, wanted) = match least {
            true => (&mut self.min, Order::Less),
            false => (&mut self.max, Order::Greater),
        };
        match bound {
            Some(known) if value.partial_cmp(known) != Some(wanted) => {}
            _ => *bound = Some(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::{OpenOptions, open};
    use arrow::array::{Float64Array, Int64Array, StringArray};
    use comporta_contract::source::{OneOrMany, SourceSpec};
    use futures::TryStreamExt;
    use parquet::arrow::ArrowWriter;
    use parquet::file::properties::WriterProperties;
    use std::path::Path;

    fn write(path: &Path, first: i64, rows: i64) {
        let ids: Int64Array = (first..first + rows).map(Some).collect();
        let texts: StringArray = (0..rows).map(|row| (row % 3 != 0).then(|| format!("t{row}"))).collect();
        let floats = Float64Array::from(vec![f64::NAN; rows as usize]);
        let batch = RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as ArrayRef),
            ("text", Arc::new(texts)),
            ("float", Arc::new(floats)),
        ])
        .unwrap();
        let properties = WriterProperties::builder()
            .set_max_row_group_row_count(Some(100))
            .build();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = std::fs::File::create(path).unwrap();
        let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
    }

    async fn source(folder: &Path, place: &str) -> Result<Arc<dyn Source>> {
        let spec = SourceSpec {
            path: Some(OneOrMany(vec![place.into()])),
            ..SourceSpec::default()
        };
        open(&spec, folder, &OpenOptions::default()).await
    }

    async fn chunks(source: &dyn Source, projection: Vec<usize>, parallelism: usize) -> Vec<Chunk> {
        let request = ScanRequest {
            projection,
            parallelism,
            raw: true,
        };
        let streams = source.scan(request).await.unwrap();
        futures::stream::select_all(streams).try_collect().await.unwrap()
    }

    #[tokio::test]
    async fn every_row_comes_once_at_its_place_whatever_the_parallelism() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("t/a.parquet"), 1, 250);
        write(&folder.path().join("t/b.parquet"), 1, 130);
        let source = source(folder.path(), "t").await.unwrap();
        for parallelism in [1, 4, 64] {
            let chunks = chunks(&*source, vec![1, 0], parallelism).await;
            assert_eq!(chunks.iter().map(Chunk::rows).sum::<usize>(), 380);
            for chunk in &chunks {
                let ids = chunk.batch.column(1).as_any().downcast_ref::<Int64Array>().unwrap();
                assert_eq!(ids.value(0) as u64, chunk.place.first_row);
            }
        }
    }

    #[tokio::test]
    async fn rows_are_counted_without_columns_and_facts_come_from_the_footer() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("t/a.parquet"), 5, 250);
        write(&folder.path().join("t/b.parquet"), 900, 10);
        let source = source(folder.path(), "t").await.unwrap();
        assert_eq!(
            chunks(&*source, vec![], 2).await.iter().map(Chunk::rows).sum::<usize>(),
            260
        );
        let statistics = source.statistics();
        assert_eq!(statistics.rows, Some(260));
        assert_eq!(statistics.columns[&0].min, Some(ScalarValue::Int64(Some(5))));
        assert_eq!(statistics.columns[&0].max, Some(ScalarValue::Int64(Some(909))));
        assert_eq!(statistics.columns[&1].null_count, Some(88));
        assert_eq!(
            (&statistics.columns[&1].min, &statistics.columns[&2].max),
            (&None, &None)
        );
    }

    #[tokio::test]
    async fn partition_folders_are_columns() {
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("t/year=2023/a.parquet"), 1, 3);
        write(&folder.path().join("t/year=2024/a.parquet"), 1, 2);
        let source = source(folder.path(), "t").await.unwrap();
        assert_eq!(source.schema().field(3).data_type(), &DataType::Int64);
        let chunks = chunks(&*source, vec![3], 1).await;
        let years = chunks[1].batch.column(0).as_any().downcast_ref::<Int64Array>().unwrap();
        assert_eq!(years.values(), &[2024, 2024]);
    }

    #[tokio::test]
    async fn damaged_files_are_corrupt_and_not_a_panic() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.parquet"), b"PAR1 nothing of the kind").unwrap();
        std::fs::write(folder.path().join("b.parquet"), b"").unwrap();
        for name in ["a.parquet", "b.parquet"] {
            let error = source(folder.path(), name).await.unwrap_err();
            assert_eq!(error.kind, comporta_engine::ErrorKind::Corrupt);
            assert!(error.message.contains(name));
        }
    }
}
