//! `custom`

use crate::rule::{BindError, Bound, Documents, Family, Rule, RuleDefinition};
use crate::rules::sql::Body;
use crate::scope::Scope;
use crate::sql::{Binding, Bindings, Fault, fill_expression, fill_query};
use bigdecimal::BigDecimal;
use comporta_contract::nearest::{list, suggest};
use comporta_contract::rules_file::{ParameterKind, Template};
use comporta_contract::threshold::MetricKind;
use comporta_contract::{Diagnostic, Diagnostics, Dimension, Node, RuleKind, Value as NodeValue};
use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};

/// A rule of one's own, written as a template of the document, holds.
///
/// `templates:` at the top of the document gives each template a name, its `parameters` (`column`, `number`,
/// `text` or `boolean`) and one of `expression`, `sql` and `failed_rows`, in which `$name` stands for a parameter.
/// A check names the template and gives every parameter. A parameter is a column or a value and never text that
/// is pasted into SQL. What the check is (row or table rule, thresholds) follows from the template's body as with
/// `expression` and `sql`.
///
/// ## Why it matters
/// The same promise over many columns is written once, under a name that people of the house know.
///
/// ## Example
/// ```yaml
/// templates:
///   at_most:
///     parameters: { column: column, limit: number }
///     expression: $column <= $limit
///     message: "`$column` is above $limit"
/// rules:
///   - custom: { template: at_most, column: discount, limit: 0.5 }
/// ```
///
/// ## Holds
/// | discount |
/// |----------|
/// | 0.25     |
/// | 0.5      |
/// | null     |
///
/// ## Broken
/// | discount | broken |
/// |----------|--------|
/// | 0.5      | no     |
/// | 0.75     | yes    |
/// | null     | no     |
#[derive(Debug, Clone, JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub struct CustomParameters {
    /// The name of the template. Beside it stand the template's parameters.
    template: String,
    /// The template's parameters, by name.
    #[schemars(flatten)]
    #[serde(flatten)]
    parameters: IndexMap<String, Scalar>,
}

/// A column's name or a value.
#[derive(Debug, Clone, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
pub enum Scalar {
    /// The name of a column, or text.
    Text(String),
    /// A number.
    Number(f64),
    /// `true` or `false`.
    Boolean(bool),
}

/// The rule.
#[derive(Debug, Clone)]
pub struct Custom {
    template: String,
    columns: Vec<String>,
    bindings: IndexMap<String, Value>,
    body: Body,
    message: Option<String>,
}

impl RuleDefinition for Custom {
    const NAME: &'static str = "custom";
    const FAMILY: Family = Family::Free;
    const KIND: Option<RuleKind> = None;
    const DIMENSION: Dimension = Dimension::Validity;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        Self::parse_within(node, &Documents::default(), diagnostics)
    }

    fn parse_within(node: &Node, documents: &Documents, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some((name, template)) = template_of(node, documents, diagnostics) else {
            return Vec::new();
        };
        let Some(bindings) = bindings_of(node, name, template, diagnostics) else {
            return Vec::new();
        };
        let body = match body_of(template, &bindings, documents) {
            Ok(body) => body,
            Err(diagnostic) => {
                diagnostics.push(diagnostic);
                return Vec::new();
            }
        };
        let columns = bindings.values().filter_map(|binding| match binding {
            Binding::Column(column) => Some(column.clone()),
            _ => None,
        });
        vec![Custom {
            template: name.to_string(),
            columns: columns.collect(),
            message: template.message.as_ref().map(|message| filled(message, &bindings)),
            bindings: bindings
                .iter()
                .map(|(name, binding)| (name.clone(), value_of(binding)))
                .collect(),
            body,
        }]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        CustomParameters::json_schema(generator)
    }
}

impl Rule for Custom {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({ "template": self.template, "parameters": self.bindings, "body": self.body.parameters() })
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
        self.body.bind(scope, self.message.as_deref())
    }
}

/// Checks the templates themselves, used or not, with a stand-in for each parameter.
pub fn check_templates(documents: &Documents, diagnostics: &mut Diagnostics) {
    for template in documents.templates.values() {
        let stand_ins = template.parameters.iter().map(|(name, kind)| {
            let binding = match kind {
                ParameterKind::Column => Binding::Column(name.clone()),
                ParameterKind::Number => Binding::Number(BigDecimal::from(1)),
                ParameterKind::Text => Binding::Text(String::new()),
                ParameterKind::Boolean => Binding::Boolean(true),
            };
            (name.clone(), binding)
        });
        if let Err(diagnostic) = body_of(template, &stand_ins.collect(), documents) {
            diagnostics.push(diagnostic);
        }
    }
}

