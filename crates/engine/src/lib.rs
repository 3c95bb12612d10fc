//! The flow: plan → source → transform → measure → judge → gate → split → publish → record.
//!
//! The engine talks to the world through the traits of [`world`]; nothing here knows a file format, a
//! table format or a database.

pub mod chunk;
pub mod error;
pub mod fault;
pub mod gate;
pub mod job;
mod keys;
mod measures;
mod judge;
mod pass;
mod predicate;
mod program;
mod proof;
mod query;
mod refer;
mod rows;
mod show;
pub mod world;

pub use chunk::{BadCells, BadLines, Chunk, Place};
pub use error::{Error, ErrorKind, Result};
pub use world::{
    Clock, CommitInfo, Committed, Progress, RunIntent, RunStore, ScanRequest, Source, StageWriter, Staging, Statistics,
    Target,
};
