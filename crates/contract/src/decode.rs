//! Nodes into typed structs by way of serde, with the place of every fault.

use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::literal::{LITERAL_TOKEN, Literal};
use crate::nearest::suggest;
use crate::node::{Node, Value};
use bigdecimal::ToPrimitive;
use serde::de::value::StringDeserializer;
use serde::de::{self, DeserializeOwned, DeserializeSeed, EnumAccess, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Decodes a node; a fault becomes one diagnostic at its place.
pub fn decode<T: DeserializeOwned>(node: &Node, diagnostics: &mut Diagnostics) -> Option<T> {
    match T::deserialize(NodeDeserializer(node)) {
        Ok(value) => Some(value),
        Err(fault) => {
            diagnostics.push(
                *fault
                    .0
                    .unwrap_or_else(|| Box::new(node.error("invalid-value", "invalid value"))),
            );
            None
        }
    }
}

/// A fault on its way out of serde.
#[derive(Debug)]
struct Fault(Option<Box<Diagnostic>>, Option<String>);

impl Fault {
    /// Gives a fault that serde raised without a place the place of this node.
    fn placed(self, node: &Node) -> Self {
        match self {
            Fault(None, Some(message)) => Fault(Some(Box::new(node.error("invalid-value", message))), None),
            other => other,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault(Some(diagnostic), _) => write!(f, "{diagnostic}"),
            Fault(None, message) => f.write_str(message.as_deref().unwrap_or("invalid value")),
        }
    }
}

impl std::error::Error for Fault {}

impl de::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Fault(None, Some(message.to_string()))
    }
    fn missing_field(field: &'static str) -> Self {
        Fault(None, Some(format!("`{field}` is missing")))
    }
    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Fault(
            None,
            Some(format!(
                "`{variant}` is not one of the words expected here; {}",
                suggest(variant, expected)
            )),
        )
    }
}

struct NodeDeserializer<'a>(&'a Node);

impl NodeDeserializer<'_> {
    fn expected(&self, what: &str) -> Fault {
        let message = format!("expected {what}, found {}", self.0.kind());
        Fault(Some(Box::new(self.0.error("wrong-type", message))), None)
    }
}

macro_rules! integers {
    ($($method:ident $visit:ident $convert:ident),+ $(,)?) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
            match &self.0.value {
                Value::Number(n) if n.is_integer() => match n.$convert() {
                    Some(int) => visitor.$visit(int).map_err(|e: Fault| e.placed(self.0)),
                    None => Err(self.expected("a whole number in range")),
                },
                _ => Err(self.expected("a whole number")),
            }
        })+
    };
}

