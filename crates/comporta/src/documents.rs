//! Documents from the world: files and standard input, bounded in size, with includes that cannot leave the
//! folder of the document that was named.

use crate::contract::node::{Span, Text};
use crate::contract::pipeline::Pipeline;
use crate::contract::rules_file::{Loader, RulesFile};
use crate::contract::{CheckCall, Diagnostic, Diagnostics, Node};
use crate::rules::registry;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// The largest document, in bytes: a thousand checks take some 100 KiB.
pub const DOCUMENT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Reads a rules file; `-` is standard input. `None` if it could not be read at all.
pub fn rules_file(place: &str, diagnostics: &mut Diagnostics) -> Option<(RulesFile, Arc<Text>)> {
    let text = read(place, diagnostics)?;
    let loader = FolderLoader::beside(place);
    let file = RulesFile::parse(&text, &registry::names(), &loader, diagnostics);
    Some((file, text))
}

/// Reads a pipeline; `-` is standard input. `None` if it could not be read at all.
pub fn pipeline(place: &str, diagnostics: &mut Diagnostics) -> Option<Pipeline> {
    let text = read(place, diagnostics)?;
    let loader = FolderLoader::beside(place);
    Pipeline::parse(&text, &registry::names(), &loader, diagnostics)
}

/// Reads one check as it stands on a command line: `not_null: [id]`, with or without `- ` in front. `name` is
/// what messages call it.
pub fn inline_rule(name: &str, written: &str, diagnostics: &mut Diagnostics) -> Vec<CheckCall> {
    let text = Text::new(name, written);
    let Some(node) = Node::parse(&text, diagnostics) else {
        if !diagnostics.has_errors() {
            let empty = Diagnostic::error("empty-document", "the rule is empty").at(&text, Span::default());
            diagnostics.push(empty.hint("write for example `not_null: [order_id]`"));
        }
        return Vec::new();
    };
    let items = match node.as_list() {
        Some(items) => items.to_vec(),
        None => vec![node],
    };
    items
        .iter()
        .filter_map(|item| CheckCall::parse(item, &registry::names(), diagnostics))
        .collect()
}

