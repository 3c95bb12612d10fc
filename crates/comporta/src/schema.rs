//! The JSON Schema of the documents people write and of the report, built from the registry and the types that
//! read them. The committed copies stand under `schemas/`; a test holds the two equal.

use crate::contract::check::{NanPolicy, NoDataPolicy, NullPolicy, ShareOf, UniqueScope};
use crate::contract::pipeline::{Deduplicate, Layer, TargetSpec};
use crate::contract::rules_file::{Gate, OnEmpty, ParameterKind};
use crate::contract::source::{OneOrMany, SourceSpec, TypeName};
use crate::contract::{Dimension, Literal, Report, Severity, Threshold};
use crate::rules::{page, registry};
use indexmap::IndexMap;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// A document that has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Document {
    /// The rules file of `comporta check`.
    Rules,
    /// The pipeline of `comporta run`.
    Pipeline,
    /// The JSON report.
    Report,
}

impl Document {
    /// All of them.
    pub const ALL: &'static [Document] = &[Document::Rules, Document::Pipeline, Document::Report];

    /// The name it is asked for and filed under.
    pub fn name(self) -> &'static str {
        match self {
            Document::Rules => "rules",
            Document::Pipeline => "pipeline",
            Document::Report => "report",
        }
    }

    /// Its JSON Schema, draft 2020-12.
    pub fn schema(self) -> Value {
        match self {
            Document::Rules => rules(),
            Document::Pipeline => pipeline(),
            Document::Report => report(),
        }
    }
}

/// A schema as it is printed and committed.
pub fn to_text(schema: &Value) -> String {
    format!("{schema:#}\n")
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12().into_generator()
}

fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Value {
    generator.subschema_for::<T>().to_value()
}

/// A schema with a description beside it.
fn told(mut schema: Value, description: &str) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.insert("description".into(), description.into());
    }
    schema
}

fn text(description: &str) -> Value {
    json!({ "type": "string", "description": description })
}

fn mapping(values: Value, description: &str) -> Value {
    json!({ "type": "object", "additionalProperties": values, "description": description })
}

fn finish(title: &str, description: &str, body: Value, mut generator: SchemaGenerator) -> Value {
    let mut schema = Map::new();
    schema.insert("$schema".into(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("title".into(), title.into());
    schema.insert("description".into(), description.into());
    if let Value::Object(body) = body {
        schema.extend(body);
    }
    schema.insert("$defs".into(), Value::Object(generator.take_definitions(true)));
    Value::Object(schema)
}

fn rules() -> Value {
    let mut generator = generator();
    let checks = checks(&mut generator);
    let properties = shared_properties(&mut generator, &checks);
    let body = json!({
        "anyOf": [
            checks,
            { "type": "object", "properties": properties, "additionalProperties": false }
        ]
    });
    finish(
        "comporta rules",
        "What a batch must be: the file behind `comporta check --rules`.",
        body,
        generator,
    )
}

fn pipeline() -> Value {
    let mut generator = generator();
    let checks = checks(&mut generator);
    let mut properties = Map::new();
    properties.insert(
        "pipeline".into(),
        text("The name of the pipeline, in reports and in the history."),
    );
    properties.insert("layer".into(), of::<Layer>(&mut generator));
    properties.insert("transform".into(), transform(&mut generator));
    for (name, meaning) in [
        ("target", "Where valid rows are published."),
        ("quarantine", "Where rejected rows go, each with its reasons."),
        ("report", "Where the report goes as a table, one row per check and run."),
    ] {
        properties.insert(name.into(), told(of::<TargetSpec>(&mut generator), meaning));
    }
    properties.extend(shared_properties(&mut generator, &checks));
    let body = json!({
        "type": "object",
        "properties": properties,
        "required": ["pipeline", "source", "target"],
        "additionalProperties": false
    });
    finish(
        "comporta pipeline",
        "How data moves: source, transform, gate, target.",
        body,
        generator,
    )
}

fn report() -> Value {
    let generator = generator();
    let mut schema = generator.into_root_schema_for::<Report>().to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "comporta report".into());
    }
    schema
}

/// The keys that rules files and pipelines share.
fn shared_properties(generator: &mut SchemaGenerator, checks: &Value) -> Map<String, Value> {
    let source = of::<SourceSpec>(generator);
    let tables = mapping(source.clone(), "Other datasets that rules refer to, by name.");
    let properties = json!({
        "rules": checks,
        "on_fail": told(of::<Severity>(generator), "The severity of checks that name none. Default: `fail`."),
        "on_empty": told(of::<OnEmpty>(generator), "What an empty batch does. Default: `hold`."),
        "gate": told(of::<Gate>(generator), "What the batch as a whole must reach."),
        "timezone": text("The time zone of timestamps without one, by its IANA name. Default: `UTC`."),
        "future_tolerance": text("How far in the future a newest value may be, as `5m`. Default: `5m`."),
        "source": told(source, "Where the batch is and how it is read."),
        "tables": tables,
        "templates": templates(generator),
    });
    match properties {
        Value::Object(properties) => properties,
        _ => Map::new(),
    }
}

/// A list of checks. Each has one rule as a key, beside the attributes that every check may carry.
fn checks(generator: &mut SchemaGenerator) -> Value {
    let mut properties = attributes(generator);
    let mut one_of = vec![json!({ "required": ["include"], "maxProperties": 1 })];
    properties.insert(
        "include".into(),
        text("Takes the rules of another file, relative to this one, in this place."),
    );
    for definition in registry::all() {
        let schema = (definition.schema)(generator).to_value();
        let about = format!("{} (`comporta rules {}`)", page::summary(definition), definition.name);
        properties.insert(definition.name.into(), told(without_title(schema), &about));
        one_of.push(json!({ "required": [definition.name] }));
    }
    let check = json!({
        "type": "object",
        "description": "One check: a rule beside its attributes.",
        "properties": properties,
        "additionalProperties": false,
        "oneOf": one_of
    });
    generator.definitions_mut().insert("Check".into(), check);
    json!({ "type": "array", "items": { "$ref": "#/$defs/Check" }, "description": "The checks, in order." })
}

