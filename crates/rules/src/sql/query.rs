//! One read-only query over the batch and declared tables (S29, S30).

use crate::scope::Scope;
use crate::sql::expression::Expression;
use crate::sql::fault::Fault;
use crate::sql::guard::{BATCH, Guard, first_words, not_read_only};
use crate::sql::{clock, parser};
use comporta_contract::{Diagnostic, Node};
use datafusion_sql::sqlparser::ast::{
    self, Expr, GroupByExpr, Ident, Select, SelectItem, SetExpr, Statement, TableFactor, VisitMut as _, VisitorMut,
    WildcardAdditionalOptions,
};
use std::ops::ControlFlow;

/// A parsed query that only reads, and only the batch and declared tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    pub(super) tree: ast::Query,
    tables: Vec<String>,
}

impl Query {
    /// Reads a query, given the names of the declared tables.
    ///
    /// # Errors
    /// It does not parse, or is more than one read-only query.
    pub fn parse<S: AsRef<str>>(text: &str, tables: &[S]) -> Result<Self, Fault> {
        Self::guarded(Self::parse_unguarded(text)?, tables)
    }

    /// Reads a query that still has placeholders.
    pub(super) fn parse_unguarded(text: &str) -> Result<ast::Query, Fault> {
        let statements = parser(text)?.parse_statements();
        let mut statements = match statements {
            Ok(statements) => statements.into_iter(),
            Err(error) => {
                // What the parser does not know at all is still recognised by its first word.
                let start = first_words(text);
                let verb = start.split(' ').next().unwrap_or_default().to_ascii_lowercase();
                let reads = ["select", "with", "from", "values", "(", ""]
                    .iter()
                    .any(|word| *word == verb);
                return Err(match CHANGING.contains(&verb.as_str()) && !reads {
                    true => not_read_only(&start),
                    false => Fault::syntax(&error),
                });
            }
        };
        match (statements.next(), statements.next()) {
            (None, _) => Err(Fault::new("sql-syntax", "there is no query").hint("write one SELECT")),
            (Some(_), Some(second)) => Err(Fault::new("sql-several", "there is more than one statement")
                .why(format!(
                    "`{}` stands behind the first",
                    first_words(&second.to_string())
                ))
                .hint("write one check per query")),
            (Some(Statement::Query(query)), None) => Ok(*query),
            (Some(other), None) => Err(not_read_only(&first_words(&other.to_string()))),
        }
    }

    pub(super) fn guarded<S: AsRef<str>>(tree: ast::Query, tables: &[S]) -> Result<Self, Fault> {
        let names: Vec<&str> = tables.iter().map(AsRef::as_ref).collect();
        let mut guard = Guard::of_query(&names);
        guard.check(&tree)?;
        let tables = guard.read;
        Ok(Query { tree, tables })
    }

    /// The declared tables that it reads.
    pub fn tables(&self) -> &[String] {
        &self.tables
    }

    /// The condition of `SELECT * FROM batch WHERE <condition>`, if the query is that and no more: then it
    /// speaks of each row, and a row on which the condition is TRUE is returned.
    pub fn row_condition(&self) -> Option<Expression> {
        let query = &self.tree;
        let SetExpr::Select(select) = query.body.as_ref() else {
            return None;
        };
        let bare =
            query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
        let alias = sole_batch(select)?;
        if !bare || !is_plain(select) {
            return None;
        }
        let mut condition = select.selection.clone()?;
        let _ = condition.visit(&mut WithoutAlias(&alias));
        // Subqueries, aggregates and windows make it more than a condition on one row.
        Expression::guarded(condition).ok()
    }

    /// The query as text for the engine, with the run's clock in place of `now()` and its kin.
    pub fn text_at(&self, scope: &Scope) -> String {
        let mut tree = self.tree.clone();
        clock::in_query(&mut tree, scope);
        tree.to_string()
    }

    /// The query as text.
    pub fn text(&self) -> String {
        self.tree.to_string()
    }
}

/// First words of statements that change or reveal something.
const CHANGING: &[&str] = &[
    "alter",
    "analyze",
    "attach",
    "begin",
    "call",
    "checkpoint",
    "comment",
    "commit",
    "copy",
    "create",
    "deallocate",
    "delete",
    "describe",
    "detach",
    "drop",
    "execute",
    "explain",
    "export",
    "grant",
    "import",
    "insert",
    "install",
    "load",
    "lock",
    "merge",
    "msck",
    "optimize",
    "pragma",
    "prepare",
    "refresh",
    "reset",
    "revoke",
    "rollback",
    "set",
    "show",
    "truncate",
    "unload",
    "update",
    "use",
    "vacuum",
];

/// Reads the query of a document, given the names of its tables.
///
/// # Errors
/// What is wrong, at its place.
pub fn check_query<S: AsRef<str>>(node: &Node, tables: &[S]) -> Result<Query, Diagnostic> {
    Query::parse(node.as_text().unwrap_or_default(), tables).map_err(|fault| fault.diagnostic(node))
}

/// The name under which the batch stands alone in FROM.
fn sole_batch(select: &Select) -> Option<Ident> {
    let [from] = select.from.as_slice() else { return None };
    let TableFactor::Table { name, alias, .. } = &from.relation else {
        return None;
    };
    let [one] = name.0.as_slice() else { return None };
    let table = one.as_ident().filter(|table| table.value.eq_ignore_ascii_case(BATCH))?;
    match alias {
        _ if !from.joins.is_empty() => None,
        None => Some(table.clone()),
        Some(alias) if alias.columns.is_empty() => Some(alias.name.clone()),
        Some(_) => None,
    }
}

/// `SELECT *` with nothing but FROM and WHERE.
fn is_plain(select: &Select) -> bool {
    let all = match select.projection.as_slice() {
        [SelectItem::Wildcard(options)] => {
            let plain = WildcardAdditionalOptions {
                wildcard_token: options.wildcard_token.clone(),
                ..Default::default()
            };
            *options == plain
        }
        _ => false,
    };
    let grouped = !matches!(&select.group_by, GroupByExpr::Expressions(by, with) if by.is_empty() && with.is_empty());
    all && !grouped
        && select.distinct.is_none()
        && select.exclude.is_none()
        && select.having.is_none()
        && select.qualify.is_none()
        && select.named_window.is_empty()
        && select.cluster_by.is_empty()
        && select.distribute_by.is_empty()
        && select.sort_by.is_empty()
}

/// `b.amount` of the batch named `b` is the column `amount`.
struct WithoutAlias<'a>(&'a Ident);

impl VisitorMut for WithoutAlias<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::CompoundIdentifier(parts) = expr
            && parts.len() > 1
            && parts[0].value.eq_ignore_ascii_case(&self.0.value)
        {
            let rest: Vec<Ident> = parts[1..].to_vec();
            *expr = match <[Ident; 1]>::try_from(rest) {
                Ok([one]) => Expr::Identifier(one),
                Err(rest) => Expr::CompoundIdentifier(rest),
            };
        }
        ControlFlow::Continue(())
    }
}
