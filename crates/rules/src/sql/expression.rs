//! One boolean expression over the row: `expression`, `where`, and row-shaped queries.

use crate::rule::BindError;
use crate::scope::{Scope, match_name};
use crate::sql::fault::Fault;
use crate::sql::functions::PROVIDER;
use crate::sql::guard::Guard;
use crate::sql::{clock, parser, parser_options, plain, zero};
use arrow::datatypes::{DataType, Fields};
use comporta_contract::{Diagnostic, Node};
use datafusion_common::DFSchema;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, ExprSchemable as _};
use datafusion_sql::planner::{PlannerContext, SqlToRel};
use datafusion_sql::sqlparser::ast::{self, AccessExpr, Ident, Subscript, VisitMut as _, VisitorMut};
use datafusion_sql::sqlparser::tokenizer::Token;
use std::ops::ControlFlow;

/// A parsed expression that looks at one row and nothing else.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    pub(super) tree: ast::Expr,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// It does not parse, or is more than a scalar expression over one row.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        Self::guarded(Self::parse_unguarded(text)?)
    }

    /// Reads an expression that still has placeholders.
    pub(super) fn parse_unguarded(text: &str) -> Result<ast::Expr, Fault> {
        let mut parser = parser(text)?;
        let tree = parser.parse_expr().map_err(|error| Fault::syntax(&error))?;
        let next = parser.peek_token();
        match next.token {
            Token::EOF => Ok(tree),
            other => {
                Err(Fault::new("sql-syntax", format!("`{other}` is left over behind the expression")).at(next.span))
            }
        }
    }

    pub(super) fn guarded(tree: ast::Expr) -> Result<Self, Fault> {
        Guard::of_expression().check(&tree)?;
        Ok(Expression { tree })
    }

    /// The expression against a schema, with names resolved as everywhere (S20). The columns it reads are
    /// marked as used in the scope.
    ///
    /// # Errors
    /// It names something that is not there, or is not boolean.
    pub fn bind(&self, scope: &Scope) -> Result<Expr, BindError> {
        let mut tree = self.tree.clone();
        let mut resolver = Resolver { scope, error: None };
        let _ = tree.visit(&mut resolver);
        if let Some(error) = resolver.error {
            return Err(error);
        }
        let fault = |error: datafusion_common::DataFusionError| BindError::new(plain(&error.strip_backtrace()));
        let schema = DFSchema::try_from(scope.schema.clone()).map_err(fault)?;
        let expr = SqlToRel::new_with_options(&*PROVIDER, parser_options())
            .sql_to_expr(tree, &schema, &mut PlannerContext::new())
            .and_then(|expr| clock::in_expression(expr, scope))
            .and_then(|expr| zero::normalized(expr, &schema))
            .map_err(fault)?;
        mark_columns(&expr, scope);
        let expr = with_missing(expr, scope)?;
        match expr.get_type(&schema).map_err(fault)? {
            DataType::Boolean | DataType::Null => Ok(expr),
            other => Err(BindError::new(format!(
                "the expression is {}, not true or false",
                crate::literals::type_name(&other)
            ))
            .hint("compare it with something: `amount * quantity >= 0`")),
        }
    }

    /// The expression as SQL text.
    pub fn text(&self) -> String {
        self.tree.to_string()
    }
}

/// A boolean expression over the row, with names resolved as everywhere (S20). Columns it reads are marked
/// as used in the scope.
///
/// # Errors
/// It does not parse, names something that is not there, or is not boolean.
pub fn expression(text: &str, scope: &Scope) -> Result<Expr, BindError> {
    Expression::parse(text)?.bind(scope)
}

/// Checks at document time that the text is one scalar expression without subqueries (S2).
///
/// # Errors
/// What is wrong, at its place.
pub fn check_expression(node: &Node) -> Result<(), Diagnostic> {
    read_expression(node).map(drop)
}

