//! `comporta plan`

use crate::commands::Ended;
use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) output: crate::arguments::OutputArguments,
}

impl Arguments {
    pub(crate) fn is_json(&self) -> bool {
        self.output.is_json()
    }
}

pub(crate) fn run(_: &Arguments) -> Ended {
    Err(comporta::engine::Error::internal("this build has no engine yet").into())
}
