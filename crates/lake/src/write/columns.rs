//! Names and types: bringing batches to the types that are written, comparing with what is there.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use comporta_engine::{Error, Result};
use std::sync::Arc;

/// The schema with views, dictionaries and large forms replaced by plain ones, in lists and structs too,
/// as every reader knows them.
pub(super) fn without_views(schema: &SchemaRef) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let plain = plain_type(field.data_type());
    if &plain == field.data_type() {
        field.clone()
    } else {
        Arc::new(Field::new(field.name(), plain, field.is_nullable()).with_metadata(field.metadata().clone()))
    }
}

fn plain_type(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary => DataType::Binary,
        DataType::Dictionary(_, values) => plain_type(values),
        DataType::List(item) | DataType::LargeList(item) => DataType::List(plain_field(item)),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        other => other.clone(),
    }
}

/// The schema as Delta can hold it: instants in microseconds, integers with a sign, every column nullable.
pub(super) fn for_delta(schema: &Schema) -> SchemaRef {
    let fields: Vec<FieldRef> = schema.fields().iter().map(delta_field).collect();
    Arc::new(Schema::new(fields))
}

fn delta_field(field: &FieldRef) -> FieldRef {
    Arc::new(Field::new(field.name(), delta_type(field.data_type()), true))
}

fn delta_type(data_type: &DataType) -> DataType {
    match plain_type(data_type) {
        DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Date64 => DataType::Date32,
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.map(|_| "UTC".into())),
        DataType::List(item) => {
            let plain = Field::new(item.name(), delta_type(item.data_type()), true);
            DataType::List(Arc::new(plain))
        }
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(delta_field).collect()),
        other => other,
    }
}

/// The batch with the types of the schema. Only forms change, never values.
///
/// # Errors
/// The batch has other columns than was said: a bug of ours.
pub(super) fn fit(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.num_columns() != schema.fields().len() {
        return Err(Error::internal(format!(
            "{} columns were handed over to a target of {}",
            batch.num_columns(),
            schema.fields().len()
        )));
    }
    let exact = CastOptions {
        safe: false,
        ..CastOptions::default()
    };
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if column.data_type() == field.data_type() {
            columns.push(column.clone());
        } else {
            columns.push(cast_with_options(column, field.data_type(), &exact).map_err(|error| {
                Error::internal(format!(
                    "the column `{}` does not fit its target: {error}",
                    field.name()
                ))
            })?);
        }
    }
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// Checks that rows can join what is there: the same names and types in the same order, nullable or not.
///
/// # Errors
/// They differ; the message names the columns.
pub(super) fn check_same(rows: &Schema, there: &Schema, place: &str, ordered: bool) -> Result<()> {
    let mut faults = Vec::new();
    for field in rows.fields() {
        match there.fields().iter().find(|other| other.name() == field.name()) {
            None => faults.push(format!("`{}` is not there", field.name())),
            Some(other) if !same_type(field.data_type(), other.data_type()) => faults.push(format!(
                "`{}` is {} there and {} here",
                field.name(),
                plain_type(other.data_type()),
                plain_type(field.data_type())
            )),
            Some(_) => {}
        }
    }
    for other in there.fields() {
        if !rows.fields().iter().any(|field| field.name() == other.name()) {
            faults.push(format!("`{}` is missing here", other.name()));
        }
    }
    let names = |schema: &Schema| {
        schema
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect::<Vec<_>>()
    };
    if ordered && faults.is_empty() && names(rows) != names(there) {
        faults.push("the columns are in another order".to_owned());
    }
    if faults.is_empty() {
        return Ok(());
    }
    Err(
        Error::invalid(format!("the rows do not fit {place}: {}", faults.join(", ")))
            .hint("add a transform that gives the columns of the target, or write to another place"),
    )
}

/// Whether two types hold the same values: nullability, views and names inside lists aside.
fn same_type(left: &DataType, right: &DataType) -> bool {
    match (plain_type(left), plain_type(right)) {
        (DataType::List(left), DataType::List(right)) => same_type(left.data_type(), right.data_type()),
        (DataType::Struct(left), DataType::Struct(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right.iter())
                    .all(|(left, right)| left.name() == right.name() && same_type(left.data_type(), right.data_type()))
        }
        (DataType::Timestamp(left_unit, left_zone), DataType::Timestamp(right_unit, right_zone)) => {
            left_unit == right_unit && left_zone.is_some() == right_zone.is_some()
        }
        (left, right) => left == right,
    }
}
