//! `no_gaps`

use crate::literals::{type_name, value_type};
use crate::measure::{Measure, MeasureValue, Ranked};
use crate::rule::{BindError, Bound, Family, Finding, Rule, RuleDefinition, TableCheck};
use crate::scope::Scope;
use crate::{shapes, statistics};
use arrow::datatypes::{DataType, TimeUnit};
use bigdecimal::{BigDecimal, ToPrimitive};
use chrono::{Datelike, NaiveDate, NaiveTime};
use chrono_tz::Tz;
use comporta_contract::threshold::{Metric, MetricKind, duration};
use comporta_contract::{Diagnostics, Dimension, Literal, Node, RuleKind};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;

/// Between the smallest and the largest value no step is missing.
///
/// Values are grouped by steps: every hour, day, month has at least one, wherever in it the value lies. Steps of
/// hours and shorter are counted from the start of the first day, steps of days from the first day, both in the
/// document's time zone; months, quarters and years are those of the calendar; steps of whole numbers are
/// counted from the smallest. `must_be` and `warn` speak of the number of missing steps; without `must_be` it is
/// `= 0`. `details.gaps` names the first ones. Without values it is `no_data`.
///
/// ## Why it matters
/// A day that was never loaded breaks no row, and every total over the month.
///
/// ## Example
/// ```yaml
/// - no_gaps: { column: day, every: 1d }
/// ```
///
/// ## Holds
/// | day        |
/// |------------|
/// | 2025-12-30 |
/// | 2026-01-01 |
/// | null       |
/// | 2025-12-31 |
///
/// ## Broken
/// | day        |
/// |------------|
/// | 2025-12-29 |
/// | 2026-01-01 |
/// | null       |
/// | 2025-12-31 |
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoGaps {
    /// The column: dates, timestamps or whole numbers.
    column: String,
    /// The step: a duration (`15m`, `1h`, `1d`, `1w`), `month`, `quarter`, `year`, or a whole number for columns of
    /// whole numbers.
    every: Literal,
}

/// A step as understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Number(i128),
    Seconds(i128),
    Months(i128),
}

const DAY: i128 = 86_400;
const NANOS: i128 = 1_000_000_000;
const GAPS_LISTED: usize = 10;

impl RuleDefinition for NoGaps {
    const NAME: &'static str = "no_gaps";
    const FAMILY: Family = Family::Time;
    const KIND: Option<RuleKind> = Some(RuleKind::Table);
    const DIMENSION: Dimension = Dimension::Completeness;
    const METRIC: Option<MetricKind> = Some(MetricKind::Count);

    fn parse(node: &Node, diagnostics: &mut Diagnostics) -> Vec<Self> {
        let Some(rule) = shapes::parameters::<NoGaps>(node, diagnostics) else {
            return Vec::new();
        };
        if rule.step().is_none() {
            let place = node.get("every").unwrap_or(node);
            diagnostics.push(
                place
                    .error("no-gaps-step", format!("`{}` is no step", rule.every))
                    .hint("write for example `1d`, `1h`, `15m`, `month`, or a whole number above 0"),
            );
            return Vec::new();
        }
        vec![rule]
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        <NoGaps as JsonSchema>::json_schema(generator)
    }
}

impl NoGaps {
    fn step(&self) -> Option<Step> {
        let step = match &self.every {
            Literal::Number(number) if number.is_integer() => Step::Number(number.to_i128()?),
            Literal::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "minute" => Step::Seconds(60),
                "hour" => Step::Seconds(3_600),
                "day" => Step::Seconds(DAY),
                "week" => Step::Seconds(7 * DAY),
                "month" => Step::Months(1),
                "quarter" => Step::Months(3),
                "year" => Step::Months(12),
                other => Step::Seconds(duration(other).filter(BigDecimal::is_integer)?.to_i128()?),
            },
            _ => return None,
        };
        let (Step::Number(size) | Step::Seconds(size) | Step::Months(size)) = step;
        (size > 0).then_some(step)
    }
}

impl Rule for NoGaps {
    fn columns(&self) -> Vec<String> {
        vec![self.column.clone()]
    }

    fn parameters(&self) -> Value {
        json!({ "every": self.every })
    }

