//! Types as documents name them, apart from any engine's own (S21).

use std::fmt;

/// A type of a column. Widths and scales that are left out match any.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LogicalType {
    /// Text.
    String,
    /// `true` or `false`.
    Boolean,
    /// A signed integer of 8, 16, 32 or 64 bits; `int` is any of them, unsigned included.
    Integer(Option<u8>),
    /// An unsigned integer of 8, 16, 32 or 64 bits.
    Unsigned(u8),
    /// A binary fraction of 32 or 64 bits; `number` is any numeric type.
    Float(u8),
    /// Any integer, float or decimal.
    Number,
    /// A decimal with precision and scale; without them any decimal.
    Decimal(Option<(u8, i8)>),
    /// A day.
    Date,
    /// An instant or a local time of day and date; `Some(true)` must have a zone, `Some(false)` must not.
    Timestamp(Option<bool>),
    /// A time of day.
    Time,
    /// Bytes.
    Binary,
    /// A list of one type.
    List(Box<LogicalType>),
    /// Named fields.
    Struct(Vec<(String, LogicalType)>),
    /// Keys and values.
    Map(Box<LogicalType>, Box<LogicalType>),
}

/// The simple names, for messages and hints.
pub const TYPE_NAMES: &[&str] = &[
    "string",
    "boolean",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float",
    "double",
    "number",
    "decimal",
    "decimal(12,2)",
    "date",
    "timestamp",
    "timestamp_tz",
    "timestamp_ntz",
    "time",
    "binary",
    "list<string>",
    "struct<name: string>",
    "map<string, int>",
];

impl LogicalType {
    /// Reads a type name. Case does not matter; SQL spellings are understood.
    ///
    /// # Errors
    /// What is wrong with the text, as a fragment.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut reader = Reader { rest: text.trim() };
        let parsed = reader.parse(0)?;
        match reader.rest.trim() {
            "" => Ok(parsed),
            rest => Err(format!("`{rest}` is left over behind the type")),
        }
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn word(&mut self) -> String {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_string()
    }

    fn eat(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, sign: char) -> Result<(), String> {
        match self.eat(sign) {
            true => Ok(()),
            false => Err(format!("`{sign}` is missing")),
        }
    }

    fn parse(&mut self, depth: usize) -> Result<LogicalType, String> {
        if depth > 32 {
            return Err("types are nested too deeply".into());
        }
        let word = self.word().to_ascii_lowercase();
        Ok(match word.as_str() {
            "string" | "text" | "varchar" | "char" | "utf8" | "str" => {
                self.skip_arguments();
                LogicalType::String
            }
            "boolean" | "bool" => LogicalType::Boolean,
            "int" | "integer" => LogicalType::Integer(None),
            "int8" | "tinyint" | "byte" => LogicalType::Integer(Some(8)),
            "int16" | "smallint" | "short" => LogicalType::Integer(Some(16)),
            "int32" => LogicalType::Integer(Some(32)),
            "int64" | "bigint" | "long" => LogicalType::Integer(Some(64)),
            "uint8" => LogicalType::Unsigned(8),
            "uint16" => LogicalType::Unsigned(16),
            "uint32" => LogicalType::Unsigned(32),
            "uint64" => LogicalType::Unsigned(64),
            "float" | "float32" | "real" => LogicalType::Float(32),
            "double" | "float64" => LogicalType::Float(64),
            "number" => LogicalType::Number,
            "decimal" | "numeric" => self.decimal()?,
            "date" => LogicalType::Date,
            "timestamp" | "datetime" => LogicalType::Timestamp(None),
            "timestamp_tz" | "timestamptz" => LogicalType::Timestamp(Some(true)),
            "timestamp_ntz" => LogicalType::Timestamp(Some(false)),
            "time" => LogicalType::Time,
            "binary" | "bytes" => LogicalType::Binary,
            "list" | "array" => {
                self.expect('<')?;
                let item = self.parse(depth + 1)?;
                self.expect('>')?;
                LogicalType::List(Box::new(item))
            }
            "map" => {
                self.expect('<')?;
                let key = self.parse(depth + 1)?;
                self.expect(',')?;
                let value = self.parse(depth + 1)?;
                self.expect('>')?;
                LogicalType::Map(Box::new(key), Box::new(value))
            }
            "struct" => self.fields(depth)?,
            "" => return Err("a type name is missing".into()),
            other => return Err(format!("`{other}` is no type")),
        })
    }

