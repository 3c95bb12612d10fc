//! SQL text of documents: parsed, never pasted (S29, S30). Expressions become [`Expr`]; queries are
//! guarded on their parsed tree and run by the engine.

use crate::rule::BindError;
use crate::scope::{Scope, match_name};
use arrow::datatypes::DataType;
use comporta_contract::{Diagnostic, Node};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, Result, TableReference, not_impl_err};
use datafusion_expr::planner::{ContextProvider, ExprPlanner};
use datafusion_expr::{AggregateUDF, Expr, HigherOrderUDF, ScalarUDF, TableSource, WindowUDF};
use datafusion_sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion_sql::sqlparser::ast::{self, Ident, VisitMut as _, VisitorMut};
use datafusion_sql::sqlparser::dialect::GenericDialect;
use datafusion_sql::sqlparser::parser::Parser;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

/// A boolean expression over the row, with names resolved as everywhere (S20). Columns it reads are marked
/// as used in the scope.
///
/// # Errors
/// It does not parse, names something that is not there, or is not boolean.
pub fn expression(text: &str, scope: &Scope) -> Result<Expr, BindError> {
    let mut tree = parse_expression(text).map_err(BindError::new)?;
    let names: Vec<&str> = scope
        .schema
        .fields()
        .iter()
        .map(|field| field.name().as_str())
        .collect();
    let mut resolver = Resolver {
        names: &names,
        error: None,
    };
    let _ = tree.visit(&mut resolver);
    if let Some(error) = resolver.error {
        return Err(error);
    }
    let schema = DFSchema::try_from(scope.schema.clone()).map_err(|e| BindError::new(e.to_string()))?;
    let expr = SqlToRel::new_with_options(&*PROVIDER, parser_options())
        .sql_to_expr(tree, &schema, &mut PlannerContext::new())
        .map_err(|e| BindError::new(plain(&e.to_string())))?;
    mark_columns(&expr, scope);
    let data_type =
        datafusion_expr::ExprSchemable::get_type(&expr, &schema).map_err(|e| BindError::new(plain(&e.to_string())))?;
    match data_type {
        DataType::Boolean | DataType::Null => Ok(expr),
        other => Err(BindError::new(format!(
            "the expression is {}, not true or false",
            crate::literals::type_name(&other)
        ))
        .hint("compare it with something: `amount * quantity >= 0`")),
    }
}

/// Checks at document time that the text is one scalar expression without subqueries (S2).
pub fn check_expression(node: &Node) -> Result<(), Diagnostic> {
    let text = node.as_text().unwrap_or_default();
    parse_expression(text).map(drop).map_err(|message| {
        node.error("sql-syntax", message)
            .hint("write one boolean expression, such as `amount >= 0`")
    })
}

fn parse_expression(text: &str) -> Result<ast::Expr, String> {
    let dialect = GenericDialect {};
    let mut parser = Parser::new(&dialect)
        .try_with_sql(text)
        .map_err(|e| plain(&e.to_string()))?;
    let expr = parser.parse_expr().map_err(|e| plain(&e.to_string()))?;
    match parser.peek_token().token {
        datafusion_sql::sqlparser::tokenizer::Token::EOF => Ok(expr),
        other => Err(format!("`{other}` is left over behind the expression")),
    }
}

/// SQL dialect of all our text: decimal literals, names as written.
pub fn parser_options() -> ParserOptions {
    ParserOptions {
        parse_float_as_decimal: true,
        enable_ident_normalization: false,
        map_string_types_to_utf8view: false,
        ..ParserOptions::new()
    }
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
    names: &'a [&'a str],
    error: Option<BindError>,
}

impl VisitorMut for Resolver<'_> {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let identifier = match expr {
            ast::Expr::Identifier(identifier) => identifier,
            ast::Expr::CompoundIdentifier(parts) => match parts.first_mut() {
                Some(first) => first,
                None => return ControlFlow::Continue(()),
            },
            ast::Expr::Subquery(_) | ast::Expr::Exists { .. } | ast::Expr::InSubquery { .. } => {
                self.error = Some(BindError::new("an expression cannot hold a query").hint("use the rule `sql`"));
                return ControlFlow::Break(());
            }
            _ => return ControlFlow::Continue(()),
        };
        match match_name(&identifier.value, self.names) {
            Ok(Some(name)) => *identifier = Ident::with_quote('"', name),
            Ok(None) => {}
            Err(error) => {
                self.error = Some(error);
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    }
}

static PROVIDER: LazyLock<Functions> = LazyLock::new(Functions::new);

/// The functions that expressions may call; no tables, no variables.
struct Functions {
    scalar: HashMap<String, Arc<ScalarUDF>>,
    planners: Vec<Arc<dyn ExprPlanner>>,
    options: ConfigOptions,
}

impl Functions {
    fn new() -> Self {
        let mut scalar = HashMap::new();
        let functions = datafusion_functions::all_default_functions()
            .into_iter()
            .chain(datafusion_functions_nested::all_default_nested_functions());
        for function in functions {
            for name in std::iter::once(function.name().to_string()).chain(function.aliases().iter().cloned()) {
                scalar.insert(name, function.clone());
            }
        }
        Functions {
            scalar,
            planners: vec![
                Arc::new(datafusion_functions::core::planner::CoreFunctionPlanner::default()),
                Arc::new(datafusion_functions_nested::planner::NestedFunctionPlanner),
                Arc::new(datafusion_functions_nested::planner::FieldAccessPlanner),
                Arc::new(datafusion_functions::datetime::planner::DatetimeFunctionPlanner),
                Arc::new(datafusion_functions::unicode::planner::UnicodeFunctionPlanner),
            ],
            options: ConfigOptions::new(),
        }
    }
}

impl ContextProvider for Functions {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        not_impl_err!("an expression cannot read the table {name}")
    }
    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        self.scalar.get(&name.to_lowercase()).cloned()
    }
    fn get_higher_order_meta(&self, _: &str) -> Option<Arc<HigherOrderUDF>> {
        None
    }
    fn get_aggregate_meta(&self, _: &str) -> Option<Arc<AggregateUDF>> {
        None
    }
    fn get_window_meta(&self, _: &str) -> Option<Arc<WindowUDF>> {
        None
    }
    fn get_variable_type(&self, _: &[String]) -> Option<DataType> {
        None
    }
    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.planners
    }
    fn options(&self) -> &ConfigOptions {
        &self.options
    }
    fn udf_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.scalar.keys().cloned().collect();
        names.sort();
        names
    }
    fn higher_order_function_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn udaf_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn udwf_names(&self) -> Vec<String> {
        Vec::new()
    }
}
