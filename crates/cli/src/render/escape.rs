//! Text of others made harmless: it may come from the data, so it must neither steer a terminal nor break a
//! format.

use std::fmt::Write;

/// For a terminal: control signs, and signs that turn the direction of writing, as `\u{…}`.
pub(crate) fn terminal(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for sign in text.chars() {
        match sign {
            '\n' => plain.push_str("\\n"),
            '\r' => plain.push_str("\\r"),
            '\t' => plain.push_str("\\t"),
            sign if sign.is_control() || is_steering(sign) => {
                let _ = write!(plain, "\\u{{{:x}}}", sign as u32);
            }
            sign => plain.push(sign),
        }
    }
    plain
}

/// Signs without a shape that change how others are shown: bidirectional controls, line and paragraph separators.
fn is_steering(sign: char) -> bool {
    matches!(sign, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// For a cell of a Markdown table.
pub(crate) fn markdown(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut in_code = false;
    for sign in terminal(text).chars() {
        match sign {
            // Messages put names in backticks; what stands between them is shown as it is.
            '`' => {
                in_code = !in_code;
                escaped.push(sign);
            }
            '|' => escaped.push_str("\\|"),
            '<' | '>' | '&' if in_code => escaped.push(sign),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' if !in_code => escaped.push_str("&#64;"),
            '\\' | '*' | '_' | '[' | ']' | '#' | '~' | '!' if !in_code => {
                escaped.push('\\');
                escaped.push(sign);
            }
            sign => escaped.push(sign),
        }
    }
    if in_code {
        // An odd backtick would run into the next cell.
        escaped = escaped.replace('`', "&#96;");
    }
    escaped
}

/// For the message of a workflow command.
pub(crate) fn github_message(text: &str) -> String {
    terminal(text).replace('%', "%25")
}

/// For a property of a workflow command.
pub(crate) fn github_property(text: &str) -> String {
    github_message(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_sign_reaches_a_terminal() {
        assert_eq!(
            terminal("a\u{1b}[31mb\u{9b}c\r\n\u{202e}d é"),
            "a\\u{1b}[31mb\\u{9b}c\\r\\n\\u{202e}d é"
        );
    }

    #[test]
    fn markdown_cells_keep_their_borders() {
        assert_eq!(markdown("a|b <b>*x*</b>"), "a\\|b &lt;b&gt;\\*x\\*&lt;/b&gt;");
        assert_eq!(markdown("`a_b` is 1"), "`a_b` is 1");
        assert_eq!(markdown("odd ` tick"), "odd &#96; tick");
    }

    #[test]
    fn workflow_commands_cannot_be_smuggled_in() {
        assert_eq!(github_message("50%\n::error::x"), "50%25\\n::error::x");
        assert_eq!(github_property("a:b,c"), "a%3Ab%2Cc");
    }
}
