//! Regular expressions over columns: compiled once, with caches that wander from array to array (S18).

use super::TextTest;
use regex_automata::Input;
use regex_automata::meta;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::ast::{self, Ast, ClassPerlKind, ClassSetItem, Span, Visitor};
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled pattern; equal by what was written.
#[derive(Clone)]
pub struct Pattern {
    written: String,
    compiled: Arc<Compiled>,
}

struct Compiled {
    regex: meta::Regex,
    /// Caches of the lazy automaton that no array is using. Each keeps what it learnt from the arrays before.
    idle: Mutex<Vec<meta::Cache>>,
}

/// What a compiled pattern may take in memory: patterns come from documents, which may be hostile.
const SIZE_LIMIT: usize = 10 << 20;

impl Pattern {
    /// Compiles a pattern: the syntax of the `regex` crate, unanchored, `$` only at the very end, `\d`, `\w`, `\s`
    /// and `\b` of ASCII, every other sign and class of Unicode.
    ///
    /// # Errors
    /// What is wrong with it and where, as a fragment.
    pub fn new(written: &str) -> Result<Self, String> {
        let translated = with_ascii_classes(written)?;
        let config = meta::Config::new()
            .utf8_empty(false)
            .which_captures(WhichCaptures::None)
            .nfa_size_limit(Some(SIZE_LIMIT))
            .hybrid_cache_capacity(SIZE_LIMIT);
        let regex = meta::Regex::builder()
            .syntax(regex_automata::util::syntax::Config::new().utf8(false))
            .configure(config)
            .build(&translated)
            .map_err(|error| match error.size_limit() {
                Some(_) => "the pattern is too large: its repetitions multiply".to_string(),
                None => error.syntax_error().map_or_else(
                    || error.to_string(),
                    |error| match error {
                        regex_syntax::Error::Translate(error) => format!("{}", error.kind()),
                        error => last_line(&error.to_string()),
                    },
                ),
            })?;
        Ok(Pattern {
            written: written.to_string(),
            compiled: Arc::new(Compiled {
                regex,
                idle: Mutex::default(),
            }),
        })
    }

    /// The pattern as written.
    pub fn as_str(&self) -> &str {
        &self.written
    }
}

impl std::fmt::Debug for Pattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Pattern").field(&self.written).finish()
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Eq for Pattern {}

impl Hash for Pattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.written.hash(state);
    }
}

/// A search with a cache of its own, which goes back to the pattern at the end.
pub struct Search<'a> {
    compiled: &'a Compiled,
    cache: Option<meta::Cache>,
}

impl Drop for Search<'_> {
    fn drop(&mut self) {
        if let Some(cache) = self.cache.take() {
            self.compiled
                .idle
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(cache);
        }
    }
}

impl TextTest for Pattern {
    const NAME: &'static str = "matches";

    type Run<'a> = Search<'a>;

    fn begin(&self) -> Search<'_> {
        let idle = self.compiled.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Search {
            compiled: &self.compiled,
            cache: Some(idle.unwrap_or_else(|| self.compiled.regex.create_cache())),
        }
    }

    fn passes(run: &mut Search<'_>, text: &[u8]) -> bool {
        match &mut run.cache {
            Some(cache) => run.compiled.regex.is_match_with(cache, &Input::new(text)),
            None => false,
        }
    }
}

/// The pattern with its Perl classes and word borders written out for ASCII. Switching Unicode off as a whole would
/// let `.` match half a character.
fn with_ascii_classes(written: &str) -> Result<String, String> {
    let tree = ast::parse::Parser::new().parse(written).map_err(|error| {
        let character = written[..error.span().start.offset.min(written.len())].chars().count() + 1;
        let what = match error.kind() {
            ast::ErrorKind::UnsupportedLookAround => "look-around is not supported".to_string(),
            ast::ErrorKind::UnsupportedBackreference => "back-references are not supported".to_string(),
            kind => kind.to_string(),
        };
        format!("{what}, at character {character} of the pattern")
    })?;
    let edits = ast::visit(&tree, Edits::default()).map_err(|error: String| error)?;
    let mut translated = String::with_capacity(written.len());
    let mut copied = 0;
    for (span, text) in edits {
        translated.push_str(&written[copied..span.start.offset]);
        translated.push_str(&text.replace("{}", &written[span.start.offset..span.end.offset]));
        copied = span.end.offset;
    }
    translated.push_str(&written[copied..]);
    Ok(translated)
}

