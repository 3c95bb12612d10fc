//! The checks of a job compiled for one pass over the batch: which columns are read, which expressions are
//! evaluated, which numbers are collected. Equal filters and measures are computed once.

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::keys::{KeySpace, KeyTable};
use crate::measures::{Accumulator, Extremes, GroupedKeys, Groups, JoinSums, MomentSums, RankedValues};
use crate::predicate::{compile, or, selected};
use crate::rows::RowSet;
use arrow::buffer::BooleanBuffer;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use comporta_contract::{NullPolicy, RuleKind, Severity};
use comporta_rules::{Bound, BoundCheck, Check, Holds, Measure, Reference};
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::physical_expr::PhysicalExpr;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// A check with its place in the job and its bound form.
#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) check: Check,
    pub(crate) bound: BoundCheck,
}

impl Slot {
    /// Whether a row that violates it is invalid (S5).
    pub(crate) fn weighs(&self) -> bool {
        self.check.kind == RuleKind::Row && self.check.severity >= Severity::Quarantine
    }

    /// Whether a row that violates it is set aside: always under `quarantine`; under `fail` when no such row is
    /// tolerated, as evidence of the hold that must follow.
    pub(crate) fn sets_aside(&self) -> bool {
        self.check.kind == RuleKind::Row
            && (self.check.severity == Severity::Quarantine
                || (self.check.severity == Severity::Fail
                    && self.check.must_be.is_none()
                    && self.check.attributes.warn.is_none()))
    }
}

/// A filter shared by checks.
#[derive(Debug)]
pub(crate) struct Filter {
    expr: Arc<dyn PhysicalExpr>,
    columns: Vec<usize>,
}

/// A row check in a pass.
#[derive(Debug)]
pub(crate) struct RowTest {
    /// Index of the check in the job.
    pub(crate) slot: usize,
    pub(crate) test: Test,
    pub(crate) filter: Option<usize>,
    /// Columns of the batch that it reads: a bad cell in one makes the row unknown.
    pub(crate) columns: Vec<usize>,
    pub(crate) nulls_violate: bool,
    pub(crate) weighs: bool,
    pub(crate) sets_aside: bool,
}

/// How a row check is evaluated.
#[derive(Debug)]
pub(crate) enum Test {
    /// An expression that is true where the promise is kept.
    Expr(Arc<dyn PhysicalExpr>),
    /// Keys that no other row has: the rows that break it come from an earlier pass, or are added after this one.
    Unique {
        keys: Vec<Arc<dyn PhysicalExpr>>,
        nulls_equal: bool,
        repeated: Option<Arc<RowSet>>,
    },
    /// Keys that another table has.
    Member {
        keys: Vec<Arc<dyn PhysicalExpr>>,
        table: Arc<KeyTable>,
    },
    /// A cell that parsed.
    Cell(usize),
    /// A line that has the shape of a row.
    Line,
}

/// A measure in a pass.
#[derive(Debug)]
pub(crate) struct MeasureTest {
    pub(crate) inputs: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) filter: Option<usize>,
    pub(crate) columns: Vec<usize>,
    pub(crate) kind: MeasureKind,
}

/// What kind of accumulator a measure needs.
#[derive(Debug, Clone)]
pub(crate) enum MeasureKind {
    Rows,
    Matches,
    Extremes,
    Moments,
    Ranked(DataType),
    Keys { types: Vec<DataType>, nulls_equal: bool },
    Join { types: Vec<DataType>, table: Arc<KeyTable> },
}

impl MeasureKind {
    pub(crate) fn accumulator(&self) -> Result<Accumulator> {
        Ok(match self {
            MeasureKind::Rows => Accumulator::Rows(0),
            MeasureKind::Matches => Accumulator::Matches {
                matched: 0,
                unknown: 0,
                rows: 0,
            },
            MeasureKind::Extremes => Accumulator::Extremes(Extremes::default()),
            MeasureKind::Moments => Accumulator::Moments(Box::<MomentSums>::default()),
            MeasureKind::Ranked(data_type) => Accumulator::Ranked(RankedValues::new(data_type)),
            MeasureKind::Keys { types, nulls_equal } => Accumulator::Keys(GroupedKeys::new(types, *nulls_equal)?),
            MeasureKind::Join { types, table } => Accumulator::Join(JoinSums::new(types, table.clone())?),
        })
    }
}

