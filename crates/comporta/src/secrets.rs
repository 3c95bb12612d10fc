//! `${env:NAME}` and `${file:PATH}` in the values of paths: resolved when a place is opened, never written out.

use crate::contract::Report;
use crate::contract::pipeline::TargetSpec;
use crate::contract::source::{OneOrMany, SourceSpec};
use crate::engine::Error;
use std::collections::BTreeMap;
use std::path::Path;

/// The largest value that `${file:…}` may hold, in bytes.
const SECRET_BYTES_MAX: u64 = 64 * 1024;

/// What placeholders were resolved to, so that it can be taken out of everything that is said.
#[derive(Clone, Default)]
pub struct Secrets {
    /// The placeholder as written, by its value.
    written_by_value: BTreeMap<String, String>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.written_by_value.values()).finish()
    }
}

impl Secrets {
    /// A text with its placeholders resolved; files are relative to `folder`.
    ///
    /// # Errors
    /// A placeholder is unknown or has no value; the value itself is never named.
    pub fn resolve(&mut self, written: &str, folder: &Path) -> Result<String, Error> {
        let mut resolved = String::new();
        let mut rest = written;
        while let Some(start) = rest.find("${") {
            let Some(length) = rest[start..].find('}') else {
                return Err(Error::invalid(format!(
                    "`{written}` opens a `${{` that it does not close"
                )));
            };
            resolved.push_str(&rest[..start]);
            let placeholder = &rest[start..=start + length];
            let value = value_of(placeholder, folder)?;
            resolved.push_str(&value);
            if !value.is_empty() {
                self.written_by_value.insert(value, placeholder.to_string());
            }
            rest = &rest[start + length + 1..];
        }
        resolved.push_str(rest);
        Ok(resolved)
    }

    /// A source with the placeholders of its places resolved.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn source(&mut self, spec: &SourceSpec, folder: &Path) -> Result<SourceSpec, Error> {
        let mut resolved = spec.clone();
        let lists: [&mut Option<OneOrMany>; 5] = [
            &mut resolved.path,
            &mut resolved.csv,
            &mut resolved.json,
            &mut resolved.parquet,
            &mut resolved.arrow,
        ];
        for place in lists.into_iter().flatten().flat_map(|places| places.0.iter_mut()) {
            *place = self.resolve(place, folder)?;
        }
        if let Some(place) = &mut resolved.delta {
            *place = self.resolve(place, folder)?;
        }
        Ok(resolved)
    }

    /// A target with the placeholders of its place resolved.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn target(&mut self, spec: &TargetSpec, folder: &Path) -> Result<TargetSpec, Error> {
        let mut resolved = spec.clone();
        let places = [
            &mut resolved.delta,
            &mut resolved.parquet,
            &mut resolved.csv,
            &mut resolved.jsonl,
        ];
        for place in places.into_iter().flatten() {
            *place = self.resolve(place, folder)?;
        }
        Ok(resolved)
    }

    /// The text with every resolved value replaced by its placeholder.
    pub fn redact(&self, text: &str) -> String {
        let mut redacted = text.to_string();
        // Longest first, so that a value inside another does not leave half of it standing.
        let mut values: Vec<_> = self.written_by_value.iter().collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        for (value, written) in values {
            redacted = replace_words(&redacted, value, written);
        }
        redacted
    }

    /// The same error without secrets.
    pub fn redact_error(&self, mut error: Error) -> Error {
        error.message = self.redact(&error.message);
        error.hint = error.hint.map(|hint| self.redact(&hint));
        error
    }

    /// Takes secrets out of everything a report says about places. Values of the data are left alone: a short
    /// secret would otherwise rewrite them.
    pub fn redact_report(&self, report: &mut Report) {
        if self.written_by_value.is_empty() {
            return;
        }
        let texts = std::iter::once(&mut report.pipeline)
            .chain(&mut report.decision_reasons)
            .chain(&mut report.notes)
            .chain(report.outputs.values_mut())
            .chain(report.checks.iter_mut().map(|check| &mut check.message))
            .chain(report.reconciliation.iter_mut().map(|proof| &mut proof.message));
        for text in texts {
            *text = self.redact(text);
        }
    }
}

