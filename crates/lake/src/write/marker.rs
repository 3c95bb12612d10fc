//! What a commit leaves beside its data, so that a later run can tell whether it happened.

use super::disk::{folder_of, io_error, name_of};
use super::parquet_file;
use super::sink::Encoding;
use comporta_contract::pipeline::TargetFormat;
use comporta_engine::{CommitInfo, Error, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The marker of a folder. Readers pass over names that begin with an underscore.
pub(super) const FOLDER_MARKER: &str = "_comporta.json";

/// What is known of a commit.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub(super) struct Marker {
    /// The run that committed.
    pub(super) run_id: String,
    /// Its pipeline.
    pub(super) pipeline: String,
    /// Its unit.
    pub(super) unit: String,
    /// Rows it made visible.
    pub(super) rows: u64,
    /// The rules it was held against.
    pub(super) rules_digest: String,
    /// The contract it was held against.
    pub(super) contract_version: Option<String>,
    /// For a single file: its size in bytes and time of change in nanoseconds, by which the marker is
    /// known to speak of that file and not of one before or after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) file: Option<(u64, u64)>,
}

impl Marker {
    /// The marker of a commit.
    pub(super) fn of(info: &CommitInfo) -> Self {
        Marker {
            run_id: info.run_id.clone(),
            pipeline: info.pipeline.clone(),
            unit: info.unit.clone(),
            rows: info.rows,
            rules_digest: info.rules_digest.clone(),
            contract_version: info.contract_version.clone(),
            file: None,
        }
    }

    /// Writes the marker so that it lasts.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::internal(error.to_string()))?;
        let write = || {
            let mut file = fs::File::create(path)?;
            file.write_all(&text)?;
            file.sync_all()
        };
        write().map_err(|error| io_error("writing", path, &error))
    }

    /// Reads a marker; none if there is none or it is not one of ours.
    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        match fs::read(path) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(io_error("reading", path, &error)),
        }
    }
}

/// The marker beside a text file that was replaced.
pub(super) fn beside(file: &Path) -> PathBuf {
    folder_of(file).join(format!(".{}.comporta.json", name_of(file)))
}

/// Size and time of change.
fn identity(file: &Path) -> Result<(u64, u64)> {
    let metadata = fs::metadata(file).map_err(|error| io_error("reading", file, &error))?;
    let changed = metadata.modified().map_err(|error| io_error("reading", file, &error))?;
    let nanos = changed.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
    Ok((metadata.len(), u64::try_from(nanos).unwrap_or(u64::MAX)))
}

/// Records, before a staged text file takes the place of `target`, which run it is of. Parquet files
/// carry the run in their footer.
pub(super) fn announce(staged: &Path, target: &Path, info: &CommitInfo, encoding: Encoding) -> Result<()> {
    if encoding.format == TargetFormat::Parquet {
        return Ok(());
    }
    let mut marker = Marker::of(info);
    marker.file = Some(identity(staged)?);
    marker.write(&beside(target))
}

/// The run that a single file is of, where it is one of ours.
pub(super) fn run_of_file(file: &Path, encoding: Encoding) -> Result<Option<String>> {
    if !file.is_file() {
        return Ok(None);
    }
    if encoding.format == TargetFormat::Parquet {
        return parquet_file::run_of(file);
    }
    let Some(marker) = Marker::read(&beside(file))? else {
        return Ok(None);
    };
    Ok((marker.file == Some(identity(file)?)).then_some(marker.run_id))
}
