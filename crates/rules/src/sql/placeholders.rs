//! The parameters of templates: put into the parsed tree as column references or literals, never pasted into
//! text.

use crate::sql::expression::Expression;
use crate::sql::fault::Fault;
use crate::sql::query::Query;
use bigdecimal::BigDecimal;
use comporta_contract::literal::plain_number;
use comporta_contract::nearest::{list, nearest};
use datafusion_sql::sqlparser::ast::{Expr, Ident, UnaryOperator, Value, VisitMut, VisitorMut};
use indexmap::IndexMap;
use std::ops::ControlFlow;

/// What a parameter stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Binding {
    /// A column, by its name as written.
    Column(String),
    /// A number, exact.
    Number(BigDecimal),
    /// Text.
    Text(String),
    /// `true` or `false`.
    Boolean(bool),
}

/// Parameters by name, without the `$`.
pub type Bindings = IndexMap<String, Binding>;

/// The expression of a template with its parameters in place.
///
/// # Errors
/// It does not parse, uses a parameter that there is not, or is more than an expression over one row.
pub fn fill_expression(text: &str, bindings: &Bindings) -> Result<Expression, Fault> {
    let mut tree = Expression::parse_unguarded(text)?;
    fill(&mut tree, bindings)?;
    Expression::guarded(tree)
}

/// The query of a template with its parameters in place.
///
/// # Errors
/// It does not parse, uses a parameter that there is not, or is more than one read-only query.
pub fn fill_query<S: AsRef<str>>(text: &str, bindings: &Bindings, tables: &[S]) -> Result<Query, Fault> {
    let mut tree = Query::parse_unguarded(text)?;
    fill(&mut tree, bindings)?;
    Query::guarded(tree, tables)
}

fn fill(tree: &mut impl VisitMut, bindings: &Bindings) -> Result<(), Fault> {
    match tree.visit(&mut Filler(bindings)) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(fault) => Err(*fault),
    }
}

struct Filler<'a>(&'a Bindings);

impl VisitorMut for Filler<'_> {
    type Break = Box<Fault>;

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Fault>> {
        let Expr::Value(value) = &*expr else {
            return ControlFlow::Continue(());
        };
        let Value::Placeholder(written) = &value.value else {
            return ControlFlow::Continue(());
        };
        let name = written.trim_start_matches('$');
        match self.0.get(name) {
            Some(binding) => {
                *expr = tree_of(binding);
                ControlFlow::Continue(())
            }
            None => {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let fault = Fault::new("template-parameter", format!("the template has no parameter `{name}`"));
                let fault = match nearest(name, known.iter().copied()) {
                    Some(near) => fault.hint(format!("did you mean `${near}`?")),
                    None if known.is_empty() => fault.hint("list it under `parameters:`"),
                    None => fault.hint(format!("it has {}", list(&known))),
                };
                ControlFlow::Break(Box::new(fault.at(value.span)))
            }
        }
    }
}

fn tree_of(binding: &Binding) -> Expr {
    match binding {
        Binding::Column(name) => Expr::Identifier(Ident::with_quote('"', name)),
        Binding::Text(text) => Expr::value(Value::SingleQuotedString(text.clone())),
        Binding::Boolean(value) => Expr::value(Value::Boolean(*value)),
        Binding::Number(number) => {
            let digits = Expr::value(Value::Number(plain_number(&number.abs()), false));
            match *number < BigDecimal::from(0) {
                // In parentheses, so that `1 - $x` is no comment.
                true => Expr::Nested(Box::new(Expr::UnaryOp {
                    op: UnaryOperator::Minus,
                    expr: Box::new(digits),
                })),
                false => digits,
            }
        }
    }
}
