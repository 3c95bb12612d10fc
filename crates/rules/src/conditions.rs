//! Conditions on the values of one column, all of which must hold: what `invalid_count` and `invalid_percent` count
//! by.

use crate::formats;
use crate::kernels::format::HasFormat;
use crate::kernels::holds;
use crate::kernels::length::Characters;
use crate::kernels::regex::Pattern;
use crate::lists;
use crate::literals::{compare, constant, is_decimal, type_name, value_type};
use crate::rule::BindError;
use crate::scope::{Column, Scope};
use crate::shapes;
use crate::types::is_text;
use arrow::datatypes::DataType;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::Operator;
use comporta_contract::{Diagnostics, Literal, Node};
use datafusion_expr::Expr;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// A column and what its values must be.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The column; of a list, each by itself.
    column: Option<OneOrMany>,
    /// The same, in the plural.
    columns: Option<OneOrMany>,
    /// The values allowed.
    #[allow(dead_code, reason = "read from its node")]
    values: Option<Vec<Literal>>,
    /// Values not allowed.
    #[allow(dead_code, reason = "read from its node")]
    forbidden: Option<Vec<Literal>>,
    /// A regular expression that text must match.
    #[allow(dead_code, reason = "read from its node")]
    regex: Option<String>,
    /// A format that text must be of.
    #[allow(dead_code, reason = "read from its node")]
    format: Option<String>,
    /// Smallest value allowed.
    min: Option<Literal>,
    /// Largest value allowed.
    max: Option<Literal>,
    /// Fewest characters allowed.
    min_length: Option<u64>,
    /// Most characters allowed.
    max_length: Option<u64>,
    /// Characters there must be.
    length: Option<u64>,
}

/// Conditions on one column, ready to be bound.
#[derive(Debug, Clone)]
pub(crate) struct Valid {
    pub(crate) column: String,
    values: Option<Vec<Literal>>,
    forbidden: Option<Vec<Literal>>,
    regex: Option<Pattern>,
    format: Option<formats::Format>,
    min: Option<Literal>,
    max: Option<Literal>,
    characters: Option<Characters>,
}

