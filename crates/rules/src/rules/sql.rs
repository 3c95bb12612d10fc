//! `sql`

use crate::measure::{Measure, MeasureValue};
use crate::rule::{BindError, Bound, Documents, Family, Finding, Holds, RowCheck, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::sql::{Expression, Query, check_query};
use comporta_contract::nearest::suggest;
use comporta_contract::threshold::{Metric, MetricKind};
use comporta_contract::{Diagnostic, Diagnostics, Dimension, Node, RuleKind, Value as NodeValue};
use datafusion_common::ScalarValue;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// A query over the batch says that all is well, or which rows are not.
///
/// `sql: SELECT …` (or `query:`) gives one row with one column, true or false; NULL is `no_data`, any other shape
/// is an error. `failed_rows:` gives the rows that break the promise. Where it has the form
/// `SELECT * FROM batch WHERE …` it speaks of rows, and may set them aside; a row on which the condition is NULL is
/// unknown. Any other `failed_rows` judges the batch: `must_be` and `warn` speak of the number of rows, without
/// `must_be` it is `= 0`.
///
/// A query only reads: one SELECT over `batch` and the tables declared under `tables:`, no files, no functions
/// that look outside. `now()` is the one clock reading of the run.
///
/// ## Why it matters
/// Some promises speak of the batch as a whole: debits equal credits, every order has a line.
///
/// ## Example
/// ```yaml
/// - sql: SELECT abs(sum(debit) - sum(credit)) < 0.01 FROM batch
///   name: ledger balances
/// ```
///
/// ## Holds
/// | debit | credit |
/// |-------|--------|
/// | 10.5  | 4.25   |
/// | null  | 6.25   |
///
/// ## Broken
/// | debit | credit |
/// |-------|--------|
/// | 10.5  | 4.25   |
/// | null  | 6      |
#[derive(Debug, Clone, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum SqlParameters {
    /// A query for one boolean.
    Text(String),
    /// A query for one boolean, or for the rows that break the promise.
    Named(SqlNamed),
}

/// One of the two.
#[derive(Debug, Clone, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is used")]
pub struct SqlNamed {
    /// A query for one boolean.
    query: Option<String>,
    /// A query for the rows that break the promise.
    failed_rows: Option<String>,
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Sql {
    body: Body,
}

impl RuleDefinition for Sql {
    const NAME: &'static str = "sql";
    const FAMILY: Family = Family::Free;
    const KIND: Option<RuleKind> = None;
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        Self::parse_within(node, &Documents::default(), diagnostics)
    }

    fn parse_within(node: &Node, documents: &Documents, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some((text, failed_rows)) = query_of(node, diagnostics) else {
            return Vec::new();
        };
        match check_query(text, &documents.tables) {
            Ok(query) => vec![Sql {
                body: if failed_rows {
                    Body::failed_rows(query)
                } else {
                    Body::Scalar(query)
                },
            }],
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                Vec::new()
            }
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        SqlParameters::json_schema(generator)
    }
}

/// The query's text, and whether it is one for failed rows.
fn query_of<'n>(node: &'n Node, diagnostics: &mut Diagnostics) -> Option<(&'n Node, bool)> {
    let mut found = None;
    let entries = match &node.value {
        NodeValue::Text(_) => return Some((node, false)),
        NodeValue::Map(entries) => entries,
        _ => {
            diagnostics.push(
                node.error(
                    "wrong-type",
                    format!("a query in text is expected, not {}", node.kind()),
                )
                .hint("write `sql: SELECT …` or `sql: { failed_rows: SELECT … }`"),
            );
            return None;
        }
    };
    for entry in entries {
        let failed_rows = match entry.key.as_str() {
            "failed_rows" => true,
            "query" => false,
            key => {
                let unknown = Diagnostic::error("unknown-key", format!("unknown key `{key}`"));
                diagnostics.push(
                    unknown
                        .at(&node.text, entry.key_span)
                        .hint(suggest(key, &["query", "failed_rows"])),
                );
                continue;
            }
        };
        if found.is_some() {
            diagnostics.push(
                node.error("sql-several", "a check has one of `query` and `failed_rows`")
                    .hint("write two checks"),
            );
            return None;
        }
        if entry.value.as_text().is_none() {
            let kind = entry.value.kind();
            diagnostics.push(
                entry
                    .value
                    .error("wrong-type", format!("a query in text is expected, not {kind}")),
            );
            return None;
        }
        found = Some((&entry.value, failed_rows));
    }
    if found.is_none() && entries.is_empty() {
        diagnostics.push(
            node.error("sql-several", "there is no query")
                .hint("write `sql: SELECT …`"),
        );
    }
    found
}

