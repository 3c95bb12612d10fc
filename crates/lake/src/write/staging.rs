//! A run's files on their way into a target of plain files, and the one step that makes them visible.

use super::disk;
use super::marker::{self, FOLDER_MARKER, Marker};
use super::sink::{Encoding, Sink};
use comporta_engine::{CommitInfo, Committed, Error, ErrorKind, Result, StageWriter, Staging, fault};
use futures::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The step that makes staged data visible.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// The staged file is renamed to `target`.
    ReplaceFile {
        /// The name under which it is visible.
        target: PathBuf,
        /// Whether the name is used again by later runs, so that it does not tell the run.
        reused: bool,
    },
    /// The staged folder becomes `target`.
    ReplaceFolder {
        /// The name under which it is visible.
        target: PathBuf,
        /// Where the folder before goes while there is no atomic exchange.
        aside: PathBuf,
        /// Whether a folder that stands there is replaced; if not, it means that somebody else made it.
        replace: bool,
    },
}

/// Staged files of one run.
pub(super) struct FileStaging {
    pub(super) sink: Arc<dyn Sink>,
    /// The file or folder that is staged.
    pub(super) staged: PathBuf,
    /// The one data file, if there is one.
    pub(super) data: Option<PathBuf>,
    pub(super) step: Step,
    pub(super) encoding: Encoding,
}

impl FileStaging {
    fn publish(&self, info: &CommitInfo) -> Result<Committed> {
        self.sink.close()?;
        fault::point("write:staged");
        let committed = match &self.data {
            Some(file) => Committed {
                rows: self.encoding.rows(file)?,
                version: None,
                files: 1,
            },
            None => count(&self.staged, self.encoding)?,
        };
        check_rows(committed.rows, info.rows)?;
        match &self.step {
            Step::ReplaceFile { target, reused } => {
                if *reused {
                    marker::announce(&self.staged, target, info, self.encoding)?;
                }
                fault::point("write:before_commit");
                disk::rename(&self.staged, target)?;
                fault::point("write:after_commit");
            }
            Step::ReplaceFolder { target, aside, replace } => {
                Marker::of(info).write(&self.staged.join(FOLDER_MARKER))?;
                if let Some(data) = &self.data
                    && disk::name_of(data).starts_with("quarantine-")
                {
                    // Evidence is found again by its own file, not by the folder.
                    marker::announce(data, data, info, self.encoding)?;
                }
                disk::sync_folder(&self.staged);
                fault::point("write:before_commit");
                replace_folder(&self.staged, target, aside, *replace)?;
            }
        }
        Ok(committed)
    }
}

/// Puts a staged folder in its place and removes the one before.
fn replace_folder(staged: &Path, target: &Path, aside: &Path, replace: bool) -> Result<()> {
    if !target.exists() {
        disk::rename(staged, target)?;
        fault::point("write:after_commit");
        return Ok(());
    }
    if !replace {
        return Err(Error::new(
            ErrorKind::Conflict,
            format!(
                "`{}` was made by somebody else while this run was under way",
                target.display()
            ),
        )
        .hint("run again: the rows will be added to it"));
    }
    if disk::exchange(staged, target)? {
        fault::point("write:after_commit");
        return remove_old(staged);
    }
    disk::rename(target, aside)?;
    fault::point("write:aside");
    if let Err(error) = disk::rename(staged, target) {
        disk::rename(aside, target)?;
        return Err(error);
    }
    fault::point("write:after_commit");
    remove_old(aside)
}

/// Removes the folder that was replaced. The commit has happened, so a failure here is not one of the run;
/// the next run tries again.
fn remove_old(folder: &Path) -> Result<()> {
    if let Err(error) = disk::remove(folder) {
        tracing::warn!("{error}; the next run of the pipeline will try again");
    }
    Ok(())
}

/// Refuses a commit that does not hold what the gate counted.
pub(super) fn check_rows(staged: u64, counted: u64) -> Result<()> {
    if staged == counted {
        return Ok(());
    }
    Err(Error::internal(format!(
        "nothing was published: the gate counted {counted} rows, and {staged} were staged"
    )))
}

/// Rows and files of a folder, counted from its files.
pub(super) fn count(folder: &Path, encoding: Encoding) -> Result<Committed> {
    let mut committed = Committed::default();
    for file in disk::files_below(folder)? {
        if encoding.is_data(&disk::name_of(&file)) {
            committed.rows += encoding.rows(&file)?;
            committed.files += 1;
        }
    }
    Ok(committed)
}

impl Staging for FileStaging {
    fn writer(&self) -> Result<Box<dyn StageWriter>> {
        self.sink.clone().writer()
    }

    fn commit(self: Box<Self>, info: CommitInfo) -> BoxFuture<'static, Result<Committed>> {
        Box::pin(async move {
            let result = self.publish(&info);
            if result.is_err()
                && let Err(error) = disk::remove(&self.staged)
            {
                tracing::warn!("{error}");
            }
            result
        })
    }

    fn abort(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            drop(self.sink);
            disk::remove(&self.staged)
        })
    }
}
