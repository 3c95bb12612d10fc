//! Records of one CSV file, with the lines that are none.

use super::decode;
use super::files::Input;
use super::tape::{Tape, Taped};
use comporta_contract::source::{Format, SourceSpec};
use comporta_engine::{Error, Result};
use csv::{ByteRecord, Reader, ReaderBuilder};
use encoding_rs::Encoding;
use std::sync::Arc;

/// How the records of a source are separated.
#[derive(Debug, Clone)]
pub struct Dialect {
    delimiter: Option<u8>,
    quote: u8,
    escape: Option<u8>,
    header: bool,
    columns: Option<Vec<String>>,
    encoding: Option<&'static Encoding>,
}

impl Dialect {
    /// Reads what a source says of its CSV.
    ///
    /// # Errors
    /// A sign is not of ASCII, two signs are the same, or the encoding is unknown.
    pub fn of(spec: &SourceSpec) -> Result<Self> {
        let sign = |name: &str, sign: Option<char>| match sign {
            Some(sign) if sign.is_ascii() && !matches!(sign, '\n' | '\r' | '\0') => Ok(Some(sign as u8)),
            Some(sign) => Err(Error::invalid(format!(
                "`{name}: {}` is not a sign of ASCII",
                sign.escape_default()
            ))),
            None => Ok(None),
        };
        let dialect = Dialect {
            delimiter: sign("delimiter", spec.delimiter)?,
            quote: sign("quote", spec.quote)?.unwrap_or(b'"'),
            escape: sign("escape", spec.escape)?,
            header: spec.header.unwrap_or(true),
            columns: spec.columns.clone(),
            encoding: decode::encoding(spec.encoding.as_deref())?,
        };
        if dialect.delimiter == Some(dialect.quote) {
            return Err(Error::invalid("`delimiter` and `quote` are the same sign"));
        }
        Ok(dialect)
    }
}

/// One file, record by record.
pub struct Records {
    input: Input,
    reader: Reader<Taped>,
    tape: Arc<Tape>,
    dialect: Dialect,
    delimiter: u8,
    columns: Vec<String>,
    /// The first record of a file without a header, read to count its fields.
    first: Option<ByteRecord>,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A record with as many fields as there are columns, all UTF-8.
    Record,
    /// A line that is none, as it stood.
    Broken(String),
}

impl Records {
    /// Opens a file and reads the names of its columns.
    ///
    /// # Errors
    /// The file cannot be read, has no header, or has one that names a column twice.
    pub fn open(input: &Input, dialect: &Dialect) -> Result<Self> {
        let (taped, tape) = Taped::new(decode::text(input, dialect.encoding)?);
        let delimiter = dialect
            .delimiter
            .unwrap_or(if input.format == Format::Tsv { b'\t' } else { b',' });
        let reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .quote(dialect.quote)
            .escape(dialect.escape)
            .double_quote(dialect.escape.is_none())
            .buffer_capacity(1 << 17)
            .from_reader(taped);
        let mut records = Records {
            input: input.clone(),
            reader,
            tape,
            dialect: dialect.clone(),
            delimiter,
            columns: Vec::new(),
            first: None,
        };
        records.name_columns()?;
        Ok(records)
    }

