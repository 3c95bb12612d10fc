use super::*;
use crate::scope::Scope;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use bigdecimal::BigDecimal;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use comporta_contract::{Diagnostic, Node, Text};
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr as _;

fn schema() -> Schema {
    let person = Fields::from(vec![Field::new("Name", DataType::Utf8, true)]);
    Schema::new(vec![
        Field::new("Amount", DataType::Int64, true),
        Field::new("quantity", DataType::Int64, true),
        Field::new("price", DataType::Float64, true),
        Field::new("total", DataType::Decimal128(12, 2), true),
        Field::new("id", DataType::Int64, true),
        Field::new("ID", DataType::Int64, true),
        Field::new("net amount", DataType::Int64, true),
        Field::new("a.b", DataType::Int64, true),
        Field::new("status", DataType::Utf8, true),
        Field::new("person", DataType::Struct(person), true),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, None), true),
        Field::new("größe", DataType::Int64, true),
    ])
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_312_000, 0).unwrap()
}

fn bind_in(text: &str, timezone: Tz) -> (Result<String, crate::BindError>, Vec<String>) {
    let (schema, tables) = (schema(), BTreeSet::new());
    let scope = Scope::new(&schema, timezone, now(), &tables, &[]);
    let bound = expression(text, &scope).map(|expr| expr.to_string());
    (bound, scope.used())
}

fn bind(text: &str) -> Result<String, crate::BindError> {
    bind_in(text, Tz::UTC).0
}

fn fault(text: &str) -> String {
    match bind(text) {
        Ok(bound) => panic!("{text} became {bound}"),
        Err(error) => format!("{} ({})", error.message, error.hint.unwrap_or_default()),
    }
}

#[test]
fn names_are_exact_or_the_single_one_that_differs_in_case() {
    let (bound, used) = bind_in("AMOUNT * quantity >= 0 AND größe > 1", Tz::UTC);
    assert_eq!(bound.unwrap(), "Amount * quantity >= Int64(0) AND größe > Int64(1)");
    assert_eq!(used, ["Amount", "quantity", "größe"]);
    assert_eq!(bind("id = ID").unwrap(), "id = ID");
    assert!(
        fault("Id = 1").contains("could be any of `id`, `ID`"),
        "{}",
        fault("Id = 1")
    );
    assert!(
        fault("amont > 1").contains("did you mean `Amount`?"),
        "{}",
        fault("amont > 1")
    );
}

#[test]
fn odd_names_stand_in_quotes_and_dots_reach_fields() {
    assert_eq!(bind("\"net amount\" > 0").unwrap(), "net amount > Int64(0)");
    assert_eq!(bind("a.b > 0").unwrap(), "a.b > Int64(0)");
    for text in ["person.name = 'x'", "Person['Name'] = 'x'", "\"person.Name\" = 'x'"] {
        assert_eq!(
            bind(text).unwrap(),
            "get_field(person, Utf8(\"Name\")) = Utf8(\"x\")",
            "{text}"
        );
    }
    assert!(
        fault("person.nme = 'x'").contains("did you mean `Name`?"),
        "{}",
        fault("person.nme = 'x'")
    );
    assert!(fault("price.x = 1").contains("no fields"), "{}", fault("price.x = 1"));
}

#[test]
fn decimals_are_exact() {
    assert_eq!(bind("total = 0.1").unwrap(), "total = Decimal128(0.1,1,1)");
    assert!(
        bind("Amount < 9007199254740992.5")
            .unwrap()
            .contains("Decimal128(9007199254740992.5,17,1)")
    );
}

#[test]
fn floats_are_compared_with_one_zero() {
    assert_eq!(bind("price >= 0").unwrap(), "price + Float64(0) >= Int64(0)");
    assert_eq!(bind("price >= 1").unwrap(), "price >= Int64(1)");
    assert_eq!(
        bind("price between 0 and 1").unwrap(),
        "price + Float64(0) BETWEEN Int64(0) AND Int64(1)"
    );
    assert_eq!(
        bind("price in (0, 1)").unwrap(),
        "price + Float64(0) IN ([Int64(0), Int64(1)])"
    );
    assert_eq!(bind("Amount >= 0").unwrap(), "Amount >= Int64(0)");
}

