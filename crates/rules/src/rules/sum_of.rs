//! `sum_of`

use crate::kernels::sum_of::{Tolerance, is_sum_of};
use crate::rule::{BindError, Bound, Family, Holds, RowCheck, Rule, RuleDefinition};
use crate::scope::Scope;
use crate::{shapes, statistics};
use bigdecimal::BigDecimal;
use comporta_contract::literal::{number_to_json, plain_number};
use comporta_contract::nearest::list;
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A column is the sum of others, in every row.
///
/// Integers and decimals are added exactly. If a float is among the columns, the two may differ by one part in
/// 10⁹, unless `tolerance` says otherwise: a number is how far they may lie apart, a percentage (`"0.1%"`) the share
/// of the larger of the two. A null in any of the columns is unknown; NaN and infinite values have no sum.
///
/// ## Why it matters
/// An invoice whose lines do not add up to its total was cut off or changed on its way.
///
/// ## Example
/// ```yaml
/// - sum_of: { column: total, columns: [net, tax], tolerance: 0.01 }
/// ```
///
/// ## Holds
/// | total | net  | tax  |
/// |-------|------|------|
/// | 12.1  | 10.1 | 2    |
/// | 12.11 | 10.1 | 2    |
/// | null  | 10.1 | 2    |
///
/// ## Broken
/// | total | net  | tax  | broken |
/// |-------|------|------|--------|
/// | 12.1  | 10.1 | 2    | no     |
/// | 12.5  | 10.1 | 2    | yes    |
/// | 12.5  | 10.1 | null | no     |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SumOf {
    /// The column of totals.
    column: String,
    /// The columns of parts.
    columns: Vec<String>,
    /// How far the two may differ. Default: 0, with floats one part in 10⁹.
    tolerance: Option<Literal>,
}

impl RuleDefinition for SumOf {
    const NAME: &'static str = "sum_of";
    const FAMILY: Family = Family::AcrossColumns;
    const KIND: Option<RuleKind> = Some(RuleKind::Row);
    const DIMENSION: Dimension = Dimension::Consistency;

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(rule) = shapes::parameters::<SumOf>(node, diagnostics) else {
            return Vec::new();
        };
        let place = |key: &str| node.get(key).unwrap_or(node);
        if rule.columns.is_empty() {
            diagnostics.push(place("columns").error("no-columns", "the list of columns is empty"));
            return Vec::new();
        }
        if rule.columns.contains(&rule.column) {
            diagnostics.push(
                place("columns")
                    .error("sum-of-itself", format!("`{}` is total and part at once", rule.column))
                    .why("it is the sum only where the other parts are zero"),
            );
            return Vec::new();
        }
        if let Some(written) = &rule.tolerance
            && tolerance(written).is_none()
        {
            diagnostics.push(
                place("tolerance")
                    .error("sum-of-tolerance", format!("`{written}` is no tolerance"))
                    .hint("write a number such as 0.01, or a share such as \"0.1%\""),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <SumOf as JsonSchema>::json_schema(generator)
    }
}

fn tolerance(written: &Literal) -> Option<Tolerance> {
    let zero = BigDecimal::from(0);
    match written {
        Literal::Number(number) if *number >= zero => Some(Tolerance::Absolute(number.clone())),
        Literal::Text(text) => {
            let share: BigDecimal = text.trim().strip_suffix('%')?.trim().parse().ok()?;
            (share >= zero).then(|| Tolerance::Relative(share / BigDecimal::from(100)))
        }
        _ => None,
    }
}

impl Rule for SumOf {
    fn columns(&self) -> Vec<String> {
        std::iter::once(self.column.clone())
            .chain(self.columns.iter().cloned())
            .collect()
    }