    fn default_must_be(&self) -> Option<&'static str> {
        Some("= 0")
    }

    fn bind(&self, scope: &Scope) -> Result<Bound, BindError> {
        let column = scope.column(&self.column)?;
        let step = self
            .step()
            .ok_or_else(|| BindError::new(format!("`{}` is no step", self.every)))?;
        let ladder = Ladder::of(step, value_type(&column.data_type), &column.name, scope.timezone)?;
        let name = column.name;
        Ok(Bound::Table(TableCheck {
            measures: vec![Measure::Ranked(column.expr)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Ranked(ranked)] => ladder.judge(&name, ranked.as_ref()),
                other => Finding::unexpected(other),
            }),
        }))
    }
}

/// Steps under the values of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ladder {
    step: Step,
    values: Values,
    timezone: Tz,
}

/// What the measured numbers are.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Values {
    Numbers,
    Days,
    /// Timestamps, so many to a second, with a zone of their own or without.
    Ticks {
        per_second: i128,
        zoned: bool,
    },
}

impl Ladder {
    fn of(step: Step, data_type: &DataType, column: &str, timezone: Tz) -> Result<Self, BindError> {
        let values = match data_type {
            ty if ty.is_integer() => Values::Numbers,
            DataType::Null => match step {
                Step::Number(_) => Values::Numbers,
                _ => Values::Days,
            },
            DataType::Date32 | DataType::Date64 => Values::Days,
            DataType::Timestamp(unit, zone) => Values::Ticks {
                per_second: match unit {
                    TimeUnit::Second => 1,
                    TimeUnit::Millisecond => 1_000,
                    TimeUnit::Microsecond => 1_000_000,
                    TimeUnit::Nanosecond => NANOS,
                },
                zoned: zone.is_some(),
            },
            other => {
                return Err(BindError::new(format!(
                    "`no_gaps` is for dates, timestamps and whole numbers, column `{column}` is {}",
                    type_name(other)
                )));
            }
        };
        let fits = match (values, step) {
            (Values::Numbers, Step::Number(_)) => true,
            (Values::Days, Step::Seconds(seconds)) => seconds % DAY == 0,
            (Values::Days | Values::Ticks { .. }, Step::Months(_)) | (Values::Ticks { .. }, Step::Seconds(_)) => true,
            _ => false,
        };
        if !fits {
            let hint = match values {
                Values::Numbers => "the step of whole numbers is a whole number: `every: 1`",
                Values::Days => "the step of dates is whole days or more: `every: 1d`",
                Values::Ticks { .. } => "the step of timestamps has a unit: `every: 1h`",
            };
            return Err(BindError::new(format!(
                "the step does not fit column `{column}` of type {}",
                type_name(data_type)
            ))
            .hint(hint));
        }
        Ok(Ladder { step, values, timezone })
    }

    /// The step that a value stands on, counted from `first`; `None` beyond the calendar.
    fn rung(&self, value: i128, first: i128) -> Option<i128> {
        match self.step {
            Step::Number(size) => Some((value - first).div_euclid(size)),
            Step::Months(size) => {
                let months = |day: NaiveDate| i128::from(day.year()) * 12 + i128::from(day.month0());
                // Months are those of the calendar: quarters begin in January, April, July, October.
                Some(months(self.day(value)?).div_euclid(size))
            }
            Step::Seconds(size) if size % DAY == 0 => {
                let days = |day: NaiveDate| i128::from(day.num_days_from_ce());
                Some((days(self.day(value)?) - days(self.day(first)?)).div_euclid(size / DAY))
            }
            Step::Seconds(size) => {
                let start = statistics::in_zone(self.day(first)?.and_time(NaiveTime::MIN), self.timezone);
                let start = statistics::nanoseconds(start);
                Some((self.nanos(value)? - start).div_euclid(size * NANOS))
            }
        }
    }

    /// The local day of a value.
    fn day(&self, value: i128) -> Option<NaiveDate> {
        match self.values {
            Values::Ticks { zoned: true, .. } => {
                let at = statistics::date_time(self.nanos(value)?)?;
                Some(at.with_timezone(&self.timezone).date_naive())
            }
            Values::Ticks {
                per_second,
                zoned: false,
            } => statistics::date(i64::try_from(value.div_euclid(per_second * DAY)).ok()?),
            Values::Days | Values::Numbers => statistics::date(i64::try_from(value).ok()?),
        }
    }

