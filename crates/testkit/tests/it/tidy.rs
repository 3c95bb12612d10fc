//! Holds what no compiler holds: the direction of dependencies, one engine, short files, plain places.

use crate::spec::root;
use std::fs;
use std::path::{Path, PathBuf};

/// What each crate may lean on. A crate that is not here has no place in the architecture yet.
const MAY_USE: &[(&str, &[&str])] = &[
    ("comporta-contract", &[]),
    ("comporta-rules", &["comporta-contract"]),
    ("comporta-engine", &["comporta-contract", "comporta-rules"]),
    (
        "comporta-lake",
        &["comporta-contract", "comporta-rules", "comporta-engine"],
    ),
    (
        "comporta-state",
        &["comporta-contract", "comporta-rules", "comporta-engine"],
    ),
    (
        "comporta",
        &[
            "comporta-contract",
            "comporta-rules",
            "comporta-engine",
            "comporta-lake",
            "comporta-state",
        ],
    ),
    ("comporta-cli", &["comporta"]),
    (
        "comporta-testkit",
        &["comporta-contract", "comporta-rules", "comporta-engine"],
    ),
];

const LINES_MAX: usize = 600;
/// Files that tell one story which a border would cut.
const LONG: &[&str] = &["crates/engine/src/keys.rs"];

fn walk(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") {
            walk(&path, extension, found);
        } else if path.extension().is_some_and(|found| found == extension) {
            found.push(path);
        }
    }
}

fn crates(extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root().join("crates"), extension, &mut found);
    found.sort();
    found
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap().to_string_lossy().into_owned()
}

#[test]
fn crates_lean_on_one_another_in_one_direction() {
    let mut wrong = Vec::new();
    for path in crates("toml") {
        let text = fs::read_to_string(&path).unwrap();
        let Some(name) = text.lines().find_map(|line| line.strip_prefix("name = \"")) else {
            continue;
        };
        let name = name.split('"').next().unwrap_or_default().to_string();
        let Some((_, allowed)) = MAY_USE.iter().find(|(known, _)| *known == name) else {
            wrong.push(format!("{}: the tidy test does not know `{name}`", shown(&path)));
            continue;
        };
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let used = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if section == "[dependencies]" && used.starts_with("comporta") && !allowed.contains(&used) {
                wrong.push(format!("{}: `{name}` must not lean on `{used}`", shown(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn there_is_one_engine_and_one_arrow() {
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    for name in ["arrow", "datafusion", "parquet", "object_store"] {
        let count = lock.matches(&format!("\nname = \"{name}\"\n")).count();
        assert_eq!(count, 1, "`{name}` is in Cargo.lock {count} times");
    }
}

#[test]
fn files_are_short_and_named_for_what_they_hold() {
    let mut wrong = Vec::new();
    for path in crates("rs") {
        let name = shown(&path);
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        if lines > LINES_MAX && !LONG.contains(&name.as_str()) {
            wrong.push(format!("{name} has {lines} lines, more than {LINES_MAX}"));
        }
        if ["utils.rs", "util.rs", "helpers.rs", "misc.rs"]
            .iter()
            .any(|bad| path.ends_with(bad))
        {
            wrong.push(format!("{name}: name the file for what it holds"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
