//! What documents can get wrong in the rules on presence, identity and domain, and what only the schema shows.

use crate::check::{Check, Surroundings};
use crate::measure::{KeyCounts, Measure, MeasureValue};
use crate::registry;
use crate::rule::{Bound, Documents, Holds, Reference};
use arrow::datatypes::{DataType, Field, Schema};
use chrono::{DateTime, Utc};
use comporta_contract::check::CheckCall;
use comporta_contract::node::Text;
use comporta_contract::threshold::Metric;
use comporta_contract::{Diagnostics, Literal, Node, Severity};
use std::collections::BTreeSet;

fn read(yaml: &str) -> (Vec<Check>, Diagnostics) {
    let mut diagnostics = Diagnostics::default();
    let node = Node::parse(&Text::new("rules.yaml", yaml), &mut diagnostics).unwrap();
    let documents = Documents {
        tables: vec!["customers".into()],
        ..Documents::default()
    };
    let calls = CheckCall::parse(&node, &registry::names(), &mut diagnostics);
    let checks = calls
        .iter()
        .flat_map(|call| Check::resolve(call, Severity::Fail, &documents, &mut diagnostics))
        .collect();
    (checks, diagnostics)
}

fn checks(yaml: &str) -> Vec<Check> {
    let (checks, diagnostics) = read(yaml);
    assert!(diagnostics.is_empty(), "{yaml}: {diagnostics:?}");
    checks
}

fn schema() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Int64, true),
        Field::new("small", DataType::Int8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new(
            "code",
            DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)),
            true,
        ),
        Field::new("rate", DataType::Float64, true),
        Field::new("day", DataType::Date32, true),
    ])
}

fn bind(yaml: &str) -> Result<Bound, String> {
    let surroundings = Surroundings {
        timezone: chrono_tz::Tz::UTC,
        now: DateTime::<Utc>::UNIX_EPOCH,
        future_tolerance_seconds: 300,
        tables: BTreeSet::from(["customers".to_string()]),
    };
    let checks = checks(yaml);
    let bound = checks[0].bind(&schema(), &surroundings).bound;
    bound.map_err(|error| format!("{} ({})", error.message, error.hint.unwrap_or_default()))
}

