//! The document of `comporta run`: source → transform → gate → target for one unit.

use crate::check::word;
use crate::decode::decode;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::literal::Literal;
use crate::nearest::suggest;
use crate::node::{Entry, Node, Text, Value};
use crate::rules_file::{Loader, RulesFile};
use crate::source::OneOrMany;
use crate::types::LogicalType;
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A place in the medallion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// As received.
    Bronze,
    /// Cleaned and conformed.
    Silver,
    /// Ready for decisions.
    Gold,
}

impl Layer {
    const ALL: &'static [Layer] = &[Layer::Bronze, Layer::Silver, Layer::Gold];

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|layer| layer.to_string() == word)
    }
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Layer::Bronze => "bronze",
            Layer::Silver => "silver",
            Layer::Gold => "gold",
        })
    }
}

/// How staged rows become part of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WriteStrategy {
    /// Added to what is there.
    #[default]
    Append,
    /// In place of all that is there.
    Overwrite,
}

/// A compression of the files that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WriteCompression {
    /// Not compressed.
    None,
    /// Snappy, for Parquet and Delta.
    Snappy,
    /// Zstandard.
    Zstd,
    /// gzip.
    Gzip,
}

/// A place to write to. One of `delta`, `parquet`, `csv`, `jsonl` names it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TargetSpec {
    /// The folder of a Delta table.
    pub delta: Option<String>,
    /// A folder of Parquet files, or one file when it ends in `.parquet`.
    pub parquet: Option<String>,
    /// A folder of CSV files, or one file when it ends in `.csv`.
    pub csv: Option<String>,
    /// A folder of JSON-lines files, or one file when it ends in `.jsonl`.
    pub jsonl: Option<String>,
    /// How rows become part of it. Default: `append`; for a single file `overwrite`.
    pub write: Option<WriteStrategy>,
    /// Columns whose values name folders (Delta, and overwritten folders of Parquet).
    pub partition_by: Vec<String>,
    /// The compression. Default: `zstd` for Parquet and Delta, none for text.
    pub compression: Option<WriteCompression>,
}

/// The format of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TargetFormat {
    Delta,
    Parquet,
    Csv,
    Jsonl,
}

impl TargetSpec {
    /// Reads a target; faults of the combination are reported at the node.
    pub fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Option<Self> {
        let spec: TargetSpec = decode(node, diagnostics)?;
        let named = [&spec.delta, &spec.parquet, &spec.csv, &spec.jsonl]
            .iter()
            .filter(|place| place.is_some())
            .count();
        if named != 1 {
            let what = if named == 0 {
                "no place to write to"
            } else {
                "more than one place to write to"
            };
            diagnostics.push(
                node.error("target-place", what)
                    .hint("name one of `delta`, `parquet`, `csv`, `jsonl` with its path"),
            );
            return None;
        }
        if spec.is_single_file() && spec.write == Some(WriteStrategy::Append) {
            diagnostics.push(
                node.error("append-to-file", "a single file cannot be appended to")
                    .why("it could not become visible in one step")
                    .hint("name a folder, or use `write: overwrite`"),
            );
        }
        let partitions_possible = match spec.format() {
            TargetFormat::Delta => true,
            TargetFormat::Parquet => spec.write == Some(WriteStrategy::Overwrite) && !spec.is_single_file(),
            TargetFormat::Csv | TargetFormat::Jsonl => false,
        };
        if !spec.partition_by.is_empty() && !partitions_possible {
            diagnostics.push(
                node.error("partition-by", "this target cannot be partitioned")
                    .why("several folders of plain files could not become visible in one step")
                    .hint("use a Delta table, or `parquet` with `write: overwrite`"),
            );
        }
        Some(spec)
    }

    /// The place.
    pub fn place(&self) -> &str {
        [&self.delta, &self.parquet, &self.csv, &self.jsonl]
            .into_iter()
            .find_map(|place| place.as_deref())
            .unwrap_or_default()
    }

    /// The format.
    pub fn format(&self) -> TargetFormat {
        match self {
            TargetSpec { delta: Some(_), .. } => TargetFormat::Delta,
            TargetSpec { csv: Some(_), .. } => TargetFormat::Csv,
            TargetSpec { jsonl: Some(_), .. } => TargetFormat::Jsonl,
            _ => TargetFormat::Parquet,
        }
    }

