//! What SQL text may hold, decided on its parsed tree: words in strings and comments do not trip it (S30).

use crate::sql::fault::Fault;
use crate::sql::functions::{Caller, check_call};
use comporta_contract::nearest::suggest;
use datafusion_sql::sqlparser::ast::{
    Expr, ObjectName, Query, Select, SetExpr, Spanned as _, Statement, TableFactor, Value, ValueWithSpan, Visit,
    Visitor,
};
use std::ops::ControlFlow;

/// The name of the batch in queries.
pub const BATCH: &str = "batch";

/// Walks a tree and stops at the first thing that may not be there.
pub(super) struct Guard<'a> {
    caller: Caller,
    tables: &'a [&'a str],
    /// Names given by `WITH`, per query around the place.
    named: Vec<Vec<String>>,
    /// Declared tables that are read.
    pub(super) read: Vec<String>,
}

impl<'a> Guard<'a> {
    pub(super) fn of_expression() -> Self {
        Guard {
            caller: Caller::Expression,
            tables: &[],
            named: Vec::new(),
            read: Vec::new(),
        }
    }

    pub(super) fn of_query(tables: &'a [&'a str]) -> Self {
        Guard {
            caller: Caller::Query,
            tables,
            ..Guard::of_expression()
        }
    }

    pub(super) fn check(&mut self, tree: &impl Visit) -> Result<(), Fault> {
        match tree.visit(self) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(fault) => Err(*fault),
        }
    }

    fn table(&mut self, name: &ObjectName) -> Result<(), Fault> {
        let known = |written: &str, candidate: &str| written.to_lowercase() == candidate.to_lowercase();
        let single = match name.0.as_slice() {
            [one] => one.as_ident().filter(|ident| ident.quote_style != Some('\'')),
            _ => None,
        };
        if let Some(ident) = single {
            let named = self.named.iter().flatten().any(|cte| known(&ident.value, cte));
            if named || known(&ident.value, BATCH) {
                return Ok(());
            }
            if let Some(table) = self.tables.iter().find(|table| known(&ident.value, table)) {
                if !self.read.iter().any(|read| read == table) {
                    self.read.push((*table).to_string());
                }
                return Ok(());
            }
        }
        let written = name.to_string();
        let bare = written.trim_matches(['\'', '"', '`']);
        let looks_like_path = bare.contains(['/', '\\']) || (name.0.len() == 1 && bare.contains('.'));
        let fault = Fault::new(
            "sql-unknown-table",
            format!("`{bare}` is not the batch and no declared table"),
        )
        .at(name.span());
        let names: Vec<&str> = std::iter::once(BATCH).chain(self.tables.iter().copied()).collect();
        Err(match looks_like_path {
            true => fault
                .why("a query reads no files by itself")
                .hint("declare the file under `tables:` and name the table"),
            false => fault.hint(format!(
                "{}; other tables are declared under `tables:`",
                suggest(bare, &names)
            )),
        })
    }
}

fn refuse(fault: Fault) -> ControlFlow<Box<Fault>> {
    ControlFlow::Break(Box::new(fault))
}

fn verdict(result: Result<(), Fault>) -> ControlFlow<Box<Fault>> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(fault) => refuse(fault),
    }
}

/// A clause that is no part of a read-only query here.
fn clause(what: &str) -> Fault {
    Fault::new("sql-clause", format!("{what} is not understood in a query here")).hint("write one plain SELECT")
}

impl Visitor for Guard<'_> {
    type Break = Box<Fault>;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<Fault>> {
        if self.caller == Caller::Expression {
            return refuse(
                Fault::new("sql-subquery", "an expression cannot hold a query")
                    .hint("write the rule `sql` with a query")
                    .at(query.span()),
            );
        }
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        self.named.push(named.map(|cte| cte.alias.name.value.clone()).collect());
        let strange = [
            (!query.locks.is_empty(), "FOR UPDATE"),
            (query.for_clause.is_some(), "FOR XML or FOR JSON"),
            (query.settings.is_some(), "SETTINGS"),
            (query.format_clause.is_some(), "FORMAT"),
            (!query.pipe_operators.is_empty(), "a pipe operator"),
        ];
        if let Some((_, what)) = strange.iter().find(|(there, _)| *there) {
            return refuse(clause(what));
        }
        verdict(body(&query.body))
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<Box<Fault>> {
        self.named.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Box<Fault>> {
        if select.into.is_some() {
            return refuse(not_read_only("SELECT … INTO"));
        }
        let strange = [
            (!select.connect_by.is_empty(), "CONNECT BY"),
            (!select.lateral_views.is_empty(), "LATERAL VIEW"),
            (select.prewhere.is_some(), "PREWHERE"),
            (select.value_table_mode.is_some(), "SELECT AS VALUE"),
            (select.top.is_some(), "TOP"),
        ];
        match strange.iter().find(|(there, _)| *there) {
            Some((_, what)) => refuse(clause(what)),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Box<Fault>> {
        match statement {
            Statement::Query(_) => ControlFlow::Continue(()),
            other => refuse(not_read_only(&first_words(&other.to_string()))),
        }
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Box<Fault>> {
        verdict(match factor {
            TableFactor::Table {
                args: Some(_), name, ..
            } => Err(table_function(&name.to_string())),
            TableFactor::Table { version: Some(_), .. } => Err(clause("time travel")),
            TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                Err(clause("TABLESAMPLE").why("the same data must get the same verdict"))
            }
            TableFactor::Table { .. }
            | TableFactor::Derived { .. }
            | TableFactor::NestedJoin { .. }
            | TableFactor::UNNEST { .. } => Ok(()),
            TableFactor::TableFunction { expr, .. } => Err(table_function(&expr.to_string())),
            TableFactor::Function { name, .. } => Err(table_function(&name.to_string())),
            other => Err(clause(&format!("`{}`", first_words(&other.to_string())))),
        })
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<Box<Fault>> {
        verdict(self.table(name))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Fault>> {
        match expr {
            Expr::Function(call) => verdict(check_call(call, self.caller)),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Box<Fault>> {
        match &value.value {
            Value::Placeholder(name) => refuse(
                Fault::new("sql-placeholder", format!("nothing is given for `{name}`"))
                    .why("only the `templates:` of a document have parameters")
                    .at(value.span),
            ),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Bodies of queries that change something hide inside `WITH` and set operations too.
fn body(expr: &SetExpr) -> Result<(), Fault> {
    match expr {
        SetExpr::Select(_) | SetExpr::Query(_) | SetExpr::Values(_) => Ok(()),
        SetExpr::SetOperation { left, right, .. } => body(left).and_then(|()| body(right)),
        SetExpr::Table(_) => Err(clause("TABLE")),
        SetExpr::Insert(statement)
        | SetExpr::Update(statement)
        | SetExpr::Delete(statement)
        | SetExpr::Merge(statement) => Err(not_read_only(&first_words(&statement.to_string()))),
    }
}

fn table_function(text: &str) -> Fault {
    let name = text.split('(').next().unwrap_or(text);
    Fault::new(
        "sql-table-function",
        format!("`{name}` is a function that makes a table"),
    )
    .why("a query sees the batch and the declared tables, nothing else")
    .hint("declare a file under `tables:` and name the table")
}

pub(super) fn not_read_only(what: &str) -> Fault {
    Fault::new("sql-not-a-query", format!("`{what}` is no query that only reads"))
        .why("a check looks at data and changes nothing")
        .hint("write one SELECT over `batch` and declared tables")
}

/// The first words of a statement, enough to recognise it.
pub(super) fn first_words(text: &str) -> String {
    text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
}
