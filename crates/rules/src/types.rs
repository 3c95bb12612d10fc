//! Declared types against the types of the data (S21), and the types that text is read as (S17).

use crate::literals::{is_decimal, type_name, value_type};
use crate::scope::match_name;
use arrow::datatypes::{DataType, Field, Fields, TimeUnit};
use comporta_contract::types::LogicalType;
use std::sync::Arc;

/// Whether data of a type keeps to a declared type.
///
/// `int` accepts any width, `int64` only itself; a decimal without precision and scale accepts any, with
/// them it must have the same two, however wide it is stored. Declared fields of a struct must be there,
/// in any order; further ones are allowed, as further columns are. Nullability is not judged. A column of
/// nothing but nulls may have no type at all, and then contradicts none.
///
/// # Errors
/// What does not match, with the path of the nested place: `[]: expected int, found string`. The path
/// of the top is empty: `expected int, found string`. See [`matches_at`] for a path that starts at a column.
pub fn matches(expected: &LogicalType, found: &DataType) -> Result<(), String> {
    matches_at("", expected, found)
}

/// [`matches`] with a name at the head of the path: `tags[]: expected int, found string`.
///
/// # Errors
/// What does not match, with its path.
pub fn matches_at(path: &str, expected: &LogicalType, found: &DataType) -> Result<(), String> {
    let found = value_type(found);
    let fits = match (expected, found) {
        (_, DataType::Null) => true,
        (LogicalType::List(item), _) => match list_item(found) {
            Some(found) => return matches_at(&format!("{path}[]"), item, found),
            None => false,
        },
        (LogicalType::Struct(fields), DataType::Struct(found)) => return fields_match(path, fields, found),
        (LogicalType::Map(key, value), DataType::Map(entries, _)) => match entries.data_type() {
            DataType::Struct(parts) if parts.len() == 2 => {
                matches_at(&format!("{path}{{key}}"), key, parts[0].data_type())?;
                return matches_at(&format!("{path}{{value}}"), value, parts[1].data_type());
            }
            _ => false,
        },
        _ => simple_matches(expected, found),
    };
    match fits {
        true => Ok(()),
        false => mismatch(path, expected, found),
    }
}

fn mismatch(path: &str, expected: &LogicalType, found: &DataType) -> Result<(), String> {
    let place = match path {
        "" => String::new(),
        path => format!("{path}: "),
    };
    Err(format!("{place}expected {expected}, found {}", type_name(found)))
}

fn simple_matches(expected: &LogicalType, found: &DataType) -> bool {
    match (expected, found) {
        (LogicalType::String, found) => is_text(found),
        (LogicalType::Boolean, found) => *found == DataType::Boolean,
        (LogicalType::Integer(None), found) => found.is_integer(),
        (LogicalType::Integer(Some(bits)), found) => {
            found.is_signed_integer() && found.primitive_width() == Some(usize::from(*bits) / 8)
        }
        (LogicalType::Unsigned(bits), found) => {
            found.is_unsigned_integer() && found.primitive_width() == Some(usize::from(*bits) / 8)
        }
        (LogicalType::Float(32), found) => matches!(found, DataType::Float16 | DataType::Float32),
        (LogicalType::Float(_), found) => *found == DataType::Float64,
        (LogicalType::Number, found) => found.is_numeric(),
        (LogicalType::Decimal(None), found) => is_decimal(found),
        (
            LogicalType::Decimal(Some((precision, scale))),
            DataType::Decimal32(p, s)
            | DataType::Decimal64(p, s)
            | DataType::Decimal128(p, s)
            | DataType::Decimal256(p, s),
        ) => precision == p && scale == s,
        (LogicalType::Date, found) => matches!(found, DataType::Date32 | DataType::Date64),
        (LogicalType::Timestamp(zoned), DataType::Timestamp(_, zone)) => {
            zoned.is_none_or(|zoned| zoned == zone.is_some())
        }
        (LogicalType::Time, found) => matches!(found, DataType::Time32(_) | DataType::Time64(_)),
        (LogicalType::Binary, found) => matches!(
            found,
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)
        ),
        _ => false,
    }
}

fn list_item(found: &DataType) -> Option<&DataType> {
    match found {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::ListView(item)
        | DataType::LargeListView(item) => Some(item.data_type()),
        _ => None,
    }
}

fn fields_match(path: &str, expected: &[(String, LogicalType)], found: &Fields) -> Result<(), String> {
    let names: Vec<&str> = found.iter().map(|field| field.name().as_str()).collect();
    for (name, declared) in expected {
        let place = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        let known = match_name(name, &names).map_err(|error| format!("{place}: {}", error.message))?;
        match known.and_then(|known| found.iter().find(|field| field.name() == known)) {
            Some(field) => matches_at(&place, declared, field.data_type())?,
            None => return Err(format!("{place}: expected {declared}, found no such field")),
        }
    }
    Ok(())
}

/// Whether the type is text of any layout, dictionaries of it included.
pub fn is_text(data_type: &DataType) -> bool {
    matches!(
        value_type(data_type),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
    )
}

