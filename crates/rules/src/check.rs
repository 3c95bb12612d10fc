//! From an item of a document to a check, and from a check to its bound form.

use crate::registry;
use crate::rule::{BindError, Bound, Definition, Documents, Rule};
use crate::scope::Scope;
use arrow::datatypes::Schema;
use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use comporta_contract::check::CheckCall;
use comporta_contract::digest::short_digest;
use comporta_contract::nearest::suggest;
use comporta_contract::{
    Attributes, Diagnostic, Diagnostics, Dimension, Node, RuleKind, Severity, Text, Threshold, Value as NodeValue,
};
use datafusion_expr::Expr;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// One use of a rule, resolved as far as documents alone allow.
#[derive(Debug, Clone)]
pub struct Check {
    /// The rule.
    pub definition: &'static Definition,
    /// Its parameters.
    pub rule: Arc<dyn Rule>,
    /// What stands beside it.
    pub attributes: Attributes,
    /// Row or table.
    pub kind: RuleKind,
    /// What a break asks for.
    pub severity: Severity,
    /// The side of quality it looks at.
    pub dimension: Dimension,
    /// The promise as a threshold: written, or the rule's own.
    pub must_be: Option<Threshold>,
    /// The name given, or rule and columns.
    pub name: String,
    /// Where it stands, as `file:line`; empty for implicit checks.
    pub place: String,
}

/// A check against a schema.
#[derive(Debug, Clone)]
pub struct BoundCheck {
    /// The stable id (S31).
    pub id: String,
    /// The columns it reads, as they are called in the data.
    pub columns: Vec<String>,
    /// What it computes, or why it cannot be evaluated.
    pub bound: Result<Bound, BindError>,
    /// Its scope.
    pub filter: Option<Expr>,
    /// The columns of its groups.
    pub group_by: Vec<Expr>,
    /// The columns that `filter` and `group_by` read.
    pub scope_columns: Vec<String>,
}

/// What binding needs of the world, the same for all checks of a run.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The time zone of timestamps without one.
    pub timezone: Tz,
    /// The one clock reading.
    pub now: DateTime<Utc>,
    /// How far in the future a newest value may be, in seconds.
    pub future_tolerance_seconds: u64,
    /// Names of the declared tables.
    pub tables: BTreeSet<String>,
}

impl Check {
    /// Turns an item of a document into its checks. `documents` is what stands around it: its templates and
    /// tables.
    pub fn resolve(
        call: &CheckCall,
        on_fail: Severity,
        documents: &Documents,
        diagnostics: &mut Diagnostics,
    ) -> Vec<Check> {
        // A file that is included keeps its own default; a table rule inherits it as `fail` (S7).
        let on_fail = call.on_fail.unwrap_or(on_fail);
        let Some(definition) = registry::find(&call.rule) else {
            return Vec::new();
        };
        let rules = (definition.parse)(&call.parameters, documents, diagnostics);
        let several = rules.len() > 1;
        rules
            .into_iter()
            .filter_map(|rule| Self::with_attributes(definition, rule, call, on_fail, several, diagnostics))
            .collect()
    }

    /// A check without a document, for programs that use the library. The definition may be one of the
    /// registry or the program's own (`static MINE: Definition = Definition::of::<Mine>()`).
    ///
    /// # Errors
    /// The attributes contradict the rule, as they would in a document.
    pub fn from_rule(
        definition: &'static Definition,
        rule: Arc<dyn Rule>,
        attributes: Attributes,
        on_fail: Severity,
    ) -> Result<Check, Diagnostics> {
        let node = Node {
            value: NodeValue::Null,
            span: Default::default(),
            text: Text::new("", ""),
        };
        let call = CheckCall {
            on_fail: None,
            rule: definition.name.to_string(),
            parameters: node.clone(),
            rule_span: Default::default(),
            attributes,
            node,
        };
        let mut diagnostics = Diagnostics::default();
        let check = Self::with_attributes(definition, rule, &call, on_fail, false, &mut diagnostics);
        match check {
            Some(check) if !diagnostics.has_errors() => Ok(Check {
                place: String::new(),
                ..check
            }),
            _ => Err(diagnostics),
        }
    }