/// Keys collected over the whole pass.
#[derive(Debug)]
pub(crate) struct KeyTest {
    pub(crate) inputs: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) filter: Option<usize>,
    pub(crate) columns: Vec<usize>,
    pub(crate) space: Arc<KeySpace>,
}

/// The measures of a grouped check.
#[derive(Debug)]
pub(crate) struct GroupTest {
    pub(crate) slot: usize,
    pub(crate) group_by: Vec<Arc<dyn PhysicalExpr>>,
    pub(crate) types: Vec<DataType>,
    pub(crate) measures: Vec<MeasureTest>,
    pub(crate) filter: Option<usize>,
    pub(crate) columns: Vec<usize>,
}

/// Where the value of a check's measure comes from.
#[derive(Debug, Clone)]
pub(crate) enum ValueOf {
    /// A measure of the pass.
    Measure(usize),
    /// Collected keys.
    Keys(usize),
    /// A query of its own, by its place among the check's measures.
    Query(usize),
    /// A value known without reading.
    Known(comporta_rules::MeasureValue),
}

/// A pass.
#[derive(Debug)]
pub(crate) struct Program {
    /// Columns of the source that are read, in ascending order.
    pub(crate) projection: Vec<usize>,
    /// The schema of the chunks.
    pub(crate) schema: SchemaRef,
    pub(crate) filters: Vec<Filter>,
    pub(crate) rows: Vec<RowTest>,
    pub(crate) measures: Vec<MeasureTest>,
    pub(crate) keys: Vec<KeyTest>,
    pub(crate) groups: Vec<GroupTest>,
    /// Per check of the job where the values of its measures come from (table checks).
    pub(crate) values: Vec<Vec<ValueOf>>,
    /// Per check of the job the keys it is resolved by (`unique` without an earlier pass).
    pub(crate) unique_keys: HashMap<usize, usize>,
    /// Checks that could not be compiled.
    pub(crate) faults: HashMap<usize, String>,
}

/// What keys are told apart by: expressions, whether nulls are equal, filter, columns.
type KeyIdentity = (Vec<Expr>, bool, Option<Expr>, Vec<String>);

/// Builds a [`Program`].
pub(crate) struct ProgramBuilder<'a> {
    slots: &'a [Slot],
    program: Program,
    known_filters: HashMap<Expr, usize>,
    known_measures: HashMap<(Measure, Option<Expr>, Vec<String>), usize>,
    known_keys: HashMap<KeyIdentity, usize>,
    tables: &'a HashMap<(Reference, usize), Arc<KeyTable>>,
    memory: (usize, Arc<AtomicUsize>),
    spill_dir: &'a Path,
}

impl<'a> ProgramBuilder<'a> {
    /// A pass that reads the columns which `wanted` checks need, or all columns.
    pub(crate) fn new(
        schema: &Schema,
        slots: &'a [Slot],
        wanted: &dyn Fn(usize) -> bool,
        all_columns: bool,
        tables: &'a HashMap<(Reference, usize), Arc<KeyTable>>,
        memory_bytes: usize,
        spill_dir: &'a Path,
    ) -> Result<Self> {
        let names: BTreeSet<&str> = slots
            .iter()
            .enumerate()
            .filter(|(index, slot)| wanted(*index) && slot.bound.bound.is_ok())
            .flat_map(|(_, slot)| slot.bound.columns.iter().chain(&slot.bound.scope_columns))
            .map(String::as_str)
            .collect();
        let projection: Vec<usize> = (0..schema.fields().len())
            .filter(|index| all_columns || names.contains(schema.field(*index).name().as_str()))
            .collect();
        let projected = Arc::new(schema.project(&projection)?);
        Ok(ProgramBuilder {
            slots,
            program: Program {
                projection,
                schema: projected,
                filters: Vec::new(),
                rows: Vec::new(),
                measures: Vec::new(),
                keys: Vec::new(),
                groups: Vec::new(),
                values: vec![Vec::new(); slots.len()],
                unique_keys: HashMap::new(),
                faults: HashMap::new(),
            },
            known_filters: HashMap::new(),
            known_measures: HashMap::new(),
            known_keys: HashMap::new(),
            tables,
            memory: (memory_bytes, Arc::default()),
            spill_dir,
        })
    }

