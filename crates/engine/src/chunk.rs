//! A run of rows of the batch, with what could not be read of them and where they come from.

use arrow::array::{RecordBatch, StringArray, UInt64Array};
use arrow::buffer::BooleanBuffer;

/// Consecutive rows of one file (or of a spooled transform).
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The columns asked for, in the order asked for. A cell that did not parse is NULL here.
    pub batch: RecordBatch,
    /// Where the rows are.
    pub place: Place,
    /// Cells that did not parse, by column of `batch`; columns without any are absent.
    pub bad_cells: Vec<BadCells>,
    /// Lines that have not the shape of a row; all their cells are NULL in `batch`.
    pub bad_lines: Option<BadLines>,
    /// For rows that went through a transform: the file and row they came from.
    pub origin: Option<Origin>,
}

/// Where the rows of a chunk are: `first_row`, `first_row + 1`, … of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Index into [`crate::Source::names`].
    pub source: u32,
    /// Row of the file, counted from 1 as people count data rows (the header is not one).
    pub first_row: u64,
}

/// Cells of one column that did not parse as its type.
#[derive(Debug, Clone)]
pub struct BadCells {
    /// Index of the column in the chunk's batch.
    pub column: usize,
    /// One bit per row.
    pub bad: BooleanBuffer,
    /// The text as it stood, where `bad` is set; NULL elsewhere.
    pub raw: StringArray,
}

/// Lines that have not the shape of a row.
#[derive(Debug, Clone)]
pub struct BadLines {
    /// One bit per row.
    pub bad: BooleanBuffer,
    /// The line as it stood, where `bad` is set; NULL elsewhere.
    pub raw: StringArray,
}

/// The file and row that each row of a transformed chunk came from.
#[derive(Debug, Clone)]
pub struct Origin {
    /// The file; NULL where a transform made the row of several.
    pub source: StringArray,
    /// The row in the file, from 1.
    pub row: UInt64Array,
}

impl Chunk {
    /// A chunk in which everything parsed.
    pub fn new(batch: RecordBatch, place: Place) -> Self {
        Chunk {
            batch,
            place,
            bad_cells: Vec::new(),
            bad_lines: None,
            origin: None,
        }
    }

    /// How many rows it has.
    pub fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether everything parsed.
    pub fn is_clean(&self) -> bool {
        self.bad_cells.is_empty() && self.bad_lines.is_none()
    }

    /// The bad cells of a column of the batch.
    pub fn bad_cells_of(&self, column: usize) -> Option<&BadCells> {
        self.bad_cells.iter().find(|cells| cells.column == column)
    }
}