    fn with_attributes(
        definition: &'static Definition,
        rule: Arc<dyn Rule>,
        call: &CheckCall,
        on_fail: Severity,
        several: bool,
        diagnostics: &mut Diagnostics,
    ) -> Option<Check> {
        let attributes = call.attributes.clone();
        let kind = rule.kind().or(definition.kind).unwrap_or(RuleKind::Table);
        let severity = Self::severity(&attributes, kind, on_fail, call, diagnostics);
        let must_be = Self::thresholds(definition, rule.as_ref(), kind, call, diagnostics)?;
        if let Some(filter) = &attributes.filter
            && let Err(diagnostic) = crate::sql::check_expression(filter)
        {
            diagnostics.push(diagnostic);
        }
        if kind == RuleKind::Row && !attributes.group_by.is_empty() {
            diagnostics.push(
                call.node
                    .get("group_by")
                    .unwrap_or(&call.node)
                    .error(
                        "group-by-row",
                        format!("`{}` judges rows, so it cannot be grouped", definition.name),
                    )
                    .hint("groups belong to rules that measure: `row_count`, `missing_percent`, `sum` …"),
            );
        }
        let name = match (&attributes.name, several) {
            (Some(name), false) => name.clone(),
            (Some(name), true) => format!("{name} ({})", rule.columns().join(", ")),
            (None, _) => default_name(definition.name, &rule.columns()),
        };
        let (line, _) = call.node.text.line_column(call.rule_span.start);
        Some(Check {
            definition,
            dimension: attributes.dimension.unwrap_or(definition.dimension),
            place: format!("{}:{line}", call.node.text.name),
            rule,
            attributes,
            kind,
            severity,
            must_be,
            name,
        })
    }

    /// `quarantine` written on a table rule is a mistake; inherited it becomes `fail` (S7).
    fn severity(
        attributes: &Attributes,
        kind: RuleKind,
        on_fail: Severity,
        call: &CheckCall,
        diagnostics: &mut Diagnostics,
    ) -> Severity {
        let severity = attributes.severity.unwrap_or(on_fail);
        if kind == RuleKind::Row || severity != Severity::Quarantine {
            return severity;
        }
        if attributes.severity.is_some() {
            diagnostics.push(
                call.node
                    .get("severity")
                    .unwrap_or(&call.node)
                    .error(
                        "quarantine-table-rule",
                        format!("`{}` judges the batch, so it has no rows to set aside", call.rule),
                    )
                    .hint("use `severity: fail` to hold the batch, or `warn` to publish and say so"),
            );
        }
        Severity::Fail
    }

    fn thresholds(
        definition: &Definition,
        rule: &dyn Rule,
        kind: RuleKind,
        call: &CheckCall,
        diagnostics: &mut Diagnostics,
    ) -> Option<Option<Threshold>> {
        let metric = match kind {
            RuleKind::Row => Some(comporta_contract::threshold::MetricKind::Rows),
            RuleKind::Table => rule.metric().or(definition.metric),
        };
        for (key, threshold) in [("must_be", &call.attributes.must_be), ("warn", &call.attributes.warn)] {
            let Some(threshold) = threshold else { continue };
            let node = call.node.get(key).unwrap_or(&call.node);
            match metric {
                None => {
                    diagnostics.push(node.error(
                        "threshold-unused",
                        format!("`{}` measures nothing that `{key}` could limit", call.rule),
                    ));
                    return None;
                }
                Some(metric) => {
                    if let Err(message) = threshold.fits(metric) {
                        diagnostics.push(
                            node.error(
                                "threshold-unit",
                                format!("`{}` does not fit `{}`", threshold.text, call.rule),
                            )
                            .why(message),
                        );
                        return None;
                    }
                }
            }
        }
        if call.attributes.must_be.is_some() {
            return Some(call.attributes.must_be.clone());
        }
        match rule.default_must_be() {
            Some("") if call.attributes.warn.is_none() => {
                diagnostics.push(
                    call.node
                        .error(
                            "threshold-missing",
                            format!("`{}` says nothing without a threshold", call.rule),
                        )
                        .hint("add `must_be`, for example `must_be: between 10 and 100`"),
                );
                None
            }
            // A `warn` target alone is all there is to miss.
            Some(_) if call.attributes.warn.is_some() => Some(None),
            Some("") | None => Some(None),
            Some(text) => {
                let node = Node {
                    value: NodeValue::Text(text.to_string()),
                    ..call.node.clone()
                };
                Some(Threshold::parse(&node).ok())
            }
        }
    }

