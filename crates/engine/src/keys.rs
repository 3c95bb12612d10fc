//! Keys of all rows, for `unique` and what counts by key: the only state that grows with rows. It is kept
//! in 256 buckets by hash, goes to disk above a limit, and is resolved bucket by bucket. A hash finds
//! candidates; equality decides (S13).

use crate::error::{Error, Result};
use crate::rows::{RowSet, SlotRun, Slots, rows_of};
use arrow::array::{Array, ArrayRef, AsArray};
use arrow::buffer::{BooleanBuffer, NullBuffer};
use arrow::datatypes::{DataType, Float32Type, Float64Type, UInt32Type};
use arrow::row::{RowConverter, SortField};
use comporta_rules::measure::KeyCounts;
use hashbrown::HashTable;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Buckets that keys are spread over. A bucket is what must fit into memory at the end.
const BUCKETS: usize = 256;
/// Entries of a block: small enough that 256 of them per task are a few megabytes.
const BLOCK_BYTES: usize = 12 * 1024;

/// What is shared by the tasks that collect one key.
#[derive(Debug)]
pub(crate) struct KeySpace {
    layout: Layout,
    nulls_equal: bool,
    memory_limit: usize,
    memory_used: Arc<AtomicUsize>,
    spill_dir: PathBuf,
}

/// How a key is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layout {
    /// One column whose values are at most 64 bits wide and equal when their bits are.
    Word,
    /// Anything else, as comparable bytes.
    Bytes(Vec<SortField>),
}

impl KeySpace {
    /// A place for the keys of these types.
    pub(crate) fn new(
        types: &[DataType],
        nulls_equal: bool,
        memory_limit: usize,
        memory_used: Arc<AtomicUsize>,
        spill_dir: &Path,
    ) -> Self {
        let layout = match types {
            [one] if !nulls_equal && is_word(one) => Layout::Word,
            types => Layout::Bytes(types.iter().map(|ty| SortField::new(ty.clone())).collect()),
        };
        KeySpace {
            layout,
            nulls_equal,
            memory_limit,
            memory_used,
            spill_dir: spill_dir.to_path_buf(),
        }
    }
}

fn is_word(data_type: &DataType) -> bool {
    match data_type {
        DataType::Decimal128(precision, _) => *precision <= 18,
        other => {
            other.is_integer()
                || matches!(
                    other,
                    DataType::Date32
                        | DataType::Date64
                        | DataType::Timestamp(..)
                        | DataType::Time32(_)
                        | DataType::Time64(_)
                        | DataType::Decimal32(..)
                        | DataType::Decimal64(..)
                )
        }
    }
}

/// The keys that one task has seen.
#[derive(Debug)]
pub(crate) struct KeyCollector {
    space: Arc<KeySpace>,
    converter: Option<RowConverter>,
    buckets: Vec<Bucket>,
    runs: Vec<SlotRun>,
    rows: u64,
    unknown: u64,
    spill: Option<Spill>,
    reserved: usize,
}

#[derive(Debug, Default)]
struct Bucket {
    blocks: Vec<Vec<u8>>,
    segments: Vec<(u64, usize)>,
}

#[derive(Debug)]
struct Spill {
    file: File,
    end: u64,
}

impl KeyCollector {
    pub(crate) fn new(space: &Arc<KeySpace>) -> Result<Self> {
        let converter = match &space.layout {
            Layout::Word => None,
            Layout::Bytes(fields) => Some(RowConverter::new(fields.clone())?),
        };
        Ok(KeyCollector {
            space: space.clone(),
            converter,
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
            runs: Vec::new(),
            rows: 0,
            unknown: 0,
            spill: None,
            reserved: 0,
        })
    }