/// Reads the expression of a document.
///
/// # Errors
/// What is wrong, at its place.
pub fn read_expression(node: &Node) -> Result<Expression, Diagnostic> {
    Expression::parse(node.as_text().unwrap_or_default()).map_err(|mut fault| {
        fault
            .hint
            .get_or_insert_with(|| "write one boolean expression, such as `amount >= 0`".into());
        fault.diagnostic(node)
    })
}

/// The check's missing markers count as nulls in expressions too.
fn with_missing(expr: Expr, scope: &Scope) -> Result<Expr, BindError> {
    if scope.missing.is_empty() {
        return Ok(expr);
    }
    let mut fault = None;
    let replaced = expr.transform_up(|node| {
        Ok(match &node {
            Expr::Column(column) => match scope.column(&column.name) {
                Ok(column) => Transformed::yes(column.expr),
                Err(error) => {
                    fault = Some(error);
                    Transformed::no(node)
                }
            },
            _ => Transformed::no(node),
        })
    });
    match (fault, replaced) {
        (Some(error), _) => Err(error),
        (None, Ok(replaced)) => Ok(replaced.data),
        (None, Err(error)) => Err(BindError::new(plain(&error.strip_backtrace()))),
    }
}

fn mark_columns(expr: &Expr, scope: &Scope) {
    let _ = expr.apply(|node| {
        if let Expr::Column(column) = node {
            scope.mark_used(&column.name);
        }
        Ok(TreeNodeRecursion::Continue)
    });
}

/// Turns every column name into the exact, quoted name of the schema.
struct Resolver<'a> {
    scope: &'a Scope<'a>,
    error: Option<BindError>,
}

impl VisitorMut for Resolver<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let parts = match expr {
            ast::Expr::Identifier(identifier) => std::slice::from_ref(identifier),
            ast::Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return ControlFlow::Continue(()),
        };
        match resolve(parts, self.scope) {
            Ok(resolved) => {
                *expr = resolved;
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.error = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// `a.b` is the column of that name if there is one, else the field `b` of the struct `a`.
fn resolve(parts: &[Ident], scope: &Scope) -> Result<ast::Expr, BindError> {
    let fields = scope.schema.fields();
    let whole: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
    let whole = whole.join(".");
    if let Some(name) = match_name(&whole, &names(fields))? {
        return Ok(ast::Expr::Identifier(Ident::with_quote('"', name)));
    }
    // A name in quotes with dots may be a path as it stands in column positions; otherwise the first part is
    // the column.
    let (first, path): (&str, Vec<&str>) = match parts {
        [one] => {
            let mut steps = one.value.split('.');
            (steps.next().unwrap_or_default(), steps.collect())
        }
        [first, rest @ ..] => (&first.value, rest.iter().map(|part| part.value.as_str()).collect()),
        [] => ("", Vec::new()),
    };
    let Some(root) = match_name(first, &names(fields))?.filter(|_| !path.is_empty()) else {
        // The scope says best what is wrong with the name.
        return Err(scope
            .resolve(&whole)
            .err()
            .unwrap_or_else(|| BindError::new(format!("no column `{whole}`"))));
    };
    let mut data_type = fields.find(root).map(|(_, field)| field.data_type().clone());
    let mut access = Vec::new();
    for step in path {
        let field = match &data_type {
            Some(DataType::Struct(inner)) => match_name(step, &names(inner))?.and_then(|name| inner.find(name)),
            _ => None,
        };
        let Some((_, field)) = field else {
            let error = scope.resolve(&whole).err();
            return Err(error.unwrap_or_else(|| BindError::new(format!("`{first}` has no field `{step}`"))));
        };
        access.push(AccessExpr::Subscript(Subscript::Index {
            index: ast::Expr::value(ast::Value::SingleQuotedString(field.name().clone())),
        }));
        data_type = Some(field.data_type().clone());
    }
    Ok(ast::Expr::CompoundFieldAccess {
        root: Box::new(ast::Expr::Identifier(Ident::with_quote('"', root))),
        access_chain: access,
    })
}

fn names(fields: &Fields) -> Vec<&str> {
    fields.iter().map(|field| field.name().as_str()).collect()
}
