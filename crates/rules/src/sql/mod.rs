//! SQL text of documents: parsed, never pasted (S29, S30). Expressions become engine expressions; queries are
//! guarded on their parsed tree and run by the engine.

mod clock;
mod expression;
mod fault;
mod functions;
mod guard;
mod names;
mod placeholders;
mod query;
#[cfg(test)]
mod tests;
mod zero;

pub use expression::{Expression, check_expression, expression, read_expression};
pub use fault::Fault;
pub use guard::BATCH;
pub use names::prepare_query;
pub use placeholders::{Binding, Bindings, fill_expression, fill_query};
pub use query::{Query, check_query};

use datafusion_sql::planner::ParserOptions;
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Operators in one text. A tree grows by one level for each of them, and every step that walks a tree needs
/// room for its levels.
const OPERATORS_MAX: usize = 400;

/// Bytes of one text.
const LENGTH_MAX: usize = 1 << 20;

/// SQL dialect of all our text: decimal literals, names as written.
pub fn parser_options() -> ParserOptions {
    ParserOptions {
        parse_float_as_decimal: true,
        enable_ident_normalization: false,
        map_string_types_to_utf8view: false,
        ..ParserOptions::new()
    }
}

/// A parser over the tokens of a text that is not out of all proportion.
fn parser(text: &str) -> Result<Parser<'static>, Fault> {
    static DIALECT: GenericDialect = GenericDialect {};
    let too_long = || Fault::new("sql-too-long", "the text is too long").hint("split it into several checks");
    if text.len() > LENGTH_MAX {
        return Err(too_long());
    }
    let tokens = Tokenizer::new(&DIALECT, text)
        .tokenize_with_location()
        .map_err(|error| Fault::syntax(&error.into()))?;
    let operators = tokens.iter().filter(|token| match &token.token {
        Token::Word(word) => {
            word.quote_style.is_none() && {
                let word = word.value.as_str();
                ["and", "or", "union", "except", "intersect", "join"]
                    .iter()
                    .any(|known| word.eq_ignore_ascii_case(known))
            }
        }
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod | Token::StringConcat | Token::Eq => true,
        _ => false,
    });
    if operators.count() > OPERATORS_MAX {
        return Err(too_long().why(format!("it joins more than {OPERATORS_MAX} parts")));
    }
    Ok(Parser::new(&DIALECT).with_tokens_with_locations(tokens))
}

/// Engine errors without the engine's prefixes.
pub fn plain(message: &str) -> String {
    let mut rest = message;
    for prefix in [
        "SQL error: ",
        "ParserError(\"",
        "sql parser error: ",
        "Error during planning: ",
        "Schema error: ",
        "External error: ",
        "This feature is not implemented: ",
    ] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    rest.trim_end_matches("\")").to_string()
}
