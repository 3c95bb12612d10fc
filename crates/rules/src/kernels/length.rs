//! How many characters a text has.

use super::TextTest;

/// The text has so many Unicode characters (not bytes), both bounds included.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Characters {
    /// Fewest.
    pub min: Option<u64>,
    /// Most.
    pub max: Option<u64>,
}

impl TextTest for Characters {
    const NAME: &'static str = "has_length";

    type Run<'a> = (u64, u64);

    fn begin(&self) -> (u64, u64) {
        (self.min.unwrap_or(0), self.max.unwrap_or(u64::MAX))
    }

    fn passes((min, max): &mut (u64, u64), text: &[u8]) -> bool {
        // Every byte that does not continue a character begins one.
        let characters = text.iter().filter(|byte| (**byte & 0xC0) != 0x80).count() as u64;
        (*min..=*max).contains(&characters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_not_bytes() {
        let test = Characters {
            min: Some(2),
            max: Some(3),
        };
        let mut run = test.begin();
        for (text, passes) in [
            ("", false),
            ("a", false),
            ("ab", true),
            ("ééé", true),
            ("🙂🙂🙂", true),
            ("abcd", false),
        ] {
            assert_eq!(Characters::passes(&mut run, text.as_bytes()), passes, "{text}");
        }
    }
}
