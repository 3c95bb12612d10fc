//! Names in queries follow the same rule as everywhere (S20): exact, else the single one that differs only in
//! case. The engine takes names exactly, so they are resolved here, SELECT by SELECT, and written out in quotes.

use crate::rule::BindError;
use crate::scope::match_name;
use crate::sql::guard::BATCH;
use crate::sql::query::Query;
use datafusion_sql::sqlparser::ast::{
    self, AccessExpr, Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, SelectItem,
    SelectItemQualifiedWildcardKind, Subscript, TableFactor, TableWithJoins, VisitMut as _, VisitorMut,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A query as text that the engine takes as it stands: every name is the exact one of the batch or a declared
/// table, in double quotes. It is guarded once more on the way.
///
/// # Errors
/// It is not one read-only query, or a name is ambiguous.
pub fn prepare_query(
    text: &str,
    batch_columns: &[&str],
    tables: &BTreeMap<String, Vec<String>>,
) -> Result<String, BindError> {
    let declared: Vec<&str> = tables.keys().map(String::as_str).collect();
    let mut query = Query::parse(text, &declared)?;
    let mut resolver = Resolver {
        batch: batch_columns,
        tables,
        named: Vec::new(),
        selects: Vec::new(),
    };
    match query.tree.visit(&mut resolver) {
        ControlFlow::Continue(()) => Ok(query.tree.to_string()),
        ControlFlow::Break(error) => Err(*error),
    }
}

/// A relation of a FROM clause.
struct Relation<'a> {
    /// The name that qualifies its columns.
    name: String,
    /// Its columns, where they are known without planning.
    columns: Option<Vec<&'a str>>,
}

/// What names may mean inside one SELECT.
struct Names<'a> {
    relations: Vec<Relation<'a>>,
    /// Names given by `AS` in its list.
    aliases: Vec<String>,
}

struct Resolver<'a> {
    batch: &'a [&'a str],
    tables: &'a BTreeMap<String, Vec<String>>,
    /// Names given by `WITH`.
    named: Vec<Vec<String>>,
    selects: Vec<Names<'a>>,
}

type Step = ControlFlow<Box<BindError>>;

fn step<T>(result: Result<T, BindError>) -> ControlFlow<Box<BindError>, T> {
    match result {
        Ok(value) => ControlFlow::Continue(value),
        Err(error) => ControlFlow::Break(Box::new(error)),
    }
}

impl<'a> Resolver<'a> {
    fn is_named(&self, name: &str) -> bool {
        self.named
            .iter()
            .flatten()
            .any(|known| known.eq_ignore_ascii_case(name))
    }

    fn relation(&self, factor: &TableFactor, found: &mut Vec<Relation<'a>>) {
        match factor {
            TableFactor::Table { name, alias, .. } => {
                let written = name
                    .0
                    .first()
                    .and_then(ObjectNamePart::as_ident)
                    .map_or("", |ident| &ident.value);
                let columns = match () {
                    () if self.is_named(written) => None,
                    () if written.eq_ignore_ascii_case(BATCH) => Some(self.batch.to_vec()),
                    () => self
                        .table(written)
                        .map(|(_, columns)| columns.iter().map(String::as_str).collect()),
                };
                let renamed = alias.as_ref().is_some_and(|alias| !alias.columns.is_empty());
                found.push(Relation {
                    name: alias.as_ref().map_or(written, |alias| &alias.name.value).to_string(),
                    columns: columns.filter(|_| !renamed),
                });
            }
            TableFactor::NestedJoin { table_with_joins, .. } => self.relations(table_with_joins, found),
            TableFactor::Derived { alias, .. } | TableFactor::UNNEST { alias, .. } => found.push(Relation {
                name: alias
                    .as_ref()
                    .map_or_else(String::new, |alias| alias.name.value.clone()),
                columns: None,
            }),
            _ => {}
        }
    }

    fn relations(&self, from: &TableWithJoins, found: &mut Vec<Relation<'a>>) {
        self.relation(&from.relation, found);
        for join in &from.joins {
            self.relation(&join.relation, found);
        }
    }

    fn table(&self, written: &str) -> Option<(&'a str, &'a [String])> {
        let tables = self.tables;
        let names: Vec<&'a str> = tables.keys().map(String::as_str).collect();
        let name = match_name(written, &names).ok().flatten()?;
        tables.get(name).map(|columns| (name, columns.as_slice()))
    }

    /// The exact name of a column, or `None` where nothing known has it.
    fn column(&self, written: &str) -> Result<Option<String>, BindError> {
        // The innermost SELECT that knows the name decides; outer ones are seen by correlated subqueries.
        for names in self.selects.iter().rev() {
            let mut known: Vec<&str> = Vec::new();
            let columns = names
                .relations
                .iter()
                .filter_map(|relation| relation.columns.as_ref())
                .flatten();
            for name in columns.copied().chain(names.aliases.iter().map(String::as_str)) {
                if !known.contains(&name) {
                    known.push(name);
                }
            }
            if let Some(name) = match_name(written, &known)? {
                return Ok(Some(name.to_string()));
            }
        }
        Ok(None)
    }

