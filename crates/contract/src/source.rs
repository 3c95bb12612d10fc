//! Where a batch comes from and how its bytes are read: the `source:` and `tables:` of a document.

use crate::decode::decode;
use crate::diagnostic::Diagnostics;
use crate::node::Node;
use crate::types::{LogicalType, TYPE_NAMES};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// One text or a list of texts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OneOrMany(pub Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;
        impl<'de> de::Visitor<'de> for Texts {
            type Value = OneOrMany;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("text or a list of texts")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_string()]))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
                let mut texts = Vec::new();
                while let Some(text) = items.next_element()? {
                    texts.push(text);
                }
                Ok(OneOrMany(texts))
            }
        }
        deserializer.deserialize_any(Texts)
    }
}

impl JsonSchema for OneOrMany {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "OneOrMany".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" }, "minItems": 1 }]
        })
    }
}

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Comma-separated values, or another delimiter.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// JSON lines: one object a line.
    Jsonl,
    /// A JSON array of objects; a file of JSON lines is recognised too.
    Json,
    /// Apache Parquet.
    Parquet,
    /// Arrow IPC, file or stream.
    Arrow,
    /// A Delta table.
    Delta,
}

/// A compression of whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// Not compressed.
    None,
    /// gzip, several members included.
    Gzip,
    /// Zstandard.
    Zstd,
    /// bzip2.
    Bz2,
    /// xz.
    Xz,
}

/// How numbers are written in text formats.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NumberForm {
    /// The decimal sign, `.` or `,`.
    #[serde(default = "point")]
    pub decimal: char,
    /// The sign between groups of three digits, if any.
    pub thousands: Option<char>,
}

fn point() -> char {
    '.'
}

/// Where data is and how it is read. One of `path`, `csv`, `json`, `parquet`, `arrow`, `delta` names
/// the place; a rules file may leave it out, since the command line gives it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SourceSpec {
    /// Files, globs, folders or URLs (`s3://`, `gs://`, `az://`); `-` is standard input.
    pub path: Option<OneOrMany>,
    /// The same, as CSV.
    pub csv: Option<OneOrMany>,
    /// The same, as JSON lines or arrays.
    pub json: Option<OneOrMany>,
    /// The same, as Parquet.
    pub parquet: Option<OneOrMany>,
    /// The same, as Arrow IPC.
    pub arrow: Option<OneOrMany>,
    /// The folder of a Delta table.
    pub delta: Option<String>,
    /// The format, where the extension does not tell it.
    pub format: Option<Format>,
    /// The compression, where neither extension nor first bytes tell it.
    pub compression: Option<Compression>,
    /// The sign between fields of a CSV file. Default: `,`, a tab for `.tsv`.
    pub delimiter: Option<char>,
    /// The sign around fields of a CSV file. Default: `"`.
    pub quote: Option<char>,
    /// The sign before a quote inside a quoted field. Default: the quote doubled.
    pub escape: Option<char>,
    /// Whether the first line of a CSV file names the columns. Default: true.
    pub header: Option<bool>,
    /// Names of the columns, for CSV without a header.
    pub columns: Option<Vec<String>>,
    /// Cells that mean null, beside the empty one.
    pub nulls: Option<OneOrMany>,
    /// The encoding of text: `utf-8` (default), `latin-1`, `windows-1252`, or another WHATWG label.
    pub encoding: Option<String>,
    /// Types of columns, by name.
    #[schemars(with = "Option<IndexMap<String, String>>")]
    pub schema: Option<IndexMap<String, TypeName>>,
    /// How dates are written, as `dd/MM/yyyy` or `%d/%m/%Y`. Default: ISO 8601.
    pub date_format: Option<String>,
    /// How timestamps are written, as `dd/MM/yyyy HH:mm:ss` or `%d/%m/%Y %H:%M:%S`. Default: ISO 8601.
    pub timestamp_format: Option<String>,
    /// How numbers are written. Default: a decimal point and no thousands sign.
    pub numbers: Option<NumberForm>,
    /// The version of a Delta table to read. Default: the newest.
    pub version: Option<u64>,
    /// The instant (ISO 8601) at which to read a Delta table.
    pub timestamp: Option<String>,
}

/// A type as written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TypeName(pub LogicalType);

impl<'de> Deserialize<'de> for TypeName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        LogicalType::parse(&text)
            .map(TypeName)
            .map_err(|message| de::Error::custom(format!("{message}; {}", crate::nearest::suggest(&text, TYPE_NAMES))))
    }
}

impl Serialize for TypeName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl JsonSchema for TypeName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Type".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A type: string, boolean, int, int64, double, decimal(12,2), date, timestamp, list<string>, struct<name: string> …",
            "examples": ["int64", "decimal(12,2)", "timestamp"]
        })
    }
}

impl SourceSpec {
    /// Reads a `source:` or one of the `tables:`.
    pub fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let spec: SourceSpec = decode(node, diagnostics)?;
        let places = [
            spec.path.is_some(),
            spec.csv.is_some(),
            spec.json.is_some(),
            spec.parquet.is_some(),
            spec.arrow.is_some(),
            spec.delta.is_some(),
        ];
        if places.iter().filter(|given| **given).count() > 1 {
            diagnostics.push(
                node.error("several-sources", "more than one place to read from")
                    .hint("keep one of `path`, `csv`, `json`, `parquet`, `arrow`, `delta`"),
            );
        }
        if spec.version.is_some() && spec.timestamp.is_some() {
            diagnostics.push(
                node.error(
                    "several-versions",
                    "`version` and `timestamp` both choose the version of the table",
                )
                .hint("keep one of the two"),
            );
        }
        Some(spec)
    }

    /// The places named, with the format if the key said it.
    pub fn places(&self) -> (Vec<String>, Option<Format>) {
        let named = [
            (&self.path, None),
            (&self.csv, Some(Format::Csv)),
            (&self.json, Some(Format::Json)),
            (&self.parquet, Some(Format::Parquet)),
            (&self.arrow, Some(Format::Arrow)),
        ];
        for (places, format) in named {
            if let Some(places) = places {
                return (places.0.clone(), self.format.or(format));
            }
        }
        match &self.delta {
            Some(place) => (vec![place.clone()], Some(Format::Delta)),
            None => (Vec::new(), self.format),
        }
    }
}