fn template_of<'d>(
    node: &'d Node,
    documents: &'d Documents,
    diagnostics: &mut Diagnostics,
) -> Option<(&'d str, &'d Template)> {
    let Some(name) = node.get("template").and_then(Node::as_text) else {
        diagnostics.push(
            node.error("no-template", "`custom` names no template")
                .hint("write `custom: { template: NAME, … }`, and the template under `templates:`"),
        );
        return None;
    };
    let template = documents.templates.get(name);
    if template.is_none() {
        let known: Vec<&str> = documents.templates.keys().map(String::as_str).collect();
        let place = node.get("template").unwrap_or(node);
        let fault = place.error("unknown-template", format!("there is no template `{name}`"));
        diagnostics.push(match known.is_empty() {
            true => fault.hint("write it under `templates:`"),
            false => fault.hint(suggest(name, &known)),
        });
    }
    template.map(|template| (name, template))
}

/// What the check gives for each parameter; `None` if one is missing, unknown or of another kind.
fn bindings_of(node: &Node, name: &str, template: &Template, diagnostics: &mut Diagnostics) -> Option<Bindings> {
    let mut bindings = Bindings::new();
    let mut faulty = false;
    for entry in node.entries().iter().filter(|entry| entry.key != "template") {
        let Some(kind) = template.parameters.get(&entry.key) else {
            let known: Vec<&str> = template.parameters.keys().map(String::as_str).collect();
            diagnostics.push(
                Diagnostic::error(
                    "unknown-key",
                    format!("the template `{name}` has no parameter `{}`", entry.key),
                )
                .at(&node.text, entry.key_span)
                .hint(match known.is_empty() {
                    true => "it has no parameters".to_string(),
                    false => suggest(&entry.key, &known),
                }),
            );
            faulty = true;
            continue;
        };
        match binding(*kind, &entry.value) {
            Some(binding) => {
                bindings.insert(entry.key.clone(), binding);
            }
            None => {
                let expected = match kind {
                    ParameterKind::Column => "the name of a column",
                    ParameterKind::Number => "a number",
                    ParameterKind::Text => "text",
                    ParameterKind::Boolean => "true or false",
                };
                diagnostics.push(entry.value.error(
                    "wrong-type",
                    format!("`{}` is {expected}, not {}", entry.key, entry.value.kind()),
                ));
                faulty = true;
            }
        }
    }
    let missing: Vec<&str> = template
        .parameters
        .keys()
        .map(String::as_str)
        .filter(|parameter| node.get(parameter).is_none())
        .collect();
    if !missing.is_empty() {
        diagnostics.push(
            node.error(
                "missing-parameter",
                format!("the template `{name}` needs {}", list(&missing)),
            )
            .hint("every parameter of a template is given"),
        );
    }
    (!faulty && missing.is_empty()).then_some(bindings)
}

fn binding(kind: ParameterKind, node: &Node) -> Option<Binding> {
    match (kind, &node.value) {
        (ParameterKind::Column, NodeValue::Text(text)) if !text.trim().is_empty() => {
            Some(Binding::Column(text.clone()))
        }
        (ParameterKind::Number, NodeValue::Number(number)) => Some(Binding::Number(number.clone())),
        (ParameterKind::Text, NodeValue::Text(text)) => Some(Binding::Text(text.clone())),
        (ParameterKind::Boolean, NodeValue::Bool(value)) => Some(Binding::Boolean(*value)),
        _ => None,
    }
}

fn body_of(template: &Template, bindings: &Bindings, documents: &Documents) -> Result<Body, Diagnostic> {
    let text = |node: &Node| node.as_text().unwrap_or_default().to_string();
    let at = |node: &Node| {
        let node = node.clone();
        move |fault: Fault| fault.diagnostic(&node)
    };
    match (&template.expression, &template.sql, &template.failed_rows) {
        (Some(node), _, _) => fill_expression(&text(node), bindings)
            .map(Body::Holds)
            .map_err(at(node)),
        (_, Some(node), _) => fill_query(&text(node), bindings, &documents.tables)
            .map(Body::Scalar)
            .map_err(at(node)),
        (_, _, Some(node)) => fill_query(&text(node), bindings, &documents.tables)
            .map(Body::failed_rows)
            .map_err(at(node)),
        _ => Err(template.node.error("template-without-body", "the template has no body")),
    }
}

