//! The generated pages of `docs/reference/` and the committed copies of `schemas/`, held equal to the code by one
//! test. `UPDATE=1` rewrites them.

use crate::arguments::Cli;
use crate::exit_code::MEANINGS;
use clap::{Arg, Command, CommandFactory};
use comporta::contract::nearest::list;
use comporta::rules::{page, registry};
use comporta::schema::{Document, to_text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

const MARK: &str =
    "<!-- Generated from the code; `UPDATE=1 cargo test --workspace --bins reference` rewrites it. -->\n\n";

/// Every generated file by its path from the root of the repository.
fn generated() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for document in Document::ALL {
        let path = format!("schemas/{}.schema.json", document.name());
        files.insert(path, to_text(&document.schema()));
    }
    let mut document =
        |name: String, text: String| files.insert(format!("docs/reference/{name}.md"), format!("{MARK}{text}"));
    for rule in registry::all() {
        document(format!("rules/{}", rule.name), page::page(rule));
    }
    document("rules".into(), rules());
    document("cli".into(), command_line());
    document("exit-codes".into(), exit_codes());
    document("report".into(), report());
    files
}

fn rules() -> String {
    let index = page::index();
    registry::all().iter().fold(index, |text, rule| {
        text.replace(&format!("]({}.md)", rule.name), &format!("](rules/{}.md)", rule.name))
    })
}

fn exit_codes() -> String {
    let mut text = String::from("# Exit codes\n\n| code | meaning | since |\n|------|---------|-------|\n");
    for (code, meaning, since) in MEANINGS {
        let _ = writeln!(text, "| {code} | {meaning} | {since} |");
    }
    text.push_str(
        "\nWith several causes the highest of 3, 1, 0 wins: a check that could not be evaluated and holds the batch \
         outweighs one\nthat is broken. Checks of severity `observe` never change the code.\n",
    );
    text
}

fn command_line() -> String {
    let mut command = Cli::command();
    command.build();
    let mut text = format!("# The command line\n\n{}\n", sentence(&command));
    for subcommand in command.get_subcommands().filter(|one| one.get_name() != "help") {
        let _ = write!(
            text,
            "\n## `comporta {}`\n\n{}\n",
            subcommand.get_name(),
            sentence(subcommand)
        );
        let usage = subcommand.clone().render_usage().to_string();
        let _ = write!(text, "\n```text\n{}\n```\n", usage.trim_start_matches("Usage: "));
        text.push_str(&arguments(subcommand));
        if let Some(examples) = subcommand.get_after_help() {
            let _ = write!(text, "\n```text\n{examples}\n```\n");
        }
    }
    text
}

fn sentence(command: &Command) -> String {
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    format!("{}.", about.trim_end_matches('.'))
}

fn arguments(command: &Command) -> String {
    let hidden = |arg: &&Arg| arg.is_hide_set() || arg.get_id() == "help";
    let all: Vec<&Arg> = command.get_arguments().filter(|arg| !hidden(arg)).collect();
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from("\n| argument | meaning |\n|----------|---------|\n");
    for arg in all {
        let names = arg.get_value_names().unwrap_or_default().join(" ");
        let takes = arg.get_action().takes_values();
        let written = match (arg.get_long(), takes) {
            (Some(long), true) => format!("--{long} {names}"),
            (Some(long), false) => format!("--{long}"),
            (None, _) => names,
        };
        let short = arg
            .get_short()
            .map_or_else(String::new, |short| format!("`-{short}`, "));
        let mut meaning = arg.get_help().map(ToString::to_string).unwrap_or_default();
        let values = arg.get_possible_values();
        if takes && !values.is_empty() {
            let names: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            let _ = write!(meaning, ": {}", list(&names));
        }
        let _ = writeln!(text, "| {short}`{written}` | {} |", meaning.replace('|', "\\|"));
    }
    text
}

fn report() -> String {
    let schema = Document::Report.schema();
    let mut text = format!(
        "# The report\n\nWhat `--format json` prints and `--report` writes; its JSON Schema is \
         [`schemas/report.schema.json`](../../schemas/report.schema.json).\n\n{}",
        fields(&schema)
    );
    let definitions = schema["$defs"].as_object().into_iter().flatten();
    for (name, definition) in definitions {
        let about = definition["description"].as_str().unwrap_or_default();
        let _ = write!(text, "\n## {name}\n\n{about}\n\n");
        match definition["properties"].is_object() {
            true => text.push_str(&fields(definition)),
            false => text.push_str(&words(definition)),
        }
    }
    text
}

fn fields(schema: &Value) -> String {
    let mut text = String::from("| field | value | meaning |\n|-------|-------|---------|\n");
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let about = field["description"].as_str().unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "| `{name}` | {} | {} |", kind(field), about.replace('|', "\\|"));
    }
    text
}

fn words(schema: &Value) -> String {
    let mut text = String::from("| word | meaning |\n|------|---------|\n");
    for word in schema["oneOf"].as_array().into_iter().flatten() {
        let about = word["description"].as_str().unwrap_or_default().replace('\n', " ");
        let _ = writeln!(text, "| `{}` | {about} |", word["const"].as_str().unwrap_or_default());
    }
    text
}

fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.rsplit('/').next().unwrap_or_default();
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(options) = schema["anyOf"].as_array() {
        return options.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) if name == "object" => format!("mapping to {}", kind(&schema["additionalProperties"])),
        Value::String(name) => name.clone(),
        _ => "any".into(),
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Pages of rules that are gone.
fn left_over(files: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let folder = root().join("docs/reference/rules");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            !files.contains_key(&format!("docs/reference/rules/{name}"))
        })
        .map(|entry| entry.path())
        .collect()
}

#[test]
fn generated_files_are_what_the_code_says() {
    let files = generated();
    let mut stale = Vec::new();
    let update = std::env::var_os("UPDATE").is_some();
    for (path, text) in &files {
        let place = root().join(path);
        if std::fs::read_to_string(&place).ok().as_ref() == Some(text) {
            continue;
        }
        if update {
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::write(&place, text).unwrap();
        } else {
            stale.push(path.clone());
        }
    }
    for place in left_over(&files) {
        if update {
            std::fs::remove_file(&place).unwrap();
        } else {
            stale.push(place.display().to_string());
        }
    }
    assert!(
        stale.is_empty(),
        "these files are not what the code says: {}\n`UPDATE=1 cargo test --workspace --bins reference` rewrites them",
        stale.join(", ")
    );
}
