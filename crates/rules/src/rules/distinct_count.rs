//! `distinct_count`

use crate::measure::{Measure, MeasureValue};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::shapes;
use comporta_contract::nearest::list;
use comporta_contract::source::OneOrMany;
use comporta_contract::threshold::{Metric, MetricKind};
use comporta_contract::{Diagnostics, Dimension, Node, NullPolicy, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Value, json};
use std::sync::Arc;

/// The column has so many different values. Several columns are one key.
///
/// The rule needs `must_be` or `warn`. The count is exact. A key with a null part is not counted unless the check
/// says `nulls: equal`. NaN is one value, and both zeros of a binary fraction are one.
///
/// ## Why it matters
/// Twenty-six states instead of twenty-seven means that one of them sent nothing, which no row can tell.
///
/// ## Example
/// ```yaml
/// - distinct_count: state
///   must_be: "= 2"
/// ```
///
/// ## Holds
/// | state |
/// |-------|
/// | SP    |
/// | RJ    |
/// | SP    |
/// | null  |
///
/// ## Broken
/// | state |
/// |-------|
/// | SP    |
/// | SP    |
/// | null  |
#[derive(Debug, Clone, JsonSchema)]
#[schemars(transparent)]
pub struct DistinctCountParameters(#[allow(dead_code, reason = "only its schema is used")] OneOrMany);

/// The rule.
#[derive(Debug, Clone)]
pub struct DistinctCount {
    columns: Vec<String>,
}

impl RuleDefinition for DistinctCount {
    const NAME: &'static str = "distinct_count";
    const FAMILY: Family = Family::Identity;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Uniqueness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Count);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let key = shapes::key(node, diagnostics);
        key.into_iter().map(|columns| DistinctCount { columns }).collect()
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        DistinctCountParameters::json_schema(generator)
    }
}

impl Rule for DistinctCount {
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    fn parameters(&self) -> Value {
        json!({})
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let columns = scope.columns(&self.columns)?;
        scope.refuse_nan_policy(&columns, Self::NAME)?;
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let names = list(&names);
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Keys {
                keys: columns.iter().map(|column| column.expr.clone()).collect(),
                nulls_equal: scope.nulls == NullPolicy::Equal,
            }],
            judge: Arc::new(move |values| judge(values, &names)),
        }))
    }
}

fn judge(values: &[MeasureValue], names: &str) -> Finding {
    let [MeasureValue::Keys(counts)] = values else {
        return Finding::unexpected(values);
    };
    let noun = if counts.distinct == 1 { "value" } else { "values" };
    let mut finding = Finding {
        metric: Some(Metric::Number(counts.distinct.into())),
        message: format!("{} different {noun} of {names}", counts.distinct),
        ..Finding::default()
    };
    if counts.unknown > 0 {
        finding.details.insert("unknown_count".into(), counts.unknown.into());
    }
    finding
}
