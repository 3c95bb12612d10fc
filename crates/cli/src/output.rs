//! Standard output, files asked for, and what is known of the terminal.

use crate::failure::Failure;
use comporta::engine::{Error, ErrorKind};
use std::io::{IsTerminal, Write};

/// Writes to standard output. A reader that has gone away (`| head`) is no fault.
pub(crate) fn stdout(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::from(error).context("writing to standard output").into())
        }
        _ => Ok(()),
    }
}

/// Writes a file in one step: whoever reads it sees the old text or the new one, never half of it.
pub(crate) fn file(place: &str, text: &str) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        let reason = comporta::secrets::io_reason(&error);
        let error = Error::new(ErrorKind::Refused, format!("`{place}` cannot be written: {reason}"));
        Failure::from(error.hint("check that the folder exists and may be written to"))
    };
    let target = std::path::Path::new(place);
    let Ok(metadata) = std::fs::metadata(target) else {
        return replace(target, text).map_err(refused);
    };
    match metadata.is_file() {
        true => replace(target, text).map_err(refused),
        // A pipe or a device (`/dev/stderr`) cannot be replaced, only written to.
        false => std::fs::write(target, text).map_err(refused),
    }
}

fn replace(target: &std::path::Path, text: &str) -> std::io::Result<()> {
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let staged = target.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&staged, text)
        .and_then(|()| std::fs::rename(&staged, target))
        .inspect_err(|_| {
            let _ = std::fs::remove_file(&staged);
        })
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether the environment allows colours (`NO_COLOR`, `TERM=dumb`).
pub(crate) fn colours_wanted() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Columns of the terminal that standard output or standard error is, at least 40.
pub(crate) fn terminal_width() -> Option<usize> {
    comfy_table::Table::new()
        .use_stderr()
        .width()
        .map(|width| usize::from(width).max(40))
}
