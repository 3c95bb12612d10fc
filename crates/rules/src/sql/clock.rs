//! The one clock reading of a run in place of `now()` and its kin (S27).

use crate::scope::Scope;
use arrow::datatypes::{DataType, FieldRef};
use chrono::{DateTime, SecondsFormat, Utc};
use chrono_tz::Tz;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{Expr, lit};
use datafusion_sql::sqlparser::ast::{self, VisitMut as _, VisitorMut};
use std::ops::ControlFlow;

/// What a clock function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Instant,
    Day,
    TimeOfDay,
}

fn reading(name: &str) -> Option<Reading> {
    Some(match name.to_lowercase().as_str() {
        "now" | "current_timestamp" => Reading::Instant,
        "current_date" | "today" => Reading::Day,
        "current_time" => Reading::TimeOfDay,
        _ => return None,
    })
}

/// Clock functions as literals. Beside timestamps without zone the instant is the local time of the document's
/// zone, in which they are read; the engine would take them for UTC.
pub(super) fn in_expression(expr: Expr, scope: &Scope) -> Result<Expr> {
    let read = expr.column_refs();
    let naive = are_naive(
        scope
            .schema
            .fields()
            .iter()
            .filter(|field| read.iter().any(|column| column.name == *field.name())),
    );
    let changed = expr.transform_up(|node| {
        let Expr::ScalarFunction(call) = &node else {
            return Ok(Transformed::no(node));
        };
        let local = scope.now.with_timezone(&scope.timezone).naive_local();
        let literal = match reading(call.name()) {
            None => return Ok(Transformed::no(node)),
            Some(Reading::Instant) if naive => {
                ScalarValue::TimestampNanosecond(local.and_utc().timestamp_nanos_opt(), None)
            }
            Some(Reading::Instant) => {
                ScalarValue::TimestampNanosecond(scope.now.timestamp_nanos_opt(), Some(zone(scope.timezone).into()))
            }
            Some(Reading::Day) => {
                let days = local
                    .date()
                    .signed_duration_since(chrono::NaiveDate::default())
                    .num_days();
                ScalarValue::Date32(i32::try_from(days).ok())
            }
            Some(Reading::TimeOfDay) => {
                let since = local.time().signed_duration_since(chrono::NaiveTime::MIN);
                ScalarValue::Time64Nanosecond(since.num_nanoseconds())
            }
        };
        Ok(Transformed::yes(lit(literal)))
    })?;
    // The planner names some of these calls with an alias, which means nothing inside a condition.
    Ok(changed.data.unalias_nested().data)
}

/// Whether there are timestamps among the columns, and all of them without zone.
fn are_naive<'f>(fields: impl Iterator<Item = &'f FieldRef>) -> bool {
    let mut zones = fields.filter_map(|field| match field.data_type() {
        DataType::Timestamp(_, zone) => Some(zone.is_some()),
        _ => None,
    });
    let first = zones.next();
    first == Some(false) && zones.all(|zoned| !zoned)
}

/// The same in a parsed query, whose columns are those of the batch.
pub(super) fn in_query(query: &mut ast::Query, scope: &Scope) {
    let _ = query.visit(&mut Clock {
        now: scope.now,
        timezone: scope.timezone,
        naive: are_naive(scope.schema.fields().iter()),
    });
}

struct Clock {
    now: DateTime<Utc>,
    timezone: Tz,
    naive: bool,
}

impl VisitorMut for Clock {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<()> {
        let ast::Expr::Function(call) = &*expr else {
            return ControlFlow::Continue(());
        };
        let Some(reading) = reading(&call.name.to_string()) else {
            return ControlFlow::Continue(());
        };
        let local = self.now.with_timezone(&self.timezone).naive_local();
        let text = match reading {
            Reading::Instant if self.naive => {
                format!(
                    "arrow_cast('{}', 'Timestamp(Nanosecond, None)')",
                    local.format("%Y-%m-%dT%H:%M:%S%.9f")
                )
            }
            Reading::Instant => format!(
                "arrow_cast('{}', 'Timestamp(Nanosecond, Some(\"{}\"))')",
                self.now.to_rfc3339_opts(SecondsFormat::Nanos, true),
                zone(self.timezone)
            ),
            Reading::Day => format!("CAST('{}' AS DATE)", local.date()),
            Reading::TimeOfDay => format!("CAST('{}' AS TIME)", local.time()),
        };
        if let Ok(literal) = super::Expression::parse_unguarded(&text) {
            *expr = literal;
        }
        ControlFlow::Continue(())
    }
}

fn zone(timezone: Tz) -> &'static str {
    match timezone {
        Tz::UTC => "+00:00",
        other => other.name(),
    }
}