    fn qualified(&self, table: &str) -> Option<&Relation<'a>> {
        let relations = || self.selects.iter().rev().flat_map(|names| &names.relations);
        let exact = relations().find(|relation| relation.name == table);
        exact.or_else(|| relations().find(|relation| relation.name.eq_ignore_ascii_case(table)))
    }

    fn resolve(&self, parts: &[Ident]) -> Result<Option<Expr>, BindError> {
        let quoted = |name: &str| Ident::with_quote('"', name);
        match parts {
            [one] => Ok(self.column(&one.value)?.map(|name| Expr::Identifier(quoted(&name)))),
            [first, second, rest @ ..] => {
                let whole: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
                if let Some(name) = self.column(&whole.join("."))? {
                    return Ok(Some(Expr::Identifier(quoted(&name))));
                }
                if let Some(relation) = self.qualified(&first.value) {
                    let column = match &relation.columns {
                        Some(columns) => match_name(&second.value, columns)?.unwrap_or(&second.value),
                        None => &second.value,
                    };
                    let root = Expr::CompoundIdentifier(vec![quoted(&relation.name), quoted(column)]);
                    return Ok(Some(fields(root, rest)));
                }
                let root = self.column(&first.value)?.map(|name| Expr::Identifier(quoted(&name)));
                Ok(root.map(|root| fields(root, &parts[1..])))
            }
            [] => Ok(None),
        }
    }

    /// Names in USING, `t.*` and FROM are no expressions, so they are resolved apart.
    fn select(&self, select: &mut Select) -> Result<(), BindError> {
        for item in &mut select.projection {
            if let SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
                && let [ObjectNamePart::Identifier(table)] = name.0.as_mut_slice()
                && let Some(relation) = self.qualified(&table.value)
            {
                *table = Ident::with_quote('"', &relation.name);
            }
        }
        for from in &mut select.from {
            self.joins(from)?;
        }
        Ok(())
    }

    fn joins(&self, from: &mut TableWithJoins) -> Result<(), BindError> {
        if let TableFactor::NestedJoin { table_with_joins, .. } = &mut from.relation {
            self.joins(table_with_joins)?;
        }
        for join in &mut from.joins {
            if let Some(JoinConstraint::Using(names)) = constraint(&mut join.join_operator) {
                for name in names {
                    if let [ObjectNamePart::Identifier(column)] = name.0.as_mut_slice()
                        && let Some(exact) = self.column(&column.value)?
                    {
                        *column = Ident::with_quote('"', exact);
                    }
                }
            }
        }
        Ok(())
    }
}

impl VisitorMut for Resolver<'_> {
    type Break = Box<BindError>;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> Step {
        let named = query.with.iter().flat_map(|with| &with.cte_tables);
        self.named.push(named.map(|cte| cte.alias.name.value.clone()).collect());
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> Step {
        self.named.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> Step {
        let mut relations = Vec::new();
        for from in &select.from {
            self.relations(from, &mut relations);
        }
        let aliases = select.projection.iter().filter_map(|item| match item {
            SelectItem::ExprWithAlias { alias, .. } => Some(alias.value.clone()),
            _ => None,
        });
        self.selects.push(Names {
            relations,
            aliases: aliases.collect(),
        });
        step(self.select(select))
    }

    fn post_visit_select(&mut self, _: &mut Select) -> Step {
        self.selects.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &mut ObjectName) -> Step {
        if let [ObjectNamePart::Identifier(table)] = name.0.as_mut_slice() {
            let exact = match () {
                () if self.is_named(&table.value) => self
                    .named
                    .iter()
                    .flatten()
                    .find(|known| known.eq_ignore_ascii_case(&table.value))
                    .cloned(),
                () if table.value.eq_ignore_ascii_case(BATCH) => Some(BATCH.to_string()),
                () => self.table(&table.value).map(|(name, _)| name.to_string()),
            };
            if let Some(exact) = exact {
                *table = Ident::with_quote('"', exact);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> Step {
        let parts = match expr {
            Expr::Identifier(identifier) => std::slice::from_ref(identifier),
            Expr::CompoundIdentifier(parts) => parts.as_slice(),
            _ => return ControlFlow::Continue(()),
        };
        if let Some(resolved) = step(self.resolve(parts))? {
            *expr = resolved;
        }
        ControlFlow::Continue(())
    }
}

fn fields(root: Expr, path: &[Ident]) -> Expr {
    if path.is_empty() {
        return root;
    }
    let access = path.iter().map(|field| {
        AccessExpr::Subscript(Subscript::Index {
            index: Expr::value(ast::Value::SingleQuotedString(field.value.clone())),
        })
    });
    Expr::CompoundFieldAccess {
        root: Box::new(root),
        access_chain: access.collect(),
    }
}

fn constraint(operator: &mut JoinOperator) -> Option<&mut JoinConstraint> {
    match operator {
        JoinOperator::Join(on)
        | JoinOperator::Inner(on)
        | JoinOperator::Left(on)
        | JoinOperator::LeftOuter(on)
        | JoinOperator::Right(on)
        | JoinOperator::RightOuter(on)
        | JoinOperator::FullOuter(on)
        | JoinOperator::CrossJoin(on)
        | JoinOperator::Semi(on)
        | JoinOperator::LeftSemi(on)
        | JoinOperator::RightSemi(on)
        | JoinOperator::Anti(on)
        | JoinOperator::LeftAnti(on)
        | JoinOperator::RightAnti(on) => Some(on),
        _ => None,
    }
}