    /// Whether the place is one file rather than a folder.
    pub fn is_single_file(&self) -> bool {
        let extension = match self.format() {
            TargetFormat::Delta => return false,
            TargetFormat::Parquet => ".parquet",
            TargetFormat::Csv => ".csv",
            TargetFormat::Jsonl => ".jsonl",
        };
        self.place().ends_with(extension) || self.place().ends_with(&format!("{extension}.gz"))
    }

    /// How rows become part of the target.
    pub fn strategy(&self) -> WriteStrategy {
        match self.write {
            Some(strategy) => strategy,
            None if self.is_single_file() => WriteStrategy::Overwrite,
            None => WriteStrategy::Append,
        }
    }
}

/// One step of `transform:`, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Transform {
    /// What it does.
    pub step: Step,
    /// Where it stands.
    pub node: Node,
}

/// What a transform does.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A query over `batch`.
    Sql(Node),
    /// Keeps the rows on which the expression is true.
    Filter(Node),
    /// Keeps these columns, in this order.
    Select(Vec<String>),
    /// New names by old ones.
    Rename(IndexMap<String, String>),
    /// New types by column; a value that does not convert is a bad cell, not a stop.
    Cast(IndexMap<String, LogicalType>),
    /// Removes white space around text.
    Trim(Vec<String>),
    /// Lower case.
    Lower(Vec<String>),
    /// Upper case.
    Upper(Vec<String>),
    /// A value in place of null, by column.
    FillNull(IndexMap<String, Literal>),
    /// Keeps the first row of each key in a total order.
    Deduplicate(Deduplicate),
}

/// Keeps the first row of each key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deduplicate {
    /// The key.
    pub keys: OneOrMany,
    /// Columns with `asc` (default) or `desc`, the first row wins; `source_file` and `source_row`
    /// name the row's place. The place is always the last tie-breaker.
    #[serde(default)]
    pub order_by: OneOrMany,
}

/// The names of the transforms.
pub const TRANSFORMS: &[&str] = &[
    "sql",
    "filter",
    "select",
    "rename",
    "cast",
    "trim",
    "lower",
    "upper",
    "fill_null",
    "deduplicate",
];

impl Step {
    /// The name it is written and reported under.
    pub fn name(&self) -> &'static str {
        match self {
            Step::Sql(_) => "sql",
            Step::Filter(_) => "filter",
            Step::Select(_) => "select",
            Step::Rename(_) => "rename",
            Step::Cast(_) => "cast",
            Step::Trim(_) => "trim",
            Step::Lower(_) => "lower",
            Step::Upper(_) => "upper",
            Step::FillNull(_) => "fill_null",
            Step::Deduplicate(_) => "deduplicate",
        }
    }

    fn parse(entry: &Entry, diagnostics: &mut Diagnostics) -> Option<Self> {
        let value = &entry.value;
        let columns = |diagnostics: &mut Diagnostics| decode::<OneOrMany>(value, diagnostics).map(|names| names.0);
        Some(match entry.key.as_str() {
            "sql" => Step::Sql(crate::check::text(value, "sql", diagnostics)?),
            "filter" => Step::Filter(crate::check::text(value, "filter", diagnostics)?),
            "select" => Step::Select(columns(diagnostics)?),
            "rename" => Step::Rename(decode(value, diagnostics)?),
            "cast" => {
                let types: IndexMap<String, crate::source::TypeName> = decode(value, diagnostics)?;
                Step::Cast(types.into_iter().map(|(name, ty)| (name, ty.0)).collect())
            }
            "trim" => Step::Trim(columns(diagnostics)?),
            "lower" => Step::Lower(columns(diagnostics)?),
            "upper" => Step::Upper(columns(diagnostics)?),
            "fill_null" => Step::FillNull(decode(value, diagnostics)?),
            "deduplicate" => Step::Deduplicate(decode(value, diagnostics)?),
            _ => return None,
        })
    }
}

/// A pipeline of one unit.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// Its layer.
    pub layer: Option<Layer>,
    /// The contract whose checks join the ones of `document`, as a path.
    pub contract: Option<Node>,
    /// Source, rules, gate: what a rules file has too.
    pub document: RulesFile,
    /// What happens to the batch before the gate.
    pub transform: Vec<Transform>,
    /// Where rejected rows go.
    pub quarantine: Option<TargetSpec>,
    /// Where valid rows go.
    pub target: Option<TargetSpec>,
    /// Where the report goes as a table, one row per check.
    pub report: Option<TargetSpec>,
    /// The document itself.
    pub text: Arc<Text>,
}

