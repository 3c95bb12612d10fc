//! The columns of text files: which file has which, declared types and guessed ones.

use super::OpenOptions;
use super::cells::{Cells, Guess};
use super::partitions::Partitions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use comporta_contract::source::SourceSpec;
use comporta_contract::types::LogicalType;
use comporta_engine::Result;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Types that a document declares; the source's own before the contract's.
#[derive(Debug)]
pub struct Declared {
    own: Vec<(String, LogicalType)>,
    contract: Vec<(String, LogicalType)>,
}

impl Declared {
    /// Collects them.
    pub fn new(spec: &SourceSpec, options: &OpenOptions) -> Self {
        let own = spec
            .schema
            .iter()
            .flatten()
            .map(|(name, declared)| (name.clone(), declared.0.clone()))
            .collect();
        let contract = options
            .types
            .iter()
            .map(|(name, declared)| (name.clone(), declared.clone()))
            .collect();
        Declared { own, contract }
    }

    /// The type of a column: by its exact name, else by the only one that differs in case alone.
    fn of(&self, name: &str) -> Option<&LogicalType> {
        [&self.own, &self.contract].into_iter().find_map(|types| {
            if let Some((_, declared)) = types.iter().find(|(written, _)| written == name) {
                return Some(declared);
            }
            let lower = name.to_lowercase();
            let mut alike = types.iter().filter(|(written, _)| written.to_lowercase() == lower);
            alike
                .next()
                .filter(|_| alike.next().is_none())
                .map(|(_, declared)| declared)
        })
    }
}

/// The columns of a source of text.
#[derive(Debug)]
pub struct TextColumns {
    /// Names and types, partitions last.
    pub schema: SchemaRef,
    /// Columns with a declared type other than text: only in those can a cell be bad, since a guessed type
    /// fits every cell.
    pub parsed: Vec<usize>,
    names: Vec<String>,
    types: Vec<Option<DataType>>,
    guesses: Vec<Guess>,
    /// By file and field of the file: the column.
    columns: Vec<Vec<Option<usize>>>,
    /// By file and column: the field of the file.
    fields: Vec<BTreeMap<usize, usize>>,
    partitions: Vec<Field>,
}

impl TextColumns {
    /// Every column of every file, in the order of first appearance; partitions at the end.
    ///
    /// # Errors
    /// A declared type cannot be read from a cell.
    pub fn of(headers: &[Vec<String>], partitions: &Partitions, declared: &Declared) -> Result<Self> {
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names: Vec<String> = Vec::new();
        let mut columns = Vec::with_capacity(headers.len());
        let mut fields = Vec::with_capacity(headers.len());
        for header in headers {
            let mut of_file = Vec::with_capacity(header.len());
            let mut by_column = BTreeMap::new();
            for (field, name) in header.iter().enumerate() {
                if partitions.index_of(name).is_some() {
                    of_file.push(None);
                    continue;
                }
                let column = *known.entry(name).or_insert_with(|| {
                    names.push(name.clone());
                    names.len() - 1
                });
                of_file.push(Some(column));
                by_column.insert(column, field);
            }
            columns.push(of_file);
            fields.push(by_column);
        }
        let mut types = Vec::with_capacity(names.len());
        for name in &names {
            let data_type = declared.of(name).map(comporta_rules::types::arrow_type);
            if let Some(data_type) = &data_type {
                Cells::new(data_type).map_err(|error| error.context(format!("column `{name}`")))?;
            }
            types.push(data_type);
        }
        Ok(TextColumns {
            schema: Arc::new(Schema::empty()),
            parsed: Vec::new(),
            guesses: vec![Guess::default(); names.len()],
            names,
            types,
            columns,
            fields,
            partitions: partitions.fields().collect(),
        })
    }

    /// Whether some column has no declared type.
    pub fn any_open(&self) -> bool {
        self.types.iter().any(Option::is_none)
    }

    /// Whether a field of a file belongs to a column without a declared type.
    pub fn is_open(&self, file: usize, field: usize) -> bool {
        self.columns[file][field].is_some_and(|column| self.types[column].is_none())
    }

    /// The field of a file that a column is read from; `None` if the file lacks it.
    pub fn field_of(&self, file: usize, column: usize) -> Option<usize> {
        self.fields[file].get(&column).copied()
    }

    /// Adds what the cells of a file look like, by field.
    pub fn learn(&mut self, file: usize, guesses: &[Guess]) {
        for (field, guess) in guesses.iter().enumerate() {
            if let Some(column) = self.columns[file][field] {
                self.guesses[column].and(*guess);
            }
        }
    }

    /// Fixes the schema.
    pub fn settle(&mut self) {
        let mut fields = Vec::with_capacity(self.names.len());
        for (column, name) in self.names.iter().enumerate() {
            let data_type = match &self.types[column] {
                Some(declared) => {
                    if !matches!(declared, DataType::Utf8 | DataType::Binary) {
                        self.parsed.push(column);
                    }
                    declared.clone()
                }
                None => self.guesses[column].data_type(),
            };
            fields.push(Field::new(name, data_type, true));
        }
        fields.extend(self.partitions.iter().cloned());
        self.schema = Arc::new(Schema::new(fields));
    }

    /// What the source's own `schema:` names and no file has.
    pub fn notes(&self, declared: &Declared) -> Vec<String> {
        let has = |name: &str| {
            self.schema
                .fields()
                .iter()
                .any(|field| field.name().to_lowercase() == name.to_lowercase())
        };
        let missing = declared.own.iter().filter(|(name, _)| !has(name));
        missing
            .map(|(name, _)| format!("`schema` of the source names `{name}`, which no file has"))
            .collect()
    }
}