/// A message with its parameters in words, the longest names first, since one may begin with another.
fn filled(message: &str, bindings: &Bindings) -> String {
    let mut names: Vec<&String> = bindings.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    names.into_iter().fold(message.to_string(), |text, name| {
        let value = bindings.get(name).map(value_of).unwrap_or_default();
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_string);
        text.replace(&format!("${name}"), &shown)
    })
}

fn value_of(binding: &Binding) -> Value {
    match binding {
        Binding::Column(text) | Binding::Text(text) => text.clone().into(),
        Binding::Number(number) => comporta_contract::literal::number_to_json(number),
        Binding::Boolean(value) => (*value).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Check, registry};
    use comporta_contract::rules_file::NoIncludes;
    use comporta_contract::{RulesFile, Severity, Text};

    const TEMPLATES: &str = "
templates:
  at_most:
    parameters: { column: column, limit: number }
    expression: $column <= $limit
    message: \"`$column` is above $limit\"
  balanced:
    parameters: { debit: column, credit: column }
    sql: SELECT sum($debit) = sum($credit) FROM batch
  strays:
    parameters: { word: text }
    failed_rows: SELECT * FROM batch WHERE status = $word
";

    fn checks(rules: &str) -> (Vec<Check>, Diagnostics) {
        let mut diagnostics = Diagnostics::default();
        let text = Text::new("rules.yml", format!("{TEMPLATES}rules:\n{rules}"));
        let file = RulesFile::parse(&text, &registry::names(), &NoIncludes, &mut diagnostics);
        let documents = Documents::from(&file);
        check_templates(&documents, &mut diagnostics);
        let calls = file.rules.iter();
        let checks = calls.flat_map(|call| Check::resolve(call, Severity::Fail, &documents, &mut diagnostics));
        (checks.collect(), diagnostics)
    }

    #[test]
    fn a_template_becomes_a_check_with_its_parameters() {
        let (checks, diagnostics) = checks(
            "  - custom: { template: at_most, column: net amount, limit: 0.5 }\n  - custom: { template: balanced, debit: d, credit: c }\n  - custom: { template: strays, word: \"x' OR 1=1\" }\n",
        );
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        let kinds: Vec<RuleKind> = checks.iter().map(|check| check.kind).collect();
        assert_eq!(kinds, [RuleKind::Row, RuleKind::Table, RuleKind::Row]);
        assert_eq!(checks[0].name, "custom(net amount)");
        let said = |check: &Check| check.rule.parameters()["body"].clone();
        assert_eq!(said(&checks[0]), json!({ "expression": "\"net amount\" <= 0.5" }));
        assert_eq!(
            said(&checks[1]),
            json!({ "query": "SELECT sum(\"d\") = sum(\"c\") FROM batch" })
        );
        assert_eq!(said(&checks[2]), json!({ "failed_rows": "status = 'x'' OR 1=1'" }));
    }

    #[test]
    fn a_message_names_what_was_given() {
        let bindings: Bindings = [
            ("c".to_string(), Binding::Column("price".into())),
            ("cap".to_string(), Binding::Number(BigDecimal::from(5))),
        ]
        .into_iter()
        .collect();
        assert_eq!(filled("`$c` is above $cap", &bindings), "`price` is above 5");
    }

    #[test]
    fn every_slip_is_a_fault() {
        for rule in [
            "custom: { template: at_mst, column: a, limit: 1 }",
            "custom: { template: at_most, column: a }",
            "custom: { template: at_most, column: a, limit: '1' }",
            "custom: { template: at_most, column: a, limit: 1, extra: 2 }",
            "custom: { column: a }",
            "custom: at_most",
        ] {
            let (checks, diagnostics) = checks(&format!("  - {rule}\n"));
            assert!(checks.is_empty() && diagnostics.has_errors(), "{rule}");
        }
    }

    #[test]
    fn a_template_that_nobody_uses_is_checked_too() {
        let mut diagnostics = Diagnostics::default();
        let text = Text::new(
            "rules.yml",
            "templates:\n  t: { parameters: { a: column }, expression: $b > 1 }\nrules: []\n",
        );
        let file = RulesFile::parse(&text, &registry::names(), &NoIncludes, &mut diagnostics);
        check_templates(&Documents::from(&file), &mut diagnostics);
        assert_eq!(
            diagnostics.0.last().map(|fault| fault.code),
            Some("template-parameter"),
            "{diagnostics:?}"
        );
    }
}
