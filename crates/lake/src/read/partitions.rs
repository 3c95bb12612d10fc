//! Columns that are folders: `year=2024/…`.

use super::files::Input;
use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field};
use chrono::NaiveDate;
use comporta_engine::{Error, Result};
use datafusion::scalar::ScalarValue;

/// The partition columns of a source and their value for each file.
#[derive(Debug, Clone, Default)]
pub struct Partitions {
    fields: Vec<Field>,
    /// By file, then by column.
    values: Vec<Vec<ScalarValue>>,
}

impl Partitions {
    /// Types are whole numbers or dates where every folder's value is one, else text.
    ///
    /// # Errors
    /// Some files are in folders of a partition that others are not in.
    pub fn of(files: &[Input]) -> Result<Self> {
        let Some(first) = files.first() else {
            return Ok(Partitions::default());
        };
        let names = |file: &Input| file.partitions.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        let columns = names(first);
        if let Some(other) = files.iter().find(|file| names(file) != columns) {
            return Err(Error::invalid(format!(
                "`{}` and `{}` are not partitioned by the same columns",
                first.name, other.name
            ))
            .hint("the folders between the source and its files must have the same `name=` throughout"));
        }
        let mut fields = Vec::with_capacity(columns.len());
        let mut values = vec![Vec::with_capacity(columns.len()); files.len()];
        for (index, name) in columns.iter().enumerate() {
            let texts: Vec<Option<&str>> = files.iter().map(|file| file.partitions[index].1.as_deref()).collect();
            let data_type = infer(&texts);
            for (file, text) in texts.iter().enumerate() {
                values[file].push(scalar(&data_type, *text));
            }
            fields.push(Field::new(name, data_type, true));
        }
        Ok(Partitions { fields, values })
    }

    /// Partition columns whose types and values are known already.
    pub fn known(fields: Vec<Field>, values: Vec<Vec<ScalarValue>>) -> Self {
        Partitions { fields, values }
    }

    /// The columns.
    pub fn fields(&self) -> impl Iterator<Item = Field> + '_ {
        self.fields.iter().cloned()
    }

    /// The place of a column among the partition columns.
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name() == name)
    }

    /// The value of a file, so many times.
    ///
    /// # Errors
    /// The value cannot be made an array: a bug.
    pub fn array(&self, file: usize, column: usize, rows: usize) -> Result<ArrayRef> {
        Ok(self.values[file][column].to_array_of_size(rows)?)
    }
}

fn infer(texts: &[Option<&str>]) -> DataType {
    let mut present = texts.iter().flatten().peekable();
    if present.peek().is_none() {
        return DataType::Utf8;
    }
    // `01` must stay text: as a number it would lose its zero.
    if present
        .clone()
        .all(|text| text.parse::<i64>().is_ok_and(|number| number.to_string() == **text))
    {
        return DataType::Int64;
    }
    match present.all(|text| day(text).is_some()) {
        true => DataType::Date32,
        false => DataType::Utf8,
    }
}

fn day(text: &str) -> Option<i32> {
    let day = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()
        .filter(|_| text.len() == 10)?;
    i32::try_from(day.signed_duration_since(NaiveDate::default()).num_days()).ok()
}

fn scalar(data_type: &DataType, text: Option<&str>) -> ScalarValue {
    match data_type {
        DataType::Int64 => ScalarValue::Int64(text.and_then(|text| text.parse().ok())),
        DataType::Date32 => ScalarValue::Date32(text.and_then(day)),
        _ => ScalarValue::Utf8(text.map(str::to_string)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_stay_text_and_a_null_folder_does_not_change_the_type() {
        assert_eq!(infer(&[Some("1"), None, Some("-20")]), DataType::Int64);
        assert_eq!(infer(&[Some("01")]), DataType::Utf8);
        assert_eq!(infer(&[Some("2024-02-29")]), DataType::Date32);
        assert_eq!(infer(&[Some("2023-02-29")]), DataType::Utf8);
    }
}
