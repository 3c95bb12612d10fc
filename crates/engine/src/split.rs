//! The split: valid rows one way, rows to set aside the other, each with its reasons. Every row goes exactly
//! one way; both ways are counted.

use crate::chunk::Chunk;
use crate::error::Result;
use crate::pass::{Judged, Sink};
use crate::program::{Program, Slot};
use crate::show::value_text;
use crate::world::{StageWriter, Staging};
use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, RecordBatch, StringArray, StringBuilder, StructArray,
    TimestampMicrosecondArray, UInt32Array, UInt64Array,
};
use arrow::buffer::{BooleanBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};
use chrono::{DateTime, Utc};
use comporta_rules::Bound;
use futures::future::BoxFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows that went each way.
#[derive(Debug, Default)]
pub(crate) struct SplitCounts {
    pub(crate) valid: AtomicU64,
    pub(crate) aside: AtomicU64,
}

/// What quarantined rows are marked with.
#[derive(Debug, Clone)]
pub(crate) struct Marks {
    pub(crate) run_id: String,
    pub(crate) pipeline: String,
    pub(crate) unit: String,
    pub(crate) contract_version: Option<String>,
    pub(crate) rules_digest: String,
    pub(crate) ingested_at: DateTime<Utc>,
    pub(crate) now: DateTime<Utc>,
}

/// Why rows break a check.
#[derive(Debug, Clone)]
struct Reason {
    check_id: String,
    rule: String,
    columns: Vec<usize>,
    names: String,
    text: String,
    severe: bool,
}

/// What all tasks of a split share.
#[derive(Debug)]
pub(crate) struct Split {
    reasons: Vec<Reason>,
    schema: SchemaRef,
    /// Columns that are kept as text, since cells of them may not have parsed.
    as_text: Vec<bool>,
    names: Vec<String>,
    marks: Marks,
    pub(crate) counts: SplitCounts,
}

impl Split {
    pub(crate) fn new(
        program: &Program,
        slots: &[Slot],
        source_schema: &SchemaRef,
        parsed: &[usize],
        names: &[String],
        marks: Marks,
    ) -> Self {
        let reasons = program
            .rows
            .iter()
            .map(|test| {
                let slot = &slots[test.slot];
                let columns = slot
                    .bound
                    .columns
                    .iter()
                    .filter_map(|name| source_schema.index_of(name).ok())
                    .collect();
                Reason {
                    check_id: slot.bound.id.clone(),
                    rule: slot.check.definition.name.to_string(),
                    columns,
                    names: slot.bound.columns.join(", "),
                    text: match &slot.bound.bound {
                        Ok(Bound::Row(row)) => row.reason.clone(),
                        _ => String::new(),
                    },
                    severe: slot.weighs(),
                }
            })
            .collect();
        Split {
            reasons,
            schema: quarantine_schema(source_schema, parsed),
            as_text: (0..source_schema.fields().len())
                .map(|index| parsed.contains(&index))
                .collect(),
            names: names.to_vec(),
            marks,
            counts: SplitCounts::default(),
        }
    }