/// Places to rewrite, in order; `{}` in the new text stands for what was there.
#[derive(Default)]
struct Edits(Vec<(Span, &'static str)>);

impl Visitor for Edits {
    type Output = Vec<(Span, &'static str)>;
    type Err = String;

    fn finish(mut self) -> Result<Self::Output, String> {
        self.0.sort_by_key(|(span, _)| span.start.offset);
        Ok(self.0)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), String> {
        match ast {
            // Without the case switch, which would let the Kelvin sign pass for a `k`.
            Ast::ClassPerl(class) => self.0.push((
                class.span,
                match (&class.kind, class.negated) {
                    (ClassPerlKind::Digit, false) => "[0-9]",
                    (ClassPerlKind::Digit, true) => "[^0-9]",
                    (ClassPerlKind::Space, false) => r"[\t\n\x0B\x0C\r\x20]",
                    (ClassPerlKind::Space, true) => r"[^\t\n\x0B\x0C\r\x20]",
                    (ClassPerlKind::Word, false) => "(?-i:[0-9A-Za-z_])",
                    (ClassPerlKind::Word, true) => "(?-i:[^0-9A-Za-z_])",
                },
            )),
            Ast::Assertion(assertion) if is_word_border(&assertion.kind) => {
                self.0.push((assertion.span, "(?-u:{})"));
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), String> {
        if let ClassSetItem::Perl(class) = item {
            self.0.push((
                class.span,
                match (&class.kind, class.negated) {
                    (ClassPerlKind::Digit, false) => "[0-9]",
                    (ClassPerlKind::Digit, true) => "[^0-9]",
                    (ClassPerlKind::Space, false) => r"[\t\n\x0B\x0C\r\x20]",
                    (ClassPerlKind::Space, true) => r"[^\t\n\x0B\x0C\r\x20]",
                    (ClassPerlKind::Word, false) => "[0-9A-Za-z_]",
                    (ClassPerlKind::Word, true) => "[^0-9A-Za-z_]",
                },
            ));
        }
        Ok(())
    }
}

fn is_word_border(kind: &ast::AssertionKind) -> bool {
    use ast::AssertionKind as Kind;
    !matches!(kind, Kind::StartLine | Kind::EndLine | Kind::StartText | Kind::EndText)
}

fn last_line(message: &str) -> String {
    let line = message.lines().last().unwrap_or(message).trim();
    line.strip_prefix("error: ").unwrap_or(line).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let pattern = Pattern::new(pattern).unwrap();
        let mut run = pattern.begin();
        Pattern::passes(&mut run, text.as_bytes())
    }

    #[test]
    fn patterns_are_unanchored_and_the_end_is_the_very_end() {
        assert!(matches("b+", "abbc"));
        assert!(matches("^a.c$", "aéc"));
        assert!(!matches("^abc$", "abc\n"));
        assert!(!matches("^a..c$", "aéc"));
        assert!(matches("", ""));
    }

    #[test]
    fn perl_classes_are_ascii_everywhere_they_may_stand() {
        for (pattern, yes, no) in [
            (r"^\d+$", "123", "١٢٣"),
            (r"^\w+$", "ab_1", "né"),
            (r"^\s$", " ", "\u{a0}"),
            (r"^[\d.]+$", "1.2", "١"),
            (r"^[^\s@]+$", "a\u{a0}é", "a b"),
            (r"^\D$", "é", "5"),
            (r"^\W$", "é", "_"),
            (r"^\S$", "é", "\t"),
            (r"(?x) ^ \s x $", " x", "x"),
            (r"(?i)^\w$", "K", "\u{212a}"),
            (r"^[\w&&[^_]]$", "a", "_"),
            (r"\bcafe\b", "a cafe.", "cafes"),
            (r"\bé", "xé", "é"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes}");
            assert!(!matches(pattern, no), "{pattern} {no}");
        }
        assert!(matches(r"(?i)^é$", "É"));
        assert!(matches(r"^\p{Lu}$", "É"));
    }

    #[test]
    fn what_cannot_be_done_says_where() {
        let error = |pattern: &str| Pattern::new(pattern).unwrap_err();
        assert_eq!(
            error("é(?=b)"),
            "look-around is not supported, at character 2 of the pattern"
        );
        assert_eq!(
            error(r"(a)\1"),
            "back-references are not supported, at character 4 of the pattern"
        );
        assert!(error("(a").contains("at character 1"), "{}", error("(a"));
        assert!(
            error(r"\p{Klingon}").contains("Unicode property not found"),
            "{}",
            error(r"\p{Klingon}")
        );
        assert!(
            error(r"(\w{1000}){1000}").contains("too large"),
            "{}",
            error(r"(\w{1000}){1000}")
        );
    }

    #[test]
    fn a_search_gives_its_cache_back_and_equal_patterns_are_one() {
        let pattern = Pattern::new("a").unwrap();
        let (first, second) = (pattern.begin(), pattern.begin());
        drop((first, second));
        assert_eq!(pattern.compiled.idle.lock().unwrap().len(), 2);
        drop(pattern.begin());
        assert_eq!(pattern.compiled.idle.lock().unwrap().len(), 2);
        assert_eq!(pattern, Pattern::new("a").unwrap());
    }
}
