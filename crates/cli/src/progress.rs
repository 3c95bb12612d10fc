//! A bar on standard error while a scan takes long; nothing where standard error is no terminal.

use comporta::engine::Progress;
use comporta::engine::job::Silent;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The progress of a command, drawn if somebody can see it.
pub(crate) fn for_terminal(wanted: bool) -> Arc<dyn Progress> {
    match wanted && std::io::stderr().is_terminal() {
        true => Arc::new(Bar::default()),
        false => Arc::new(Silent),
    }
}

#[derive(Default)]
struct Bar {
    current: Mutex<Option<ProgressBar>>,
}

impl Bar {
    fn replace(&self, bar: Option<ProgressBar>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = std::mem::replace(&mut *current, bar) {
            old.finish_and_clear();
        }
    }
}

impl Progress for Bar {
    fn step(&self, name: &str, total: u64) {
        let (bar, template) = match total {
            0 => (ProgressBar::no_length(), "{msg:10} {spinner} {elapsed}"),
            total => (
                ProgressBar::new(total),
                "{msg:10} [{bar:30}] {percent:>3}% {elapsed} eta {eta}",
            ),
        };
        let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_draw_target(ProgressDrawTarget::stderr_with_hz(10));
        let bar = bar
            .with_style(style.progress_chars("=> "))
            .with_message(name.to_string());
        bar.enable_steady_tick(Duration::from_millis(200));
        self.replace(Some(bar));
    }

    fn advance(&self, amount: u64) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bar) = current.as_ref() {
            bar.inc(amount);
        }
    }

    fn done(&self) {
        self.replace(None);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.replace(None);
    }
}