    /// The quarantined rows of a chunk.
    fn rejected(&self, chunk: &Chunk, judged: &Judged, aside: &BooleanBuffer) -> Result<RecordBatch> {
        let indices = UInt32Array::from_iter_values(aside.set_indices().map(|at| at as u32));
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(self.schema.fields().len());
        for (index, column) in chunk.batch.columns().iter().enumerate() {
            let taken = arrow::compute::take(column, &indices, None)?;
            columns.push(match self.as_text[index] {
                true => as_read(chunk, index, &taken, &indices)?,
                false => taken,
            });
        }
        columns.push(self.reasons_of(chunk, judged, &indices)?);
        let rows = indices.len();
        let constant = |text: Option<&str>| Arc::new(StringArray::from(vec![text; rows])) as ArrayRef;
        columns.push(constant(Some(&self.marks.run_id)));
        columns.push(constant(Some(&self.marks.pipeline)));
        columns.push(constant(Some(&self.marks.unit)));
        columns.push(constant(self.marks.contract_version.as_deref()));
        columns.push(constant(Some(&self.marks.rules_digest)));
        let (sources, source_rows) = self.origins(chunk, &indices)?;
        columns.push(sources);
        columns.push(source_rows);
        for at in [self.marks.ingested_at, self.marks.now] {
            let micros = TimestampMicrosecondArray::from(vec![at.timestamp_micros(); rows]).with_timezone("UTC");
            columns.push(Arc::new(micros));
        }
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn origins(&self, chunk: &Chunk, indices: &UInt32Array) -> Result<(ArrayRef, ArrayRef)> {
        if let Some(origin) = &chunk.origin {
            let sources = arrow::compute::take(&origin.source, indices, None)?;
            let rows = arrow::compute::take(&origin.row, indices, None)?;
            return Ok((sources, rows));
        }
        let name = self.names.get(chunk.place.source as usize).map(String::as_str);
        let sources = StringArray::from(vec![name; indices.len()]);
        let rows =
            UInt64Array::from_iter_values(indices.values().iter().map(|at| chunk.place.first_row + u64::from(*at)));
        Ok((Arc::new(sources), Arc::new(rows)))
    }

    /// A list of reasons per row: of every check that weighs and that the row breaks.
    fn reasons_of(&self, chunk: &Chunk, judged: &Judged, indices: &UInt32Array) -> Result<ArrayRef> {
        let mut builders: [StringBuilder; 5] = Default::default();
        let mut offsets = vec![0i32];
        let mut count = 0;
        for at in indices.values().iter().map(|at| *at as usize) {
            for (reason, broken) in self.reasons.iter().zip(&judged.broken) {
                if !reason.severe || !broken.as_ref().is_some_and(|broken| broken.value(at)) {
                    continue;
                }
                let value = value_of(chunk, &reason.columns, at);
                let text = match &value {
                    Some(value) => reason.text.replace("{value}", value),
                    None => reason.text.replace("{value}", "null"),
                };
                builders[0].append_value(&reason.check_id);
                builders[1].append_value(&reason.rule);
                builders[2].append_option((!reason.names.is_empty()).then_some(&reason.names));
                builders[3].append_option(value);
                builders[4].append_value(text);
                count += 1;
            }
            offsets.push(count);
        }
        let arrays: Vec<ArrayRef> = builders
            .iter_mut()
            .map(|builder| Arc::new(builder.finish()) as ArrayRef)
            .collect();
        let entries = StructArray::new(reason_fields(), arrays, None);
        let item = Arc::new(Field::new("item", DataType::Struct(reason_fields()), true));
        Ok(Arc::new(ListArray::new(
            item,
            OffsetBuffer::new(offsets.into()),
            Arc::new(entries),
            None,
        )))
    }
}

/// The values of a check's columns in a row as text, as they were read.
fn value_of(chunk: &Chunk, columns: &[usize], row: usize) -> Option<String> {
    if let Some(lines) = chunk.bad_lines.as_ref().filter(|lines| lines.bad.value(row)) {
        return Some(lines.raw.value(row).to_string());
    }
    let cell = |column: usize| match chunk.bad_cells_of(column).filter(|cells| cells.bad.value(row)) {
        Some(cells) => Some(cells.raw.value(row).to_string()),
        None => {
            let array = chunk.batch.column(column);
            array.is_valid(row).then(|| value_text(array, row))
        }
    };
    match columns {
        [] => None,
        [one] => cell(*one),
        several => Some(
            several
                .iter()
                .map(|column| cell(*column).unwrap_or_else(|| "null".into()))
                .collect::<Vec<_>>()
                .join(", "),
        ),
    }
}

/// A parsed column as text, with the raw text of cells that did not parse in its place.
fn as_read(chunk: &Chunk, column: usize, taken: &ArrayRef, indices: &UInt32Array) -> Result<ArrayRef> {
    let text = arrow::compute::cast(taken, &DataType::Utf8)?;
    let Some(cells) = chunk.bad_cells_of(column) else {
        return Ok(text);
    };
    let text = text.as_string::<i32>();
    let read = indices.values().iter().enumerate().map(|(position, at)| {
        let at = *at as usize;
        match cells.bad.value(at) {
            true => Some(cells.raw.value(at).to_string()),
            false => text.is_valid(position).then(|| text.value(position).to_string()),
        }
    });
    Ok(Arc::new(read.collect::<StringArray>()))
}

fn reason_fields() -> Fields {
    Fields::from(vec![
        Field::new("check_id", DataType::Utf8, true),
        Field::new("rule", DataType::Utf8, true),
        Field::new("column", DataType::Utf8, true),
        Field::new("value", DataType::Utf8, true),
        Field::new("message", DataType::Utf8, true),
    ])
}

/// The columns of quarantined rows: those of the source, then the reasons and where the row comes from.
pub(crate) fn quarantine_schema(source: &SchemaRef, parsed: &[usize]) -> SchemaRef {
    let mut fields: Vec<Field> = source
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| match parsed.contains(&index) {
            true => Field::new(field.name(), DataType::Utf8, true),
            false => field.as_ref().clone().with_nullable(true),
        })
        .collect();
    let item = Field::new("item", DataType::Struct(reason_fields()), true);
    fields.push(Field::new("_reasons", DataType::List(Arc::new(item)), true));
    for name in [
        "_run_id",
        "_pipeline",
        "_unit",
        "_contract_version",
        "_rules_digest",
        "_source",
    ] {
        fields.push(Field::new(name, DataType::Utf8, true));
    }
    fields.push(Field::new("_source_row", DataType::UInt64, true));
    for name in ["_ingested_at", "_quarantined_at"] {
        fields.push(Field::new(
            name,
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            true,
        ));
    }
    Arc::new(Schema::new(fields))
}