    /// Adds the keys of a chunk: the rows of `scope` (`None`: all), less those with an unknown part.
    pub(crate) fn add(
        &mut self,
        columns: &[ArrayRef],
        scope: Option<&BooleanBuffer>,
        bad: Option<&BooleanBuffer>,
        slots: &Slots,
        place: crate::chunk::Place,
    ) -> Result<()> {
        let rows = columns.first().map_or(0, |column| column.len());
        let known = self.known(columns, scope, bad, rows);
        let run = slots.take(place, rows).ok_or_else(|| {
            Error::invalid("more than 4,294,967,295 rows cannot be compared by key in one run")
                .hint("split the batch into units")
        })?;
        self.runs.push(run);
        match &self.space.layout {
            Layout::Word => self.add_words(&columns[0], known.as_ref(), run.base),
            Layout::Bytes(_) => self.add_bytes(columns, known.as_ref(), run.base)?,
        }
        if self.space.memory_used.load(Ordering::Relaxed) > self.space.memory_limit {
            self.spill()?;
        }
        Ok(())
    }

    /// The rows in scope whose key is known; counts them and the others.
    fn known(
        &mut self,
        columns: &[ArrayRef],
        scope: Option<&BooleanBuffer>,
        bad: Option<&BooleanBuffer>,
        rows: usize,
    ) -> Option<BooleanBuffer> {
        let in_scope = scope.map_or(rows, BooleanBuffer::count_set_bits);
        let mut nulls: Option<NullBuffer> = bad.map(|bad| NullBuffer::new(!bad));
        if !self.space.nulls_equal {
            for column in columns {
                nulls = NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref());
            }
        }
        let known = match (scope, nulls) {
            (scope, None) => scope.cloned(),
            (None, Some(nulls)) => Some(nulls.into_inner()),
            (Some(scope), Some(nulls)) => Some(scope & nulls.inner()),
        };
        let count = known.as_ref().map_or(rows, BooleanBuffer::count_set_bits);
        self.rows += count as u64;
        self.unknown += (in_scope - count) as u64;
        known
    }

    fn add_words(&mut self, column: &ArrayRef, known: Option<&BooleanBuffer>, base: u32) {
        let words = words_of(column);
        let mut push = |at: usize| {
            let word = words[at];
            let bucket = &mut self.buckets[bucket_of(mix(word))];
            let block = bucket.room(12, &mut self.reserved);
            block.extend_from_slice(&word.to_ne_bytes());
            block.extend_from_slice(&(base + at as u32).to_ne_bytes());
        };
        match known {
            None => (0..words.len()).for_each(&mut push),
            Some(known) => known.set_indices().for_each(&mut push),
        }
        self.account();
    }

    fn add_bytes(&mut self, columns: &[ArrayRef], known: Option<&BooleanBuffer>, base: u32) -> Result<()> {
        let columns: Vec<ArrayRef> = columns.iter().map(canonical_floats).collect();
        let Some(converter) = &self.converter else {
            return Err(Error::internal("keys have no converter"));
        };
        let encoded = converter.convert_columns(&columns)?;
        let mut push = |at: usize| {
            let row = encoded.row(at);
            let key: &[u8] = row.as_ref();
            let bucket = &mut self.buckets[bucket_of(hash_bytes(key))];
            let block = bucket.room(8 + key.len(), &mut self.reserved);
            block.extend_from_slice(&(key.len() as u32).to_ne_bytes());
            block.extend_from_slice(&(base + at as u32).to_ne_bytes());
            block.extend_from_slice(key);
        };
        match known {
            None => (0..encoded.num_rows()).for_each(&mut push),
            Some(known) => known.set_indices().for_each(&mut push),
        }
        self.account();
        Ok(())
    }

    /// Tells the shared count what this task has newly reserved.
    fn account(&mut self) {
        self.space
            .memory_used
            .fetch_add(std::mem::take(&mut self.reserved), Ordering::Relaxed);
    }

    /// Writes all blocks to disk and frees them.
    fn spill(&mut self) -> Result<()> {
        if self.spill.is_none() {
            let file = tempfile::tempfile_in(&self.space.spill_dir).map_err(|error| {
                Error::from(error).context(format!(
                    "keys do not fit into memory and cannot be spilled to {}",
                    self.space.spill_dir.display()
                ))
            })?;
            self.spill = Some(Spill { file, end: 0 });
        }
        let Some(spill) = &mut self.spill else { return Ok(()) };
        let mut freed = 0;
        for bucket in &mut self.buckets {
            for block in bucket.blocks.drain(..) {
                freed += block.capacity();
                spill
                    .file
                    .write_all(&block)
                    .map_err(|error| Error::from(error).context("spilling keys"))?;
                bucket.segments.push((spill.end, block.len()));
                spill.end += block.len() as u64;
            }
        }
        self.space.memory_used.fetch_sub(freed, Ordering::Relaxed);
        Ok(())
    }

    /// The bytes of a bucket, from disk and memory.
    fn take_bucket(&mut self, index: usize, into: &mut Vec<u8>) -> Result<()> {
        let bucket = &mut self.buckets[index];
        if let Some(spill) = &mut self.spill {
            for (start, length) in bucket.segments.drain(..) {
                let from = into.len();
                into.resize(from + length, 0);
                spill
                    .file
                    .seek(SeekFrom::Start(start))
                    .and_then(|_| spill.file.read_exact(&mut into[from..]))
                    .map_err(|error| Error::from(error).context("reading spilled keys"))?;
            }
        }
        let mut freed = 0;
        for block in bucket.blocks.drain(..) {
            freed += block.capacity();
            into.extend_from_slice(&block);
        }
        self.space.memory_used.fetch_sub(freed, Ordering::Relaxed);
        Ok(())
    }
}

