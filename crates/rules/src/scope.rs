//! What a rule sees of the world when it is bound: the schema, the time zone, the clock reading,
//! the names of other tables. Columns are resolved here (S20) and literals are typed here (S15, S16).

use crate::rule::{BindError, Bound, Holds, RowCheck};
use arrow::datatypes::{DataType, Schema};
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use comporta_contract::check::ShareOf;
use comporta_contract::nearest::nearest;
use comporta_contract::{Literal, NanPolicy, NullPolicy};
use datafusion_common::Column as QualifiedColumn;
use datafusion_expr::{Expr, lit};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// What a rule sees of the world.
#[derive(Debug)]
pub struct Scope<'a> {
    /// Names and types of the batch.
    pub schema: &'a Schema,
    /// The time zone of timestamps without one.
    pub timezone: Tz,
    /// The one clock reading of the run.
    pub now: DateTime<Utc>,
    /// How far in the future a newest value may be, in seconds.
    pub future_tolerance_seconds: u64,
    /// What an unknown means for the check.
    pub nulls: NullPolicy,
    /// What NaN means for the check.
    pub nan: Option<NanPolicy>,
    /// What shares are of.
    pub of: ShareOf,
    /// Values that count as missing for the check.
    pub missing: &'a [Literal],
    /// Names of the tables declared beside the batch.
    pub tables: &'a BTreeSet<String>,
    used: RefCell<Vec<String>>,
}

/// A column as a rule reads it.
#[derive(Debug, Clone)]
pub struct Column {
    /// The value, with the check's missing markers turned into nulls.
    pub expr: Expr,
    /// The name in the schema (with the path of a field behind it).
    pub name: String,
    /// The type of the value.
    pub data_type: DataType,
}

impl<'a> Scope<'a> {
    /// A scope for one check.
    pub fn new(
        schema: &'a Schema,
        timezone: Tz,
        now: DateTime<Utc>,
        tables: &'a BTreeSet<String>,
        missing: &'a [Literal],
    ) -> Self {
        Scope {
            schema,
            timezone,
            now,
            future_tolerance_seconds: 300,
            nulls: NullPolicy::default(),
            nan: None,
            of: ShareOf::default(),
            missing,
            tables,
            used: RefCell::default(),
        }
    }

    /// The columns handed out so far, by their names in the schema, each once, in order of first use.
    pub fn used(&self) -> Vec<String> {
        self.used.borrow().clone()
    }

    /// Marks a column of the schema as read.
    pub fn mark_used(&self, name: &str) {
        let mut used = self.used.borrow_mut();
        if !used.iter().any(|known| known == name) {
            used.push(name.to_string());
        }
    }

    /// The column of a name as written, ready to be read.
    ///
    /// # Errors
    /// No such column, or two that differ only in case.
    pub fn column(&self, written: &str) -> Result<Column, BindError> {
        let mut column = self.resolve(written)?;
        if !self.missing.is_empty() {
            column.expr = self.without_markers(column.expr, &column.data_type)?;
        }
        Ok(column)
    }

    /// Several columns, in order.
    ///
    /// # Errors
    /// Of the first that cannot be resolved.
    pub fn columns(&self, written: &[String]) -> Result<Vec<Column>, BindError> {
        written.iter().map(|name| self.column(name)).collect()
    }

    /// A column of text, for a rule that is about nothing else.
    ///
    /// # Errors
    /// It is not there, or is no text.
    pub fn text_column(&self, written: &str, rule: &str) -> Result<Column, BindError> {
        let column = self.column(written)?;
        match crate::types::is_text(&column.data_type) || column.data_type == DataType::Null {
            true => Ok(column),
            false => Err(BindError::new(format!(
                "`{rule}` is for text, column `{}` is {}",
                column.name,
                crate::literals::type_name(&column.data_type)
            ))
            .hint(format!(
                "declare `{}` as string where the data is read, if it is text",
                column.name
            ))),
        }
    }

    /// Refuses `nan: fail` on columns of binary fractions, for a rule that only counts.
    ///
    /// # Errors
    /// It was asked for.
    pub fn refuse_nan_policy(&self, columns: &[Column], rule: &str) -> Result<(), BindError> {
        let floats = columns
            .iter()
            .any(|column| crate::literals::value_type(&column.data_type).is_floating());
        match self.nan.is_some() && floats {
            false => Ok(()),
            true => Err(BindError::new(format!("`nan: fail` has no meaning for `{rule}`"))
                .hint("add a check of its own: `expression: not isnan(column)`")),
        }
    }

    /// A row rule under `nan: fail`: NaN in a column it reads is a violation, whatever else it says (S12).
    ///
    /// # Errors
    /// The rule compares keys, so it has no place for that.
    pub(crate) fn without_nan(&self, bound: Bound, rule: &str) -> Result<Bound, BindError> {
        if self.nan.is_none() {
            return Ok(bound);
        }
        let used = self.used();
        let fields = self.schema.fields().iter();
        let floats: Vec<Column> = fields
            .filter(|field| used.contains(field.name()) && crate::literals::value_type(field.data_type()).is_floating())
            .map(|field| Column {
                expr: Expr::Column(QualifiedColumn::new_unqualified(field.name())),
                name: field.name().clone(),
                data_type: field.data_type().clone(),
            })
            .collect();
        match bound {
            Bound::Row(RowCheck {
                holds: Holds::Expr(expr),
                reason,
            }) => {
                let expr = floats
                    .into_iter()
                    .fold(expr, |expr, column| expr.and(is_nan(column.expr).is_not_true()));
                Ok(Bound::Row(RowCheck {
                    holds: Holds::Expr(expr),
                    reason,
                }))
            }
            Bound::Row(row) => {
                self.refuse_nan_policy(&floats, rule)?;
                Ok(Bound::Row(row))
            }
            table => Ok(table),
        }
    }