    pub(crate) fn finish(self) -> Program {
        self.program
    }

    /// Adds a row check. `repeated` are the rows that break a `unique` check, where an earlier pass found them.
    pub(crate) fn add_row(&mut self, index: usize, repeated: Option<Arc<RowSet>>) {
        if let Err(error) = self.try_add_row(index, repeated) {
            self.program.faults.insert(index, error.message);
        }
    }

    fn try_add_row(&mut self, index: usize, repeated: Option<Arc<RowSet>>) -> Result<()> {
        let slot = &self.slots[index];
        let Ok(Bound::Row(row)) = &slot.bound.bound else {
            return Ok(());
        };
        let test = match &row.holds {
            Holds::Expr(expr) => Test::Expr(compile(expr, &self.program.schema)?),
            Holds::Unique { keys, nulls_equal } => {
                if repeated.is_none() {
                    let key = self.keys(keys, *nulls_equal, slot)?;
                    self.program.unique_keys.insert(index, key);
                }
                Test::Unique {
                    keys: self.compile_all(keys)?,
                    nulls_equal: *nulls_equal,
                    repeated,
                }
            }
            Holds::Member { keys, of } => {
                let table = self.tables.get(&(of.clone(), index)).cloned();
                let table = table.ok_or_else(|| Error::internal("the referenced table was not loaded"))?;
                Test::Member {
                    keys: self.compile_all(keys)?,
                    table,
                }
            }
            Holds::CellParses { column } => Test::Cell(self.program.schema.index_of(column)?),
            Holds::LineParses => Test::Line,
        };
        let filter = self.filter(slot)?;
        let columns = match test {
            Test::Cell(_) | Test::Line => Vec::new(),
            _ => self.indices(&slot.bound.columns),
        };
        self.program.rows.push(RowTest {
            slot: index,
            test,
            filter,
            columns,
            nulls_violate: slot.check.attributes.nulls == NullPolicy::Violate,
            weighs: slot.weighs(),
            sets_aside: slot.sets_aside(),
        });
        Ok(())
    }

    /// Adds the keys of a `unique` check alone: the pass before a split.
    pub(crate) fn add_keys_of(&mut self, index: usize) {
        let slot = &self.slots[index];
        if let Ok(Bound::Row(row)) = &slot.bound.bound
            && let Holds::Unique { keys, nulls_equal } = &row.holds
        {
            match self.keys(keys, *nulls_equal, slot) {
                Ok(key) => {
                    self.program.unique_keys.insert(index, key);
                }
                Err(error) => {
                    self.program.faults.insert(index, error.message);
                }
            }
        }
    }

    /// Adds the measures of a table check; `known` are those that statistics give.
    pub(crate) fn add_table(&mut self, index: usize, known: Vec<Option<comporta_rules::MeasureValue>>) {
        if let Err(error) = self.try_add_table(index, known) {
            self.program.faults.insert(index, error.message);
        }
    }

    fn try_add_table(&mut self, index: usize, known: Vec<Option<comporta_rules::MeasureValue>>) -> Result<()> {
        let slot = &self.slots[index];
        let Ok(Bound::Table(table)) = &slot.bound.bound else {
            return Ok(());
        };
        if !slot.bound.group_by.is_empty() {
            return self.add_groups(index, &table.measures);
        }
        let mut values = Vec::with_capacity(table.measures.len());
        for (position, measure) in table.measures.iter().enumerate() {
            let value = match (known.get(position).cloned().flatten(), measure) {
                (Some(value), _) => ValueOf::Known(value),
                (None, Measure::ScalarQuery(_) | Measure::FailedRows(_)) => ValueOf::Query(position),
                (None, Measure::Keys { keys, nulls_equal }) => ValueOf::Keys(self.keys(keys, *nulls_equal, slot)?),
                (None, measure) => ValueOf::Measure(self.measure(measure, index)?),
            };
            values.push(value);
        }
        self.program.values[index] = values;
        Ok(())
    }

