//! `comporta completions SHELL`

use crate::arguments::Cli;
use crate::commands::Ended;
use crate::{exit_code, output};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

const AFTER_HELP: &str = "\
Examples:
  comporta completions bash > ~/.local/share/bash-completion/completions/comporta
  comporta completions zsh > ~/.zfunc/_comporta
  comporta completions fish > ~/.config/fish/completions/comporta.fish";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(arguments: &Arguments) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut Cli::command(), "comporta", &mut script);
    output::stdout(&String::from_utf8_lossy(&script))?;
    Ok(exit_code::PUBLISHED)
}