    /// The names of the columns of this file.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    fn name_columns(&mut self) -> Result<()> {
        let mut record = ByteRecord::new();
        let found = self.read(&mut record)?;
        if self.dialect.header {
            if !found {
                return match self.dialect.columns.clone() {
                    Some(columns) => self.take_names(columns),
                    None => Err(
                        Error::invalid(format!("`{}` is empty: it has not even a header", self.input.name))
                            .hint("name the columns with `columns:` if the file may have no lines"),
                    ),
                };
            }
            let names = self.header(&record)?;
            match self.dialect.columns.clone() {
                Some(columns) if columns.len() != names.len() => Err(self.other_count(columns.len(), names.len())),
                columns => self.take_names(columns.unwrap_or(names)),
            }
        } else {
            let columns = match &self.dialect.columns {
                Some(columns) => columns.clone(),
                None if found => (1..=record.len()).map(|number| format!("column_{number}")).collect(),
                None => {
                    return Err(Error::invalid(format!("`{}` is empty", self.input.name))
                        .hint("name the columns with `columns:` if the file may have no lines"));
                }
            };
            self.first = found.then_some(record);
            self.take_names(columns)
        }
    }

    fn other_count(&self, named: usize, found: usize) -> Error {
        Error::invalid(format!(
            "`columns:` names {named} columns and the header of `{}` has {found}",
            self.input.name
        ))
        .hint("name as many columns as the file has")
    }

    fn header(&self, record: &ByteRecord) -> Result<Vec<String>> {
        record
            .iter()
            .enumerate()
            .map(|(index, name)| match std::str::from_utf8(name) {
                Ok("") => Ok(format!("column_{}", index + 1)),
                Ok(name) => Ok(name.to_string()),
                Err(_) => Err(self
                    .input
                    .corrupt("the header is not UTF-8")
                    .hint("name the `encoding:`, such as `latin-1`")),
            })
            .collect()
    }

    fn take_names(&mut self, columns: Vec<String>) -> Result<()> {
        let mut seen = std::collections::BTreeSet::new();
        let mut repeated: Vec<String> = Vec::new();
        for name in &columns {
            if !seen.insert(name) && !repeated.contains(&format!("`{name}`")) {
                repeated.push(format!("`{name}`"));
            }
        }
        if !repeated.is_empty() {
            return Err(Error::invalid(format!(
                "the header of `{}` names {} more than once",
                self.input.name,
                repeated.join(", ")
            ))
            .hint("give every column its own name with `columns:`"));
        }
        self.columns = columns;
        Ok(())
    }

    /// Reads the next line; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read on.
    pub fn next(&mut self, record: &mut ByteRecord) -> Result<Option<Line>> {
        let before = self.tape.ended();
        let (found, ended) = match self.first.take() {
            Some(first) => {
                *record = first;
                (true, true)
            }
            None => (self.read(record)?, !before),
        };
        if !found {
            return Ok(None);
        }
        let well = record.len() == self.columns.len() && record.iter().all(|field| std::str::from_utf8(field).is_ok());
        // Only the record that met the end of the file can have a quote left open.
        if well && !(ended && self.tape.ended() && self.is_open(record)) {
            return Ok(Some(Line::Record));
        }
        Ok(Some(Line::Broken(
            String::from_utf8_lossy(&self.raw(record)).into_owned(),
        )))
    }

    /// How far the file is read, in bytes of text.
    pub fn position(&self) -> u64 {
        self.reader.position().byte()
    }

    /// Forgets the text of what was read.
    pub fn forget(&self) {
        self.tape.forget(self.position());
    }

    fn read(&mut self, record: &mut ByteRecord) -> Result<bool> {
        self.tape.record_at(self.reader.position().byte());
        self.reader
            .read_byte_record(record)
            .map_err(|error| match error.into_kind() {
                csv::ErrorKind::Io(error) => self.input.failed(error),
                other => self.input.corrupt(format!("{other:?}")),
            })
    }

    fn raw(&self, record: &ByteRecord) -> Vec<u8> {
        let start = record.position().map_or(0, csv::Position::byte);
        self.tape.text(start, self.position())
    }

    /// Whether the text of a record ends inside quotes.
    fn is_open(&self, record: &ByteRecord) -> bool {
        let raw = self.raw(record);
        let (mut quoted, mut fresh) = (false, true);
        let mut bytes = raw.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if quoted {
                if Some(byte) == self.dialect.escape {
                    bytes.next();
                } else if byte == self.dialect.quote {
                    let doubled = self.dialect.escape.is_none() && bytes.peek() == Some(&byte);
                    quoted = doubled && bytes.next().is_some();
                }
            } else {
                quoted = fresh && byte == self.dialect.quote;
                fresh = byte == self.delimiter;
            }
        }
        quoted
    }
}