#[test]
fn the_clock_is_the_one_of_the_run() {
    let bound = bind("at <= now()").unwrap();
    assert_eq!(bound, "at <= TimestampNanosecond(1767312000000000000, None)");
    assert_eq!(bind("at <= current_timestamp").unwrap(), bound);
    let day = |timezone| bind_in("at < current_date", timezone).0.unwrap();
    assert_eq!(day(Tz::UTC), "at < Date32(\"2026-01-02\")");
    assert_eq!(day(Tz::America__Sao_Paulo), "at < Date32(\"2026-01-01\")");
    assert_eq!(bind("at < today()").unwrap(), day(Tz::UTC));
}

#[test]
fn an_expression_looks_at_one_row_and_says_true_or_false() {
    assert!(fault("random() > 0.5").contains("another answer each time"));
    assert!(fault("uuid() = 'x'").contains("another answer each time"));
    assert!(fault("sum(Amount) > 0").contains("rule `sql`"));
    assert!(fault("row_number() over (order by id) > 0").contains("rule `sql`"));
    assert!(fault("Amount in (select 1)").contains("rule `sql`"));
    assert!(fault("exists (select 1)").contains("rule `sql`"));
    assert!(fault("read_csv('x.csv') = 1").contains("beside the batch"));
    assert!(fault("lowr(status) = 'x'").contains("did you mean `lower`?"));
    assert!(fault("Amount + 1").contains("int64, not true or false"));
    assert!(fault("Amount > $limit").contains("`$limit`"));
    assert!(fault("Amount > 0 Amount").contains("left over"));
    assert!(fault("").contains("expected: an expression"), "{}", fault(""));
}

#[test]
fn words_in_strings_and_comments_do_not_trip_anything() {
    assert!(bind("status <> 'drop table x; select random()' -- copy to").is_ok());
    assert!(bind("status = 'it''s' /* select */").is_ok());
}

#[test]
fn text_out_of_all_proportion_is_refused_and_what_is_let_through_has_room() {
    let deep = format!("{}1{} = 1", "(".repeat(5_000), ")".repeat(5_000));
    assert!(fault(&deep).contains("too deeply"), "{}", fault(&deep));
    assert!(fault(&vec!["id = 1"; 1_000].join(" or ")).contains("too long"));
    let widest = vec!["id > 1"; OPERATORS_MAX].join(" or ");
    let thread = std::thread::Builder::new().stack_size(2 << 20);
    thread
        .spawn(move || assert!(bind(&widest).is_ok()))
        .unwrap()
        .join()
        .unwrap();
    let list = format!("id in ({})", vec!["1"; 20_000].join(","));
    assert!(bind(&list).is_ok());
}

fn diagnostic(yaml: &str) -> Diagnostic {
    let text = Text::new("rules.yml", yaml);
    let mut diagnostics = Default::default();
    let node: Node = Node::parse(&text, &mut diagnostics).unwrap();
    check_expression(node.get("expression").unwrap()).unwrap_err()
}

#[test]
fn a_fault_is_shown_at_its_place_in_the_document() {
    for yaml in [
        "expression: amount >= >= 0",
        "expression: 'amount >= >= 0'",
        "expression: |\n  amount > 0 and\n  amount >= >= 0\n",
    ] {
        let place = diagnostic(yaml).place.unwrap();
        assert_eq!(place.span.start, yaml.rfind(">=").unwrap(), "{yaml}");
    }
    let yaml = "expression: amount > 0 and random() > 1";
    assert_eq!(diagnostic(yaml).place.unwrap().span.start, yaml.find("random").unwrap());
    assert!(!diagnostic(yaml).message.contains("Line:"));
}

