//! The one clock reading of a run in place of `now()` and its kin (S27).

use crate::scope::Scope;
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

/// Clock functions as literals. The zone of the instant is the document's, so that a timestamp without zone
/// beside it is read in that zone.
pub(super) fn in_expression(expr: Expr, scope: &Scope) -> Result<Expr> {
    let changed = expr.transform_up(|node| {
        let Expr::ScalarFunction(call) = &node else {
            return Ok(Transformed::no(node));
        };
        let local = scope.now.with_timezone(&scope.timezone).naive_local();
        let literal = match reading(call.name()) {
            None => return Ok(Transformed::no(node)),
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

/// The same in a parsed query.
pub(super) fn in_query(query: &mut ast::Query, now: DateTime<Utc>, timezone: Tz) {
    let _ = query.visit(&mut Clock { now, timezone });
}

struct Clock {
    now: DateTime<Utc>,
    timezone: Tz,
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
