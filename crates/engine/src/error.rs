//! "We could not tell": what an `Err` of the engine means. Broken data is never an error.

use std::fmt;

/// A result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What the caller must do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Fix the request or the document; nothing was read.
    Invalid,
    /// Check the name: no such file, bucket or table.
    NotFound,
    /// Retry: the other side did not answer, or refused for now.
    Unavailable,
    /// Another writer won, or another run is under way; run the unit again.
    Conflict,
    /// The bytes are not what they should be (a truncated file); retrying will not help.
    Corrupt,
    /// Permission, credentials, a full disk, a read-only place: the world must be mended first.
    Refused,
    /// A bug of ours.
    Internal,
}

/// What went wrong and, where known, what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// What the caller must do.
    pub kind: ErrorKind,
    /// What went wrong, as a lower-case fragment with its place in the world.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Error {
    /// An error without a hint.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error {
            kind,
            message: message.into(),
            hint: None,
        }
    }

    /// The request or document is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Our own bug.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// The same error with advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The same error with what was being done in front: "reading `orders.csv`: …".
    pub fn context(mut self, doing: impl fmt::Display) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<datafusion::error::DataFusionError> for Error {
    fn from(error: datafusion::error::DataFusionError) -> Self {
        use datafusion::error::DataFusionError;
        match error.find_root() {
            DataFusionError::External(inner) if inner.is::<Error>() => inner
                .downcast_ref::<Error>()
                .cloned()
                .unwrap_or_else(|| Error::internal(inner.to_string())),
            DataFusionError::ResourcesExhausted(message) => Error::new(ErrorKind::Refused, message.clone()),
            root => Error::internal(comporta_rules::sql::plain(&root.to_string())),
        }
    }
}

impl From<arrow::error::ArrowError> for Error {
    fn from(error: arrow::error::ArrowError) -> Self {
        Error::internal(error.to_string())
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        use std::io::ErrorKind as Io;
        let kind = match error.kind() {
            Io::NotFound => ErrorKind::NotFound,
            Io::PermissionDenied | Io::ReadOnlyFilesystem | Io::StorageFull | Io::QuotaExceeded => ErrorKind::Refused,
            Io::UnexpectedEof | Io::InvalidData => ErrorKind::Corrupt,
            _ => ErrorKind::Unavailable,
        };
        Error::new(kind, error.to_string())
    }
}