/// One task's end of the split.
pub(crate) struct SplitSink {
    split: Arc<Split>,
    valid: Option<Box<dyn StageWriter>>,
    aside: Option<Box<dyn StageWriter>>,
}

impl SplitSink {
    pub(crate) fn open(split: &Arc<Split>, valid: Option<&dyn Staging>, aside: Option<&dyn Staging>) -> Result<Self> {
        Ok(SplitSink {
            split: split.clone(),
            valid: valid.map(Staging::writer).transpose()?,
            aside: aside.map(Staging::writer).transpose()?,
        })
    }

    async fn route(&mut self, chunk: &Chunk, judged: &Judged) -> Result<()> {
        let Some(aside) = &judged.aside else {
            self.split
                .counts
                .valid
                .fetch_add(chunk.rows() as u64, Ordering::Relaxed);
            if let Some(writer) = &mut self.valid {
                writer.write(chunk.batch.clone()).await?;
            }
            return Ok(());
        };
        let rejected = aside.count_set_bits();
        self.split.counts.aside.fetch_add(rejected as u64, Ordering::Relaxed);
        self.split
            .counts
            .valid
            .fetch_add((chunk.rows() - rejected) as u64, Ordering::Relaxed);
        if let Some(writer) = &mut self.valid
            && rejected < chunk.rows()
        {
            let kept = BooleanArray::new(!aside, None);
            writer
                .write(arrow::compute::filter_record_batch(&chunk.batch, &kept)?)
                .await?;
        }
        if let Some(writer) = &mut self.aside {
            writer.write(self.split.rejected(chunk, judged, aside)?).await?;
        }
        Ok(())
    }
}

impl Sink for SplitSink {
    fn take<'a>(&'a mut self, chunk: &'a Chunk, judged: &'a Judged) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.route(chunk, judged))
    }

    fn finish(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            if let Some(writer) = self.valid {
                writer.finish().await?;
            }
            if let Some(writer) = self.aside {
                writer.finish().await?;
            }
            Ok(())
        })
    }
}
