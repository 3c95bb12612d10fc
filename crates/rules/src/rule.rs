//! What a rule is: a definition (name, docs, parameters) and, bound to a schema, either a row
//! check (a three-valued predicate) or a table check (measures and a pure judgement).

use crate::measure::{Measure, MeasureValue};
use crate::scope::Scope;
use comporta_contract::rules_file::{RulesFile, Template};
use comporta_contract::threshold::{Metric, MetricKind};
use comporta_contract::{Diagnostics, Dimension, Node, RuleKind};
use datafusion_expr::Expr;
use indexmap::IndexMap;
use schemars::{Schema, SchemaGenerator};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// What the rules of a family look at (design §3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Family {
    Presence,
    Identity,
    Domain,
    AcrossColumns,
    Shape,
    Volume,
    Statistics,
    Time,
    Free,
}

/// Everything about a rule that does not depend on one use of it.
#[derive(Clone, Copy)]
pub struct Definition {
    /// The key in documents.
    pub name: &'static str,
    /// The family.
    pub family: Family,
    /// Row or table; `None` where its parameters decide (`sql`, `custom`).
    pub kind: Option<RuleKind>,
    /// The side of quality it looks at, unless a check says otherwise.
    pub dimension: Dimension,
    /// The first version that has it.
    pub since: &'static str,
    /// What its thresholds measure; `None` if it takes none.
    pub metric: Option<MetricKind>,
    /// The JSON Schema of what stands behind the key. Its `description` is the rule's page.
    pub schema: fn(&mut SchemaGenerator) -> Schema,
    /// Reads what stands behind the key: one rule per check that it means.
    pub parse: fn(&Node, &Documents, &mut Diagnostics) -> Vec<Arc<dyn Rule>>,
}

/// What a rule may know of the document around it while its parameters are read.
#[derive(Debug, Clone, Default)]
pub struct Documents {
    /// The rules of one's own, for `custom`.
    pub templates: IndexMap<String, Template>,
    /// Names of the tables declared beside the batch, for queries.
    pub tables: Vec<String>,
}

impl From<&RulesFile> for Documents {
    fn from(file: &RulesFile) -> Self {
        Documents {
            templates: file.templates.clone(),
            tables: file.tables.keys().cloned().collect(),
        }
    }
}

impl fmt::Debug for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Definition").field(&self.name).finish()
    }
}

/// What a rule's file declares. [`Definition::of`] turns it into a line of the registry.
pub trait RuleDefinition: Rule + Sized + 'static {
    /// The key in documents.
    const NAME: &'static str;
    /// The family.
    const FAMILY: Family;
    /// Row or table; `None` where its parameters decide.
    const KIND: Option<RuleKind>;
    /// The side of quality it looks at.
    const DIMENSION: Dimension;
    /// The first version that has it.
    const SINCE: &'static str = "0.1.0";
    /// What its thresholds measure.
    const METRIC: Option<MetricKind> = None;

    /// Reads what stands behind the key.
    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self>;
    /// The same for a rule that must know the document around it (`sql`, `custom`).
    fn parse_within(node: &Node, _: &Documents, diagnostics: &mut Diagnostics) -> Vec<Self> {
        Self::parse(node, diagnostics)
    }
    /// The JSON Schema of what stands behind the key, with the rule's page as its description.
    fn schema(generator: &mut SchemaGenerator) -> Schema;
}

impl Definition {
    /// The registry's line for a rule.
    pub const fn of<R: RuleDefinition>() -> Self {
        Definition {
            name: R::NAME,
            family: R::FAMILY,
            kind: R::KIND,
            dimension: R::DIMENSION,
            since: R::SINCE,
            metric: R::METRIC,
            schema: R::schema,
            parse: |node, documents, diagnostics| {
                R::parse_within(node, documents, diagnostics)
                    .into_iter()
                    .map(|rule| Arc::new(rule) as Arc<dyn Rule>)
                    .collect()
            },
        }
    }
}

/// One use of a rule, with its parameters.
pub trait Rule: fmt::Debug + Send + Sync {
    /// The columns it names, as written; used for the check's name before the schema is known.
    fn columns(&self) -> Vec<String>;

    /// The parameters in canonical form, without the columns: part of the check's id (S31).
    fn parameters(&self) -> Value;

    /// Row or table, for a rule whose parameters decide.
    fn kind(&self) -> Option<RuleKind> {
        None
    }

    /// What its thresholds measure, for a rule whose parameters decide.
    fn metric(&self) -> Option<MetricKind> {
        None
    }

