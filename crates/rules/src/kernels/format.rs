//! Whether a text is of a [`Format`].

use super::TextTest;
use crate::formats::Format;

/// The text is of the format.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct HasFormat(
    /// Which.
    pub Format,
);

impl TextTest for HasFormat {
    const NAME: &'static str = "has_format";

    type Run<'a> = fn(&str) -> bool;

    fn begin(&self) -> fn(&str) -> bool {
        self.0.test
    }

    fn passes(test: &mut fn(&str) -> bool, text: &[u8]) -> bool {
        std::str::from_utf8(text).is_ok_and(test)
    }
}
