//! From places as written to files: globs, folders with hive partitions, standard input.

use comporta_contract::source::{Compression, Format, SourceSpec};
use comporta_engine::{Error, ErrorKind, Result};
use globset::GlobBuilder;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tempfile::TempPath;

/// One file to read.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where its bytes are.
    pub path: PathBuf,
    /// What the report calls it.
    pub name: String,
    /// Its size when it was found.
    pub bytes: u64,
    /// When it was last written, if the file system says.
    pub modified: Option<SystemTime>,
    /// Values of hive partitions (`key=value` folders) between the place and the file; `None` is NULL.
    pub partitions: Vec<(String, Option<String>)>,
    /// Its format.
    pub format: Format,
    /// Its compression.
    pub compression: Compression,
    /// The spooled copy, deleted when the last user is gone.
    pub spool: Option<Arc<TempPath>>,
}

/// The files of a source, all of one format.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Files, in the order of reading.
    pub files: Vec<Input>,
    /// The format of all of them.
    pub format: Format,
    /// What the reader should know.
    pub notes: Vec<String>,
}

impl Input {
    /// Opens the file, holding that it is still the one that was found.
    ///
    /// # Errors
    /// The file is gone, may not be read, or changed since it was found.
    pub fn open(&self) -> Result<File> {
        let file = File::open(&self.path).map_err(|error| self.failed(error))?;
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        if metadata.len() != self.bytes || metadata.modified().ok() != self.modified {
            return Err(Error::new(
                ErrorKind::Conflict,
                format!("`{}` changed while it was being read", self.name),
            )
            .hint("run again when the writer of the file is done"));
        }
        Ok(file)
    }

    /// An error of the file system, with the name of the file.
    pub fn failed(&self, error: std::io::Error) -> Error {
        Error::from(error).context(format!("reading `{}`", self.name))
    }

    /// Bytes that are not what they should be.
    pub fn corrupt(&self, what: impl std::fmt::Display) -> Error {
        Error::new(ErrorKind::Corrupt, format!("`{}`: {what}", self.name))
            .hint("the file is damaged or of another format; get it again, or name its `format:`")
    }
}

/// Whether a place is in an object store.
pub fn is_remote(place: &str) -> bool {
    place.contains("://") && !place.starts_with("file://")
}

/// Finds the files of a source on the local file system.
///
/// # Errors
/// Nothing is there, the format cannot be told, or files of several formats are mixed.
pub fn find(spec: &SourceSpec, base: &Path) -> Result<Inputs> {
    let (places, format) = spec.places();
    if places.is_empty() {
        return Err(Error::invalid("no place to read from").hint("name a file, folder or glob"));
    }
    let mut inputs = Inputs {
        files: Vec::new(),
        format: Format::Csv,
        notes: Vec::new(),
    };
    for place in &places {
        find_place(place, base, format, spec, &mut inputs)?;
    }
    let Some(first) = inputs.files.first() else {
        return Err(
            Error::new(ErrorKind::NotFound, format!("no files in `{}`", places.join("`, `")))
                .hint("names that begin with `_` or `.` are passed over"),
        );
    };
    inputs.format = first.format;
    if let Some(other) = inputs
        .files
        .iter()
        .find(|file| family(file.format) != family(first.format))
    {
        return Err(Error::invalid(format!(
            "`{}` and `{}` are of different formats",
            first.name, other.name
        ))
        .hint("name the files of one format by a glob, such as `folder/*.csv`"));
    }
    Ok(inputs)
}

/// Formats that one reader reads.
fn family(format: Format) -> u8 {
    match format {
        Format::Csv | Format::Tsv => 0,
        Format::Json | Format::Jsonl => 1,
        Format::Parquet => 2,
        Format::Arrow => 3,
        Format::Delta => 4,
    }
}

