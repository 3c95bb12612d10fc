//! Sets of rows by their place, as bits: what set-level rules (`unique`) say about rows.

use crate::chunk::Place;
use arrow::buffer::{BooleanBuffer, MutableBuffer};
use std::sync::atomic::{AtomicU32, Ordering};

/// A set of rows by file and row.
#[derive(Debug, Clone, Default)]
pub(crate) struct RowSet {
    /// Per file the bits of its rows, from row 1.
    sources: Vec<Vec<u64>>,
}

impl RowSet {
    /// Adds the rows of a chunk whose bits are set.
    pub(crate) fn add(&mut self, place: Place, bits: &BooleanBuffer) {
        for offset in bits.set_indices() {
            self.insert(place.source, place.first_row + offset as u64);
        }
    }

    /// Adds a row.
    pub(crate) fn insert(&mut self, source: u32, row: u64) {
        let source = source as usize;
        if self.sources.len() <= source {
            self.sources.resize(source + 1, Vec::new());
        }
        let at = (row - 1) as usize;
        let words = &mut self.sources[source];
        if words.len() <= at / 64 {
            words.resize(at / 64 + 1, 0);
        }
        words[at / 64] |= 1 << (at % 64);
    }

    /// Adds all rows of another set.
    pub(crate) fn union(&mut self, other: &RowSet) {
        if self.sources.len() < other.sources.len() {
            self.sources.resize(other.sources.len(), Vec::new());
        }
        for (mine, theirs) in self.sources.iter_mut().zip(&other.sources) {
            if mine.len() < theirs.len() {
                mine.resize(theirs.len(), 0);
            }
            for (word, more) in mine.iter_mut().zip(theirs) {
                *word |= more;
            }
        }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> u64 {
        self.sources
            .iter()
            .flatten()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// The bits of a run of rows; `None` if none is set.
    pub(crate) fn bits(&self, place: Place, rows: usize) -> Option<BooleanBuffer> {
        let words = self.sources.get(place.source as usize)?;
        let start = (place.first_row - 1) as usize;
        let bit = |at: usize| words.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1);
        let first = start / 64;
        let last = (start + rows).div_ceil(64).min(words.len());
        if first >= last || words[first..last].iter().all(|word| *word == 0) {
            return None;
        }
        let bits = MutableBuffer::collect_bool(rows, |offset| bit(start + offset));
        let bits = BooleanBuffer::new(bits.into(), 0, rows);
        (bits.count_set_bits() > 0).then_some(bits)
    }

    /// The first rows in order of place.
    pub(crate) fn first(&self, count: usize) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        for (source, words) in self.sources.iter().enumerate() {
            for (index, word) in words.iter().enumerate().filter(|(_, word)| **word != 0) {
                let mut rest = *word;
                while rest != 0 {
                    if found.len() == count {
                        return found;
                    }
                    found.push((source as u32, index as u64 * 64 + u64::from(rest.trailing_zeros()) + 1));
                    rest &= rest - 1;
                }
            }
        }
        found
    }
}

/// Hands out short row numbers during a scan whose files' lengths are not known yet, and remembers which
/// rows they stand for.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    next: AtomicU32,
}

/// A run of short row numbers and the place of its first row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotRun {
    /// First short number.
    pub(crate) base: u32,
    /// Place of the first row.
    pub(crate) place: Place,
    /// How many rows.
    pub(crate) rows: u32,
}

impl Slots {
    /// Numbers the rows of a chunk. `None` when all 32 bits are used up.
    pub(crate) fn take(&self, place: Place, rows: usize) -> Option<SlotRun> {
        let rows = u32::try_from(rows).ok()?;
        let base = self
            .next
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| next.checked_add(rows))
            .ok()?;
        Some(SlotRun { base, place, rows })
    }

    /// How many numbers were handed out.
    pub(crate) fn count(&self) -> u32 {
        self.next.load(Ordering::Relaxed)
    }
}

/// Bits by short row number, translated into rows.
pub(crate) fn rows_of(bits: &[u64], runs: &[SlotRun]) -> RowSet {
    let mut rows = RowSet::default();
    for run in runs {
        let (start, end) = (run.base as usize, run.base as usize + run.rows as usize);
        for at in start..end {
            if at % 64 == 0 && bits[at / 64] == 0 && at + 64 <= end {
                continue;
            }
            if bits[at / 64] >> (at % 64) & 1 == 1 {
                rows.insert(run.place.source, run.place.first_row + (at - start) as u64);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back_in_order_of_place() {
        let mut rows = RowSet::default();
        rows.insert(1, 3);
        rows.insert(0, 70);
        rows.insert(0, 1);
        assert_eq!(rows.first(2), vec![(0, 1), (0, 70)]);
        assert_eq!(rows.len(), 3);
        let bits = rows
            .bits(
                Place {
                    source: 0,
                    first_row: 64,
                },
                10,
            )
            .unwrap();
        assert_eq!(bits.set_indices().collect::<Vec<_>>(), vec![6]);
        assert!(
            rows.bits(
                Place {
                    source: 0,
                    first_row: 2
                },
                10
            )
            .is_none()
        );
    }

    #[test]
    fn short_numbers_find_their_rows_again() {
        let slots = Slots::default();
        let runs: Vec<SlotRun> = [(0, 1, 100), (1, 1, 50), (0, 101, 30)]
            .iter()
            .map(|(source, first_row, rows)| {
                slots
                    .take(
                        Place {
                            source: *source,
                            first_row: *first_row,
                        },
                        *rows,
                    )
                    .unwrap()
            })
            .collect();
        let mut bits = vec![0u64; 3];
        for slot in [0usize, 99, 100, 179] {
            bits[slot / 64] |= 1 << (slot % 64);
        }
        let rows = rows_of(&bits, &runs);
        assert_eq!(rows.first(9), vec![(0, 1), (0, 100), (0, 130), (1, 1)]);
    }
}
