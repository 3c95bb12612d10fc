//! The functions that SQL text may call: those of the engine that look at nothing but their arguments.

use crate::sql::fault::Fault;
use arrow::datatypes::DataType;
use comporta_contract::nearest::nearest;
use datafusion_common::config::ConfigOptions;
use datafusion_common::{Result, TableReference, not_impl_err};
use datafusion_expr::planner::{ContextProvider, ExprPlanner};
use datafusion_expr::{AggregateUDF, HigherOrderUDF, ScalarUDF, TableSource, Volatility, WindowUDF};
use datafusion_sql::sqlparser::ast::{self, Spanned as _};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

/// Functions over many rows: they belong into a query.
const OVER_ROWS: &[&str] = &[
    "any_value",
    "approx_distinct",
    "approx_median",
    "approx_percentile_cont",
    "array_agg",
    "avg",
    "bit_and",
    "bit_or",
    "bit_xor",
    "bool_and",
    "bool_or",
    "corr",
    "count",
    "covar",
    "covar_pop",
    "covar_samp",
    "cume_dist",
    "dense_rank",
    "every",
    "first_value",
    "grouping",
    "lag",
    "last_value",
    "lead",
    "max",
    "mean",
    "median",
    "min",
    "mode",
    "nth_value",
    "ntile",
    "percent_rank",
    "percentile_cont",
    "quantile_cont",
    "rank",
    "row_number",
    "stddev",
    "stddev_pop",
    "stddev_samp",
    "string_agg",
    "sum",
    "var",
    "var_pop",
    "var_samp",
    "variance",
];

/// Names under which databases read files, the network or their own settings. None of them exists here; they
/// are known so that the refusal can say why.
const OUTSIDE: &[&str] = &[
    "current_setting",
    "delta_scan",
    "file_row_index",
    "getenv",
    "getvariable",
    "glob",
    "http_get",
    "http_post",
    "input_file_name",
    "load_file",
    "lo_export",
    "lo_import",
    "openrowset",
    "parquet_file_metadata",
    "parquet_metadata",
    "parquet_schema",
    "pg_ls_dir",
    "pg_read_binary_file",
    "pg_read_file",
    "pg_sleep",
    "query",
    "query_table",
    "set_config",
    "sleep",
    "sniff_csv",
];
const OUTSIDE_PREFIXES: &[&str] = &["read_", "scan_", "iceberg_", "sqlite_", "postgres_", "mysql_", "dblink"];

/// Where a function is called, which decides what it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// An expression over one row.
    Expression,
    /// A query.
    Query,
}

/// Whether a function may be called.
pub(super) fn check_call(call: &ast::Function, caller: Caller) -> std::result::Result<(), Fault> {
    let name = match call.name.0.as_slice() {
        [one] => one.as_ident().map(|name| name.value.to_lowercase()).unwrap_or_default(),
        _ => call.name.to_string().to_lowercase(),
    };
    let refuse = |code, message: String| Err(Fault::new(code, message).at(call.name.span()));
    if let Some(function) = PROVIDER.scalar.get(&name)
        && call.over.is_none()
    {
        if function.signature().volatility == Volatility::Volatile {
            let fault = Fault::new("sql-volatile", format!("`{name}` gives another answer each time"))
                .why("the same data must get the same verdict")
                .at(call.name.span());
            return Err(fault);
        }
        return Ok(());
    }
    if OUTSIDE.contains(&name.as_str()) || OUTSIDE_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        let fault = Fault::new("sql-outside", format!("`{name}` reads something beside the batch"))
            .why("SQL text here sees the batch and the declared tables, nothing else")
            .hint("declare the file under `tables:` and name the table")
            .at(call.name.span());
        return Err(fault);
    }
    if caller == Caller::Query {
        return Ok(());
    }
    if call.over.is_some() || OVER_ROWS.contains(&name.as_str()) || name.starts_with("regr_") {
        let fault = Fault::new(
            "sql-aggregate",
            format!("`{name}` looks at many rows, an expression at one"),
        )
        .hint("write the rule `sql` with a query")
        .at(call.name.span());
        return Err(fault);
    }
    let known = PROVIDER.udf_names();
    match nearest(&name, known.iter()) {
        Some(near) => refuse("sql-unknown-function", format!("there is no function `{name}`"))
            .map_err(|fault| fault.hint(format!("did you mean `{near}`?"))),
        None => refuse("sql-unknown-function", format!("there is no function `{name}`")),
    }
}

pub(super) static PROVIDER: LazyLock<Functions> = LazyLock::new(Functions::new);

/// The functions that expressions may call; no tables, no variables.
pub(super) struct Functions {
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
