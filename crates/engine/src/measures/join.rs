//! How rows match those of another table.

use crate::error::Result;
use crate::keys::KeyTable;
use crate::measures::GroupedKeys;
use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use comporta_rules::measure::JoinCounts;
use std::sync::Arc;

/// Matches so far.
#[derive(Debug)]
pub(crate) struct JoinSums {
    table: Arc<KeyTable>,
    keys: GroupedKeys,
    unmatched: u64,
    most_right: u64,
}

impl JoinSums {
    pub(crate) fn new(types: &[DataType], table: Arc<KeyTable>) -> Result<Self> {
        Ok(JoinSums {
            table,
            keys: GroupedKeys::new(types, false)?,
            unmatched: 0,
            most_right: 0,
        })
    }

    pub(crate) fn add(&mut self, columns: &[ArrayRef]) -> Result<()> {
        self.keys.add(columns)?;
        let counts = self.table.counts(columns)?;
        for at in 0..counts.len() {
            if counts.is_valid(at) {
                let count = u64::from(counts.value(at));
                self.unmatched += u64::from(count == 0);
                self.most_right = self.most_right.max(count);
            }
        }
        Ok(())
    }

    pub(crate) fn merge(&mut self, other: JoinSums) {
        self.keys.merge(other.keys);
        self.unmatched += other.unmatched;
        self.most_right = self.most_right.max(other.most_right);
    }

    pub(crate) fn finish(self) -> JoinCounts {
        let most_left = self.keys.most();
        let counts = self.keys.finish();
        JoinCounts {
            rows: counts.rows,
            unknown: counts.unknown,
            unmatched: self.unmatched,
            most_left,
            most_right: self.most_right,
        }
    }
}