    fn skip_arguments(&mut self) {
        if self.eat('(') {
            self.rest = self.rest.split_once(')').map_or("", |(_, rest)| rest);
        }
    }

    fn decimal(&mut self) -> Result<LogicalType, String> {
        if !self.eat('(') {
            return Ok(LogicalType::Decimal(None));
        }
        let precision: u8 = self
            .word()
            .parse()
            .map_err(|_| "a decimal's precision is a number from 1 to 76")?;
        let scale: i8 = match self.eat(',') {
            true => self.word().parse().map_err(|_| "a decimal's scale is a whole number")?,
            false => 0,
        };
        self.expect(')')?;
        if precision == 0 || precision > 76 || scale > precision as i8 {
            return Err(format!(
                "decimal({precision},{scale}) has no room: 1 to 76 digits, the scale among them"
            ));
        }
        Ok(LogicalType::Decimal(Some((precision, scale))))
    }

    fn fields(&mut self, depth: usize) -> Result<LogicalType, String> {
        self.expect('<')?;
        let mut fields = Vec::new();
        loop {
            let name = self.word();
            if name.is_empty() {
                return Err("a field name is missing in `struct<…>`".into());
            }
            self.expect(':')?;
            fields.push((name, self.parse(depth + 1)?));
            if !self.eat(',') {
                break;
            }
        }
        self.expect('>')?;
        Ok(LogicalType::Struct(fields))
    }
}

impl fmt::Display for LogicalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogicalType::String => f.write_str("string"),
            LogicalType::Boolean => f.write_str("boolean"),
            LogicalType::Integer(None) => f.write_str("int"),
            LogicalType::Integer(Some(bits)) => write!(f, "int{bits}"),
            LogicalType::Unsigned(bits) => write!(f, "uint{bits}"),
            LogicalType::Float(32) => f.write_str("float"),
            LogicalType::Float(_) => f.write_str("double"),
            LogicalType::Number => f.write_str("number"),
            LogicalType::Decimal(None) => f.write_str("decimal"),
            LogicalType::Decimal(Some((p, s))) => write!(f, "decimal({p},{s})"),
            LogicalType::Date => f.write_str("date"),
            LogicalType::Timestamp(None) => f.write_str("timestamp"),
            LogicalType::Timestamp(Some(true)) => f.write_str("timestamp_tz"),
            LogicalType::Timestamp(Some(false)) => f.write_str("timestamp_ntz"),
            LogicalType::Time => f.write_str("time"),
            LogicalType::Binary => f.write_str("binary"),
            LogicalType::List(item) => write!(f, "list<{item}>"),
            LogicalType::Map(key, value) => write!(f, "map<{key}, {value}>"),
            LogicalType::Struct(fields) => {
                f.write_str("struct<")?;
                for (position, (name, field)) in fields.iter().enumerate() {
                    let comma = if position > 0 { ", " } else { "" };
                    write!(f, "{comma}{name}: {field}")?;
                }
                f.write_str(">")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_as_they_went_in() {
        for name in TYPE_NAMES {
            assert_eq!(LogicalType::parse(name).unwrap().to_string(), *name);
        }
        assert_eq!(
            LogicalType::parse("NUMERIC(18)").unwrap(),
            LogicalType::Decimal(Some((18, 0)))
        );
        assert_eq!(LogicalType::parse("varchar(10)").unwrap(), LogicalType::String);
    }

    #[test]
    fn what_is_no_type_says_so() {
        for name in [
            "",
            "strng",
            "decimal(99,2)",
            "decimal(5,9)",
            "list<int",
            "int int",
            "struct<>",
        ] {
            assert!(LogicalType::parse(name).is_err(), "{name}");
        }
    }
}