impl Rule for Sql {
    fn columns(&self) -> Vec<String> {
        Vec::new()
    }

    fn parameters(&self) -> Value {
        self.body.parameters()
    }

    fn kind(&self) -> Option<RuleKind> {
        Some(self.body.kind())
    }

    fn metric(&self) -> Option<MetricKind> {
        self.body.metric()
    }

    fn default_must_be(&self) -> Option<&'static str> {
        self.body.default_must_be()
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        self.body.bind(scope, None)
    }
}

/// What free text promises, for `expression`, `sql` and the templates of `custom`.
#[derive(Debug, Clone)]
pub(crate) enum Body {
    /// True of every row.
    Holds(Expression),
    /// True of no row.
    Violates(Expression),
    /// Gives one boolean.
    Scalar(Query),
    /// Gives the rows that break the promise.
    FailedRows(Query),
}

impl Body {
    /// A query for failed rows: a row rule where it is no more than a filter.
    pub(crate) fn failed_rows(query: Query) -> Self {
        match query.row_condition() {
            Some(condition) => Body::Violates(condition),
            None => Body::FailedRows(query),
        }
    }

    pub(crate) fn kind(&self) -> RuleKind {
        match self {
            Body::Holds(_) | Body::Violates(_) => RuleKind::Row,
            Body::Scalar(_) | Body::FailedRows(_) => RuleKind::Table,
        }
    }

    pub(crate) fn metric(&self) -> Option<MetricKind> {
        matches!(self, Body::FailedRows(_)).then_some(MetricKind::Count)
    }

    pub(crate) fn default_must_be(&self) -> Option<&'static str> {
        matches!(self, Body::FailedRows(_)).then_some("= 0")
    }

    /// What it says, without blanks and comments.
    pub(crate) fn parameters(&self) -> Value {
        match self {
            Body::Holds(expression) => json!({ "expression": expression.text() }),
            Body::Violates(condition) => json!({ "failed_rows": condition.text() }),
            Body::Scalar(query) => json!({ "query": query.text() }),
            Body::FailedRows(query) => json!({ "failed_rows": query.text() }),
        }
    }

    /// Against a schema; `message` is what a template says when it breaks.
    pub(crate) fn bind(&self, scope: &Scope, message: Option<&str>) -> Result<Bound, BindError> {
        if self.kind() == RuleKind::Table && !scope.missing.is_empty() {
            return Err(BindError::new("`missing` has no columns to speak of beside a query")
                .hint("write the markers into the query: `nullif(column, 'N/A')`"));
        }
        let row = |holds, reason: String| {
            Bound::Row(RowCheck {
                holds: Holds::Expr(holds),
                reason: message.map_or(reason, str::to_string),
            })
        };
        match self {
            Body::Holds(expression) => Ok(row(
                expression.bind(scope)?,
                format!("`{}` is not true", expression.text()),
            )),
            Body::Violates(condition) => {
                let broken = condition.bind(scope)?;
                // NOT keeps an unknown condition unknown.
                Ok(row(!broken, format!("`{}` is true", condition.text())))
            }
            Body::Scalar(query) => Ok(table(Measure::ScalarQuery(query.text_at(scope)), scalar, message)),
            Body::FailedRows(query) => Ok(table(Measure::FailedRows(query.text_at(scope)), failures, message)),
        }
    }
}

fn table(measure: Measure, judge: fn(&[MeasureValue]) -> Finding, message: Option<&str>) -> Bound {
    let message = message.map(str::to_string);
    Bound::Table(TableCheck {
        measures: vec![measure],
        judge: Arc::new(move |values| {
            let mut finding = judge(values);
            if finding.failed_count > 0
                && let Some(message) = &message
            {
                finding.message.clone_from(message);
            }
            finding
        }),
    })
}

