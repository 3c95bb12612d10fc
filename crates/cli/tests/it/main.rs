//! The real binary, from the outside: exit code, standard output and standard error of every command.

mod check;
mod completions;
mod crash;
mod documents;
mod pipes;
mod realdata;
mod rules;
mod schema;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with files in it; gone at the end of the test.
struct Folder(TempDir);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = Folder(tempfile::tempdir().unwrap());
        for (name, content) in files {
            folder.write(name, content.as_bytes());
        }
        folder
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn write(&self, name: &str, content: &[u8]) {
        let place = self.path().join(name);
        std::fs::create_dir_all(place.parent().unwrap()).unwrap();
        std::fs::write(place, content).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_comporta"));
        command
            .current_dir(self.path())
            .args(arguments)
            .env_remove("COMPORTA_LOG")
            .env_remove("NO_COLOR")
            .stdin(Stdio::null());
        command
    }

    /// Runs the binary; exit code and what it said as one text.
    fn run(&self, arguments: &[&str]) -> String {
        told(&self.command(arguments).output().unwrap())
    }

    /// The same with a text on standard input.
    fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A process that refuses its input early closes the pipe, which is its right.
        let _ = child.stdin.take().unwrap().write_all(input);
        told(&child.wait_with_output().unwrap())
    }
}

fn told(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the binary says UTF-8");
    let mut told = format!(
        "exit {}\n",
        output.status.code().map_or("by signal".into(), |code| code.to_string())
    );
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        if !bytes.is_empty() {
            told.push_str(&format!("--- {name}\n{}", text(bytes)));
        }
    }
    told
}

/// Snapshots what the binary said, with durations, ids and instants taken out.
macro_rules! assert_told {
    ($told:expr, @$expected:literal) => {
        insta::with_settings!({filters => vec![
            (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[run]"),
            (r"(?m)^(run \[run\] · )?[0-9.]+ (ms|s)$", "$1[duration]"),
        ]}, {
            insta::assert_snapshot!($told, @$expected);
        });
    };
}
use assert_told;
