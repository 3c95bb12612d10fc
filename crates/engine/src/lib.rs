//! The flow: plan → source → transform → measure → judge → gate → split → publish → record.
//!
//! The engine talks to the world through the traits of [`world`]; nothing here knows a file format, a
//! table format or a database.

pub mod chunk;
pub mod error;
pub mod gate;
pub mod job;
mod keys;
mod measures;
mod predicate;
mod rows;
pub mod world;

pub use chunk::{BadCells, BadLines, Chunk, Place};
pub use error::{Error, ErrorKind, Result};
pub use world::{
    Clock, CommitInfo, Committed, Progress, RunIntent, RunStore, ScanRequest, Source, StageWriter, Staging, Statistics,
    Target,
};
