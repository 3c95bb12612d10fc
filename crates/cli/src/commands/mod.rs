//! One file per command. A command says its result on standard output and returns an exit code, or a failure.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod history;
pub(crate) mod plan;
pub(crate) mod rules;
pub(crate) mod run;
pub(crate) mod schema;

use crate::arguments::Command;
use crate::failure::Failure;

/// What a command ends with: an exit code, or why there is no result.
pub(crate) type Ended = Result<u8, Failure>;

/// Says the version, as `--version` does.
pub(crate) fn version() -> u8 {
    match crate::output::stdout(concat!("comporta ", env!("CARGO_PKG_VERSION"), "\n")) {
        Ok(()) => crate::exit_code::PUBLISHED,
        Err(failure) => {
            failure.say(false);
            failure.code()
        }
    }
}

/// Runs a command to its exit code.
pub(crate) fn run(command: Command) -> u8 {
    let (ended, as_json) = match command {
        Command::Check(arguments) => (check::run(&arguments), arguments.output.is_json()),
        Command::Run(arguments) => (run::run(&arguments), arguments.output.is_json()),
        Command::Plan(arguments) => (plan::run(&arguments), arguments.is_json()),
        Command::Rules(arguments) => (rules::run(&arguments), false),
        Command::History(arguments) => (history::run(&arguments), arguments.is_json()),
        Command::Schema(arguments) => (schema::run(&arguments), false),
        Command::Completions(arguments) => (completions::run(&arguments), false),
    };
    match ended {
        Ok(code) => code,
        Err(failure) => {
            failure.say(as_json);
            failure.code()
        }
    }
}
