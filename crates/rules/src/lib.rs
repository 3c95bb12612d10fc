//! The rules: what each promises, how it compiles to expressions and measures, how a measure is
//! judged. No IO, no clock: everything that a rule knows of the world comes through its [`Scope`].
//!
//! One rule is one file under `rules/` plus one line in `registry.rs`.

pub mod check;
pub mod conditions;
pub mod formats;
pub mod kernels;
pub mod lists;
pub mod literals;
pub mod measure;
pub mod page;
pub mod references;
pub mod registry;
pub mod rule;
pub mod rules;
pub mod scope;
pub mod shapes;
pub mod shares;
pub mod sql;
mod statistics;
pub mod types;

pub use check::{BoundCheck, Check};
pub use measure::{Measure, MeasureValue};
pub use registry::{all, find, names, register};
pub use rule::{
    BindError, Bound, Definition, Documents, Family, Finding, Holds, Reference, RowCheck, Rule, RuleDefinition,
    TableCheck,
};
pub use scope::{Column, Scope};
