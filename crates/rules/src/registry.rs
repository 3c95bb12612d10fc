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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use crate::page;
    use crate::rule::Documents;
    use comporta_contract::node::Text;
    use comporta_contract::rules_file::{NoIncludes, RulesFile};
    use comporta_contract::{Diagnostics, RuleKind, Severity};

    #[test]
    fn names_are_snake_case_sorted_and_unique() {
        let names: Vec<&str> = ALL.iter().map(|definition| definition.name).collect();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        for name in names {
            let signs = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
            assert!(signs && !name.starts_with('_') && !name.contains("__"), "{name}");
        }
    }

    #[test]
    fn every_rule_has_a_file_of_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/rules");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                entry
                    .unwrap()
                    .file_name()
                    .to_str()?
                    .strip_suffix(".rs")
                    .map(str::to_string)
            })
            .filter(|name| name != "mod" && name != "tests")
            .collect();
        files.sort();
        for definition in ALL {
            assert!(
                files.iter().any(|file| file == definition.name),
                "{} has no file",
                definition.name
            );
        }
    }

    #[test]
    fn every_page_has_its_headings_in_order_and_a_summary_of_one_sentence() {
        for definition in ALL {
            let page = page::page(definition);
            let headings: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("## ")).collect();
            let known = ["Parameters", "Why it matters", "Example", "Holds", "Broken"];
            assert!(headings.starts_with(&known), "{}: {headings:?}", definition.name);
            let summary = page::summary(definition);
            assert!(
                summary.ends_with('.') && summary.len() <= 130,
                "{}: {summary}",
                definition.name
            );
        }
    }

    #[test]
    fn every_example_reads_without_a_word_of_complaint_and_is_of_its_rule() {
        for definition in ALL {
            for example in page::examples(definition) {
                let mut diagnostics = Diagnostics::default();
                let text = Text::new("example.yaml", example.yaml.clone());
                let file = RulesFile::parse(&text, &names(), &NoIncludes, &mut diagnostics);
                let documents = Documents::from(&file);
                let checks: Vec<Check> = file
                    .rules
                    .iter()
                    .flat_map(|call| Check::resolve(call, Severity::Fail, &documents, &mut diagnostics))
                    .collect();
                assert!(diagnostics.is_empty(), "{}: {diagnostics:?}", definition.name);
                assert!(
                    checks.iter().any(|check| check.definition.name == definition.name),
                    "{}",
                    definition.name
                );
            }
        }
    }

    #[test]
    fn the_tables_of_every_example_are_whole() {
        for definition in ALL {
            let examples = page::examples(definition);
            assert!(!examples.is_empty(), "{} has no example", definition.name);
            for example in examples {
                for table in [&example.holds, &example.broken] {
                    assert!(!table.columns.is_empty(), "{}", definition.name);
                    assert!(
                        table.rows.iter().all(|row| row.len() == table.columns.len()),
                        "{}: {table:?}",
                        definition.name
                    );
                }
                if definition.kind == Some(RuleKind::Row) {
                    let marks = example.broken.broken.unwrap_or_default();
                    assert!(marks.contains(&true), "{} shows no broken row", definition.name);
                }
            }
        }
    }
}
