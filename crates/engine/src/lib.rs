//! The flow: plan → source → transform → measure → judge → gate → split → publish → record.
//!
//! The engine talks to the world through the traits of [`world`]; nothing here knows a file format, a
//! table format or a database.

mod batch;
pub mod chunk;
pub mod error;
pub mod fault;
mod flow;
pub mod gate;
mod implicit;
pub mod job;
mod judge;
mod keys;
mod measures;
mod pass;
pub mod plan;
mod predicate;
mod program;
mod proof;
mod query;
mod refer;
mod report_rows;
mod rows;
mod show;
mod split;
mod spool;
mod transform;
pub mod world;

pub use chunk::{BadCells, BadLines, Chunk, Place};
pub use error::{Error, ErrorKind, Result};
pub use world::{
    Clock, CommitInfo, Committed, Progress, RunIntent, RunStore, ScanRequest, Source, StageWriter, Staging, Statistics,
    Target, Unfinished,
};

pub use flow::{check, held_by_error, new_run_id, run};
pub use job::{Job, NoTables, Outputs, RunSetup, Silent, Tables};
pub use plan::{PlanSummary, PlannedCheck, Scan, plan};