fn query(text: &str) -> Result<Query, Fault> {
    Query::parse(text, &["customers", "Order Lines"])
}

#[test]
fn a_query_only_reads_the_batch_and_declared_tables() {
    const HOSTILE: &[(&str, &str)] = &[
        ("DROP TABLE batch", "sql-not-a-query"),
        ("SELECT 1; DROP TABLE batch", "sql-several"),
        ("SELECT 1; SELECT 2", "sql-several"),
        ("COPY batch TO '/tmp/x.csv'", "sql-not-a-query"),
        (
            "COPY (SELECT * FROM batch) TO '/tmp/x.parquet' STORED AS PARQUET",
            "sql-not-a-query",
        ),
        (
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '/etc/passwd'",
            "sql-not-a-query",
        ),
        ("CREATE TABLE t AS SELECT * FROM batch", "sql-not-a-query"),
        ("INSERT INTO batch VALUES (1)", "sql-not-a-query"),
        ("DELETE FROM batch", "sql-not-a-query"),
        ("UPDATE batch SET x = 1", "sql-not-a-query"),
        (
            "MERGE INTO batch USING customers ON true WHEN MATCHED THEN DELETE",
            "sql-not-a-query",
        ),
        ("TRUNCATE TABLE batch", "sql-not-a-query"),
        ("SET datafusion.execution.batch_size = 1", "sql-not-a-query"),
        ("SHOW TABLES", "sql-not-a-query"),
        ("EXPLAIN SELECT 1", "sql-not-a-query"),
        ("ATTACH 'x.db' AS y", "sql-not-a-query"),
        ("INSTALL httpfs", "sql-not-a-query"),
        ("PRAGMA database_list", "sql-not-a-query"),
        (
            "WITH x AS (DELETE FROM batch RETURNING *) SELECT * FROM x",
            "sql-not-a-query",
        ),
        (
            "WITH x AS (INSERT INTO batch VALUES (1)) SELECT * FROM x",
            "sql-not-a-query",
        ),
        ("SELECT * INTO t FROM batch", "sql-not-a-query"),
        ("SELECT * FROM '/etc/passwd'", "sql-unknown-table"),
        ("SELECT * FROM 'x.csv'", "sql-unknown-table"),
        ("SELECT * FROM \"data/x.parquet\"", "sql-unknown-table"),
        ("SELECT * FROM `x.csv`", "sql-unknown-table"),
        ("SELECT * FROM suppliers", "sql-unknown-table"),
        ("SELECT * FROM information_schema.tables", "sql-unknown-table"),
        ("SELECT * FROM other.batch", "sql-unknown-table"),
        (
            "SELECT count(*) = 0 FROM batch WHERE id IN (SELECT id FROM secrets)",
            "sql-unknown-table",
        ),
        (
            "SELECT (SELECT count(*) FROM secrets) = 0 FROM batch",
            "sql-unknown-table",
        ),
        ("SELECT 1 FROM batch UNION SELECT 1 FROM secrets", "sql-unknown-table"),
        ("SELECT * FROM read_csv('x.csv')", "sql-table-function"),
        ("SELECT * FROM read_parquet('s3://x/*')", "sql-table-function"),
        ("SELECT * FROM glob('*')", "sql-table-function"),
        ("SELECT * FROM generate_series(1, 1000000000)", "sql-table-function"),
        ("SELECT * FROM TABLE(read_csv('x'))", "sql-table-function"),
        ("SELECT * FROM batch, LATERAL flatten(x)", "sql-table-function"),
        ("SELECT read_text('/etc/passwd') = '' FROM batch", "sql-outside"),
        ("SELECT pg_read_file('/etc/passwd') = '' FROM batch", "sql-outside"),
        ("SELECT getenv('HOME') = '' FROM batch", "sql-outside"),
        ("SELECT random() > 0.5 FROM batch", "sql-volatile"),
        ("SELECT * FROM batch TABLESAMPLE BERNOULLI (10)", "sql-clause"),
        ("SELECT * FROM batch FOR UPDATE", "sql-clause"),
        ("SELECT * FROM batch WHERE id > $1", "sql-placeholder"),
        ("TABLE secrets", "sql-syntax"),
        ("SELEC 1", "sql-syntax"),
        ("SELECT * FROM", "sql-syntax"),
        ("", "sql-syntax"),
        (";", "sql-syntax"),
    ];
    for (text, code) in HOSTILE {
        match query(text) {
            Ok(query) => panic!("{text} was let through as {}", query.text()),
            Err(fault) => assert_eq!(fault.code, *code, "{text}: {fault:?}"),
        }
    }
}