    /// Resolves a name without applying the missing markers.
    ///
    /// # Errors
    /// No such column, or two that differ only in case.
    pub fn resolve(&self, written: &str) -> Result<Column, BindError> {
        let fields = self.schema.fields();
        let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        if let Some(name) = match_name(written, &names)? {
            self.mark_used(name);
            let field = self
                .schema
                .field_with_name(name)
                .map_err(|e| BindError::new(e.to_string()))?;
            let expr = Expr::Column(QualifiedColumn::new_unqualified(name));
            return Ok(Column {
                expr,
                name: name.to_string(),
                data_type: field.data_type().clone(),
            });
        }
        if let Some((parent, path)) = written.split_once('.')
            && let Ok(parent) = self.resolve(parent)
        {
            return field_of(parent, path);
        }
        let error = BindError::new(format!("column `{written}` is not in the data"));
        Err(match nearest(written, names.iter().copied()) {
            Some(name) => error.hint(format!("did you mean `{name}`?")),
            None if names.len() <= 20 => {
                error.hint(format!("the data has {}", comporta_contract::nearest::list(&names)))
            }
            None => error.hint(format!("the data has {} other columns", names.len())),
        })
    }

    /// NULL where the value is one of the check's markers; markers of another type never match.
    fn without_markers(&self, expr: Expr, data_type: &DataType) -> Result<Expr, BindError> {
        let mut markers = Vec::new();
        let mut is_missing: Option<Expr> = None;
        for literal in self.missing {
            match literal {
                Literal::Text(text) if text.eq_ignore_ascii_case("nan") && data_type.is_floating() => {
                    is_missing = Some(is_nan(expr.clone()));
                }
                other => markers.extend(crate::literals::member(data_type, other, self).ok().flatten().map(lit)),
            }
        }
        if !markers.is_empty() {
            let listed = expr.clone().in_list(markers, false);
            is_missing = Some(match is_missing {
                Some(nan) => nan.or(listed),
                None => listed,
            });
        }
        let Some(is_missing) = is_missing else { return Ok(expr) };
        let null = datafusion_common::ScalarValue::try_from(data_type)
            .map_err(|e| BindError::new(format!("`missing` cannot be used on this column: {e}")))?;
        datafusion_expr::when(is_missing, lit(null))
            .otherwise(expr)
            .map_err(|e| BindError::new(e.to_string()))
    }
}

/// Whether a floating-point value is NaN; NULL stays unknown.
pub fn is_nan(expr: Expr) -> Expr {
    datafusion_functions::math::isnan().call(vec![expr])
}

/// The name that is meant: the exact one, else the single one that differs only in case (S20).
pub fn match_name<'n>(written: &str, names: &[&'n str]) -> Result<Option<&'n str>, BindError> {
    let exact: Vec<&&str> = names.iter().filter(|name| **name == written).collect();
    match exact.as_slice() {
        [one] => return Ok(Some(one)),
        [] => {}
        _ => return Err(BindError::new(format!("the data has more than one column `{written}`"))),
    }
    let folded = written.to_lowercase();
    let alike: Vec<&&str> = names.iter().filter(|name| name.to_lowercase() == folded).collect();
    match alike.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(BindError::new(format!(
            "`{written}` could be any of {}",
            comporta_contract::nearest::list(&several.iter().map(|name| **name).collect::<Vec<_>>())
        ))
        .hint("write the name exactly as it stands in the data")),
    }
}

/// The field behind a dot, and the one behind that.
fn field_of(parent: Column, path: &str) -> Result<Column, BindError> {
    let DataType::Struct(fields) = &parent.data_type else {
        return Err(BindError::new(format!(
            "column `{}` has no fields, it is {}",
            parent.name, parent.data_type
        )));
    };
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let (step, rest) = match match_name(path, &names)? {
        Some(name) => (name, None),
        None => {
            let (head, rest) = path
                .split_once('.')
                .map_or((path, None), |(head, rest)| (head, Some(rest)));
            let name = match_name(head, &names)?.ok_or_else(|| {
                let error = BindError::new(format!("column `{}` has no field `{head}`", parent.name));
                match nearest(head, names.iter().copied()) {
                    Some(name) => error.hint(format!("did you mean `{name}`?")),
                    None => error,
                }
            })?;
            (name, rest)
        }
    };
    let data_type = fields
        .iter()
        .find(|field| field.name() == step)
        .map(|field| field.data_type().clone())
        .ok_or_else(|| BindError::new(format!("column `{}` has no field `{step}`", parent.name)))?;
    let column = Column {
        expr: datafusion_functions::core::get_field().call(vec![parent.expr, lit(step)]),
        name: format!("{}.{step}", parent.name),
        data_type,
    };
    match rest {
        Some(rest) => field_of(column, rest),
        None => Ok(column),
    }
}
