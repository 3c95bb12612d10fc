//! One run of a pipeline at a time.

use chrono::{SecondsFormat, Utc};
use comporta_engine::{Error, ErrorKind, Result};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The right to run a pipeline. It ends when this is dropped or the process ends, however it ends.
#[derive(Debug)]
pub struct PipelineLock {
    file: File,
    path: PathBuf,
}

impl PipelineLock {
    /// Takes the lock of a pipeline in the folder of states.
    ///
    /// # Errors
    /// `Conflict` if another run holds it, with who that is; `Refused` if the folder cannot be written to.
    pub fn acquire(folder: &Path, pipeline: &str) -> Result<Self> {
        let failed = |error: std::io::Error, path: &Path| {
            Error::from(error).context(format_args!("locking `{}`", path.display()))
        };
        fs::create_dir_all(folder).map_err(|error| failed(error, folder))?;
        let path = folder.join(format!("{}.lock", file_name(pipeline)));
        // Not truncated: the text says who holds it.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| failed(error, &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&mut file, pipeline)),
            Err(TryLockError::Error(error)) => return Err(failed(error, &path)),
        }
        let holder = format!(
            "process {} on {} since {}\n",
            std::process::id(),
            host(),
            Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true)
        );
        file.set_len(0)
            .and_then(|()| file.write_all(holder.as_bytes()))
            .map_err(|error| failed(error, &path))?;
        Ok(PipelineLock { file, path })
    }
}

impl Drop for PipelineLock {
    fn drop(&mut self) {
        // The file stays: removing it would let two runs hold locks on two files of one name.
        if let Err(error) = self.file.set_len(0).and_then(|()| self.file.unlock()) {
            tracing::debug!("unlocking `{}`: {error}", self.path.display());
        }
    }
}

fn held(file: &mut File, pipeline: &str) -> Error {
    let mut holder = String::new();
    let read = file.rewind().and_then(|()| file.take(500).read_to_string(&mut holder));
    let by = match read {
        Ok(_) if !holder.trim().is_empty() => format!(": {}", holder.trim()),
        _ => String::new(),
    };
    let message = format!("the pipeline `{pipeline}` is being run already{by}");
    Error::new(ErrorKind::Conflict, message).hint("wait until that run has ended, then run again")
}

/// A name for the file that no other pipeline has.
fn file_name(pipeline: &str) -> String {
    let mut name = String::new();
    for byte in pipeline.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' {
            name.push(char::from(byte));
        } else {
            name.push_str(&format!("%{byte:02X}"));
        }
    }
    name
}

fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "this machine".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_run_learns_who_holds_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let first = PipelineLock::acquire(folder.path(), "orders/eu").unwrap();
        let error = PipelineLock::acquire(folder.path(), "orders/eu").unwrap_err();
        assert_eq!(error.kind, ErrorKind::Conflict);
        assert!(
            error.message.contains(&format!("process {}", std::process::id())),
            "{error}"
        );
        PipelineLock::acquire(folder.path(), "orders").unwrap();
        drop(first);
        PipelineLock::acquire(folder.path(), "orders/eu").unwrap();
    }

    #[test]
    fn names_that_look_alike_are_kept_apart() {
        assert_ne!(file_name("a/b"), file_name("a_b"));
        assert_ne!(file_name("a%2Fb"), file_name("a/b"));
        assert_eq!(file_name("../x"), "%2E%2E%2Fx");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let error = PipelineLock::acquire(&file, "p").unwrap_err();
        assert!(error.message.contains("file"), "{error}");
    }
}