#[test]
fn harmless_queries_are_let_through() {
    const HARMLESS: &[&str] = &[
        "SELECT abs(sum(debit) - sum(credit)) < 0.01 FROM batch",
        "select count(*) = 0 from BATCH where note = 'DROP TABLE x; COPY y TO z'",
        "SELECT 1 = 1 -- ; DROP TABLE batch",
        "SELECT /* read_csv('x') */ true;",
        "WITH big AS (SELECT * FROM batch WHERE amount > 10), t AS (SELECT * FROM big) SELECT count(*) > 0 FROM t",
        "SELECT b.* FROM batch b LEFT JOIN Customers c ON b.customer_id = c.id WHERE c.id IS NULL",
        "SELECT count(*) = 0 FROM batch JOIN \"Order Lines\" USING (order_id)",
        "SELECT x FROM (SELECT amount AS x FROM batch) AS d ORDER BY x LIMIT 5",
        "SELECT id FROM batch GROUP BY id HAVING count(*) > 1",
        "SELECT sum(x) OVER (PARTITION BY y) FROM batch",
        "SELECT 1 FROM batch UNION ALL SELECT 2 FROM customers",
        "SELECT \"copy\", \"drop table\" FROM batch",
        "SELECT max(at) > now() - INTERVAL '1 day' FROM batch",
    ];
    for text in HARMLESS {
        if let Err(fault) = query(text) {
            panic!("{text}: {fault:?}");
        }
    }
}

#[test]
fn a_query_of_the_shape_of_a_filter_speaks_of_rows() {
    let condition = |text: &str| query(text).unwrap().row_condition().map(|condition| condition.text());
    assert_eq!(
        condition("SELECT * FROM batch WHERE amount < 0").as_deref(),
        Some("amount < 0")
    );
    assert_eq!(
        condition("select * from Batch as b where b.amount < 0 and B.x.y = 1").as_deref(),
        Some("amount < 0 AND x.y = 1")
    );
    for text in [
        "SELECT * FROM batch",
        "SELECT id FROM batch WHERE amount < 0",
        "SELECT *, 1 FROM batch WHERE amount < 0",
        "SELECT * EXCEPT (id) FROM batch WHERE amount < 0",
        "SELECT DISTINCT * FROM batch WHERE amount < 0",
        "SELECT * FROM batch WHERE amount < 0 LIMIT 5",
        "SELECT * FROM batch WHERE amount < 0 ORDER BY id",
        "SELECT * FROM batch WHERE amount < (SELECT avg(amount) FROM batch)",
        "SELECT * FROM batch WHERE id IN (SELECT id FROM customers)",
        "SELECT * FROM batch, customers WHERE amount < 0",
        "SELECT * FROM customers WHERE amount < 0",
        "WITH batch AS (SELECT 1 AS amount) SELECT * FROM batch WHERE amount < 0",
        "SELECT * FROM batch WHERE amount < 0 UNION ALL SELECT * FROM batch WHERE amount > 9",
        "SELECT * FROM batch WHERE amount < 0 GROUP BY ALL",
    ] {
        assert_eq!(condition(text), None, "{text}");
    }
}