    fn add_groups(&mut self, index: usize, measures: &[Measure]) -> Result<()> {
        let slot = &self.slots[index];
        let mut tests = Vec::new();
        for measure in measures {
            tests.push(self.measure_test(measure, index)?);
        }
        let schema = datafusion::common::DFSchema::try_from(self.program.schema.as_ref().clone())?;
        let types = slot
            .bound
            .group_by
            .iter()
            .map(|expr| expr.get_type(&schema))
            .collect::<Result<_, _>>()?;
        let group = GroupTest {
            slot: index,
            group_by: self.compile_all(&slot.bound.group_by)?,
            types,
            measures: tests,
            filter: self.filter(slot)?,
            columns: self.indices(&slot.bound.columns),
        };
        self.program.groups.push(group);
        Ok(())
    }

    fn measure(&mut self, measure: &Measure, index: usize) -> Result<usize> {
        let slot = &self.slots[index];
        // Only the columns of this measure can make its cells bad; the key keeps measures of other columns apart.
        let key = (measure.clone(), slot.bound.filter.clone(), slot.bound.columns.clone());
        let shared = !matches!(measure, Measure::Join { .. });
        if let Some(known) = self.known_measures.get(&key).filter(|_| shared) {
            return Ok(*known);
        }
        let test = self.measure_test(measure, index)?;
        self.program.measures.push(test);
        self.known_measures.insert(key, self.program.measures.len() - 1);
        Ok(self.program.measures.len() - 1)
    }

    fn measure_test(&mut self, measure: &Measure, index: usize) -> Result<MeasureTest> {
        let slot = &self.slots[index];
        let schema = datafusion::common::DFSchema::try_from(self.program.schema.as_ref().clone())?;
        let types = |exprs: &[Expr]| -> Result<Vec<DataType>> {
            Ok(exprs
                .iter()
                .map(|expr| expr.get_type(&schema))
                .collect::<Result<_, _>>()?)
        };
        let (inputs, kind) = match measure {
            Measure::Rows => (Vec::new(), MeasureKind::Rows),
            Measure::Matches(expr) => (vec![expr.clone()], MeasureKind::Matches),
            Measure::Extremes(expr) => (vec![expr.clone()], MeasureKind::Extremes),
            Measure::Moments(expr) => (vec![expr.clone()], MeasureKind::Moments),
            Measure::Ranked(expr) => {
                let data_type = expr.get_type(&schema)?;
                (vec![expr.clone()], MeasureKind::Ranked(data_type))
            }
            Measure::Keys { keys, nulls_equal } => (
                keys.clone(),
                MeasureKind::Keys {
                    types: types(keys)?,
                    nulls_equal: *nulls_equal,
                },
            ),
            Measure::Join { keys, with } => {
                let table = self.tables.get(&(with.clone(), index)).cloned();
                let table = table.ok_or_else(|| Error::internal("the other table was not loaded"))?;
                (
                    keys.clone(),
                    MeasureKind::Join {
                        types: types(keys)?,
                        table,
                    },
                )
            }
            Measure::ScalarQuery(_) | Measure::FailedRows(_) => {
                return Err(Error::invalid("a query cannot be grouped; group inside the query"));
            }
        };
        let columns = match kind {
            MeasureKind::Rows => Vec::new(),
            _ => self.indices(&slot.bound.columns),
        };
        Ok(MeasureTest {
            inputs: self.compile_all(&inputs)?,
            filter: self.filter(slot)?,
            columns,
            kind,
        })
    }