    /// The check against a schema. Never fails as a whole: what is wrong is in `bound`.
    pub fn bind(&self, schema: &Schema, surroundings: &Surroundings) -> BoundCheck {
        let mut scope = Scope::new(
            schema,
            surroundings.timezone,
            surroundings.now,
            &surroundings.tables,
            &self.attributes.missing,
        );
        scope.future_tolerance_seconds = surroundings.future_tolerance_seconds;
        scope.nulls = self.attributes.nulls;
        scope.nan = self.attributes.nan;
        scope.of = self.attributes.of;
        let mut bound = self
            .rule
            .bind(&scope)
            .and_then(|bound| scope.without_nan(bound, self.definition.name));
        let columns = scope.used();

        let scope_only = Scope::new(
            schema,
            surroundings.timezone,
            surroundings.now,
            &surroundings.tables,
            &[],
        );
        let filter = match self.attributes.filter.as_ref().and_then(|node| node.as_text()) {
            None => None,
            Some(text) => match crate::sql::expression(text, &scope_only) {
                Ok(expr) => Some(expr),
                Err(error) => {
                    bound = Err(BindError {
                        message: format!("`where`: {}", error.message),
                        hint: error.hint,
                    });
                    None
                }
            },
        };
        let group_by = match scope_only.columns(&self.attributes.group_by) {
            Ok(columns) => columns.into_iter().map(|column| column.expr).collect(),
            Err(error) => {
                bound = Err(BindError {
                    message: format!("`group_by`: {}", error.message),
                    hint: error.hint,
                });
                Vec::new()
            }
        };
        let id = self.id(&columns);
        BoundCheck {
            id,
            columns,
            bound,
            filter,
            group_by,
            scope_columns: scope_only.used(),
        }
    }

    /// A digest of what the check says, but not of its name, severity, thresholds or place (S31).
    fn id(&self, columns: &[String]) -> String {
        short_digest(&self.identity(columns))
    }

    /// What the id is made of, for naming checks apart that would share one.
    pub fn identity(&self, columns: &[String]) -> Value {
        let columns = if columns.is_empty() {
            self.rule.columns()
        } else {
            columns.to_vec()
        };
        json!({
            "rule": self.definition.name,
            "columns": columns,
            "parameters": self.rule.parameters(),
            "where": self.attributes.filter.as_ref().and_then(|node| node.as_text()),
            "nulls": self.attributes.nulls,
            "nan": self.attributes.nan,
            "missing": self.attributes.missing,
            "of": self.attributes.of,
            "group_by": self.attributes.group_by,
            "scope": self.attributes.scope,
        })
    }

    /// Everything the check says, thresholds and severity included: its part of the rules digest.
    pub fn canonical(&self) -> Value {
        json!({
            "identity": self.identity(&[]),
            "name": self.name,
            "severity": self.severity,
            "must_be": self.must_be.as_ref().map(|threshold| &threshold.text),
            "warn": self.attributes.warn.as_ref().map(|threshold| &threshold.text),
            "on_no_data": self.attributes.on_no_data,
            "dimension": self.dimension,
            "message": self.attributes.message,
            "tags": self.attributes.tags,
        })
    }
}

/// Checks that say the same twice are a mistake unless their names differ (S31).
pub fn find_repeated(checks: &[Check], calls: &[CheckCall], diagnostics: &mut Diagnostics) {
    let mut seen: Vec<(Value, &Check)> = Vec::new();
    for check in checks {
        let identity = check.identity(&[]);
        if let Some((_, first)) = seen
            .iter()
            .find(|(known, first)| *known == identity && first.name == check.name)
        {
            let call = calls.iter().find(|call| {
                let (line, _) = call.node.text.line_column(call.rule_span.start);
                format!("{}:{line}", call.node.text.name) == check.place
            });
            let diagnostic = Diagnostic::error(
                "repeated-check",
                format!("`{}` says the same as the check at {}", check.name, first.place),
            )
            .hint("remove one, or give each a name of its own");
            diagnostics.push(match call {
                Some(call) => diagnostic.at(&call.node.text, call.rule_span),
                None => diagnostic,
            });
        }
        seen.push((identity, check));
    }
}