/// The type that untyped text is read as when a document declares a type.
///
/// Where the document leaves the width open, this is the choice: `int` is 64 bits; `decimal` is
/// `decimal(38,9)`, and a cell with more than nine digits behind the point does not parse rather than being
/// rounded; `number` is a double, because it must hold every magnitude and NaN (who needs exact amounts
/// declares a decimal); `timestamp` has no zone unless it says so, and counts microseconds.
pub fn arrow_type(declared: &LogicalType) -> DataType {
    match declared {
        LogicalType::String => DataType::Utf8,
        LogicalType::Boolean => DataType::Boolean,
        LogicalType::Integer(Some(8)) => DataType::Int8,
        LogicalType::Integer(Some(16)) => DataType::Int16,
        LogicalType::Integer(Some(32)) => DataType::Int32,
        LogicalType::Integer(_) => DataType::Int64,
        LogicalType::Unsigned(8) => DataType::UInt8,
        LogicalType::Unsigned(16) => DataType::UInt16,
        LogicalType::Unsigned(32) => DataType::UInt32,
        LogicalType::Unsigned(_) => DataType::UInt64,
        LogicalType::Float(32) => DataType::Float32,
        LogicalType::Float(_) | LogicalType::Number => DataType::Float64,
        LogicalType::Decimal(None) => DataType::Decimal128(38, 9),
        LogicalType::Decimal(Some((precision, scale))) if *precision <= 38 => DataType::Decimal128(*precision, *scale),
        LogicalType::Decimal(Some((precision, scale))) => DataType::Decimal256(*precision, *scale),
        LogicalType::Date => DataType::Date32,
        LogicalType::Timestamp(Some(true)) => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        LogicalType::Timestamp(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        LogicalType::Time => DataType::Time64(TimeUnit::Microsecond),
        LogicalType::Binary => DataType::Binary,
        LogicalType::List(item) => DataType::List(Arc::new(Field::new_list_field(arrow_type(item), true))),
        LogicalType::Struct(fields) => DataType::Struct(
            fields
                .iter()
                .map(|(name, field)| Field::new(name, arrow_type(field), true))
                .collect(),
        ),
        LogicalType::Map(key, value) => {
            let entries = Fields::from(vec![
                Field::new("key", arrow_type(key), false),
                Field::new("value", arrow_type(value), true),
            ]);
            DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta_contract::types::TYPE_NAMES;

    fn declared(text: &str) -> LogicalType {
        LogicalType::parse(text).unwrap()
    }

    #[test]
    fn a_column_read_as_declared_keeps_to_the_declaration() {
        for name in TYPE_NAMES {
            let declared = declared(name);
            assert_eq!(matches(&declared, &arrow_type(&declared)), Ok(()), "{name}");
        }
    }

    #[test]
    fn an_open_width_accepts_any_and_a_written_one_only_itself() {
        for found in [DataType::Int8, DataType::Int64, DataType::UInt32] {
            assert_eq!(matches(&declared("int"), &found), Ok(()));
        }
        assert!(matches(&declared("int64"), &DataType::Int32).is_err());
        assert!(matches(&declared("int32"), &DataType::UInt32).is_err());
        assert_eq!(matches(&declared("decimal"), &DataType::Decimal256(50, 3)), Ok(()));
        assert_eq!(matches(&declared("decimal(12,2)"), &DataType::Decimal64(12, 2)), Ok(()));
        assert!(matches(&declared("decimal(12,2)"), &DataType::Decimal128(12, 3)).is_err());
        assert!(matches(&declared("int"), &DataType::Float64).is_err());
        assert!(matches(&declared("double"), &DataType::Float32).is_err());
    }

    #[test]
    fn a_zone_matters_only_where_it_is_declared() {
        let zoned = DataType::Timestamp(TimeUnit::Nanosecond, Some("+01:00".into()));
        let local = DataType::Timestamp(TimeUnit::Second, None);
        assert_eq!(matches(&declared("timestamp"), &zoned), Ok(()));
        assert_eq!(matches(&declared("timestamp"), &local), Ok(()));
        assert!(matches(&declared("timestamp_tz"), &local).is_err());
        assert!(matches(&declared("timestamp_ntz"), &zoned).is_err());
    }

    #[test]
    fn a_mismatch_names_the_nested_place() {
        let found = arrow_type(&declared("list<string>"));
        assert_eq!(
            matches_at("tags", &declared("list<int>"), &found).unwrap_err(),
            "tags[]: expected int, found string"
        );
        let found = arrow_type(&declared("struct<city: string, Zip: string>"));
        assert_eq!(
            matches_at("address", &declared("struct<zip: int>"), &found).unwrap_err(),
            "address.zip: expected int, found string"
        );
        assert_eq!(
            matches_at("address", &declared("struct<street: string>"), &found).unwrap_err(),
            "address.street: expected string, found no such field"
        );
        assert_eq!(matches(&declared("struct<zip: string>"), &found), Ok(()));
        let found = arrow_type(&declared("map<string, int>"));
        assert_eq!(
            matches_at("counts", &declared("map<string, string>"), &found).unwrap_err(),
            "counts{value}: expected string, found int64"
        );
        assert_eq!(
            matches(&declared("list<string>"), &DataType::Int32).unwrap_err(),
            "expected list<string>, found int32"
        );
    }

    #[test]
    fn dictionaries_count_as_their_values_and_no_type_contradicts_none() {
        let coded = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert_eq!(matches(&declared("string"), &coded), Ok(()));
        assert_eq!(matches(&declared("date"), &DataType::Null), Ok(()));
        assert!(is_text(&coded) && !is_text(&DataType::Null));
    }
}