    fn keys(&mut self, keys: &[Expr], nulls_equal: bool, slot: &Slot) -> Result<usize> {
        let identity = (
            keys.to_vec(),
            nulls_equal,
            slot.bound.filter.clone(),
            slot.bound.columns.clone(),
        );
        if let Some(known) = self.known_keys.get(&identity) {
            return Ok(*known);
        }
        let schema = datafusion::common::DFSchema::try_from(self.program.schema.as_ref().clone())?;
        let types = keys
            .iter()
            .map(|expr| expr.get_type(&schema))
            .collect::<Result<Vec<_>, _>>()?;
        let (limit, used) = &self.memory;
        let space = KeySpace::new(&types, nulls_equal, *limit, used.clone(), self.spill_dir);
        let test = KeyTest {
            inputs: self.compile_all(keys)?,
            filter: self.filter(slot)?,
            columns: self.indices(&slot.bound.columns),
            space: Arc::new(space),
        };
        self.program.keys.push(test);
        self.known_keys.insert(identity, self.program.keys.len() - 1);
        Ok(self.program.keys.len() - 1)
    }

    fn filter(&mut self, slot: &Slot) -> Result<Option<usize>> {
        let Some(expr) = &slot.bound.filter else {
            return Ok(None);
        };
        if let Some(known) = self.known_filters.get(expr) {
            return Ok(Some(*known));
        }
        let mut names = Vec::new();
        expr.apply(|node| {
            if let Expr::Column(column) = node {
                names.push(column.name.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        let filter = Filter {
            expr: compile(expr, &self.program.schema)?,
            columns: self.indices(&names),
        };
        self.program.filters.push(filter);
        self.known_filters.insert(expr.clone(), self.program.filters.len() - 1);
        Ok(Some(self.program.filters.len() - 1))
    }

    fn compile_all(&self, exprs: &[Expr]) -> Result<Vec<Arc<dyn PhysicalExpr>>> {
        exprs.iter().map(|expr| compile(expr, &self.program.schema)).collect()
    }

    fn indices(&self, names: &[String]) -> Vec<usize> {
        names
            .iter()
            .filter_map(|name| self.program.schema.index_of(name).ok())
            .collect()
    }
}

impl Program {
    /// The rows in each filter's scope, once per chunk. A filter that reads a bad cell is unknown, so the row is
    /// out of scope (S10).
    pub(crate) fn scopes(&self, chunk: &Chunk) -> Result<Vec<Option<BooleanBuffer>>> {
        self.filters
            .iter()
            .map(|filter| {
                let inside = selected(filter.expr.as_ref(), &chunk.batch)?;
                Ok(match (inside, bad_rows(chunk, &filter.columns)) {
                    (inside, None) => inside,
                    (None, Some(bad)) => Some(!&bad),
                    (Some(inside), Some(bad)) => Some(&inside & &(!&bad)),
                })
            })
            .collect()
    }
}

/// Rows that have a bad cell in one of the columns, or no cells at all because the line has not the shape of a
/// row.
pub(crate) fn bad_rows(chunk: &Chunk, columns: &[usize]) -> Option<BooleanBuffer> {
    if chunk.is_clean() {
        return None;
    }
    let cells = chunk
        .bad_cells
        .iter()
        .filter(|cells| columns.contains(&cells.column))
        .fold(None, |bad, cells| or(bad, Some(cells.bad.clone())));
    let lines = chunk
        .bad_lines
        .as_ref()
        .filter(|_| !columns.is_empty())
        .map(|lines| lines.bad.clone());
    or(cells, lines)
}

/// Makes the accumulators of a new group.
pub(crate) fn groups_of(test: &GroupTest) -> Result<Groups> {
    let kinds: Vec<MeasureKind> = test.measures.iter().map(|measure| measure.kind.clone()).collect();
    // Made once here so that a kind that cannot be made is an error now, and never later.
    kinds.iter().try_for_each(|kind| kind.accumulator().map(drop))?;
    Groups::new(
        &test.types,
        Box::new(move || kinds.iter().filter_map(|kind| kind.accumulator().ok()).collect()),
    )
}
