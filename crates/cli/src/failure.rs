//! Why a command ends without a result, and how that is said on standard error.

use crate::{diagnostics, exit_code};
use comporta::contract::Diagnostics;
use comporta::engine::{Error, ErrorKind};
use serde_json::json;
use std::io::Write;

/// A command that has no result.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Documents or the command line are wrong.
    Documents(Diagnostics),
    /// It could not be told.
    Engine(Error),
}

impl Failure {
    /// The command line asks for something that cannot be.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Engine(Error::invalid(message).hint(hint))
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Failure::Documents(_) => exit_code::INVALID,
            Failure::Engine(error) => exit_code::of_error(error),
        }
    }

    /// Says it on standard error; as JSON where the result was asked for as JSON.
    pub(crate) fn say(&self, as_json: bool) {
        let text = match (self, as_json) {
            (Failure::Documents(found), false) => diagnostics::render(found, &diagnostics::Look::of_stderr()),
            (Failure::Documents(found), true) => format!("{:#}\n", diagnostics::to_json(found)),
            (Failure::Engine(error), false) => error_text(error),
            (Failure::Engine(error), true) => format!("{:#}\n", error_json(error)),
        };
        // Nobody is left to tell when standard error itself is gone.
        let _ = std::io::stderr().lock().write_all(text.as_bytes());
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

fn error_text(error: &Error) -> String {
    let plain = crate::render::escape::terminal;
    let mut text = format!("error: {}\n", plain(&error.message));
    if let Some(hint) = &error.hint {
        text.push_str(&format!("\nhint: {}\n", plain(hint)));
    } else if error.kind == ErrorKind::Internal {
        text.push_str(
            "\nhint: this is a bug of comporta; please report it with the command and, if you can, the data\n",
        );
    }
    text
}

fn error_json(error: &Error) -> serde_json::Value {
    let kind = match error.kind {
        ErrorKind::Invalid => "invalid",
        ErrorKind::NotFound => "not_found",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Corrupt => "corrupt",
        ErrorKind::Refused => "refused",
        ErrorKind::Internal => "internal",
        _ => "other",
    };
    json!({ "errors": [{ "code": kind, "level": "error", "message": error.message, "hint": error.hint }] })
}
