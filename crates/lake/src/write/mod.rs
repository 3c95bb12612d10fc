//! Making rows visible in one step: staging beside the target, checking what was staged, one commit.
//!
//! Nothing of a run can be seen before its commit, and a commit is one atomic step of the file system or
//! one entry of a table's log. What a killed run left staged is removed by the next run of its pipeline.

mod columns;
mod delta;
mod delta_files;
mod disk;
mod files;
mod marker;
mod parquet_file;
mod sink;
mod staging;
#[cfg(test)]
mod tests;
mod text_file;

use comporta_contract::pipeline::{TargetFormat, TargetSpec, WriteStrategy};
use comporta_engine::{Error, Result, Target};
use std::path::Path;
use std::sync::Arc;

/// What a target is for; it decides what becomes of rows that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Rows that passed: added to what is there, or in place of it, as the document says.
    Valid,
    /// Rows that were set aside: the evidence of the same pipeline and unit is replaced, the rest stays.
    Quarantine,
    /// One row per check and run, added to what is there.
    Report,
}

/// The target that a document names. A relative place is taken from `base`.
///
/// # Errors
/// The place is one that this version cannot write to.
pub fn target(spec: &TargetSpec, base: &Path, role: Role) -> Result<Arc<dyn Target>> {
    let place = spec.place();
    let local = match place.split_once("://") {
        Some(("file", rest)) => rest,
        Some((scheme, _)) => {
            return Err(Error::invalid(format!(
                "`{place}` cannot be written to: `{scheme}://` is not supported yet"
            ))
            .hint("write to a local folder"));
        }
        None => place,
    };
    if local.trim().is_empty() {
        return Err(Error::invalid("the place to write to is empty").hint("name a file or a folder"));
    }
    let path = base.join(local.trim_end_matches('/'));
    let strategy = match role {
        Role::Report if !spec.is_single_file() => WriteStrategy::Append,
        _ => spec.strategy(),
    };
    if spec.format() == TargetFormat::Delta {
        return Ok(Arc::new(delta::DeltaTarget::new(spec, path, role, strategy)?));
    }
    Ok(Arc::new(files::FileTarget::new(spec, path, role, strategy)?))
}