const PIPELINE_KEYS: &[&str] = &[
    "pipeline",
    "layer",
    "contract",
    "transform",
    "quarantine",
    "target",
    "report",
    "units",
    "reconcile",
];

impl Pipeline {
    /// Reads a pipeline.
    pub fn parse(text: &Arc<Text>, rules: &[&str], loader: &dyn Loader, diagnostics: &mut Diagnostics) -> Option<Self> {
        let node = match Node::parse(text, diagnostics) {
            Some(node) => node,
            None => {
                if !diagnostics.has_errors() {
                    diagnostics.push(
                        Diagnostic::error("empty-document", "the document is empty").at(text, Default::default()),
                    );
                }
                return None;
            }
        };
        if !matches!(node.value, Value::Map(_)) {
            diagnostics.push(node.error("wrong-type", format!("a pipeline is a mapping, not {}", node.kind())));
            return None;
        }
        let mut pipeline = Pipeline {
            name: String::new(),
            layer: None,
            contract: None,
            document: RulesFile::default(),
            transform: Vec::new(),
            quarantine: None,
            target: None,
            report: None,
            text: text.clone(),
        };
        pipeline.document.read(&node, PIPELINE_KEYS, rules, loader, diagnostics);
        for entry in node.entries() {
            pipeline.read_key(entry, diagnostics);
        }
        pipeline.complete(&node, diagnostics);
        Some(pipeline)
    }

    fn read_key(&mut self, entry: &Entry, diagnostics: &mut Diagnostics) {
        let value = &entry.value;
        match entry.key.as_str() {
            "pipeline" => self.name = decode(value, diagnostics).unwrap_or_default(),
            "layer" => self.layer = word(value, "layer", Layer::from_word, Layer::ALL, diagnostics),
            "contract" => self.contract = crate::check::text(value, "contract", diagnostics),
            "transform" => self.transform = read_transform(value, diagnostics),
            "quarantine" => self.quarantine = TargetSpec::parse(value, diagnostics),
            "target" => self.target = TargetSpec::parse(value, diagnostics),
            "report" => self.report = TargetSpec::parse(value, diagnostics),
            key @ ("units" | "reconcile") => diagnostics.push(
                Diagnostic::error("not-yet", format!("`{key}` is not supported by this version"))
                    .at(&value.text, entry.key_span)
                    .why("it would be ignored, and the run would prove less than the document says"),
            ),
            _ => {}
        }
    }

    fn complete(&mut self, node: &Node, diagnostics: &mut Diagnostics) {
        let start = crate::node::Span {
            start: node.span.start,
            end: node.span.start,
        };
        let mut missing = |key: &str, hint: &str| {
            let message = format!("`{key}` is missing");
            diagnostics.push(
                Diagnostic::error("missing-key", message)
                    .at(&node.text, start)
                    .hint(hint),
            );
        };
        if node.get("pipeline").is_none() {
            missing("pipeline", "give the pipeline a name: `pipeline: orders`");
        }
        if node.get("source").is_none() {
            missing("source", "say where the data is: `source: { path: \"orders.csv\" }`");
        } else if self
            .document
            .source
            .as_ref()
            .is_some_and(|source| source.places().0.is_empty())
        {
            missing(
                "source.path",
                "say where the data is: `source: { path: \"orders.csv\" }`",
            );
        }
        if node.get("target").is_none() {
            missing(
                "target",
                "say where valid rows go: `target: { delta: lake/orders, write: append }`",
            );
        }
    }
}

fn read_transform(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Transform> {
    let Some(items) = node.as_list() else {
        diagnostics.push(node.error(
            "wrong-type",
            format!("`transform` is a list of steps, not {}", node.kind()),
        ));
        return Vec::new();
    };
    let mut steps = Vec::new();
    for item in items {
        let [entry] = item.entries() else {
            diagnostics.push(
                item.error("transform-step", "a step is a mapping with one key")
                    .hint(format!("the steps are {}", crate::nearest::list(TRANSFORMS))),
            );
            continue;
        };
        if !TRANSFORMS.contains(&entry.key.as_str()) {
            diagnostics.push(
                Diagnostic::error("unknown-key", format!("unknown transform `{}`", entry.key))
                    .at(&item.text, entry.key_span)
                    .hint(suggest(&entry.key, TRANSFORMS)),
            );
            continue;
        }
        steps.extend(Step::parse(entry, diagnostics).map(|step| Transform {
            step,
            node: item.clone(),
        }));
    }
    steps
}