fn find_place(place: &str, base: &Path, format: Option<Format>, spec: &SourceSpec, inputs: &mut Inputs) -> Result<()> {
    if place == "-" {
        let input = spool(format, spec.compression)?;
        inputs.files.push(input);
        return Ok(());
    }
    if is_remote(place) {
        return Err(
            Error::invalid(format!("`{}` is not on the local file system", without_secrets(place)))
                .hint("a source is either local or in an object store, not both"),
        );
    }
    let written = place.strip_prefix("file://").unwrap_or(place);
    let path = base.join(written);
    let found = match path.metadata() {
        Ok(metadata) if metadata.is_dir() => {
            let mut files = Vec::new();
            walk(&path, &mut files)?;
            files.sort();
            return take(files, &path, base, format, spec, inputs, true);
        }
        Ok(_) => vec![path.clone()],
        Err(_) if is_glob(written) => expand(written, base)?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::new(ErrorKind::NotFound, format!("no file or folder `{place}`"))
                .hint(format!("looked in `{}`", base.display())));
        }
        Err(error) => return Err(Error::from(error).context(format!("reading `{place}`"))),
    };
    if found.is_empty() {
        return Err(Error::new(ErrorKind::NotFound, format!("no file matches `{place}`"))
            .hint(format!("looked in `{}`", base.display())));
    }
    let root = glob_root(written, base);
    take(found, &root, base, format, spec, inputs, is_glob(written))
}

/// A place as it may be shown: without user, password and query.
pub fn without_secrets(place: &str) -> String {
    match url::Url::parse(place) {
        Ok(mut url) => {
            // A URL that cannot have a user refuses the change, and then has none to hide.
            let _ = url.set_username("");
            let _ = url.set_password(None);
            url.set_query(None);
            url.to_string()
        }
        Err(_) => place.to_string(),
    }
}

fn is_glob(place: &str) -> bool {
    place.contains(['*', '?', '[', '{'])
}

/// The folder in front of the first part with a wildcard.
fn glob_root(written: &str, base: &Path) -> PathBuf {
    let mut root = base.to_path_buf();
    let whole = Path::new(written);
    for part in whole.parent().into_iter().flat_map(Path::components) {
        if is_glob(&part.as_os_str().to_string_lossy()) {
            break;
        }
        root.push(part);
    }
    root
}

fn expand(written: &str, base: &Path) -> Result<Vec<PathBuf>> {
    let matcher = GlobBuilder::new(written.trim_start_matches("./"))
        .literal_separator(true)
        .build()
        .map_err(|error| Error::invalid(format!("`{written}` is not a glob: {}", error.kind())))?
        .compile_matcher();
    let root = glob_root(written, base);
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    walk(&root, &mut files)?;
    files.retain(|file| matcher.is_match(file.strip_prefix(base).unwrap_or(file)));
    files.sort();
    Ok(files)
}

/// All files below a folder, hidden ones left out. Links to folders above are not followed twice, since
/// a path of more than 64 folders is refused.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let mut open = vec![(folder.to_path_buf(), 0)];
    while let Some((folder, depth)) = open.pop() {
        if depth > 64 {
            return Err(Error::invalid(format!("`{}` is nested too deeply", folder.display()))
                .hint("is a link in it pointing to a folder above?"));
        }
        let failed = |error: std::io::Error| Error::from(error).context(format!("listing `{}`", folder.display()));
        for entry in folder.read_dir().map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with('.') || (name.starts_with('_') && !name.contains('=')) {
                continue;
            }
            let path = entry.path();
            match path.metadata().map_err(failed)?.is_dir() {
                true => open.push((path, depth + 1)),
                false => files.push(path),
            }
        }
    }
    Ok(())
}

fn take(
    files: Vec<PathBuf>,
    root: &Path,
    base: &Path,
    format: Option<Format>,
    spec: &SourceSpec,
    inputs: &mut Inputs,
    partitioned: bool,
) -> Result<()> {
    for path in files {
        let name = path.strip_prefix(base).unwrap_or(&path).display().to_string();
        let metadata = path
            .metadata()
            .map_err(|error| Error::from(error).context(format!("reading `{name}`")))?;
        let mut input = Input {
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            partitions: match partitioned {
                true => partitions(path.strip_prefix(root).unwrap_or(&path)),
                false => Vec::new(),
            },
            path,
            name,
            format: Format::Csv,
            compression: Compression::None,
            spool: None,
        };
        recognise(&mut input, format, spec.compression)?;
        inputs.files.push(input);
    }
    Ok(())
}

fn partitions(path: &Path) -> Vec<(String, Option<String>)> {
    let folders = path.parent().into_iter().flat_map(Path::components);
    folders
        .filter_map(|folder| {
            let folder = folder.as_os_str().to_string_lossy();
            let (key, value) = folder.split_once('=')?;
            let value = match value {
                "__HIVE_DEFAULT_PARTITION__" | "" => None,
                value => Some(decoded(value)),
            };
            Some((decoded(key), value))
        })
        .collect()
}

