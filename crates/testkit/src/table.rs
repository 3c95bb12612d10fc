//! Tables as tests write them: a line of names with types, then rows; NULL, empty text, blanks and lines of the
//! wrong shape can all be said.

use arrow::array::{Array, ArrayRef, RecordBatch, StringArray, new_null_array};
use arrow::buffer::BooleanBuffer;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comporta_contract::types::LogicalType;
use comporta_engine::{BadCells, BadLines};
use std::sync::Arc;

/// A table with what could not be read of it.
#[derive(Debug, Clone)]
pub struct Table {
    /// All rows; a cell that did not parse is NULL.
    pub batch: RecordBatch,
    /// Cells that did not parse.
    pub bad_cells: Vec<BadCells>,
    /// Lines without the shape of a row.
    pub bad_lines: Option<BadLines>,
    /// Whether it was written as text, so that cells can fail to parse.
    pub parsed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    text: String,
    quoted: bool,
}

impl Table {
    /// Reads a table: `id:int64,name:string` and rows below. `null` and an empty cell are NULL, `""` is empty
    /// text, quotes keep blanks and commas, and inside them `\n`, `\t`, `\"` and `\\` are understood. With
    /// `parsed` the table stands for a text file: a cell that does not parse is a bad one, and so is a line with
    /// too many or too few cells. Without it such a cell is a mistake in the test.
    ///
    /// # Errors
    /// What is wrong with the text, as a fragment with the line.
    pub fn parse(text: &str, parsed: bool) -> Result<Table, String> {
        let mut lines = text.lines();
        let header = split(lines.next().ok_or("a table begins with a line of names and types")?);
        let fields = header.iter().map(field).collect::<Result<Vec<Field>, String>>()?;
        let mut rows: Vec<Option<Vec<Cell>>> = Vec::new();
        let mut raw_lines: Vec<Option<String>> = Vec::new();
        for (number, line) in lines.enumerate() {
            let cells = split(line);
            let fits = cells.len() == fields.len();
            if !fits && !parsed {
                return Err(format!(
                    "row {} has {} cells, not {}",
                    number + 1,
                    cells.len(),
                    fields.len()
                ));
            }
            raw_lines.push((!fits).then(|| line.to_string()));
            rows.push(fits.then_some(cells));
        }
        let mut columns = Vec::new();
        let mut bad_cells = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            let cells: Vec<Option<&str>> = rows
                .iter()
                .map(|row| row.as_ref().and_then(|row| value_of(&row[index])))
                .collect();
            let (column, bad) = column(&cells, field.data_type())?;
            if let Some(row) = bad.iter().position(|is_bad| *is_bad) {
                if !parsed {
                    let cell = cells[row].unwrap_or_default();
                    return Err(format!("row {}: `{cell}` is no {}", row + 1, field.data_type()));
                }
                let raw = cells.iter().zip(&bad).map(|(cell, is_bad)| cell.filter(|_| *is_bad));
                bad_cells.push(BadCells {
                    column: index,
                    raw: raw.collect::<StringArray>(),
                    bad: bad.iter().copied().collect::<BooleanBuffer>(),
                });
            }
            columns.push(column);
        }
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).map_err(|error| error.to_string())?;
        let bad_lines = raw_lines.iter().any(Option::is_some).then(|| BadLines {
            bad: raw_lines.iter().map(Option::is_some).collect(),
            raw: raw_lines.iter().map(Option::as_deref).collect(),
        });
        Ok(Table {
            batch,
            bad_cells,
            bad_lines,
            parsed,
        })
    }
}

fn value_of(cell: &Cell) -> Option<&str> {
    (cell.quoted || !(cell.text.is_empty() || cell.text == "null")).then_some(cell.text.as_str())
}

fn field(cell: &Cell) -> Result<Field, String> {
    // Quotes around a name leave their mark in the text, since only the part behind the last `:` is a type.
    let depth_zero = |text: &str| {
        let mut depth = 0_i32;
        let mut found = None;
        for (at, sign) in text.char_indices() {
            match sign {
                '<' | '(' => depth += 1,
                '>' | ')' => depth -= 1,
                ':' if depth == 0 => found = Some(at),
                _ => {}
            }
        }
        found
    };
    let at = depth_zero(&cell.text).ok_or_else(|| format!("`{}` has no type: write `name:type`", cell.text))?;
    let (name, type_name) = (&cell.text[..at], cell.text[at + 1..].trim());
    let data_type = match type_name {
        "text" => DataType::Utf8,
        "float32" => DataType::Float32,
        name => comporta_rules::types::arrow_type(&LogicalType::parse(name).map_err(|why| format!("`{name}`: {why}"))?),
    };
    Ok(Field::new(name, data_type, true))
}