fn expr(yaml: &str) -> String {
    match bind(yaml) {
        Ok(Bound::Row(row)) => match row.holds {
            Holds::Expr(expr) => expr.to_string(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

#[test]
fn faults_of_documents_are_found_at_their_places() {
    for (yaml, code, part) in [
        (
            "accepted_values: { status: [open, null] }",
            "null-in-list",
            "cannot hold null",
        ),
        ("accepted_values: { status: [] }", "empty-list", "is empty"),
        ("accepted_values: { status: open }", "wrong-type", "a list of values"),
        ("accepted_values: [status]", "wrong-type", "a mapping from a column"),
        ("forbidden_values: { status: [~] }", "null-in-list", "cannot hold null"),
        (
            "regex: { column: sku, pattern: 'a(?=b)' }",
            "regex-syntax",
            "look-around is not supported, at character 2",
        ),
        (
            r"regex: { column: sku, pattern: '(a)\1' }",
            "regex-syntax",
            "back-references",
        ),
        ("regex: { pattern: a }", "no-columns", "no column"),
        ("regex: { column: sku }", "invalid-value", "`pattern` is missing"),
        (
            "format: { column: mail, is: emial }",
            "unknown-format",
            "`emial` is no format",
        ),
        ("format: { column: mail, is: [email] }", "wrong-type", "expected text"),
        ("format: { column: mail, pattern: email }", "unknown-key", "`pattern`"),
        (
            "type: { column: mail, is: strng }",
            "unknown-type",
            "`strng` is no type",
        ),
        ("length: { column: name }", "range-without-bound", "neither"),
        ("length: { column: name, min: 3, max: 2 }", "range-inverted", "above"),
        ("length: { column: name, min: -3 }", "wrong-type", "whole number"),
        ("invalid_count: { column: age }", "no-condition", "nothing says"),
        (
            "invalid_count: { column: age, values: [1, null] }",
            "null-in-list",
            "null",
        ),
        (
            "invalid_percent: { column: age, regex: '[' }",
            "regex-syntax",
            "character",
        ),
        (
            "invalid_percent: { column: age, format: nix }",
            "unknown-format",
            "`nix`",
        ),
        (
            "invalid_percent: { column: age, min: 3, max: 2 }",
            "range-inverted",
            "above",
        ),
        (
            "invalid_percent: { column: age, length: 3, min_length: 2 }",
            "length",
            "beside",
        ),
        ("foreign_key: { column: a, references: {} }", "reference", "exactly one"),
        (
            "foreign_key: { column: a, references: { table: customers, path: x } }",
            "reference",
            "exactly one",
        ),
        (
            "foreign_key: { column: a, references: { table: custmers } }",
            "unknown-table",
            "not declared",
        ),
        (
            "foreign_key: { columns: [a, b], references: { table: customers, columns: [id] } }",
            "key-width",
            "2 columns",
        ),
        (
            "foreign_key: { columns: [a, b], references: { values: [1, 2] } }",
            "key-width",
            "2 parts",
        ),
        (
            "foreign_key: { column: a, references: { values: [null] } }",
            "null-in-list",
            "null",
        ),
        (
            "join_cardinality: { column: a, with: { table: nobody }, is: '1:1' }",
            "unknown-table",
            "not declared",
        ),
        (
            "join_cardinality: { column: a, with: { table: customers }, is: '2:1' }",
            "invalid-value",
            "2:1",
        ),
        ("duplicate_count: [a, a]", "repeated-column", "twice"),
        ("distinct_count: a", "threshold-missing", "without a threshold"),
        ("missing_percent: []", "no-columns", "empty"),
        ("missing_count: a\nmust_be: < 5m", "threshold-unit", "does not fit"),
    ] {
        let (_, diagnostics) = read(yaml);
        let found: Vec<String> = diagnostics
            .0
            .iter()
            .map(|d| format!("{} {}", d.code, d.message))
            .collect();
        assert!(
            diagnostics
                .0
                .iter()
                .any(|d| d.code == code && d.message.contains(part) && d.place.is_some()),
            "{yaml}: {found:?}"
        );
    }
}

#[test]
fn what_only_the_schema_shows_is_the_error_of_the_check() {
    for (yaml, part) in [
        ("not_blank: nmae", "did you mean `name`?"),
        ("accepted_values: { id: ['1'] }", "write it without quotes: 1"),
        ("accepted_values: { id: [1.5] }", "for column `id`"),
        ("accepted_values: { name: [1] }", "write it in quotes: \"1\""),
        (
            "regex: { column: id, pattern: a }",
            "`regex` is for text, column `id` is int64",
        ),
        ("length: { column: day, min: 1 }", "column `day` is date"),
        ("format: { column: id, is: cpf }", "declare `id` as string"),
        ("invalid_count: { column: id, regex: a }", "is for text"),
        ("invalid_count: { column: name, min: 1 }", "no value of type string"),
        (
            "foreign_key: { column: id, references: { values: [a] } }",
            "for column `id`",
        ),
        ("missing_count: rate\nnan: fail", "`nan: fail` has no meaning"),
        (
            "foreign_key: { column: rate, references: { values: [1] } }\nnan: fail",
            "has no meaning",
        ),
    ] {
        let error = bind(yaml).unwrap_err();
        assert!(error.contains(part), "{yaml}: {error}");
    }
}

#[test]
fn lists_are_typed_by_the_column_and_their_order_is_no_matter() {
    assert_eq!(
        expr("accepted_values: { small: [2, 1, 2, 300] }"),
        "small IN ([Int8(1), Int8(2)])"
    );
    assert_eq!(
        expr("forbidden_values: { name: [b, a] }"),
        r#"name NOT IN ([Utf8("a"), Utf8("b")])"#
    );
    let parameters = |yaml: &str| checks(yaml)[0].rule.parameters();
    assert_eq!(
        parameters("accepted_values: { a: [1, 2] }"),
        parameters("accepted_values: { a: [2, 1.0] }")
    );
    assert!(
        expr("accepted_values: { rate: [0] }").contains("Float64(-0)"),
        "both zeros are zero"
    );
    // No value of the type is in the list: every known value breaks one rule and none the other.
    assert!(expr("accepted_values: { small: [300] }").contains("THEN Boolean(false)"));
    assert!(expr("forbidden_values: { small: [300] }").contains("THEN Boolean(true)"));
}

#[test]
fn several_columns_are_one_check_each_or_one_key() {
    assert_eq!(checks("not_blank: [a, b]").len(), 2);
    assert_eq!(checks("missing_count: [a, b]").len(), 2);
    assert_eq!(checks("accepted_values: { a: [1], b: [x] }").len(), 2);
    assert_eq!(checks("regex: { columns: [a, b], pattern: x }").len(), 2);
    assert_eq!(checks("invalid_count: { columns: [a, b], min: 1 }").len(), 2);
    assert_eq!(checks("duplicate_count: [a, b]")[0].rule.columns(), ["a", "b"]);
    assert_eq!(
        checks("foreign_key: { columns: [a, b], references: { table: customers } }").len(),
        1
    );
}

#[test]
fn references_default_to_the_same_names_and_keep_numbers_exact() {
    let holds = |yaml: &str| match bind(yaml) {
        Ok(Bound::Row(row)) => row.holds,
        other => panic!("{other:?}"),
    };
    let Holds::Member { of, .. } = holds("foreign_key: { column: id, references: { table: customers } }") else {
        panic!("no member")
    };
    assert_eq!(
        of,
        Reference::Table {
            table: "customers".into(),
            columns: vec!["id".into()]
        }
    );
    let yaml = "foreign_key: { columns: [id, name], references: { values: [[9007199254740993, b], [1, a]] } }";
    let Holds::Member { of, .. } = holds(yaml) else {
        panic!("no member")
    };
    let number = |text: &str| Literal::Number(text.parse().unwrap());
    let text = |text: &str| Literal::Text(text.into());
    assert_eq!(
        of,
        Reference::Values(vec![
            vec![number("1"), text("a")],
            vec![number("9007199254740993"), text("b")]
        ])
    );
}

#[test]
fn a_type_that_the_column_has_is_asked_of_its_cells_and_another_is_broken_everywhere() {
    assert_eq!(expr("type: { column: id, is: int }"), r#"CellParses { column: "id" }"#);
    assert_eq!(expr("type: { column: name, is: int }"), "parses(name)");
    assert!(expr("type: { column: day, is: int }").contains("THEN Boolean(false)"));
    let Ok(Bound::Row(row)) = bind("type: { column: small, is: int64 }") else {
        panic!("no row check")
    };
    assert_eq!(row.reason, "small: expected int64, found int8");
    assert_eq!(
        expr("format: { column: day, is: date }"),
        r#"CellParses { column: "day" }"#
    );
    assert_eq!(expr("format: { column: code, is: date }"), "has_format(code)");
}

#[test]
fn nan_fails_a_row_rule_that_says_so_whatever_else_it_says() {
    let plain = expr("forbidden_values: { rate: [1] }");
    let strict = expr("forbidden_values: { rate: [1] }\nnan: fail");
    assert_eq!(strict, format!("{plain} AND isnan(rate) IS NOT TRUE"));
    assert_eq!(
        expr("not_null: id\nnan: fail"),
        "id IS NOT NULL",
        "integers have no NaN"
    );
}

#[test]
fn counted_rows_are_measured_once_and_judged_with_their_words() {
    let Ok(Bound::Table(missing)) = bind("missing_percent: name") else {
        panic!("no table check")
    };
    assert!(matches!(missing.measures.as_slice(), [Measure::Matches(expr)] if expr.to_string() == "name IS NULL"));
    let finding = (missing.judge)(&[MeasureValue::Matches {
        matched: 3,
        unknown: 0,
        rows: 7,
    }]);
    assert_eq!(finding.message, "3 of 7 rows have no `name`");
    assert_eq!(finding.metric, Some(Metric::Percent { part: 3, whole: 7 }));

    let Ok(Bound::Table(repeated)) = bind("duplicate_count: [id, name]\nof: known") else {
        panic!("no table check")
    };
    let counts = KeyCounts {
        rows: 8,
        unknown: 2,
        distinct: 5,
        repeated_keys: 2,
        repeated_rows: 5,
    };
    let finding = (repeated.judge)(&[MeasureValue::Keys(counts)]);
    assert_eq!(finding.metric, Some(Metric::Rows { part: 5, whole: 8 }));
    assert_eq!(finding.details["surplus_rows"], 3);
    assert_eq!(finding.message, "5 of 8 rows share their `id`, `name` with another");
    assert!(
        (repeated.judge)(&[MeasureValue::Error("too large".into())])
            .error
            .is_some()
    );
}

#[test]
fn without_a_threshold_nothing_may_be_missing_and_with_a_warning_alone_only_that_counts() {
    let must_be = |yaml: &str| checks(yaml)[0].must_be.as_ref().map(|threshold| threshold.text.clone());
    assert_eq!(must_be("missing_count: a").as_deref(), Some("= 0"));
    assert_eq!(
        must_be("invalid_count: { column: a, min: 0 }\nmust_be: < 3").as_deref(),
        Some("< 3")
    );
    assert_eq!(must_be("missing_count: a\nwarn: < 3"), None);
}
