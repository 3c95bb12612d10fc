//! Measures per group: the rows of each group in a chunk are fed to accumulators of their own.

use crate::error::Result;
use crate::keys::hash_bytes;
use crate::measures::Accumulator;
use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use comporta_rules::measure::{KeyCounts, MeasureValue};
use hashbrown::HashTable;
use std::collections::BTreeMap;

/// Makes the accumulators of a new group.
pub(crate) type Make = Box<dyn Fn() -> Vec<Accumulator> + Send + Sync>;

/// The groups of one check and their accumulators.
pub(crate) struct Groups {
    converter: RowConverter,
    by_key: BTreeMap<Vec<u8>, Vec<Accumulator>>,
    make: Make,
}

impl std::fmt::Debug for Groups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Groups")
            .field("groups", &self.by_key.len())
            .finish_non_exhaustive()
    }
}

impl Groups {
    pub(crate) fn new(types: &[DataType], make: Make) -> Result<Self> {
        let fields = types.iter().map(|ty| SortField::new(ty.clone())).collect();
        Ok(Groups {
            converter: RowConverter::new(fields)?,
            by_key: BTreeMap::new(),
            make,
        })
    }

    /// Adds the rows in scope to their groups. `inputs` are the values per measure.
    pub(crate) fn add(
        &mut self,
        group_by: &[ArrayRef],
        inputs: &[Vec<ArrayRef>],
        rows: usize,
        scope: Option<&BooleanBuffer>,
        bad: Option<&BooleanBuffer>,
    ) -> Result<()> {
        let encoded = self.converter.convert_columns(group_by)?;
        let mut members: BTreeMap<&[u8], Vec<u32>> = BTreeMap::new();
        let keys: Vec<_> = (0..rows).map(|at| encoded.row(at)).collect();
        for (at, key) in keys.iter().enumerate() {
            if scope.is_none_or(|scope| scope.value(at)) {
                members.entry(key.as_ref()).or_default().push(at as u32);
            }
        }
        for (key, rows_of_group) in members {
            let indices = UInt32Array::from(rows_of_group);
            let bad =
                bad.map(|bad| BooleanBuffer::from_iter(indices.values().iter().map(|at| bad.value(*at as usize))));
            let accumulators = self.by_key.entry(key.to_vec()).or_insert_with(&self.make);
            for (accumulator, values) in accumulators.iter_mut().zip(inputs) {
                let taken: Vec<ArrayRef> = values
                    .iter()
                    .map(|column| arrow::compute::take(column, &indices, None))
                    .collect::<Result<_, _>>()?;
                accumulator.add(&taken, indices.len(), None, bad.as_ref())?;
            }
        }
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: Groups) -> Result<()> {
        for (key, theirs) in other.by_key {
            match self.by_key.entry(key) {
                std::collections::btree_map::Entry::Vacant(vacant) => {
                    vacant.insert(theirs);
                }
                std::collections::btree_map::Entry::Occupied(mut mine) => {
                    for (mine, theirs) in mine.get_mut().iter_mut().zip(theirs) {
                        mine.merge(theirs)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Each group's key, as one row of the columns, and its values.
    pub(crate) fn finish(self) -> Result<Vec<(Vec<ArrayRef>, Vec<MeasureValue>)>> {
        let parser = self.converter.parser();
        let mut groups = Vec::with_capacity(self.by_key.len());
        for (key, accumulators) in self.by_key {
            let columns = self.converter.convert_rows([parser.parse(&key)])?;
            groups.push((columns, accumulators.into_iter().map(Accumulator::finish).collect()));
        }
        Ok(groups)
    }
}

/// The keys of one group, all in memory.
#[derive(Debug)]
pub(crate) struct GroupedKeys {
    converter: RowConverter,
    nulls_equal: bool,
    table: HashTable<(Box<[u8]>, u64)>,
    rows: u64,
    unknown: u64,
}

impl GroupedKeys {
    pub(crate) fn new(types: &[DataType], nulls_equal: bool) -> Result<Self> {
        let fields = types.iter().map(|ty| SortField::new(ty.clone())).collect();
        Ok(GroupedKeys {
            converter: RowConverter::new(fields)?,
            nulls_equal,
            table: HashTable::new(),
            rows: 0,
            unknown: 0,
        })
    }

    pub(crate) fn add(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let nulls = columns.iter().fold(None, |nulls, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let encoded = self.converter.convert_columns(columns)?;
        for at in 0..encoded.num_rows() {
            if !self.nulls_equal && nulls.as_ref().is_some_and(|nulls| nulls.is_null(at)) {
                self.unknown += 1;
                continue;
            }
            self.rows += 1;
            self.count(encoded.row(at).as_ref(), 1);
        }
        Ok(())
    }

    fn count(&mut self, key: &[u8], by: u64) {
        let hash = hash_bytes(key);
        match self.table.find_mut(hash, |(known, _)| &**known == key) {
            Some((_, count)) => *count += by,
            None => {
                self.table
                    .insert_unique(hash, (key.into(), by), |(known, _)| hash_bytes(known));
            }
        }
    }

    pub(crate) fn merge(&mut self, other: GroupedKeys) {
        self.rows += other.rows;
        self.unknown += other.unknown;
        for (key, count) in other.table.iter() {
            self.count(key, *count);
        }
    }

    /// Most rows of one key.
    pub(crate) fn most(&self) -> u64 {
        self.table.iter().map(|(_, count)| *count).max().unwrap_or(0)
    }

    pub(crate) fn finish(self) -> KeyCounts {
        let mut counts = KeyCounts {
            rows: self.rows,
            unknown: self.unknown,
            ..KeyCounts::default()
        };
        for (_, count) in &self.table {
            counts.distinct += 1;
            if *count > 1 {
                counts.repeated_keys += 1;
                counts.repeated_rows += count;
            }
        }
        counts
    }
}