/// `%20` and its like undone.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = match bytes[at] {
            b'%' => text
                .get(at + 1..at + 3)
                .and_then(|hex| u8::from_str_radix(hex, 16).ok()),
            _ => None,
        };
        plain.push(code.unwrap_or(bytes[at]));
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8(plain).unwrap_or_else(|_| text.to_string())
}

/// Tells format and compression: what the document says, then the first bytes, then the extension.
fn recognise(input: &mut Input, format: Option<Format>, compression: Option<Compression>) -> Result<()> {
    let mut head = Vec::new();
    let file = File::open(&input.path).map_err(|error| input.failed(error))?;
    file.take(10)
        .read_to_end(&mut head)
        .map_err(|error| input.failed(error))?;
    let lower = input.name.to_lowercase();
    let (stem, by_name) = strip_compression(&lower);
    input.compression = compression
        .or_else(|| compression_of(&head))
        .or(by_name)
        .unwrap_or(Compression::None);
    input.format = match format
        .or_else(|| format_of_bytes(&head))
        .or_else(|| format_of_name(stem))
    {
        // `csv: orders.tsv` is still separated by tabs.
        Some(Format::Csv) if format_of_name(stem) == Some(Format::Tsv) => Format::Tsv,
        Some(format) => format,
        // What is piped in has no name; text that does not start like JSON is CSV.
        None if input.name == "standard input" => match head.iter().find(|byte| !byte.is_ascii_whitespace()) {
            Some(b'{' | b'[') => Format::Json,
            _ => Format::Csv,
        },
        None => {
            return Err(
                Error::invalid(format!("the format of `{}` cannot be told from its name", input.name))
                    .hint("say `format: csv` (or tsv, json, jsonl, parquet, arrow)"),
            );
        }
    };
    Ok(())
}

fn strip_compression(name: &str) -> (&str, Option<Compression>) {
    let known = [
        (".gz", Compression::Gzip),
        (".gzip", Compression::Gzip),
        (".zst", Compression::Zstd),
        (".zstd", Compression::Zstd),
        (".bz2", Compression::Bz2),
        (".xz", Compression::Xz),
    ];
    known
        .iter()
        .find_map(|(extension, compression)| Some((name.strip_suffix(extension)?, Some(*compression))))
        .unwrap_or((name, None))
}

fn compression_of(head: &[u8]) -> Option<Compression> {
    match head {
        [0x1f, 0x8b, ..] => Some(Compression::Gzip),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Compression::Zstd),
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, ..] => Some(Compression::Bz2),
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
        _ => None,
    }
}

fn format_of_bytes(head: &[u8]) -> Option<Format> {
    match head {
        [b'P', b'A', b'R', b'1', ..] => Some(Format::Parquet),
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => Some(Format::Arrow),
        _ => None,
    }
}

fn format_of_name(stem: &str) -> Option<Format> {
    match Path::new(stem).extension()?.to_str()? {
        "csv" | "txt" => Some(Format::Csv),
        "tsv" | "tab" => Some(Format::Tsv),
        "json" => Some(Format::Json),
        "jsonl" | "ndjson" => Some(Format::Jsonl),
        "parquet" | "pq" => Some(Format::Parquet),
        "arrow" | "arrows" | "ipc" | "feather" => Some(Format::Arrow),
        _ => None,
    }
}

/// Keeps standard input in a temporary file, since it is read more than once.
fn spool(format: Option<Format>, compression: Option<Compression>) -> Result<Input> {
    let failed = |error: std::io::Error| Error::from(error).context("keeping standard input in a temporary file");
    let mut file = tempfile::NamedTempFile::new().map_err(failed)?;
    std::io::copy(&mut std::io::stdin().lock(), &mut file).map_err(failed)?;
    file.flush().map_err(failed)?;
    let metadata = file.as_file().metadata().map_err(failed)?;
    let path = file.into_temp_path();
    let mut input = Input {
        path: path.to_path_buf(),
        name: "standard input".into(),
        bytes: metadata.len(),
        modified: metadata.modified().ok(),
        partitions: Vec::new(),
        format: Format::Csv,
        compression: Compression::None,
        spool: Some(Arc::new(path)),
    };
    recognise(&mut input, format, compression)?;
    Ok(input)
}

