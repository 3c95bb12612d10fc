//! The door of comporta: reads the command line, calls the library, says the result, ends with an exit code.
//!
//! Nothing here judges data. `--version`, `--help` and the commands that only print start neither a runtime nor
//! the engine, so that they answer at once.

mod arguments;
mod commands;
mod diagnostics;
mod exit_code;
mod failure;
mod log;
mod output;
mod progress;
#[cfg(test)]
mod reference;
mod render;
mod runtime;

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    std::panic::set_hook(Box::new(report_bug));
    if is_version_alone() {
        return ExitCode::from(commands::version());
    }
    log::start();
    match arguments::Cli::try_parse() {
        Ok(cli) => ExitCode::from(commands::run(cli.command)),
        Err(message) => {
            // A reader that has gone away is no reason to fail.
            let _ = message.print();
            ExitCode::from(if message.use_stderr() {
                exit_code::INVALID
            } else {
                exit_code::PUBLISHED
            })
        }
    }
}

/// Scripts ask for the version at every step; it is answered before anything else is set up.
fn is_version_alone() -> bool {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next();
    let asked = first.is_some_and(|first| first == "--version" || first == "-V");
    asked && arguments.next().is_none()
}

/// Whatever panics is our fault: it is said so, and the process ends at once with a code of its own.
fn report_bug(panic: &std::panic::PanicHookInfo<'_>) {
    let what = panic.payload_as_str().unwrap_or("no message");
    let place = panic
        .location()
        .map_or_else(String::new, |place| format!(" at {place}"));
    let _ = writeln!(
        std::io::stderr().lock(),
        "error: this is a bug of comporta {}: {what}{place}\n\n\
         hint: please report it with the command and, if you can, the data; nothing was published after this point",
        env!("CARGO_PKG_VERSION"),
    );
    #[expect(
        clippy::exit,
        clippy::disallowed_methods,
        reason = "a thread of a broken program must not go on, whichever thread it is"
    )]
    std::process::exit(i32::from(exit_code::BUG));
}
