//! The report of a run, `format_version` 1: what machines read, and what every other output
//! format is drawn from (design §6).

use crate::outcome::{Decision, Dimension, Effect, Outcome, RuleKind, Severity};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of this shape.
pub const FORMAT_VERSION: u32 = 1;

/// What one run found and did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Report {
    /// The version of this shape.
    pub format_version: u32,
    /// Unique, and in order of time.
    pub run_id: String,
    /// The pipeline, or the data for a `check`.
    pub pipeline: String,
    /// The unit of work, where the pipeline has units.
    pub unit: Option<String>,
    /// `bronze`, `silver` or `gold`.
    pub layer: Option<String>,
    /// The contract the batch was held against.
    pub contract: Option<ContractRef>,
    /// Digest of all checks with thresholds and severities.
    pub rules_digest: String,
    /// `local`.
    pub engine: String,
    /// When the run began, UTC.
    pub started_at: String,
    /// The one clock reading that every check used, UTC.
    pub now: String,
    /// The time zone in which timestamps without one were read.
    pub timezone: String,
    /// How long it took.
    pub duration_ms: u64,
    /// What the gate decided.
    pub decision: Decision,
    /// Why, one sentence each.
    pub decision_reasons: Vec<String>,
    /// Where the rows went.
    pub rows: Rows,
    /// Valid rows by rows read; null for an empty batch.
    pub score: Option<f64>,
    /// Checks per dimension.
    pub dimensions: IndexMap<Dimension, DimensionCount>,
    /// Every check, in the order of the documents.
    pub checks: Vec<CheckReport>,
    /// What was proved about quantities.
    pub reconciliation: Vec<Reconciliation>,
    /// Where the valid rows went, and where the quarantined ones.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub outputs: IndexMap<String, String>,
    /// What the reader should know: assumptions made, statistics used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Time per step.
    pub timings_ms: IndexMap<String, u64>,
}

/// The contract of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ContractRef {
    /// Its id.
    pub id: String,
    /// Its version.
    pub version: String,
    /// SHA-256 of the document.
    pub digest: String,
}

/// Where the rows of the batch went. `read + added = published + quarantined + held + dropped`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rows {
    /// Rows of the source.
    pub read: u64,
    /// Rows that a transform made beyond those it read (a join that fans out).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub added: u64,
    /// Rows that break no check of severity `quarantine` or `fail`.
    pub valid: u64,
    /// Rows that break at least one.
    pub invalid: u64,
    /// Rows set aside (under `check`: that would be set aside).
    pub quarantined: u64,
    /// Rows that would have been published but for the hold.
    pub held: u64,
    /// Rows that a transform left out, by transform.
    pub dropped: IndexMap<String, u64>,
    /// Rows made visible in the target.
    pub published: u64,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// Checks of one dimension.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DimensionCount {
    /// Checks that look at it.
    pub checks: u64,
    /// Of these, the ones with outcome `pass`.
    pub passed: u64,
}

/// What is true of one check and what was done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckReport {
    /// Stable over renamings and new thresholds (S31).
    pub id: String,
    /// The name given, or one made of rule and columns.
    pub name: String,
    /// The rule.
    pub rule: String,
    /// Columns it looks at, as they are called in the data.
    pub columns: Vec<String>,
    /// Row or table.
    pub kind: RuleKind,
    /// What a break asks for.
    pub severity: Severity,
    /// The side of quality it looks at.
    pub dimension: Dimension,
    /// What is true.
    pub outcome: Outcome,
    /// What was done.
    pub effect: Effect,
    /// The scope, as written.
    #[serde(rename = "where")]
    pub filter: Option<String>,
    /// Rows in scope, unknown ones included.
    pub evaluated: u64,
    /// Rows (row rules) or what the rule counts (table rules) that break it.
    pub failed_count: u64,
    /// `failed_count` by `evaluated`, where that is a share.
    pub failed_ratio: Option<f64>,
    /// Rows on which the promise is neither kept nor broken.
    pub unknown_count: u64,
    /// The number measured; text where a double would not hold it.
    pub metric_value: Value,
    /// The thresholds, as written.
    pub threshold: Option<String>,
    /// Further numbers by name.
    pub details: IndexMap<String, Value>,
    /// One sentence for people.
    pub message: String,
    /// Values of the check's columns on failing rows, capped; `details.sample_capped` says when.
    pub sample: Vec<IndexMap<String, Value>>,
    /// Tags, as written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Where the check stands, as `file:line`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A quantity compared over a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reconciliation {
    /// What was compared: `conservation`, `committed rows`, `sum of amount` …
    pub name: String,
    /// Whether the two agree.
    pub holds: bool,
    /// One side.
    pub left: Value,
    /// The other side.
    pub right: Value,
    /// The equation with its numbers.
    pub message: String,
}
