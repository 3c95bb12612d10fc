//! The words of comporta: documents, thresholds, severities, reports, diagnostics.
//!
//! No Arrow, no IO, no clock. Reading a document never panics and never stops at the first
//! fault: it returns what it understood and everything that is wrong, each with its place.

pub mod check;
pub mod decode;
pub mod diagnostic;
pub mod digest;
pub mod literal;
pub mod nearest;
pub mod node;
pub mod outcome;
pub mod pipeline;
pub mod report;
pub mod rules_file;
pub mod source;
pub mod threshold;
pub mod types;
mod yaml;

pub use check::{Attributes, CheckCall, NanPolicy, NoDataPolicy, NullPolicy, ShareOf, UniqueScope};
pub use diagnostic::{Diagnostic, Diagnostics, Level, Place};
pub use literal::Literal;
pub use node::{Node, Span, Text, Value};
pub use outcome::{Decision, Dimension, Effect, Outcome, RuleKind, Severity};
pub use report::Report;
pub use rules_file::RulesFile;
pub use threshold::Threshold;
pub use types::LogicalType;