/// `unique(order_id)`, `row_count`.
pub fn default_name(rule: &str, columns: &[String]) -> String {
    match columns {
        [] => rule.to_string(),
        columns => format!("{rule}({})", columns.join(", ")),
    }
}

/// A hint for a name that is not among the known rules.
pub fn suggest_rule(name: &str) -> String {
    suggest(name, &registry::names())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule::{Family, Holds, RowCheck, RuleDefinition};
    use arrow::datatypes::{DataType, Field};
    use schemars::{SchemaGenerator, json_schema};

    /// A rule of a program that uses the library: the amount is a multiple of five cents.
    #[derive(Debug, Clone)]
    struct FiveCents {
        column: String,
    }

    impl RuleDefinition for FiveCents {
        const NAME: &'static str = "five_cents";
        const FAMILY: Family = Family::Domain;
        const KIND: Option<RuleKind> = Some(RuleKind::Row);
        const DIMENSION: Dimension = Dimension::Validity;

        fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
            let columns = crate::shapes::each_column(node, diagnostics);
            columns.into_iter().map(|column| FiveCents { column }).collect()
        }
        fn schema(_: &mut SchemaGenerator) -> schemars::Schema {
            json_schema!({ "type": "string", "description": "Amounts are multiples of five cents." })
        }
    }

    impl Rule for FiveCents {
        fn columns(&self) -> Vec<String> {
            vec![self.column.clone()]
        }
        fn parameters(&self) -> Value {
            json!({})
        }
        fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
            let column = scope.column(&self.column)?;
            Ok(Bound::Row(RowCheck {
                holds: Holds::Expr((column.expr % datafusion_expr::lit(5)).eq(datafusion_expr::lit(0))),
                reason: format!("`{}` is {{value}}, no multiple of five cents", column.name),
            }))
        }
    }

    static FIVE_CENTS: Definition = Definition::of::<FiveCents>();

    fn surroundings() -> Surroundings {
        Surroundings {
            timezone: Tz::UTC,
            now: DateTime::UNIX_EPOCH,
            future_tolerance_seconds: 300,
            tables: BTreeSet::new(),
        }
    }

    #[test]
    fn a_program_makes_a_check_of_its_own_rule() {
        let rule = Arc::new(FiveCents { column: "cents".into() });
        let check = Check::from_rule(&FIVE_CENTS, rule, Attributes::default(), Severity::Quarantine).unwrap();
        assert_eq!(check.name, "five_cents(cents)");
        let schema = Schema::new(vec![Field::new("Cents", DataType::Int64, true)]);
        let bound = check.bind(&schema, &surroundings());
        assert_eq!(bound.columns, ["Cents"]);
        assert!(bound.bound.is_ok());
    }

    #[test]
    fn attributes_that_contradict_the_rule_are_refused_without_a_document_too() {
        let rule = Arc::new(FiveCents { column: "cents".into() });
        let grouped = Attributes {
            group_by: vec!["country".into()],
            ..Attributes::default()
        };
        assert!(Check::from_rule(&FIVE_CENTS, rule, grouped, Severity::Fail).is_err());
    }

    #[test]
    fn a_registered_rule_can_be_named_in_documents() {
        registry::register(&FIVE_CENTS).unwrap();
        assert!(registry::register(&FIVE_CENTS).is_err(), "the name is taken now");
        let mut diagnostics = Diagnostics::default();
        let text = Text::new("rules.yml", "- five_cents: [net, gross]");
        let file = comporta_contract::RulesFile::parse(
            &text,
            &registry::names(),
            &comporta_contract::rules_file::NoIncludes,
            &mut diagnostics,
        );
        let checks = Check::resolve(
            &file.rules[0],
            Severity::Fail,
            &Documents::from(&file),
            &mut diagnostics,
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        assert_eq!(checks.len(), 2);
    }
}
