//! What the writing of files needs of the file system: names, errors in plain words, atomic exchange.

use comporta_engine::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The end of every staged name.
pub(super) const STAGING: &str = ".staging";
/// The end of the name of a folder that was moved aside while another took its place.
pub(super) const ASIDE: &str = ".aside";

/// An error of the file system, with the place and what to do.
pub(super) fn io_error(doing: &str, path: &Path, error: &io::Error) -> Error {
    use io::ErrorKind as Io;
    let (kind, hint) = match error.kind() {
        Io::StorageFull | Io::QuotaExceeded => (ErrorKind::Refused, Some("free some space and run again")),
        Io::PermissionDenied | Io::ReadOnlyFilesystem => (
            ErrorKind::Refused,
            Some("give the user permission to write there, or write elsewhere"),
        ),
        Io::NotADirectory | Io::AlreadyExists => (
            ErrorKind::Refused,
            Some("a file stands where a folder is needed: move it, or write elsewhere"),
        ),
        Io::IsADirectory => (
            ErrorKind::Refused,
            Some("a folder stands where a file is needed: move it, or write elsewhere"),
        ),
        Io::InvalidFilename => (ErrorKind::Invalid, Some("use a shorter or simpler name")),
        _ => (Error::from(io::Error::from(error.kind())).kind, None),
    };
    let error = Error::new(kind, format!("{doing} `{}`: {error}", path.display()));
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// A name that is safe inside a file name and without dots: odd characters become `_`, and a digest keeps
/// names apart that would then be equal.
pub(super) fn clean(name: &str) -> String {
    let plain: String = name
        .chars()
        .take(60)
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
                c
            } else {
                '_'
            }
        })
        .collect();
    if plain == name && !plain.is_empty() {
        plain
    } else {
        format!("{plain}~{}", short_digest(name))
    }
}

/// Eight hexadecimal digits that tell texts apart.
pub(super) fn short_digest(text: &str) -> String {
    Sha256::digest(text.as_bytes())
        .iter()
        .take(4)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The last part of a path, as text.
pub(super) fn name_of(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// The folder that a path is in.
pub(super) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The hidden name under which a run of a pipeline stages `name`.
pub(super) fn staged_name(name: &str, pipeline: &str, run_id: &str, end: &str) -> String {
    format!(".{name}.{}.{}{end}", clean(pipeline), clean(run_id))
}

/// What earlier runs of this pipeline staged for `name` in a folder.
pub(super) fn leftovers(folder: &Path, name: &str, pipeline: &str, end: &str) -> Result<Vec<PathBuf>> {
    let start = format!(".{name}.{}.", clean(pipeline));
    Ok(entries(folder)?
        .into_iter()
        .filter(|path| {
            name_of(path)
                .strip_prefix(&start)
                .and_then(|rest| rest.strip_suffix(end))
                .is_some_and(|run| !run.contains('.'))
        })
        .collect())
}

/// What is in a folder, sorted; nothing if there is no folder.
pub(super) fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = match fs::read_dir(folder) {
        Ok(list) => list,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(io_error("listing", folder, &error)),
    };
    let mut paths = Vec::new();
    for entry in list {
        paths.push(entry.map_err(|error| io_error("listing", folder, &error))?.path());
    }
    paths.sort();
    Ok(paths)
}

/// Removes a file or a folder with all that is in it; it need not exist.
pub(super) fn remove(path: &Path) -> Result<()> {
    let result = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match result {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(io_error("removing", path, &error)),
        _ => Ok(()),
    }
}

/// Makes a folder and those above it.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    fs::create_dir_all(path).map_err(|error| io_error("making the folder", path, &error))
}

/// Renames, and makes the new name last through a loss of power.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| io_error("publishing", to, &error))?;
    sync_folder(folder_of(to));
    Ok(())
}

/// Asks the system to keep the names of a folder. Some file systems cannot; nothing depends on it but
/// what is left after a loss of power.
pub(super) fn sync_folder(folder: &Path) {
    if let Ok(handle) = fs::File::open(folder)
        && let Err(error) = handle.sync_all()
    {
        tracing::debug!("the folder `{}` could not be synced: {error}", folder.display());
    }
}

/// Puts `staged` in the place of the folder `target`, and what was there in the place of `staged`, in one
/// step. `false` if this file system cannot.
pub(super) fn exchange(staged: &Path, target: &Path) -> Result<bool> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, staged, CWD, target, RenameFlags::EXCHANGE) {
            Ok(()) => {
                sync_folder(folder_of(target));
                Ok(true)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Ok(false),
            Err(error) => Err(io_error("publishing", target, &io::Error::from(error))),
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (staged, target);
        Ok(false)
    }
}

/// Checks that files can be made in a folder, making it if need be. A folder that was made is left: the
/// run is about to write there.
pub(super) fn check_writable(folder: &Path) -> Result<()> {
    make_folder(folder)?;
    tempfile::Builder::new()
        .prefix(".comporta-probe")
        .tempfile_in(folder)
        .map(drop)
        .map_err(|error| io_error("writing to", folder, &error))
}

/// All files below a folder, sorted.
pub(super) fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder)? {
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}