    /// The instant of a timestamp, in nanoseconds UTC.
    fn nanos(&self, value: i128) -> Option<i128> {
        let Values::Ticks { per_second, zoned } = self.values else {
            return None;
        };
        let nanos = value.checked_mul(NANOS / per_second)?;
        match zoned {
            true => Some(nanos),
            false => {
                let local = statistics::date_time(nanos)?.naive_utc();
                Some(statistics::nanoseconds(statistics::in_zone(local, self.timezone)))
            }
        }
    }

    fn text(&self, value: i128) -> String {
        let shown = match self.values {
            Values::Numbers => None,
            Values::Days => self.day(value).map(|day| day.to_string()),
            Values::Ticks { per_second, zoned } => value
                .checked_mul(NANOS / per_second)
                .and_then(statistics::date_time)
                .map(|at| {
                    format!(
                        "{}{}",
                        at.naive_utc().format("%Y-%m-%dT%H:%M:%S%.f"),
                        if zoned { "Z" } else { "" }
                    )
                }),
        };
        shown.unwrap_or_else(|| value.to_string())
    }

    fn judge(&self, column: &str, ranked: &dyn Ranked) -> Finding {
        let mut walk = Walk::default();
        ranked.for_each_distinct(&mut |value| walk.visit(self, value));
        if walk.first.is_none() {
            return statistics::no_data(column);
        }
        if walk.lost {
            return Finding::error(format!("`{column}` has values beyond the calendar"));
        }
        let missing = walk.missing;
        let message = match walk.gaps.first() {
            None => format!("no step of `{column}` is missing"),
            Some(gap) => format!(
                "{missing} {} missing in `{column}`, the first between {} and {}",
                if missing == 1 { "step is" } else { "steps are" },
                gap["after"].as_str().unwrap_or_default(),
                gap["before"].as_str().unwrap_or_default()
            ),
        };
        let mut finding = Finding {
            metric: Some(Metric::Number(missing.into())),
            failed_count: u64::try_from(missing).unwrap_or(u64::MAX),
            message,
            ..Finding::default()
        };
        if !walk.gaps.is_empty() {
            finding.details.insert("gaps".into(), walk.gaps.into());
            finding.details.insert("gap_count".into(), walk.gap_count.into());
        }
        if matches!(self.values, Values::Ticks { zoned: false, .. }) {
            finding
                .details
                .insert("assumed_timezone".into(), self.timezone.name().into());
        }
        finding
    }
}

/// The state of one walk over the values in order.
#[derive(Default)]
struct Walk {
    first: Option<i128>,
    /// The last value and its step.
    last: Option<(i128, i128)>,
    missing: i128,
    gap_count: u64,
    gaps: Vec<Value>,
    lost: bool,
}