fn value_of(placeholder: &str, folder: &Path) -> Result<String, Error> {
    let inner = placeholder.trim_start_matches("${").trim_end_matches('}');
    match inner.split_once(':') {
        Some(("env", name)) => std::env::var(name).map_err(|_| {
            Error::invalid(format!("the environment variable `{name}` is not set"))
                .hint(format!("set it, or write the value instead of `{placeholder}`"))
        }),
        Some(("file", path)) => {
            let place = folder.join(path);
            let unreadable = |why: String| Error::invalid(format!("`{placeholder}` cannot be read: {why}"));
            let size = std::fs::metadata(&place)
                .map_err(|error| unreadable(io_reason(&error)))?
                .len();
            if size > SECRET_BYTES_MAX {
                return Err(unreadable("the file is larger than 64 KiB".into()));
            }
            let value = std::fs::read_to_string(&place).map_err(|error| unreadable(io_reason(&error)))?;
            Ok(value.trim_end_matches(['\r', '\n']).to_string())
        }
        _ => Err(
            Error::invalid(format!("`{placeholder}` is no placeholder that is known here"))
                .hint("write `${env:NAME}` or `${file:PATH}`"),
        ),
    }
}

/// Replaces the occurrences of `value` that are no part of a longer word: `prod` in `s3://prod/`, not in `product`.
fn replace_words(text: &str, value: &str, written: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(value) {
        let (before, behind) = (&rest[..at], &rest[at + value.len()..]);
        let before_joins = before
            .chars()
            .next_back()
            .or(replaced.chars().next_back())
            .is_some_and(char::is_alphanumeric)
            && value.starts_with(char::is_alphanumeric);
        let behind_joins = behind.starts_with(char::is_alphanumeric) && value.ends_with(char::is_alphanumeric);
        replaced.push_str(before);
        replaced.push_str(if before_joins || behind_joins { value } else { written });
        rest = behind;
    }
    replaced.push_str(rest);
    replaced
}

/// Why reading or writing failed, in plain words and without the operating system's number.
pub fn io_reason(error: &std::io::Error) -> String {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::NotFound => "there is no such file".into(),
        ErrorKind::PermissionDenied => "permission is denied".into(),
        ErrorKind::IsADirectory => "it is a folder".into(),
        ErrorKind::NotADirectory => "a part of the path is no folder".into(),
        ErrorKind::InvalidData => "it is no UTF-8 text".into(),
        ErrorKind::StorageFull => "the disk is full".into(),
        ErrorKind::ReadOnlyFilesystem => "the place is read-only".into(),
        _ => {
            let text = error.to_string();
            text.split(" (os error").next().unwrap_or(&text).to_lowercase()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ErrorKind;

    #[test]
    fn a_file_gives_a_value_that_is_taken_out_of_messages_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bucket"), "s3cr3t\n").unwrap();
        let mut secrets = Secrets::default();
        let resolved = secrets
            .resolve("s3://${file:bucket}/orders/*.csv", folder.path())
            .unwrap();
        assert_eq!(resolved, "s3://s3cr3t/orders/*.csv");
        assert_eq!(secrets.redact("no bucket s3cr3t"), "no bucket ${file:bucket}");
        assert_eq!(
            secrets.redact("s3cr3ts and s3://s3cr3t/"),
            "s3cr3ts and s3://${file:bucket}/"
        );
        assert!(!format!("{secrets:?}").contains("s3cr3t"));
    }

    #[test]
    fn a_placeholder_without_a_value_is_a_fault_of_the_request() {
        let mut secrets = Secrets::default();
        for written in [
            "${env:COMPORTA_NOT_SET_ANYWHERE}",
            "${file:/no/such/file}",
            "${vault:x}",
            "${env:X",
        ] {
            let error = secrets.resolve(written, Path::new(".")).unwrap_err();
            assert_eq!(error.kind, ErrorKind::Invalid, "{written}");
        }
        assert_eq!(secrets.resolve("costs $5 {x}", Path::new(".")).unwrap(), "costs $5 {x}");
    }
}