/// A digest of names, sizes and times.
pub fn fingerprint(files: &[Input]) -> String {
    let mut digest = Sha256::new();
    for file in files {
        let modified = file.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        // A spooled copy is new each time it is read: only its size says anything of it.
        let nanos = match file.spool {
            Some(_) => 0,
            None => modified.map_or(0, |since| since.as_nanos()),
        };
        digest.update((file.name.len() as u64).to_le_bytes());
        digest.update(file.name.as_bytes());
        digest.update(file.bytes.to_le_bytes());
        digest.update(nanos.to_le_bytes());
    }
    format!("{:x}", digest.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use comporta_contract::source::OneOrMany;

    fn spec(place: &str) -> SourceSpec {
        SourceSpec {
            path: Some(OneOrMany(vec![place.into()])),
            ..SourceSpec::default()
        }
    }

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        folder
    }

    fn names(inputs: &Inputs) -> Vec<&str> {
        inputs.files.iter().map(|file| file.name.as_str()).collect()
    }

    #[test]
    fn a_folder_gives_its_files_sorted_with_partitions_and_without_hidden_ones() {
        let folder = folder(&[
            ("t/day=2024-01-02/city=S%C3%A3o Paulo/b.csv", b"x\n1\n"),
            ("t/day=2024-01-01/city=__HIVE_DEFAULT_PARTITION__/a.csv", b"x\n1\n"),
            ("t/_SUCCESS", b""),
            ("t/.hidden.csv", b""),
        ]);
        let inputs = find(&spec("t"), folder.path()).unwrap();
        assert_eq!(inputs.files.len(), 2);
        assert_eq!(
            inputs.files[0].partitions,
            [("day".into(), Some("2024-01-01".into())), ("city".into(), None)]
        );
        assert_eq!(inputs.files[1].partitions[1].1.as_deref(), Some("São Paulo"));
    }

    #[test]
    fn a_glob_stays_in_its_folder_unless_it_has_two_stars() {
        let folder = folder(&[
            ("d/b.csv", b""),
            ("d/a.csv", b""),
            ("d/deep/c.csv", b""),
            ("d/n.txt", b""),
        ]);
        assert_eq!(
            names(&find(&spec("d/*.csv"), folder.path()).unwrap()),
            ["d/a.csv", "d/b.csv"]
        );
        assert_eq!(find(&spec("d/**/*.csv"), folder.path()).unwrap().files.len(), 3);
    }

    #[test]
    fn nothing_found_is_said_with_the_place() {
        let folder = folder(&[]);
        for place in ["missing.csv", "*.csv", "."] {
            let error = find(&spec(place), folder.path()).unwrap_err();
            assert_eq!(error.kind, ErrorKind::NotFound);
            assert!(error.message.contains(place), "{}", error.message);
        }
    }

    #[test]
    fn first_bytes_and_extension_tell_format_and_compression() {
        let folder = folder(&[
            ("a.csv", &[0x1f, 0x8b, 8]),
            ("b.jsonl.zst", b""),
            ("c", b"PAR1"),
            ("d", b"x"),
        ]);
        let one = |name: &str| find(&spec(name), folder.path()).map(|inputs| inputs.files[0].clone());
        assert_eq!(one("a.csv").unwrap().compression, Compression::Gzip);
        let lines = one("b.jsonl.zst").unwrap();
        assert_eq!((lines.format, lines.compression), (Format::Jsonl, Compression::Zstd));
        assert_eq!(one("c").unwrap().format, Format::Parquet);
        assert!(one("d").unwrap_err().message.contains("cannot be told"));
    }

    #[test]
    fn mixed_formats_are_refused() {
        let folder = folder(&[("t/a.csv", b"x\n"), ("t/b.parquet", b"PAR1")]);
        assert!(
            find(&spec("t"), folder.path())
                .unwrap_err()
                .message
                .contains("different formats")
        );
    }

    #[test]
    fn the_fingerprint_changes_with_the_files() {
        let folder = folder(&[("a.csv", b"x\n1\n")]);
        let before = fingerprint(&find(&spec("a.csv"), folder.path()).unwrap().files);
        assert_eq!(before, fingerprint(&find(&spec("a.csv"), folder.path()).unwrap().files));
        std::fs::write(folder.path().join("a.csv"), b"x\n12\n").unwrap();
        assert_ne!(before, fingerprint(&find(&spec("a.csv"), folder.path()).unwrap().files));
    }

    #[test]
    fn secrets_in_urls_are_not_shown() {
        assert_eq!(
            without_secrets("s3://key:secret@bucket/a.csv?token=x"),
            "s3://bucket/a.csv"
        );
    }
}