fn without_title(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.shift_remove("title");
    }
    schema
}

fn attributes(generator: &mut SchemaGenerator) -> Map<String, Value> {
    let literal = of::<Literal>(generator);
    let missing = json!({ "anyOf": [literal, { "type": "array", "items": literal }] });
    let columns = of::<OneOrMany>(generator);
    let attributes = json!({
        "name": text("What people call it. Default: the rule and its columns."),
        "severity": told(of::<Severity>(generator), "What a break asks for. Default: the document's `on_fail`."),
        "where": { "type": ["string", "boolean"], "description": "An expression: only rows on which it is true are in scope." },
        "nulls": told(of::<NullPolicy>(generator), "What an unknown means for a row rule, and how keys compare nulls."),
        "nan": told(of::<NanPolicy>(generator), "What NaN means beyond being a value."),
        "missing": told(missing, "Values that count as missing for this check."),
        "of": told(of::<ShareOf>(generator), "The denominator of shares."),
        "warn": told(of::<Threshold>(generator), "The target: breaking it warns."),
        "must_be": told(of::<Threshold>(generator), "The limit: breaking it breaks the check."),
        "on_no_data": told(of::<NoDataPolicy>(generator), "What it weighs that there was nothing to measure."),
        "group_by": told(columns.clone(), "Columns whose every combination is judged by itself."),
        "scope": told(of::<UniqueScope>(generator), "How far keys are looked for."),
        "dimension": told(of::<Dimension>(generator), "The side of quality. Default: the rule's own."),
        "message": text("What to say when it breaks."),
        "tags": told(columns, "Words to choose checks by."),
    });
    match attributes {
        Value::Object(attributes) => attributes,
        _ => Map::new(),
    }
}

fn templates(generator: &mut SchemaGenerator) -> Value {
    let parameters = of::<IndexMap<String, ParameterKind>>(generator);
    let template = json!({
        "type": "object",
        "properties": {
            "parameters": told(parameters, "The parameters, by name, with what each may be."),
            "expression": text("A boolean expression over the row, true where it keeps the promise."),
            "sql": text("A query for one boolean."),
            "failed_rows": text("A query for the rows that break the promise."),
            "message": text("What to say when it breaks."),
        },
        "additionalProperties": false,
        "oneOf": [{ "required": ["expression"] }, { "required": ["sql"] }, { "required": ["failed_rows"] }]
    });
    mapping(template, "Rules of one's own, by name.")
}

fn transform(generator: &mut SchemaGenerator) -> Value {
    let columns = of::<OneOrMany>(generator);
    let steps = json!({
        "sql": text("A query over `batch`."),
        "filter": text("Keeps the rows on which the expression is true."),
        "select": told(columns.clone(), "Keeps these columns, in this order."),
        "rename": told(of::<IndexMap<String, String>>(generator), "New names by old ones."),
        "cast": told(of::<IndexMap<String, TypeName>>(generator), "New types by column."),
        "trim": told(columns.clone(), "Removes white space around text."),
        "lower": told(columns.clone(), "Lower case."),
        "upper": told(columns, "Upper case."),
        "fill_null": told(of::<IndexMap<String, Literal>>(generator), "A value in place of null, by column."),
        "deduplicate": told(of::<Deduplicate>(generator), "Keeps the first row of each key in a total order."),
    });
    json!({
        "type": "array",
        "description": "What happens to the batch before the gate, in order.",
        "items": {
            "type": "object",
            "properties": steps,
            "additionalProperties": false,
            "minProperties": 1,
            "maxProperties": 1
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::check::ATTRIBUTES;
    use crate::contract::pipeline::TRANSFORMS;
    use crate::contract::rules_file::RULES_FILE_KEYS;

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_schemas_know_exactly_the_keys_that_the_readers_know() {
        let rules = Document::Rules.schema();
        let file = &rules["anyOf"][1]["properties"];
        assert_eq!(keys(file), RULES_FILE_KEYS);
        let check = &rules["$defs"]["Check"]["properties"];
        let mut known = ATTRIBUTES.to_vec();
        known.push("include");
        known.extend(registry::all().iter().map(|rule| rule.name));
        assert_eq!(keys(check), known);
        let steps = &Document::Pipeline.schema()["properties"]["transform"]["items"]["properties"];
        assert_eq!(keys(steps), TRANSFORMS);
    }

    #[test]
    fn documents_are_held_against_their_schemas() {
        let valid = |document: Document, instance: Value| {
            let schema = document.schema();
            jsonschema::validator_for(&schema).unwrap().is_valid(&instance)
        };
        let rules = |instance| valid(Document::Rules, instance);
        assert!(rules(
            json!({ "rules": [{ "not_null": ["id"], "severity": "quarantine" }] })
        ));
        assert!(rules(
            json!([{ "range": { "column": "amount", "min": 0 } }, { "include": "more.yml" }])
        ));
        assert!(!rules(json!({ "rules": [{ "not_nul": ["id"] }] })));
        assert!(!rules(json!({ "rules": [{ "not_null": ["id"], "unique": ["id"] }] })));
        assert!(!rules(json!({ "rule": [] })));
        let pipeline = json!({ "pipeline": "orders", "source": { "path": "a.csv" }, "target": { "delta": "lake" } });
        assert!(valid(Document::Pipeline, pipeline));
        assert!(!valid(Document::Pipeline, json!({ "pipeline": "orders" })));
    }
}