impl<'de> de::Deserializer<'de> for NodeDeserializer<'_> {
    type Error = Fault;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            Value::Bool(b) => visitor.visit_bool(*b),
            Value::Number(n) if n.is_integer() && n.to_i64().is_some() => visitor.visit_i64(n.to_i64().unwrap_or(0)),
            Value::Number(n) => visitor.visit_f64(n.to_f64().unwrap_or(f64::NAN)),
            Value::Text(t) => visitor.visit_str(t),
            Value::List(_) => return self.deserialize_seq(visitor),
            Value::Map(_) => return self.deserialize_map(visitor),
        }
        .map_err(|e: Fault| e.placed(self.0))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Bool(b) => visitor.visit_bool(*b),
            _ => Err(self.expected("true or false")),
        }
    }

    integers!(
        deserialize_i8 visit_i8 to_i8, deserialize_i16 visit_i16 to_i16, deserialize_i32 visit_i32 to_i32,
        deserialize_i64 visit_i64 to_i64, deserialize_u8 visit_u8 to_u8, deserialize_u16 visit_u16 to_u16,
        deserialize_u32 visit_u32 to_u32, deserialize_u64 visit_u64 to_u64,
    );

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Number(n) => visitor.visit_f64(n.to_f64().unwrap_or(f64::NAN)),
            _ => Err(self.expected("a number")),
        }
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match self.0.as_text().map(|t| (t.chars().next(), t.chars().count())) {
            Some((Some(one), 1)) => visitor.visit_char(one),
            _ => Err(self.expected("a single character")),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(t) => visitor.visit_str(t).map_err(|e: Fault| e.placed(self.0)),
            _ => Err(self.expected("text")),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Null => visitor.visit_unit(),
            _ => Err(self.expected("nothing")),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, name: &'static str, visitor: V) -> Result<V::Value, Fault> {
        if name != LITERAL_TOKEN {
            return visitor.visit_newtype_struct(self);
        }
        let literal = match &self.0.value {
            Value::Bool(b) => Literal::Bool(*b),
            Value::Number(n) => Literal::Number(n.clone()),
            Value::Text(t) => Literal::Text(t.clone()),
            _ => return Err(self.expected("a number, text, true or false")),
        };
        visitor
            .visit_str(&literal.to_token())
            .map_err(|e: Fault| e.placed(self.0))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::List(items) => visitor.visit_seq(Items(items.iter())).map_err(|e| e.placed(self.0)),
            _ => Err(self.expected("a list")),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Map(_) => visitor
                .visit_map(Fields { node: self.0, next: 0 })
                .map_err(|e| e.placed(self.0)),
            _ => Err(self.expected("a mapping")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        for entry in self.0.entries() {
            if !fields.contains(&entry.key.as_str()) {
                let diagnostic = Diagnostic::error("unknown-key", format!("unknown key `{}`", entry.key))
                    .at(&self.0.text, entry.key_span)
                    .hint(suggest(&entry.key, fields));
                return Err(Fault(Some(Box::new(diagnostic)), None));
            }
        }
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Fault> {
        match &self.0.value {
            Value::Text(word) => {
                let word: StringDeserializer<Fault> = word.clone().into_deserializer();
                visitor.visit_enum(word).map_err(|e| e.placed(self.0))
            }
            Value::Map(entries) if entries.len() == 1 => {
                visitor.visit_enum(Variant(&entries[0])).map_err(|e| e.placed(self.0))
            }
            Value::Map(_) => Err(self.expected("a mapping with one key")),
            _ => Err(self.expected("a word or a mapping with one key")),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        self.deserialize_str(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Fault> {
        visitor.visit_unit()
    }

    serde::forward_to_deserialize_any! { i128 u128 bytes byte_buf unit_struct tuple_struct }
}

struct Items<'a>(std::slice::Iter<'a, Node>);

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Fault;
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Fault> {
        match self.0.next() {
            Some(node) => seed
                .deserialize(NodeDeserializer(node))
                .map(Some)
                .map_err(|e| e.placed(node)),
            None => Ok(None),
        }
    }
}

struct Fields<'a> {
    node: &'a Node,
    next: usize,
}

impl<'de> MapAccess<'de> for Fields<'_> {
    type Error = Fault;
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Fault> {
        match self.node.entries().get(self.next) {
            Some(entry) => {
                let key: StringDeserializer<Fault> = entry.key.clone().into_deserializer();
                seed.deserialize(key).map(Some)
            }
            None => Ok(None),
        }
    }
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Fault> {
        let node = &self.node.entries()[self.next].value;
        self.next += 1;
        seed.deserialize(NodeDeserializer(node)).map_err(|e| e.placed(node))
    }
}

struct Variant<'a>(&'a crate::node::Entry);

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = Fault;
    type Variant = VariantValue<'a>;
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self::Variant), Fault> {
        let key: StringDeserializer<Fault> = self.0.key.clone().into_deserializer();
        Ok((seed.deserialize(key)?, VariantValue(&self.0.value)))
    }
}

struct VariantValue<'a>(&'a Node);

impl<'de> de::VariantAccess<'de> for VariantValue<'_> {
    type Error = Fault;
    fn unit_variant(self) -> Result<(), Fault> {
        match self.0.value {
            Value::Null => Ok(()),
            _ => Err(NodeDeserializer(self.0).expected("nothing")),
        }
    }
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Fault> {
        seed.deserialize(NodeDeserializer(self.0)).map_err(|e| e.placed(self.0))
    }
    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_seq(NodeDeserializer(self.0), visitor)
    }
    fn struct_variant<V: Visitor<'de>>(self, fields: &'static [&'static str], visitor: V) -> Result<V::Value, Fault> {
        de::Deserializer::deserialize_struct(NodeDeserializer(self.0), "", fields, visitor)
    }
}