fn prepared(text: &str) -> Result<String, String> {
    let tables = BTreeMap::from([
        ("customers".to_string(), vec!["Id".to_string(), "Country".into()]),
        ("Order Lines".to_string(), vec!["order_id".into()]),
    ]);
    prepare_query(text, &["Amount", "id", "ID", "customer_id", "a.b", "person"], &tables).map_err(|error| error.message)
}

#[test]
fn names_of_a_query_are_written_out_exactly() {
    assert_eq!(
        prepared("select sum(AMOUNT) > 0 from BATCH").unwrap(),
        "SELECT sum(\"Amount\") > 0 FROM \"batch\""
    );
    assert_eq!(
        prepared("SELECT b.* FROM batch b LEFT JOIN CUSTOMERS c ON b.Customer_Id = C.ID WHERE country IS NULL")
            .unwrap(),
        "SELECT \"b\".* FROM \"batch\" b LEFT JOIN \"customers\" c ON \"b\".\"customer_id\" = \"c\".\"Id\" \
         WHERE \"Country\" IS NULL"
    );
    assert_eq!(
        prepared("SELECT a.b, person.name FROM batch").unwrap(),
        "SELECT \"a.b\", \"person\"['name'] FROM \"batch\""
    );
    assert_eq!(
        prepared("WITH t AS (SELECT amount AS x FROM batch) SELECT count(x) = 0 FROM T").unwrap(),
        "WITH t AS (SELECT \"Amount\" AS x FROM \"batch\") SELECT count(x) = 0 FROM \"t\""
    );
    assert_eq!(
        prepared("SELECT id FROM batch WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = customer_id)").unwrap(),
        "SELECT \"id\" FROM \"batch\" WHERE EXISTS (SELECT 1 FROM \"customers\" c WHERE \"c\".\"Id\" = \"customer_id\")"
    );
    assert!(
        prepared("SELECT Id FROM batch")
            .unwrap_err()
            .contains("could be any of `id`, `ID`")
    );
    assert!(prepared("SELECT * FROM secrets").is_err());
}

#[test]
fn a_query_reads_the_clock_of_the_run() {
    let (schema, tables) = (schema(), BTreeSet::new());
    let scope = Scope::new(&schema, Tz::UTC, now(), &tables, &[]);
    let text = query("SELECT max(at) > now() - INTERVAL '1 day' AND max(d) <= current_date FROM batch").unwrap();
    assert_eq!(
        text.text_at(&scope),
        "SELECT max(at) > arrow_cast('2026-01-02T00:00:00.000000000', 'Timestamp(Nanosecond, None)') - \
         INTERVAL '1 day' AND max(d) <= CAST('2026-01-02' AS DATE) FROM batch"
    );
}

#[test]
fn parameters_become_columns_and_literals_and_never_text() {
    let bindings: Bindings = [
        ("column".to_string(), Binding::Column("net amount".into())),
        ("limit".into(), Binding::Number(BigDecimal::from_str("-1.50").unwrap())),
        ("word".into(), Binding::Text("x' OR 1=1 --".into())),
        ("on".into(), Binding::Boolean(true)),
    ]
    .into_iter()
    .collect();
    let filled = fill_expression("$column >= $limit and status <> $word and $on", &bindings).unwrap();
    assert_eq!(
        filled.text(),
        "\"net amount\" >= (-1.5) AND status <> 'x'' OR 1=1 --' AND true"
    );
    let unknown = fill_expression("$colum >= 0", &bindings).unwrap_err();
    assert_eq!(unknown.hint.as_deref(), Some("did you mean `$column`?"));
    let query = fill_query("SELECT max($column) < $limit FROM batch", &bindings, &[] as &[&str]).unwrap();
    assert_eq!(query.text(), "SELECT max(\"net amount\") < (-1.5) FROM batch");
    assert!(fill_query("SELECT * FROM $word", &bindings, &[] as &[&str]).is_err());
}