fn scalar(values: &[MeasureValue]) -> Finding {
    let [MeasureValue::Scalar { rows, columns, value }] = values else {
        return Finding::unexpected(values);
    };
    if (*rows, *columns) != (1, 1) {
        let count = |number: u64, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
        return Finding::error(format!(
            "the query gave {} and {}; one of each is needed",
            count(*rows, "row"),
            count(*columns as u64, "column")
        ));
    }
    match value {
        Some(ScalarValue::Boolean(Some(truth))) => Finding {
            broken: Some(!truth),
            failed_count: u64::from(!truth),
            message: format!("the query says {truth}"),
            ..Finding::default()
        },
        Some(ScalarValue::Boolean(None) | ScalarValue::Null) => Finding {
            message: "the query gave NULL".into(),
            ..Finding::default()
        },
        Some(other) => Finding::error(format!(
            "the query gave {}, not true or false",
            crate::literals::type_name(&other.data_type())
        )),
        None => Finding::error("the query gave no value"),
    }
}

fn failures(values: &[MeasureValue]) -> Finding {
    let [MeasureValue::Failures(rows)] = values else {
        return Finding::unexpected(values);
    };
    Finding {
        metric: Some(Metric::Number((*rows).into())),
        failed_count: *rows,
        message: match rows {
            0 => "the query gave no failed rows".into(),
            1 => "the query gave 1 failed row".into(),
            rows => format!("the query gave {rows} failed rows"),
        },
        ..Finding::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta_contract::Text;

    fn rule(yaml: &str) -> Result<Sql, Diagnostics> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        let documents = Documents {
            tables: vec!["customers".into()],
            ..Documents::default()
        };
        match Sql::parse_within(&node, &documents, &mut diagnostics).pop() {
            Some(rule) if diagnostics.is_empty() => Ok(rule),
            _ => Err(diagnostics),
        }
    }

    fn one(value: Option<ScalarValue>) -> Finding {
        scalar(&[MeasureValue::Scalar {
            rows: 1,
            columns: 1,
            value,
        }])
    }

    #[test]
    fn its_form_decides_whether_it_judges_rows() {
        let kind = |yaml: &str| rule(yaml).unwrap().kind();
        assert_eq!(kind("SELECT true"), Some(RuleKind::Table));
        assert_eq!(kind("{ query: SELECT true }"), Some(RuleKind::Table));
        assert_eq!(
            kind("{ failed_rows: SELECT * FROM batch WHERE a < 0 }"),
            Some(RuleKind::Row)
        );
        assert_eq!(
            kind("{ failed_rows: SELECT a FROM batch WHERE a < 0 }"),
            Some(RuleKind::Table)
        );
        let table = rule("{ failed_rows: SELECT a FROM batch JOIN customers USING (a) }").unwrap();
        assert_eq!(
            (table.metric(), table.default_must_be()),
            (Some(MetricKind::Count), Some("= 0"))
        );
        assert_eq!(rule("SELECT true").unwrap().metric(), None);
    }

    #[test]
    fn what_is_no_query_is_a_fault_with_a_reason_and_a_hint() {
        for yaml in [
            "DROP TABLE batch",
            "{ failed_rows: COPY batch TO 'x' }",
            "SELECT * FROM suppliers",
        ] {
            let diagnostics = rule(yaml).unwrap_err();
            let fault = &diagnostics.0[0];
            assert!(fault.hint.is_some() && fault.place.is_some(), "{yaml}: {fault:?}");
        }
        for yaml in [
            "[]",
            "7",
            "{}",
            "{ query: SELECT 1, failed_rows: SELECT 1 }",
            "{ querry: SELECT true }",
            "{ query: 1 }",
        ] {
            assert!(rule(yaml).is_err(), "{yaml}");
        }
    }

    #[test]
    fn one_boolean_is_a_verdict_and_nothing_else_is() {
        assert_eq!(one(Some(ScalarValue::Boolean(Some(true)))).broken, Some(false));
        assert_eq!(one(Some(ScalarValue::Boolean(Some(false)))).broken, Some(true));
        let null = one(Some(ScalarValue::Boolean(None)));
        assert_eq!((null.broken, null.metric, null.error), (None, None, None));
        assert!(one(Some(ScalarValue::Int64(Some(1)))).error.unwrap().contains("int64"));
        let shape = scalar(&[MeasureValue::Scalar {
            rows: 2,
            columns: 1,
            value: None,
        }]);
        assert_eq!(
            shape.error.unwrap(),
            "the query gave 2 rows and 1 column; one of each is needed"
        );
        assert_eq!(
            scalar(&[MeasureValue::Error("overflow".into())]).error.unwrap(),
            "overflow"
        );
    }

    #[test]
    fn failed_rows_are_counted() {
        let finding = failures(&[MeasureValue::Failures(3)]);
        assert_eq!((finding.failed_count, finding.broken), (3, None));
    }
}