/// The folder that paths in a document are relative to: its own, or the current one for standard input.
pub fn folder_of(place: &str) -> PathBuf {
    let parent = match place {
        "-" => None,
        place => Path::new(place).parent(),
    };
    match parent {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

fn read(place: &str, diagnostics: &mut Diagnostics) -> Option<Arc<Text>> {
    match read_text(place) {
        Ok(text) => Some(text),
        Err(diagnostic) => {
            diagnostics.push(diagnostic);
            None
        }
    }
}

/// The text of a document; `-` is standard input.
///
/// # Errors
/// It cannot be read, is too large, or is no UTF-8; as a diagnostic.
pub fn read_text(place: &str) -> Result<Arc<Text>, Diagnostic> {
    let name = if place == "-" { "<stdin>" } else { place };
    let unreadable = |error: std::io::Error| {
        let diagnostic = Diagnostic::error("document-unreadable", format!("`{name}` cannot be read"));
        let diagnostic = diagnostic.why(crate::secrets::io_reason(&error));
        match error.kind() {
            std::io::ErrorKind::NotFound => diagnostic.hint("check the path; it is relative to the current folder"),
            _ => diagnostic,
        }
    };
    let mut bytes = Vec::new();
    let limit = DOCUMENT_BYTES_MAX + 1;
    match place {
        "-" => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        place => File::open(place).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
    }
    .map_err(unreadable)?;
    decode(name, bytes)
}

fn decode(name: &str, bytes: Vec<u8>) -> Result<Arc<Text>, Diagnostic> {
    if bytes.len() as u64 > DOCUMENT_BYTES_MAX {
        return Err(
            Diagnostic::error("document-too-large", format!("`{name}` is larger than 16 MiB"))
                .why("a document holds rules, not data")
                .hint("put data in a file of its own and name it under `tables:` or as an argument"),
        );
    }
    match String::from_utf8(bytes) {
        Ok(content) => Ok(Text::new(name, content.strip_prefix('\u{feff}').unwrap_or(&content))),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            let content = String::from_utf8_lossy(error.as_bytes());
            let end = content[at..].chars().next().map_or(at, |c| at + c.len_utf8());
            let text = Text::new(name, content);
            Err(Diagnostic::error("not-utf-8", format!("`{name}` is no UTF-8 text"))
                .at(&text, Span { start: at, end })
                .why("a byte here belongs to no character")
                .hint("save the file as UTF-8"))
        }
    }
}

/// Includes files relative to the one that names them, as long as they stay in the folder of the first.
#[derive(Debug, Clone)]
pub struct FolderLoader {
    root: PathBuf,
}

impl FolderLoader {
    /// For a document; for standard input the folder is the current one.
    pub fn beside(place: &str) -> Self {
        FolderLoader { root: folder_of(place) }
    }
}

impl Loader for FolderLoader {
    fn load(&self, path: &str, from: &Text) -> Result<Arc<Text>, String> {
        let written = Path::new(path);
        if written.is_absolute() || path.contains("://") {
            return Err("an included file is named relative to the file that includes it".into());
        }
        let folder = match from.name.as_str() {
            name if name.starts_with('<') => self.root.clone(),
            name => folder_of(name),
        };
        let joined = tidy(&folder.join(written));
        let real = |path: &Path| std::fs::canonicalize(path).map_err(|error| crate::secrets::io_reason(&error));
        // Links are followed before the comparison, so that none leads out of the folder either.
        if !real(&joined)?.starts_with(real(&self.root)?) {
            return Err(format!(
                "it lies outside `{}`, the folder of the document that was named",
                self.root.display()
            ));
        }
        read_text(&joined.to_string_lossy()).map_err(|diagnostic| diagnostic.why.unwrap_or(diagnostic.message))
    }
}

/// The path without `.` and without `name/..`, so that one file has one name.
fn tidy(path: &Path) -> PathBuf {
    let mut tidied = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(tidied.components().next_back(), Some(Component::Normal(_))) => {
                tidied.pop();
            }
            other => tidied.push(other),
        }
    }
    tidied
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        folder
    }

    fn load(folder: &tempfile::TempDir, name: &str) -> (Option<RulesFile>, Vec<String>) {
        let mut diagnostics = Diagnostics::default();
        let place = folder.path().join(name);
        let file = rules_file(&place.to_string_lossy(), &mut diagnostics);
        let said = diagnostics
            .0
            .iter()
            .map(|d| format!("{} {:?}", d.code, d.why))
            .collect();
        (file.map(|(file, _)| file), said)
    }

    #[test]
    fn an_include_is_relative_to_the_file_that_names_it() {
        let folder = folder(&[
            ("a.yml", "rules: [{include: shared/b.yml}]"),
            ("shared/b.yml", "[{include: c.yml}, {include: ../d.yml}]"),
            ("shared/c.yml", "- not_null: id"),
            ("d.yml", "- not_null: name"),
        ]);
        let (file, said) = load(&folder, "a.yml");
        assert_eq!(said, Vec::<String>::new());
        assert_eq!(file.unwrap().rules.len(), 2);
    }

    #[test]
    fn an_include_cannot_leave_the_folder_of_the_document() {
        let folder = folder(&[
            ("inside/a.yml", "[{include: ../b.yml}]"),
            ("inside/c.yml", "[{include: /etc/hostname}]"),
            ("b.yml", "- not_null: id"),
        ]);
        for name in ["inside/a.yml", "inside/c.yml"] {
            let (_, said) = load(&folder, name);
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].starts_with("include-unreadable"), "{said:?}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_a_diagnostic() {
        let folder = folder(&[("empty.yml", "")]);
        fs::write(folder.path().join("latin.yml"), b"rules:\n- not_null: pre\xe7o\n").unwrap();
        let codes = |name: &str| load(&folder, name).1;
        assert!(codes("missing.yml")[0].starts_with("document-unreadable"));
        assert!(codes("")[0].starts_with("document-unreadable"));
        assert!(codes("empty.yml")[0].starts_with("empty-document"));
        assert!(codes("latin.yml")[0].starts_with("not-utf-8"));
        let place = folder.path().join("latin.yml");
        let diagnostic = read_text(&place.to_string_lossy()).unwrap_err();
        assert_eq!(diagnostic.place.unwrap().line_column(), (2, 16));
    }

    #[test]
    fn a_document_of_data_is_refused() {
        let diagnostic = decode("big.yml", vec![b'#'; DOCUMENT_BYTES_MAX as usize + 1]).unwrap_err();
        assert_eq!(diagnostic.code, "document-too-large");
    }

    #[test]
    fn a_rule_of_the_command_line_may_be_one_or_a_list() {
        let mut diagnostics = Diagnostics::default();
        assert_eq!(inline_rule("--rule", "not_null: [id]", &mut diagnostics).len(), 1);
        assert_eq!(inline_rule("--rule", "- not_null: [id]", &mut diagnostics).len(), 1);
        assert!(diagnostics.is_empty());
        inline_rule("--rule", "not_nul: [id]", &mut diagnostics);
        inline_rule("--rule", "", &mut diagnostics);
        assert_eq!(diagnostics.0.len(), 1, "an empty rule after an error adds nothing");
    }
}