impl Bucket {
    /// The block to write to, with room for so many bytes more.
    fn room(&mut self, bytes: usize, reserved: &mut usize) -> &mut Vec<u8> {
        let full = self
            .blocks
            .last()
            .is_none_or(|block| block.capacity() - block.len() < bytes);
        if full {
            // The first blocks are small, so that a batch of seven rows costs nothing.
            let size = if self.blocks.is_empty() { 96 } else { BLOCK_BYTES }.max(bytes);
            *reserved += size;
            self.blocks.push(Vec::with_capacity(size));
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }
}

/// What all tasks found out about a key.
#[derive(Debug, Default)]
pub(crate) struct KeyResult {
    /// The numbers.
    pub(crate) counts: KeyCounts,
    /// The rows that share their key with another.
    pub(crate) repeated: RowSet,
}

/// Brings the keys of all tasks together.
pub(crate) fn resolve(mut collectors: Vec<KeyCollector>, slots: &Slots) -> Result<KeyResult> {
    let mut counts = KeyCounts::default();
    for collector in &collectors {
        counts.rows += collector.rows;
        counts.unknown += collector.unknown;
    }
    let is_word = collectors
        .first()
        .is_none_or(|collector| collector.space.layout == Layout::Word);
    let bits: Vec<AtomicU64> = (0..(slots.count() as usize).div_ceil(64))
        .map(|_| AtomicU64::new(0))
        .collect();
    let mark = |slot: u32| {
        bits[slot as usize / 64].fetch_or(1 << (slot % 64), Ordering::Relaxed);
    };
    let mut bytes = Vec::new();
    for index in 0..BUCKETS {
        bytes.clear();
        for collector in &mut collectors {
            collector.take_bucket(index, &mut bytes)?;
        }
        match is_word {
            true => resolve_words(&bytes, &mut counts, &mark),
            false => resolve_bytes(&bytes, &mut counts, &mark),
        }
    }
    if counts.repeated_rows == 0 {
        return Ok(KeyResult {
            counts,
            repeated: RowSet::default(),
        });
    }
    let bits: Vec<u64> = bits.into_iter().map(AtomicU64::into_inner).collect();
    let mut repeated = RowSet::default();
    for collector in &collectors {
        repeated.union(&rows_of(&bits, &collector.runs));
    }
    Ok(KeyResult { counts, repeated })
}

/// One key of a bucket: the first row that has it and whether another was found.
struct Seen<K> {
    key: K,
    slot: u32,
    repeated: bool,
}

fn resolve_words(bytes: &[u8], counts: &mut KeyCounts, mark: &dyn Fn(u32)) {
    let mut table: HashTable<Seen<u64>> = HashTable::with_capacity(bytes.len() / 12);
    for entry in bytes.chunks_exact(12) {
        let word = u64::from_ne_bytes(entry[..8].try_into().unwrap_or_default());
        let slot = u32::from_ne_bytes(entry[8..].try_into().unwrap_or_default());
        let hash = mix(word);
        match table.find_mut(hash, |seen| seen.key == word) {
            Some(seen) => note_repeat(seen, slot, counts, mark),
            None => {
                counts.distinct += 1;
                table.insert_unique(
                    hash,
                    Seen {
                        key: word,
                        slot,
                        repeated: false,
                    },
                    |seen| mix(seen.key),
                );
            }
        }
    }
}

fn resolve_bytes(bytes: &[u8], counts: &mut KeyCounts, mark: &dyn Fn(u32)) {
    let mut table: HashTable<Seen<&[u8]>> = HashTable::new();
    let mut rest = bytes;
    while rest.len() >= 8 {
        let length = u32::from_ne_bytes(rest[..4].try_into().unwrap_or_default()) as usize;
        let slot = u32::from_ne_bytes(rest[4..8].try_into().unwrap_or_default());
        let (key, next) = rest[8..].split_at(length);
        rest = next;
        let hash = hash_bytes(key);
        match table.find_mut(hash, |seen| seen.key == key) {
            Some(seen) => note_repeat(seen, slot, counts, mark),
            None => {
                counts.distinct += 1;
                table.insert_unique(
                    hash,
                    Seen {
                        key,
                        slot,
                        repeated: false,
                    },
                    |seen| hash_bytes(seen.key),
                );
            }
        }
    }
}

fn note_repeat<K>(seen: &mut Seen<K>, slot: u32, counts: &mut KeyCounts, mark: &dyn Fn(u32)) {
    if !seen.repeated {
        seen.repeated = true;
        counts.repeated_keys += 1;
        counts.repeated_rows += 1;
        mark(seen.slot);
    }
    counts.repeated_rows += 1;
    mark(slot);
}

/// Spreads a word over all bits (the finaliser of SplitMix64, public domain).
fn mix(word: u64) -> u64 {
    let mut x = word;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A hash of bytes, eight at a time.
pub(crate) fn hash_bytes(bytes: &[u8]) -> u64 {
    let mut hash = 0x9e37_79b9_7f4a_7c15 ^ bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        hash = mix(hash ^ u64::from_le_bytes(word.try_into().unwrap_or_default())).wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
    let mut last = [0u8; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(hash ^ u64::from_le_bytes(last))
}

/// The bucket of a hash: its top bits, since tables use the low ones.
fn bucket_of(hash: u64) -> usize {
    (hash >> 56) as usize & (BUCKETS - 1)
}

/// The values of a word column as 64 bits that are equal when the values are.
fn words_of(column: &ArrayRef) -> Vec<u64> {
    use arrow::datatypes::*;
    macro_rules! widen {
        ($ty:ty) => {
            column
                .as_primitive::<$ty>()
                .values()
                .iter()
                .map(|value| *value as u64)
                .collect()
        };
    }
    match column.data_type() {
        DataType::Int8 => widen!(Int8Type),
        DataType::Int16 => widen!(Int16Type),
        DataType::Int32 => widen!(Int32Type),
        DataType::Int64 => widen!(Int64Type),
        DataType::UInt8 => widen!(UInt8Type),
        DataType::UInt16 => widen!(UInt16Type),
        DataType::UInt32 => widen!(UInt32Type),
        DataType::UInt64 => widen!(UInt64Type),
        DataType::Date32 => widen!(Date32Type),
        DataType::Date64 => widen!(Date64Type),
        DataType::Time32(TimeUnit::Second) => widen!(Time32SecondType),
        DataType::Time32(_) => widen!(Time32MillisecondType),
        DataType::Time64(TimeUnit::Microsecond) => widen!(Time64MicrosecondType),
        DataType::Time64(_) => widen!(Time64NanosecondType),
        DataType::Timestamp(TimeUnit::Second, _) => widen!(TimestampSecondType),
        DataType::Timestamp(TimeUnit::Millisecond, _) => widen!(TimestampMillisecondType),
        DataType::Timestamp(TimeUnit::Microsecond, _) => widen!(TimestampMicrosecondType),
        DataType::Timestamp(TimeUnit::Nanosecond, _) => widen!(TimestampNanosecondType),
        DataType::Decimal32(..) => widen!(Decimal32Type),
        DataType::Decimal64(..) => widen!(Decimal64Type),
        DataType::Decimal128(..) => widen!(Decimal128Type),
        _ => Vec::new(),
    }
}

/// -0.0 as 0.0 and every NaN as one, so that equal values have equal bytes (S13).
fn canonical_floats(column: &ArrayRef) -> ArrayRef {
    match column.data_type() {
        DataType::Float64 => Arc::new(column.as_primitive::<Float64Type>().unary::<_, Float64Type>(|value| {
            if value == 0.0 {
                0.0
            } else if value.is_nan() {
                f64::NAN
            } else {
                value
            }
        })),
        DataType::Float32 => Arc::new(column.as_primitive::<Float32Type>().unary::<_, Float32Type>(|value| {
            if value == 0.0 {
                0.0
            } else if value.is_nan() {
                f32::NAN
            } else {
                value
            }
        })),
        _ => column.clone(),
    }
}

/// The keys of another table, for membership and join counts.
#[derive(Debug)]
pub(crate) struct KeyTable {
    types: Vec<DataType>,
    converter: RowConverter,
    keys: HashTable<(Box<[u8]>, u64)>,
}

impl KeyTable {
    /// An empty table for keys of these types.
    pub(crate) fn new(types: &[DataType]) -> Result<Self> {
        let converter = RowConverter::new(types.iter().map(|ty| SortField::new(ty.clone())).collect())?;
        Ok(KeyTable {
            types: types.to_vec(),
            converter,
            keys: HashTable::new(),
        })
    }

    /// Columns in the types of the table, so that an int32 finds its int64.
    fn aligned(&self, columns: &[ArrayRef]) -> Result<Vec<ArrayRef>> {
        columns
            .iter()
            .zip(&self.types)
            .map(|(column, ty)| Ok(canonical_floats(&arrow::compute::cast(column, ty)?)))
            .collect()
    }

    /// Adds the keys of a batch; those with a NULL part refer to nothing.
    pub(crate) fn add(&mut self, columns: &[ArrayRef]) -> Result<()> {
        let columns = self.aligned(columns)?;
        let encoded = self.converter.convert_columns(&columns)?;
        let known = known_rows(&columns);
        for at in 0..encoded.num_rows() {
            if known.as_ref().is_some_and(|known| known.is_null(at)) {
                continue;
            }
            let row = encoded.row(at);
            let key: &[u8] = row.as_ref();
            let hash = hash_bytes(key);
            match self.keys.find_mut(hash, |(known, _)| &**known == key) {
                Some((_, count)) => *count += 1,
                None => {
                    self.keys
                        .insert_unique(hash, (key.into(), 1), |(known, _)| hash_bytes(known));
                }
            }
        }
        Ok(())
    }

    /// For each row how many rows of the table have its key; NULL where a part of the key is.
    pub(crate) fn counts(&self, columns: &[ArrayRef]) -> Result<arrow::array::PrimitiveArray<UInt32Type>> {
        let columns = self.aligned(columns)?;
        let encoded = self.converter.convert_columns(&columns)?;
        let known = known_rows(&columns);
        let counts = (0..encoded.num_rows()).map(|at| {
            let row = encoded.row(at);
            let key: &[u8] = row.as_ref();
            let found = self.keys.find(hash_bytes(key), |(known, _)| &**known == key);
            found.map_or(0, |(_, count)| u32::try_from(*count).unwrap_or(u32::MAX))
        });
        let values: Vec<u32> = counts.collect();
        Ok(arrow::array::PrimitiveArray::new(values.into(), known))
    }
}

/// Rows whose key has no NULL part; `None`: all.
fn known_rows(columns: &[ArrayRef]) -> Option<NullBuffer> {
    columns.iter().fold(None, |nulls, column| {
        NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::Place;
    use arrow::array::{Float64Array, Int64Array, StringArray};

    fn resolve_columns(batches: Vec<Vec<ArrayRef>>, nulls_equal: bool, limit: usize) -> KeyResult {
        let types: Vec<DataType> = batches[0].iter().map(|column| column.data_type().clone()).collect();
        let dir = std::env::temp_dir();
        let space = Arc::new(KeySpace::new(&types, nulls_equal, limit, Arc::default(), &dir));
        let slots = Slots::default();
        let mut collectors = vec![KeyCollector::new(&space).unwrap(), KeyCollector::new(&space).unwrap()];
        let mut first_row = 1;
        for (at, columns) in batches.iter().enumerate() {
            let place = Place { source: 0, first_row };
            collectors[at % 2].add(columns, None, None, &slots, place).unwrap();
            first_row += columns[0].len() as u64;
        }
        resolve(collectors, &slots).unwrap()
    }

    fn ints(values: &[Option<i64>]) -> ArrayRef {
        Arc::new(Int64Array::from(values.to_vec()))
    }

    #[test]
    fn all_occurrences_of_a_repeated_key_are_found_across_tasks() {
        let found = resolve_columns(
            vec![
                vec![ints(&[Some(1), Some(2), None])],
                vec![ints(&[Some(2), Some(2), None])],
            ],
            false,
            usize::MAX,
        );
        assert_eq!(
            found.counts,
            KeyCounts {
                rows: 4,
                unknown: 2,
                distinct: 2,
                repeated_keys: 1,
                repeated_rows: 3
            }
        );
        assert_eq!(found.repeated.first(9), vec![(0, 2), (0, 4), (0, 5)]);
    }

    #[test]
    fn spilled_keys_give_the_same_answer() {
        let values: Vec<Option<i64>> = (0..20_000).map(|n| Some(n % 15_000)).collect();
        let batches: Vec<Vec<ArrayRef>> = values.chunks(1000).map(|part| vec![ints(part)]).collect();
        let in_memory = resolve_columns(batches.clone(), false, usize::MAX);
        let spilled = resolve_columns(batches, false, 1);
        assert_eq!(in_memory.counts, spilled.counts);
        assert_eq!(in_memory.counts.repeated_rows, 10_000);
        assert_eq!(in_memory.repeated.first(20_000), spilled.repeated.first(20_000));
    }

    #[test]
    fn zeros_are_equal_and_so_are_nans() {
        let floats: ArrayRef = Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, f64::NAN, 1.0]));
        assert_eq!(
            resolve_columns(vec![vec![floats]], false, usize::MAX)
                .counts
                .repeated_rows,
            4
        );
    }

    #[test]
    fn a_null_part_is_unknown_unless_nulls_compare() {
        let text: ArrayRef = Arc::new(StringArray::from(vec![None, None, Some("x")]));
        let number = ints(&[Some(1), Some(1), Some(1)]);
        assert_eq!(
            resolve_columns(vec![vec![text.clone(), number.clone()]], false, usize::MAX)
                .counts
                .repeated_rows,
            0
        );
        assert_eq!(
            resolve_columns(vec![vec![text, number]], true, usize::MAX)
                .counts
                .repeated_rows,
            2
        );
    }
}