    /// Whether a threshold is needed for there to be a promise at all (`avg` without `must_be`
    /// says nothing), and which one holds where the check gives none.
    fn default_must_be(&self) -> Option<&'static str> {
        None
    }

    /// The rule against a schema. Missing columns, ambiguous names, literals of another type show here.
    ///
    /// # Errors
    /// Why this check cannot be evaluated; the other checks still run (S2).
    fn bind(&self, scope: &Scope) -> Result<Bound, BindError>;
}

/// Why a check cannot be evaluated.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BindError {
    /// What is wrong, as a lower-case fragment.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl BindError {
    /// An error without a hint.
    pub fn new(message: impl Into<String>) -> Self {
        BindError {
            message: message.into(),
            hint: None,
        }
    }

    /// The same error with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A rule bound to a schema.
#[derive(Debug, Clone)]
pub enum Bound {
    /// Says of each row whether it holds.
    Row(RowCheck),
    /// Judges the batch.
    Table(TableCheck),
}

/// A row rule bound to a schema. The columns it reads are those its [`Scope`] handed out.
#[derive(Debug, Clone)]
pub struct RowCheck {
    /// What must be true of each row.
    pub holds: Holds,
    /// Why a row breaks it, as a fragment in which `{value}` stands for the value of the first
    /// column: "`amount` is {value}, below the minimum 0".
    pub reason: String,
}

/// What must be true of each row.
#[derive(Debug, Clone, PartialEq)]
pub enum Holds {
    /// The expression: TRUE holds, FALSE is a violation, NULL is unknown (S9). A row on which it
    /// cannot be computed violates it (S22).
    Expr(Expr),
    /// No other row in scope has the same key (S13).
    Unique {
        /// The key.
        keys: Vec<Expr>,
        /// Whether a NULL part compares like a value; otherwise the row is unknown.
        nulls_equal: bool,
    },
    /// The key is one of the referenced ones (S14). A NULL part makes the row unknown.
    Member {
        /// The key.
        keys: Vec<Expr>,
        /// Where the referenced keys are.
        of: Reference,
    },
    /// The cell of this column could be read as the column's type (S17).
    CellParses {
        /// The column's name in the schema.
        column: String,
    },
    /// The line had the shape of a row (S17).
    LineParses,
}

/// Keys that other data refers to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reference {
    /// Columns of a table declared under `tables:`.
    Table {
        /// The table's name.
        table: String,
        /// Its key columns, in the order of the referring ones.
        columns: Vec<String>,
    },
    /// Columns of a file, read as a source without options.
    Path {
        /// The file.
        path: String,
        /// Its key columns.
        columns: Vec<String>,
    },
    /// Values written in the document, one row of literals each.
    Values(Vec<Vec<comporta_contract::Literal>>),
}

/// A table rule bound to a schema.
#[derive(Clone)]
pub struct TableCheck {
    /// The numbers it needs. Equal ones of several checks are computed once.
    pub measures: Vec<Measure>,
    /// What the numbers mean; pure. Values come in the order of `measures`.
    pub judge: Judge,
}

/// A pure judgement over measured values.
pub type Judge = Arc<dyn Fn(&[MeasureValue]) -> Finding + Send + Sync>;

impl fmt::Debug for TableCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCheck")
            .field("measures", &self.measures)
            .finish_non_exhaustive()
    }
}

/// What a table rule found, before thresholds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Finding {
    /// The number to hold against the thresholds; `None` is `no_data`, unless `broken` says more.
    pub metric: Option<Metric>,
    /// The rule's own verdict (`row_count` with bounds, `schema`), where it has one beside thresholds.
    pub broken: Option<bool>,
    /// How many things break it, where that is a count.
    pub failed_count: u64,
    /// What `failed_count` is a share of; the rows in scope if `None`.
    pub evaluated: Option<u64>,
    /// Further numbers by name.
    pub details: IndexMap<String, Value>,
    /// What was found, as a sentence fragment: "3 of 7 rows have no `discount`".
    pub message: String,
    /// Why the check could not be evaluated after all (an overflow of 76 digits).
    pub error: Option<String>,
}

impl Finding {
    /// A check whose measure could not be computed.
    pub fn error(message: impl Into<String>) -> Self {
        Finding {
            error: Some(message.into()),
            ..Finding::default()
        }
    }

    /// The engine handed over other values than asked for: the measure's own error, or a bug of ours.
    pub fn unexpected(values: &[MeasureValue]) -> Self {
        let error = values.iter().find_map(|value| match value {
            MeasureValue::Error(message) => Some(message.clone()),
            _ => None,
        });
        Finding::error(error.unwrap_or_else(|| format!("the engine measured something else: {values:?}")))
    }
}