impl Walk {
    fn visit(&mut self, ladder: &Ladder, value: &BigDecimal) {
        let rung = value.to_i128().and_then(|value| {
            let first = *self.first.get_or_insert(value);
            ladder.rung(value, first).map(|rung| (value, rung))
        });
        let Some((value, rung)) = rung else {
            self.first.get_or_insert(0);
            self.lost = true;
            return;
        };
        if let Some((before, last)) = self.last
            && rung - last > 1
        {
            let missing = rung - last - 1;
            self.missing += missing;
            self.gap_count += 1;
            if self.gaps.len() < GAPS_LISTED {
                let missing = comporta_contract::literal::number_to_json(&missing.into());
                self.gaps
                    .push(json!({ "after": ladder.text(before), "before": ladder.text(value), "missing": missing }));
            }
        }
        self.last = Some((value, rung));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::fixtures;
    use chrono::NaiveDateTime;
    use comporta_contract::Text;

    fn rule(every: &str) -> Option<NoGaps> {
        let mut diagnostics = Diagnostics::default();
        let text = Text::new("rules.yml", format!("{{ column: x, every: {every} }}"));
        let node = Node::parse(&text, &mut diagnostics).unwrap();
        NoGaps::parse(&node, &mut diagnostics).pop()
    }

    fn missing(every: &str, data_type: &DataType, timezone: Tz, values: &[i64]) -> Finding {
        let ladder = Ladder::of(rule(every).unwrap().step().unwrap(), data_type, "x", timezone).unwrap();
        ladder.judge("x", &fixtures::Values::of(values))
    }

    fn count(finding: &Finding) -> i64 {
        match &finding.metric {
            Some(Metric::Number(number)) => number.to_i64().unwrap(),
            other => panic!("{other:?} {:?}", finding.error),
        }
    }

    fn seconds(text: &str) -> i64 {
        NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M")
            .unwrap()
            .and_utc()
            .timestamp()
    }

    #[test]
    fn whole_numbers_step_from_the_smallest() {
        let of = |every: &str, values: &[i64]| count(&missing(every, &DataType::Int64, Tz::UTC, values));
        assert_eq!(of("1", &[3, 1, 2, 2]), 0);
        assert_eq!(of("1", &[1, 5, 7]), 4);
        assert_eq!(of("10", &[5, 15, 35]), 1);
        assert_eq!(of("1", &[i64::MIN, i64::MIN + 1]), 0);
    }

    #[test]
    fn the_first_gaps_are_named() {
        let finding = missing("1d", &DataType::Date32, Tz::UTC, &[20_451, 20_453, 20_454]);
        assert_eq!(count(&finding), 1);
        assert_eq!(
            finding.details["gaps"],
            json!([{ "after": "2025-12-29", "before": "2025-12-31", "missing": 1 }])
        );
        assert_eq!(
            finding.message,
            "1 step is missing in `x`, the first between 2025-12-29 and 2025-12-31"
        );
    }

    #[test]
    fn months_are_those_of_the_calendar() {
        let days = [20_484, 20_485, 20_513]; // 31 January, 1 February, 1 March 2026
        assert_eq!(count(&missing("month", &DataType::Date32, Tz::UTC, &days)), 0);
        assert_eq!(
            count(&missing("month", &DataType::Date32, Tz::UTC, &[20_484, 20_513])),
            1
        );
        assert_eq!(
            count(&missing("year", &DataType::Date32, Tz::UTC, &[20_453, 20_454])),
            0
        );
    }

    #[test]
    fn hours_may_be_hit_anywhere_and_survive_a_change_of_the_clocks() {
        let local = DataType::Timestamp(TimeUnit::Second, None);
        let of = |zone, texts: &[&str]| {
            let values: Vec<i64> = texts.iter().map(|text| seconds(text)).collect();
            count(&missing("1h", &local, zone, &values))
        };
        assert_eq!(
            of(Tz::UTC, &["2026-01-01 10:05", "2026-01-01 11:55", "2026-01-01 12:00"]),
            0
        );
        assert_eq!(of(Tz::UTC, &["2026-01-01 10:59", "2026-01-01 12:00"]), 1);
        let spring = ["2024-03-31 01:00", "2024-03-31 03:00"];
        assert_eq!(of(Tz::Europe__Berlin, &spring), 0, "the hour from 2 to 3 never was");
        assert_eq!(of(Tz::UTC, &spring), 1);
        assert_eq!(
            of(
                Tz::Asia__Kolkata,
                &["2026-01-01 10:00", "2026-01-01 10:59", "2026-01-01 11:00"]
            ),
            0
        );
    }

    #[test]
    fn days_of_timestamps_are_local_days() {
        let zoned = DataType::Timestamp(TimeUnit::Second, Some("+00:00".into()));
        let values = [seconds("2026-01-01 02:00"), seconds("2026-01-02 04:00")];
        assert_eq!(count(&missing("1d", &zoned, Tz::UTC, &values)), 0);
        assert_eq!(count(&missing("1d", &zoned, Tz::America__Sao_Paulo, &values)), 1);
    }

    #[test]
    fn nothing_to_step_over_is_no_data_and_one_value_has_no_gap() {
        assert_eq!(missing("1", &DataType::Int64, Tz::UTC, &[]).metric, None);
        assert_eq!(count(&missing("1", &DataType::Int64, Tz::UTC, &[7])), 0);
    }

    #[test]
    fn steps_that_mean_nothing_are_faults() {
        for every in ["0", "-1", "1.5", "fortnight", "0d", "1.5s", "true"] {
            assert_eq!(rule(every), None, "{every}");
        }
        let fits =
            |every: &str, data_type| Ladder::of(rule(every).unwrap().step().unwrap(), &data_type, "x", Tz::UTC).is_ok();
        assert!(!fits("1", DataType::Date32));
        assert!(!fits("1h", DataType::Date32));
        assert!(!fits("1d", DataType::Int64));
        assert!(!fits("1d", DataType::Float64));
        assert!(!fits("1", DataType::Timestamp(TimeUnit::Second, None)));
    }
}