    fn parameters(&self) -> Value {
        let tolerance = self
            .tolerance
            .as_ref()
            .and_then(tolerance)
            .map(|tolerance| match tolerance {
                Tolerance::Absolute(number) => json!({ "absolute": number_to_json(&number) }),
                Tolerance::Relative(share) => json!({ "relative": number_to_json(&share) }),
            });
        json!({ "tolerance": tolerance })
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let total = statistics::numeric_column(scope, &self.column, Self::NAME)?;
        let parts = self
            .columns
            .iter()
            .map(|name| statistics::numeric_column(scope, name, Self::NAME))
            .collect::<Result<Vec<_>, _>>()?;
        let floats = statistics::is_binary(&total) || parts.iter().any(statistics::is_binary);
        let tolerance = match self.tolerance.as_ref().and_then(tolerance) {
            Some(given) => given,
            None if floats => Tolerance::Relative(BigDecimal::new(1.into(), 9)),
            None => Tolerance::Absolute(BigDecimal::from(0)),
        };
        let within = match &tolerance {
            Tolerance::Absolute(number) if *number == BigDecimal::from(0) => String::new(),
            Tolerance::Absolute(number) => format!(" within {}", plain_number(number)),
            Tolerance::Relative(share) => format!(" within {}%", plain_number(&(share * BigDecimal::from(100)))),
        };
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        Ok(Bound::Row(RowCheck {
            reason: format!("`{}` is {{value}}, not the sum of {}{within}", total.name, list(&names)),
            holds: Holds::Expr(is_sum_of(
                total.expr,
                parts.into_iter().map(|part| part.expr).collect(),
                tolerance,
            )),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::datatypes::{DataType, Field, Schema as Fields};
    use chrono::DateTime;
    use comporta_contract::Text;
    use std::collections::BTreeSet;

    fn parse(yaml: &str) -> Option<SumOf> {
        let mut diagnostics = Diagnostics::default();
        let node = Node::parse(&Text::new("rules.yml", yaml), &mut diagnostics).unwrap();
        let rule = SumOf::parse(&node, &mut diagnostics).pop();
        assert_eq!(rule.is_none(), diagnostics.has_errors(), "{yaml}");
        rule
    }

    fn reason(yaml: &str) -> Result<String, BindError> {
        let schema = Fields::new(vec![
            Field::new("n", DataType::Int64, true),
            Field::new("d", DataType::Decimal128(12, 2), true),
            Field::new("x", DataType::Float64, true),
            Field::new("t", DataType::Utf8, true),
        ]);
        let tables = BTreeSet::new();
        let scope = Scope::new(&schema, chrono_tz::Tz::UTC, DateTime::UNIX_EPOCH, &tables, &[]);
        match parse(yaml).unwrap().bind(&scope)? {
            Bound::Row(check) => Ok(check.reason),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_reason_says_which_tolerance_was_used() {
        assert_eq!(
            reason("{ column: n, columns: [d] }").unwrap(),
            "`n` is {value}, not the sum of `d`"
        );
        let floats = reason("{ column: n, columns: [d, x] }").unwrap();
        assert_eq!(floats, "`n` is {value}, not the sum of `d`, `x` within 0.0000001%");
        assert!(
            reason("{ column: n, columns: [x], tolerance: 0.01 }")
                .unwrap()
                .ends_with("within 0.01")
        );
        assert!(
            reason("{ column: n, columns: [x], tolerance: '0.1%' }")
                .unwrap()
                .ends_with("within 0.1%")
        );
        assert!(
            reason("{ column: n, columns: [t] }")
                .unwrap_err()
                .message
                .contains("is for numbers")
        );
    }

    #[test]
    fn slips_are_faults() {
        for yaml in [
            "{ column: a, columns: [] }",
            "{ column: a, columns: [a, b] }",
            "{ column: a, columns: [b], tolerance: -1 }",
            "{ column: a, columns: [b], tolerance: much }",
            "{ column: a }",
            "[a, b]",
        ] {
            assert_eq!(parse(yaml), None, "{yaml}");
        }
    }
}
