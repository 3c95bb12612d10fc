//! Values for people and reports: a cell as JSON or text, personal data masked (invariant 9).

use crate::chunk::Chunk;
use crate::program::Slot;
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use indexmap::IndexMap;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What stands in place of personal data.
pub(crate) const MASK: &str = "***";
/// Characters of a value that are shown.
const SHOWN_MAX: usize = 200;

/// Which columns of which check are shown.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    columns: Arc<Vec<Vec<String>>>,
    masked: Arc<BTreeSet<String>>,
}

impl Shown {
    pub(crate) fn new(slots: &[Slot], masked: &BTreeSet<String>) -> Self {
        Shown {
            columns: Arc::new(slots.iter().map(|slot| slot.bound.columns.clone()).collect()),
            masked: Arc::new(masked.clone()),
        }
    }

    /// The values of a check's columns in a row.
    pub(crate) fn row(&self, slot: usize, chunk: &Chunk, row: usize) -> IndexMap<String, Value> {
        let mut shown = IndexMap::new();
        for name in &self.columns[slot] {
            let Ok(column) = chunk.batch.schema_ref().index_of(name) else {
                continue;
            };
            shown.insert(name.clone(), self.cell(chunk, column, name, row));
        }
        if let Some(lines) = chunk.bad_lines.as_ref().filter(|lines| lines.bad.value(row)) {
            shown.clear();
            let line = if self.masked.is_empty() {
                clipped(lines.raw.value(row))
            } else {
                MASK.to_string()
            };
            shown.insert("line".into(), line.into());
        }
        shown
    }

    fn cell(&self, chunk: &Chunk, column: usize, name: &str, row: usize) -> Value {
        let raw = chunk.bad_cells_of(column).filter(|cells| cells.bad.value(row));
        match raw {
            _ if self.is_masked(name) => MASK.into(),
            Some(cells) => clipped(cells.raw.value(row)).into(),
            None => value_json(chunk.batch.column(column), row),
        }
    }

    /// Whether a column holds personal data.
    pub(crate) fn is_masked(&self, name: &str) -> bool {
        self.masked.contains(name)
    }
}

/// A cell as JSON: numbers as numbers where a double holds them, everything else as text.
pub(crate) fn value_json(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    match array.data_type() {
        DataType::Boolean => array.as_boolean().value(row).into(),
        DataType::Float64 => float_json(array.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => float_json(f64::from(array.as_primitive::<Float32Type>().value(row))),
        ty if ty.is_integer() || comporta_rules::literals::is_decimal(ty) => {
            let text = value_text(array, row);
            match text.parse::<bigdecimal::BigDecimal>() {
                Ok(number) => comporta_contract::literal::number_to_json(&number),
                Err(_) => text.into(),
            }
        }
        _ => clipped(&value_text(array, row)).into(),
    }
}

fn float_json(value: f64) -> Value {
    match value.is_finite() {
        true => value.into(),
        false if value.is_nan() => "NaN".into(),
        false => (if value > 0.0 { "Infinity" } else { "-Infinity" }).into(),
    }
}

/// A cell as text; empty for null.
pub(crate) fn value_text(array: &ArrayRef, row: usize) -> String {
    let options = FormatOptions::default();
    match ArrayFormatter::try_new(array, &options) {
        Ok(formatter) if array.is_valid(row) => formatter.value(row).to_string(),
        _ => String::new(),
    }
}

/// Text of bounded length.
pub(crate) fn clipped(text: &str) -> String {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_string(),
    }
}