fn split(line: &str) -> Vec<Cell> {
    let mut cells = Vec::new();
    let mut cell = Cell {
        text: String::new(),
        quoted: false,
    };
    let (mut inside, mut depth) = (false, 0_i32);
    let mut signs = line.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if inside => match signs.next() {
                Some('n') => cell.text.push('\n'),
                Some('t') => cell.text.push('\t'),
                Some(other) => cell.text.push(other),
                None => cell.text.push('\\'),
            },
            '"' => {
                inside = !inside;
                cell.quoted = true;
            }
            ',' if !inside && depth <= 0 => {
                cells.push(cell);
                cell = Cell {
                    text: String::new(),
                    quoted: false,
                };
            }
            sign => {
                if !inside {
                    match sign {
                        '(' | '<' | '{' | '[' => depth += 1,
                        ')' | '>' | '}' | ']' => depth -= 1,
                        _ => {}
                    }
                }
                cell.text.push(sign);
            }
        }
    }
    cells.push(cell);
    cells
}

/// The cells as a column, and which of them did not parse.
fn column(cells: &[Option<&str>], data_type: &DataType) -> Result<(ArrayRef, Vec<bool>), String> {
    if data_type.is_nested() {
        return Ok((nested(cells, data_type)?, vec![false; cells.len()]));
    }
    if cells.iter().all(Option::is_none) {
        return Ok((new_null_array(data_type, cells.len()), vec![false; cells.len()]));
    }
    let text: StringArray = cells.iter().copied().collect();
    let options = CastOptions::default();
    let column = cast_with_options(&text, data_type, &options).map_err(|error| error.to_string())?;
    let bad = (0..cells.len())
        .map(|row| text.is_valid(row) && column.is_null(row))
        .collect();
    Ok((column, bad))
}

fn nested(cells: &[Option<&str>], data_type: &DataType) -> Result<ArrayRef, String> {
    let schema = Arc::new(Schema::new(vec![Field::new("cell", data_type.clone(), true)]));
    let lines: Vec<String> = cells
        .iter()
        .map(|cell| format!("{{\"cell\":{}}}", cell.unwrap_or("null")))
        .collect();
    let text = lines.join("\n");
    let reader = arrow::json::ReaderBuilder::new(schema)
        .with_batch_size(cells.len().max(1))
        .build(text.as_bytes());
    match reader.map_err(|error| error.to_string())?.next() {
        Some(batch) => Ok(batch.map_err(|error| error.to_string())?.column(0).clone()),
        None => Ok(new_null_array(data_type, 0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_and_empty_text_are_told_apart() {
        let table = Table::parse("a:string,b:string\n,\"\"\nnull,\"null\"\n", false).unwrap();
        let text = |column: usize| {
            table
                .batch
                .column(column)
                .as_any()
                .downcast_ref::<StringArray>()
                .unwrap()
                .clone()
        };
        assert_eq!(text(0), StringArray::from(vec![None::<&str>, None]));
        assert_eq!(text(1), StringArray::from(vec![Some(""), Some("null")]));
    }

    #[test]
    fn commas_inside_types_and_quotes_do_not_split() {
        let table = Table::parse("amount:decimal(12,2),\"a, b\":string\n1.50,\"x, y\"\n", false).unwrap();
        assert_eq!(table.batch.num_columns(), 2);
        assert_eq!(table.batch.schema().field(1).name(), "a, b");
    }

    #[test]
    fn what_does_not_parse_is_bad_in_text_and_a_mistake_elsewhere() {
        let text = "id:int64,day:date\n1,2024-01-01\nx,2024-02-30\n3\n";
        let table = Table::parse(text, true).unwrap();
        assert_eq!(table.bad_cells.len(), 2);
        assert!(table.bad_lines.unwrap().bad.value(2));
        assert!(Table::parse(text, false).unwrap_err().contains("row 3"));
    }
}
