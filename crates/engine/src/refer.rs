//! Keys that other data refers to, loaded before the pass.

use crate::error::{Error, Result};
use crate::job::Tables;
use crate::keys::KeyTable;
use crate::program::Slot;
use crate::world::{ScanRequest, Source};
use arrow::array::{ArrayRef, new_empty_array};
use arrow::datatypes::{DataType, Schema};
use comporta_contract::Literal;
use comporta_rules::literals::{is_decimal, member, type_name, value_type};
use comporta_rules::scope::match_name;
use comporta_rules::{Bound, Holds, Measure, Reference};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::scalar::ScalarValue;
use futures::StreamExt;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// The loaded keys by reference and check, and why some could not be loaded.
#[derive(Debug, Default)]
pub(crate) struct References {
    pub(crate) tables: HashMap<(Reference, usize), Arc<KeyTable>>,
    pub(crate) faults: HashMap<usize, String>,
}

/// Loads the keys that checks refer to. A table that cannot be reached is the error of its checks (S14).
pub(crate) async fn load(slots: &[Slot], schema: &Schema, tables: &dyn Tables, parallelism: usize) -> References {
    let mut references = References::default();
    for (index, slot) in slots.iter().enumerate() {
        for (keys, reference) in references_of(slot) {
            match load_one(keys, reference, schema, tables, parallelism).await {
                Ok(table) => {
                    references.tables.insert((reference.clone(), index), Arc::new(table));
                }
                Err(error) => {
                    references.faults.insert(index, error.message);
                }
            }
        }
    }
    references
}

fn references_of(slot: &Slot) -> Vec<(&[Expr], &Reference)> {
    match &slot.bound.bound {
        Ok(Bound::Row(row)) => match &row.holds {
            Holds::Member { keys, of } => vec![(keys, of)],
            _ => Vec::new(),
        },
        Ok(Bound::Table(table)) => table
            .measures
            .iter()
            .filter_map(|measure| match measure {
                Measure::Join { keys, with } => Some((keys.as_slice(), with)),
                _ => None,
            })
            .collect(),
        Err(_) => Vec::new(),
    }
}

async fn load_one(
    keys: &[Expr],
    reference: &Reference,
    schema: &Schema,
    tables: &dyn Tables,
    parallelism: usize,
) -> Result<KeyTable> {
    let schema = datafusion::common::DFSchema::try_from(schema.clone())?;
    let ours: Vec<DataType> = keys.iter().map(|key| key.get_type(&schema)).collect::<Result<_, _>>()?;
    let (source, columns, name): (Arc<dyn Source>, _, _) = match reference {
        Reference::Table { table, columns } => (tables.open(table).await?, columns, table),
        Reference::Path { path, columns } => (tables.open_path(path).await?, columns, path),
        Reference::Values(rows) => return of_values(&ours, rows),
    };
    if columns.len() != ours.len() {
        return Err(Error::invalid(format!(
            "{} columns refer to {} of `{name}`",
            ours.len(),
            columns.len()
        )));
    }
    let theirs = source.schema();
    let names: Vec<&str> = theirs.fields().iter().map(|field| field.name().as_str()).collect();
    let mut projection = Vec::with_capacity(columns.len());
    let mut types = Vec::with_capacity(columns.len());
    for (column, ours) in columns.iter().zip(&ours) {
        let found = match_name(column, &names).map_err(|error| Error::invalid(error.message))?;
        let found = found.ok_or_else(|| Error::invalid(format!("`{name}` has no column `{column}`")))?;
        let index = theirs.index_of(found)?;
        let common = common_type(ours, theirs.field(index).data_type()).ok_or_else(|| {
            Error::invalid(format!(
                "keys of type {} cannot refer to `{name}.{column}` of type {}",
                type_name(ours),
                type_name(theirs.field(index).data_type())
            ))
            .hint("declare the same type on both sides")
        })?;
        projection.push(index);
        types.push(common);
    }
    let mut table = KeyTable::new(&types)?;
    for mut stream in source
        .scan(ScanRequest {
            projection,
            parallelism,
            raw: false,
        })
        .await?
    {
        while let Some(chunk) = stream.next().await {
            table.add(chunk?.batch.columns())?;
        }
    }
    Ok(table)
}

/// Keys written in the document.
fn of_values(types: &[DataType], rows: &[Vec<Literal>]) -> Result<KeyTable> {
    let nothing = BTreeSet::new();
    let schema = Schema::empty();
    let scope = comporta_rules::Scope::new(&schema, chrono_tz::UTC, chrono::DateTime::UNIX_EPOCH, &nothing, &[]);
    let types: Vec<DataType> = types.iter().map(|ty| value_type(ty).clone()).collect();
    let mut columns: Vec<Vec<ScalarValue>> = types.iter().map(|_| Vec::new()).collect();
    for row in rows {
        let values: Vec<Option<ScalarValue>> = row
            .iter()
            .zip(&types)
            .map(|(literal, ty)| member(ty, literal, &scope).map_err(|error| Error::invalid(error.message)))
            .collect::<Result<_>>()?;
        // A value that no cell of the type can hold is referred to by nobody.
        let Some(values) = values.into_iter().collect::<Option<Vec<_>>>() else {
            continue;
        };
        columns
            .iter_mut()
            .zip(values)
            .for_each(|(column, value)| column.push(value));
    }
    let arrays: Vec<ArrayRef> = columns
        .into_iter()
        .zip(&types)
        .map(|(column, ty)| match column.is_empty() {
            true => Ok(new_empty_array(ty)),
            false => Ok(ScalarValue::iter_to_array(column)?),
        })
        .collect::<Result<_>>()?;
    let mut table = KeyTable::new(&types)?;
    table.add(&arrays)?;
    Ok(table)
}

/// A type in which keys of both sides can be compared without loss.
fn common_type(one: &DataType, other: &DataType) -> Option<DataType> {
    let (one, other) = (value_type(one), value_type(other));
    let is_text = |ty: &DataType| matches!(ty, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View);
    let digits = |ty: &DataType| match ty {
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) | DataType::Decimal128(p, s) => {
            Some((i16::from(*p), i16::from(*s)))
        }
        ty if ty.is_integer() => Some((20, 0)),
        _ => None,
    };
    match (one, other) {
        (DataType::Null, ty) | (ty, DataType::Null) => Some(ty.clone()),
        (one, other) if one == other => Some(one.clone()),
        (one, other) if is_text(one) && is_text(other) => Some(DataType::Utf8),
        (DataType::UInt64, other) | (other, DataType::UInt64) if other.is_integer() => {
            Some(DataType::Decimal128(20, 0))
        }
        (one, other) if one.is_integer() && other.is_integer() => Some(DataType::Int64),
        (one, other) if is_decimal(one) || is_decimal(other) => {
            let ((p, s), (q, t)) = (digits(one)?, digits(other)?);
            let scale = s.max(t);
            let precision = (p - s).max(q - t) + scale;
            (precision <= 38).then_some(DataType::Decimal128(precision as u8, scale as i8))
        }
        (DataType::Float32, DataType::Float64) | (DataType::Float64, DataType::Float32) => Some(DataType::Float64),
        (DataType::Date32 | DataType::Date64, DataType::Date32 | DataType::Date64) => Some(DataType::Date32),
        (DataType::Timestamp(_, zone), DataType::Timestamp(_, other)) if zone.is_some() == other.is_some() => Some(
            DataType::Timestamp(arrow::datatypes::TimeUnit::Nanosecond, zone.clone()),
        ),
        _ => None,
    }
}