/// Reads the conditions of a mapping, once for each column it names.
pub(crate) fn read(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Valid> {
    let mut faults = Diagnostics::default();
    // Lists first: of a null among values they know more to say than a decoder.
    let values = node.get("values").and_then(|values| lists::read(values, &mut faults));
    let forbidden = node
        .get("forbidden")
        .and_then(|values| lists::read(values, &mut faults));
    let regex = node.get("regex").and_then(|pattern| pattern_of(pattern, &mut faults));
    let format = node.get("format").and_then(|name| format_of(name, &mut faults));
    let found = match faults.has_errors() {
        true => None,
        false => shapes::parameters::<Conditions>(node, &mut faults),
    };
    let Some(found) = found else {
        diagnostics.extend(faults);
        return Vec::new();
    };
    let bounds = (found.length.or(found.min_length), found.length.or(found.max_length));
    let characters = match bounds {
        (None, None) => None,
        (min, max) => Some(Characters { min, max }),
    };
    if found.length.is_some() && (found.min_length.is_some() || found.max_length.is_some()) {
        faults.push(node.error("length", "`length` cannot stand beside `min_length` or `max_length`"));
    }
    if let (Some(min), Some(max)) = bounds
        && min > max
    {
        faults.push(
            node.error(
                "range-inverted",
                format!("`min_length` {min} is above `max_length` {max}"),
            )
            .why("no value can satisfy it"),
        );
    }
    if let (Some(Literal::Number(min)), Some(Literal::Number(max))) = (&found.min, &found.max)
        && min > max
    {
        faults.push(
            node.error("range-inverted", "`min` is above `max`")
                .why("no value can satisfy it"),
        );
    }
    let columns = shapes::named_columns([found.column, found.columns], node, &mut faults);
    let valid = Valid {
        column: String::new(),
        values,
        forbidden,
        regex,
        format,
        min: found.min,
        max: found.max,
        characters,
    };
    if valid.says_nothing() {
        faults.push(
            node.error("no-condition", "nothing says which values are valid")
                .why("every value would be")
                .hint("add `values`, `forbidden`, `regex`, `format`, `min`, `max` or `length`"),
        );
    }
    let usable = !faults.has_errors();
    diagnostics.extend(faults);
    let one = |column| Valid {
        column,
        ..valid.clone()
    };
    columns.into_iter().filter(|_| usable).map(one).collect()
}

/// A pattern at a node, compiled; its faults are the document's (S18).
pub(crate) fn pattern_of(node: &Node, diagnostics: &mut Diagnostics) -> Option<Pattern> {
    let Some(written) = node.as_text() else {
        diagnostics.push(node.error("wrong-type", format!("a pattern is text, not {}", node.kind())));
        return None;
    };
    match Pattern::new(written) {
        Ok(pattern) => Some(pattern),
        Err(message) => {
            diagnostics.push(
                node.error("regex-syntax", message)
                    .hint("the syntax is that of the Rust `regex` crate; in YAML, write patterns in single quotes"),
            );
            None
        }
    }
}

/// A format at a node.
pub(crate) fn format_of(node: &Node, diagnostics: &mut Diagnostics) -> Option<formats::Format> {
    let Some(name) = node.as_text() else {
        diagnostics.push(node.error(
            "wrong-type",
            format!("the name of a format is expected, not {}", node.kind()),
        ));
        return None;
    };
    match formats::find(name) {
        Ok(format) => Some(format),
        Err(hint) => {
            diagnostics.push(
                node.error("unknown-format", format!("`{name}` is no format"))
                    .hint(hint),
            );
            None
        }
    }
}

impl Valid {
    fn says_nothing(&self) -> bool {
        self.values.is_none()
            && self.forbidden.is_none()
            && self.regex.is_none()
            && self.format.is_none()
            && self.min.is_none()
            && self.max.is_none()
            && self.characters.is_none()
    }

    /// The part of a check's id.
    pub(crate) fn parameters(&self) -> Value {
        json!({
            "values": self.values,
            "forbidden": self.forbidden,
            "regex": self.regex.as_ref().map(Pattern::as_str),
            "format": self.format.map(|format| format.name),
            "min": self.min,
            "max": self.max,
            "min_length": self.characters.as_ref().and_then(|characters| characters.min),
            "max_length": self.characters.as_ref().and_then(|characters| characters.max),
        })
    }

    /// The column, and TRUE for a valid value of it, FALSE for an invalid one, NULL for a missing one.
    ///
    /// # Errors
    /// A condition does not fit the column's type.
    pub(crate) fn bind(&self, scope: &Scope, rule: &str) -> Result<(Column, Expr), BindError> {
        let is_of_text = self.regex.is_some() || self.characters.is_some();
        let column = match is_of_text {
            true => scope.text_column(&self.column, rule)?,
            false => scope.column(&self.column)?,
        };
        let text = || column.expr.clone();
        let mut all = Vec::new();
        if let Some(values) = &self.values {
            all.push(lists::is_in(&column, values, false, scope)?);
        }
        if let Some(values) = &self.forbidden {
            all.push(lists::is_in(&column, values, true, scope)?);
        }
        if let Some(min) = &self.min {
            all.push(compare(&column, Operator::GreaterOrEqual, min, scope)?);
        }
        if let Some(max) = &self.max {
            all.push(compare(&column, Operator::LessOrEqual, max, scope)?);
        }
        all.extend(self.characters.clone().map(|characters| holds(characters, text())));
        if let Some(format) = self.format {
            all.push(has_format(&column, format)?);
        }
        all.extend(self.regex.clone().map(|pattern| holds(pattern, text())));
        let valid = all.into_iter().reduce(Expr::and);
        let valid = valid.ok_or_else(|| BindError::new("nothing says which values are valid"))?;
        Ok((column, valid))
    }
}

/// Whether values of a type are of the format by being of the type: a date column holds dates.
pub(crate) fn is_format_of_type(format: formats::Format, data_type: &DataType) -> bool {
    match (format.name, value_type(data_type)) {
        ("boolean", DataType::Boolean) | ("date", DataType::Date32 | DataType::Date64) => true,
        ("timestamp", DataType::Timestamp(..)) | ("time", DataType::Time32(_) | DataType::Time64(_)) => true,
        ("integer", ty) => ty.is_integer(),
        ("decimal", ty) => ty.is_integer() || is_decimal(ty),
        (_, DataType::Null) => true,
        _ => false,
    }
}

/// TRUE where a value is of the format, NULL for a null.
///
/// # Errors
/// The column is no text, and not of the format by its type either.
pub(crate) fn has_format(column: &Column, format: formats::Format) -> Result<Expr, BindError> {
    if is_text(&column.data_type) {
        return Ok(holds(HasFormat(format), column.expr.clone()));
    }
    if is_format_of_type(format, &column.data_type) {
        return Ok(constant(column.expr.clone(), true));
    }
    let error = BindError::new(format!(
        "the format `{}` is for text, column `{}` is {}",
        format.name,
        column.name,
        type_name(&column.data_type)
    ));
    Err(error.hint(format!(
        "declare `{}` as string where the data is read; a number has lost its leading zeros",
        column.name
    )))
}
