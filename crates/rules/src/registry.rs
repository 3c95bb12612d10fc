//! Every rule there is. Adding one is a file under `rules/` and a line here, in the order of names.

use crate::rule::Definition;
use std::sync::{PoisonError, RwLock};

macro_rules! rules {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        static ALL: &[Definition] = &[$(Definition::of::<crate::rules::$module::$name>()),+];
    };
}

rules! {
    accepted_values::AcceptedValues,
    avg::Avg,
    column_order::ColumnOrder,
    compare::Compare,
    custom::Custom,
    distinct_count::DistinctCount,
    duplicate_count::DuplicateCount,
    duplicate_percent::DuplicatePercent,
    event_order::EventOrder,
    expression::Expression,
    forbidden_values::ForbiddenValues,
    foreign_key::ForeignKey,
    format::Format,
    freshness::Freshness,
    invalid_count::InvalidCount,
    invalid_percent::InvalidPercent,
    join_cardinality::JoinCardinality,
    length::Length,
    max::Max,
    min::Min,
    missing_count::MissingCount,
    missing_percent::MissingPercent,
    no_gaps::NoGaps,
    not_blank::NotBlank,
    not_null::NotNull,
    outliers::Outliers,
    percentile::Percentile,
    range::Range,
    regex::Regex,
    required_columns::RequiredColumns,
    row_count::RowCount,
    schema::SchemaRule,
    sql::Sql,
    stddev::Stddev,
    sum::Sum,
    sum_of::SumOf,
    r#type::Type,
    unique::Unique,
}

/// The rules that a program using the library has added.
static ADDED: RwLock<Vec<&'static Definition>> = RwLock::new(Vec::new());

/// All rules of the house, in the order of their names.
pub fn all() -> &'static [Definition] {
    ALL
}

/// The rule of a name.
pub fn find(name: &str) -> Option<&'static Definition> {
    let added = || added().into_iter().find(|definition| definition.name == name);
    ALL.iter().find(|definition| definition.name == name).or_else(added)
}

/// The names of all rules, those added by a program behind those of the house.
pub fn names() -> Vec<&'static str> {
    ALL.iter().chain(added()).map(|definition| definition.name).collect()
}

/// Adds a rule for the rest of the process, so that documents may name it. A check without a document is made
/// by [`Check::from_rule`](crate::Check::from_rule).
///
/// # Errors
/// The name is taken.
pub fn register(definition: &'static Definition) -> Result<(), String> {
    let mut added = ADDED.write().unwrap_or_else(PoisonError::into_inner);
    let mut taken = ALL.iter().chain(added.iter().copied());
    if taken.any(|known| known.name == definition.name) {
        return Err(format!("there is a rule `{}` already", definition.name));
    }
    added.push(definition);
    Ok(())
}

fn added() -> Vec<&'static Definition> {
    ADDED.read().unwrap_or_else(PoisonError::into_inner).clone()
}
