//! Literal values as written: bounds, members of lists. Numbers are exact (S15).

use bigdecimal::{BigDecimal, ToPrimitive};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// A literal of a document. Its type is decided by the column it meets, never coerced.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// `true` or `false`.
    Bool(bool),
    /// A number, exact.
    Number(BigDecimal),
    /// Text; also dates and timestamps, which are ISO text.
    Text(String),
}

/// The name under which the node deserializer hands over a literal without loss.
pub(crate) const LITERAL_TOKEN: &str = "$comporta::Literal";

impl Literal {
    /// What kind of value this is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Literal::Bool(_) => "true or false",
            Literal::Number(_) => "a number",
            Literal::Text(_) => "text",
        }
    }

    /// The canonical JSON form, part of a check's id.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Literal::Bool(b) => (*b).into(),
            Literal::Number(n) => number_to_json(n),
            Literal::Text(t) => t.clone().into(),
        }
    }

    /// One-letter tag and digits, so that a literal crosses serde without becoming a double.
    pub(crate) fn to_token(&self) -> String {
        match self {
            Literal::Bool(b) => format!("b{b}"),
            Literal::Number(n) => format!("n{n}"),
            Literal::Text(t) => format!("t{t}"),
        }
    }

    fn from_token(token: &str) -> Option<Self> {
        let rest = token.get(1..)?;
        match token.as_bytes().first()? {
            b'b' => rest.parse().ok().map(Literal::Bool),
            b'n' => BigDecimal::from_str(rest).ok().map(Literal::Number),
            b't' => Some(Literal::Text(rest.to_string())),
            _ => None,
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Number(n) => f.write_str(&plain_number(n)),
            Literal::Text(t) => f.write_str(t),
        }
    }
}

impl Serialize for Literal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Literal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Token;
        impl Visitor<'_> for Token {
            type Value = Literal;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a number, text, true or false")
            }
            fn visit_str<E: Error>(self, token: &str) -> Result<Literal, E> {
                Literal::from_token(token).ok_or_else(|| E::custom("expected a number, text, true or false"))
            }
        }
        deserializer.deserialize_newtype_struct(LITERAL_TOKEN, Token)
    }
}

impl JsonSchema for Literal {
    fn schema_name() -> Cow<'static, str> {
        "Literal".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["number", "string", "boolean"] })
    }
}

/// A number without exponent and without trailing zeros after the point.
pub fn plain_number(number: &BigDecimal) -> String {
    number.normalized().to_plain_string()
}

/// A number as JSON: a JSON number where a double holds it exactly, text otherwise
/// (semantics, "Where things are written").
pub fn number_to_json(number: &BigDecimal) -> serde_json::Value {
    if number.is_integer() {
        if let Some(int) = number.to_i64().filter(|i| i.unsigned_abs() <= 1 << 53) {
            return int.into();
        }
        return plain_number(number).into();
    }
    match number.to_f64().filter(|f| f.is_finite()) {
        Some(float) if BigDecimal::from_str(&float.to_string()).is_ok_and(|back| back == *number) => float.into(),
        _ => plain_number(number).into(),
    }
}
