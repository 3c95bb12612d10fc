//! Thresholds: `= != < <= > >=`, `between a and b`, `not between`; numbers, percentages,
//! durations, dates (S23, S25).

use crate::diagnostic::Diagnostic;
use crate::literal::{number_to_json, plain_number};
use crate::node::{Node, Value};
use bigdecimal::{BigDecimal, FromPrimitive, ToPrimitive};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// What a check's measure must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Threshold {
    /// How it compares.
    pub comparison: Comparison,
    /// As written, for reports.
    pub text: String,
}

/// A comparison with one or two operands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Comparison {
    /// One operand.
    One(Operator, Operand),
    /// Inclusive at both ends; `false` is `not between`.
    Between(bool, Operand, Operand),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// One side of a comparison, with its unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operand {
    /// A plain number.
    Number(BigDecimal),
    /// A percentage on the 0–100 scale.
    Percent(BigDecimal),
    /// A duration in seconds.
    Duration(BigDecimal),
    /// A date or timestamp as ISO text.
    Instant(String),
}

/// What kind of number a check measures, which decides the units its thresholds may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Rows of a batch: a plain number means rows, `%` a share of the evaluated rows.
    Rows,
    /// A count that is no share of rows.
    Count,
    /// A percentage; `%` may be left out.
    Percent,
    /// A number of the column's own unit.
    Number,
    /// A number, a date or a timestamp, as the column is.
    Value,
    /// A duration in seconds.
    Duration,
}

/// A measured value.
#[derive(Debug, Clone, PartialEq)]
pub enum Metric {
    /// Rows out of the evaluated ones; compares as rows or as an exact share.
    Rows { part: u64, whole: u64 },
    /// The percentage `100 · part / whole`, compared as integers.
    Percent { part: u64, whole: u64 },
    /// An exact number.
    Number(BigDecimal),
    /// A binary number.
    Float(f64),
    /// A duration in seconds.
    Seconds(BigDecimal),
    /// An instant in nanoseconds since 1970 UTC, with its text for reports.
    Instant { nanos: i128, text: String },
    /// Text, for the smallest and largest of a text column.
    Text(String),
}

impl Metric {
    /// The `metric_value` of a report.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Metric::Rows { part, .. } => number_to_json(&BigDecimal::from(*part)),
            Metric::Percent { part, whole } => match whole {
                0 => serde_json::Value::Null,
                _ => (100.0 * *part as f64 / *whole as f64).into(),
            },
            Metric::Number(n) | Metric::Seconds(n) => number_to_json(n),
            Metric::Float(f) => match f.is_finite() {
                true => (*f).into(),
                false => f.to_string().into(),
            },
            Metric::Instant { text, .. } | Metric::Text(text) => text.clone().into(),
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Rows { part, .. } => write!(f, "{part}"),
            Metric::Percent { part, whole } => {
                write!(f, "{}%", round(100.0 * *part as f64 / (*whole).max(1) as f64))
            }
            Metric::Number(n) => f.write_str(&shortened(n)),
            Metric::Seconds(n) => f.write_str(&duration_text(n)),
            Metric::Float(x) => write!(f, "{}", round(*x)),
            Metric::Instant { text, .. } | Metric::Text(text) => f.write_str(text),
        }
    }
}

/// At most six decimals, for people.
fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn shortened(number: &BigDecimal) -> String {
    match number.fractional_digit_count() > 6 {
        true => plain_number(&number.with_scale_round(6, bigdecimal::RoundingMode::HalfEven)),
        false => plain_number(number),
    }
}

/// A number of seconds in its largest readable unit: `31h`, `2d`, `90s`.
pub fn duration_text(seconds: &BigDecimal) -> String {
    let value = seconds.to_f64().unwrap_or(f64::NAN);
    let (unit, size) = match value.abs() {
        v if v >= 172_800.0 => ("d", 86_400.0),
        v if v >= 7_200.0 => ("h", 3_600.0),
        v if v >= 120.0 => ("m", 60.0),
        _ => ("s", 1.0),
    };
    format!("{}{unit}", (value / size * 10.0).round() / 10.0)
}

/// Turns ISO text into the instants it spans, `[first, last]` in nanoseconds since 1970 UTC: a date
/// is its whole day in the document's time zone (S16).
pub type InstantRange<'a> = &'a dyn Fn(&str) -> Option<(i128, i128)>;

impl Threshold {
    /// Reads a threshold. A JSON number means equality.
    pub fn parse(node: &Node) -> Result<Self, Diagnostic> {
        let text = match &node.value {
            Value::Number(n) => plain_number(n),
            Value::Text(t) => t.trim().to_string(),
            _ => {
                return Err(invalid(
                    node,
                    format!("a threshold is text or a number, not {}", node.kind()),
                ));
            }
        };
        let comparison = comparison(&text).map_err(|message| invalid(node, message))?;
        if let Comparison::Between(_, low, high) = &comparison
            && low.order(high) == Some(Ordering::Greater)
        {
            return Err(node
                .error(
                    "invalid-threshold",
                    format!("`{text}` has its first bound above its second"),
                )
                .why("no value lies between them")
                .hint("swap the two bounds"));
        }
        Ok(Threshold { comparison, text })
    }

    /// Whether the units written fit what the check measures.
    pub fn fits(&self, kind: MetricKind) -> Result<(), String> {
        self.operands().iter().try_for_each(|operand| match (operand, kind) {
            (Operand::Number(_), MetricKind::Duration) => {
                Err("a duration needs a unit: `s`, `m`, `h`, `d` or `w`".into())
            }
            (Operand::Number(_), _) => Ok(()),
            (Operand::Percent(_), MetricKind::Rows | MetricKind::Percent) => Ok(()),
            (Operand::Percent(_), _) => Err("`%` fits only a count of rows or a percentage".into()),
            (Operand::Duration(_), MetricKind::Duration) => Ok(()),
            (Operand::Duration(_), _) => Err("a duration fits only a measure of time".into()),
            (Operand::Instant(_), MetricKind::Value) => Ok(()),
            (Operand::Instant(_), _) => Err("a date fits only the `min` or `max` of a date or timestamp".into()),
        })
    }

    /// Whether a measured value keeps to the threshold; `None` where the two cannot be compared
    /// (a number with a date).
    pub fn holds(&self, metric: &Metric, instants: InstantRange) -> Option<bool> {
        match &self.comparison {
            Comparison::One(operator, operand) => {
                let (low, high) = compare(metric, operand, instants)?;
                Some(match operator {
                    Operator::Equal => low != Ordering::Less && high != Ordering::Greater,
                    Operator::NotEqual => low == Ordering::Less || high == Ordering::Greater,
                    Operator::Less => low == Ordering::Less,
                    Operator::LessOrEqual => high != Ordering::Greater,
                    Operator::Greater => high == Ordering::Greater,
                    Operator::GreaterOrEqual => low != Ordering::Less,
                })
            }
            Comparison::Between(inside, first, last) => {
                let above = compare(metric, first, instants)?.0 != Ordering::Less;
                let below = compare(metric, last, instants)?.1 != Ordering::Greater;
                Some((above && below) == *inside)
            }
        }
    }

    /// Whether every value that keeps to `stricter` also keeps to `self`, for two one-sided
    /// thresholds of one unit; `None` for anything else (S6).
    pub fn is_laxer_than(&self, stricter: &Threshold) -> Option<bool> {
        let (Comparison::One(mine, my_bound), Comparison::One(theirs, their_bound)) =
            (&self.comparison, &stricter.comparison)
        else {
            return None;
        };
        use Operator::{Greater, GreaterOrEqual, Less, LessOrEqual};
        let order = my_bound.order(their_bound)?;
        match (mine, theirs) {
            (Less | LessOrEqual, Less | LessOrEqual) => Some(
                order == Ordering::Greater || (order == Ordering::Equal && *mine == LessOrEqual && *theirs == Less),
            ),
            (Greater | GreaterOrEqual, Greater | GreaterOrEqual) => Some(
                order == Ordering::Less || (order == Ordering::Equal && *mine == GreaterOrEqual && *theirs == Greater),
            ),
            _ => None,
        }
    }

    /// Both operands, or the one.
    pub fn operands(&self) -> Vec<&Operand> {
        match &self.comparison {
            Comparison::One(_, one) => vec![one],
            Comparison::Between(_, first, last) => vec![first, last],
        }
    }
}

impl Operand {
    /// The order of two operands of one unit.
    fn order(&self, other: &Operand) -> Option<Ordering> {
        match (self, other) {
            (Operand::Number(a), Operand::Number(b))
            | (Operand::Percent(a), Operand::Percent(b))
            | (Operand::Duration(a), Operand::Duration(b)) => Some(a.cmp(b)),
            (Operand::Instant(a), Operand::Instant(b)) if a.len() == b.len() => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// Compares a value with the first and with the last instant (or number) an operand stands for.
/// Shares are compared as integers: `100 · part` against `limit · whole` (S23).
fn compare(metric: &Metric, operand: &Operand, instants: InstantRange) -> Option<(Ordering, Ordering)> {
    let one = |order: Ordering| Some((order, order));
    match (metric, operand) {
        (Metric::Rows { part, .. }, Operand::Number(limit)) => one(BigDecimal::from(*part).cmp(limit)),
        (Metric::Rows { part, whole } | Metric::Percent { part, whole }, Operand::Percent(limit))
        | (Metric::Percent { part, whole }, Operand::Number(limit)) => {
            one((BigDecimal::from(*part) * BigDecimal::from(100)).cmp(&(limit * BigDecimal::from(*whole))))
        }
        (Metric::Number(value), Operand::Number(limit)) | (Metric::Seconds(value), Operand::Duration(limit)) => {
            one(value.cmp(limit))
        }
        (Metric::Float(value), Operand::Number(limit)) => one(match BigDecimal::from_f64(*value) {
            Some(exact) => exact.cmp(limit),
            None if *value == f64::NEG_INFINITY => Ordering::Less,
            None if value.is_nan() => return None,
            None => Ordering::Greater,
        }),
        (Metric::Instant { nanos, .. }, Operand::Instant(text)) => {
            let (first, last) = instants(text)?;
            Some((nanos.cmp(&first), nanos.cmp(&last)))
        }
        _ => None,
    }
}

fn invalid(node: &Node, message: String) -> Diagnostic {
    node.error("invalid-threshold", message)
        .hint("write for example `= 0`, `< 5%`, `between 10 and 100`, `not between 1 and 2`, `< 24h`")
}

fn comparison(text: &str) -> Result<Comparison, String> {
    let lower = text.to_ascii_lowercase();
    for (word, inside) in [("not between ", false), ("between ", true)] {
        if let Some(rest) = lower.strip_prefix(word) {
            let rest = &text[text.len() - rest.len()..];
            let at = rest
                .to_ascii_lowercase()
                .find(" and ")
                .ok_or_else(|| format!("`{text}` lacks its second bound: `between a and b`"))?;
            return Ok(Comparison::Between(
                inside,
                operand(&rest[..at])?,
                operand(&rest[at + 5..])?,
            ));
        }
    }
    const OPERATORS: [(&str, Operator); 8] = [
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("!=", Operator::NotEqual),
        ("<>", Operator::NotEqual),
        ("==", Operator::Equal),
        ("<", Operator::Less),
        (">", Operator::Greater),
        ("=", Operator::Equal),
    ];
    for (sign, operator) in OPERATORS {
        if let Some(rest) = text.strip_prefix(sign) {
            return Ok(Comparison::One(operator, operand(rest)?));
        }
    }
    Ok(Comparison::One(Operator::Equal, operand(text)?))
}

fn operand(text: &str) -> Result<Operand, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("a value is missing behind the operator".into());
    }
    if looks_like_date(text) {
        return Ok(Operand::Instant(text.to_string()));
    }
    if let Some(number) = text.strip_suffix('%') {
        return exact(number.trim())
            .map(Operand::Percent)
            .ok_or_else(|| format!("`{text}` is no percentage"));
    }
    if let Some(number) = exact(text) {
        return Ok(Operand::Number(number));
    }
    duration(text)
        .map(Operand::Duration)
        .ok_or_else(|| format!("`{text}` is no number, percentage, duration or date"))
}

/// A duration such as `90s`, `15m`, `24h`, `7d`, `2w`, in seconds.
pub fn duration(text: &str) -> Option<BigDecimal> {
    let text = text.trim();
    let unit = text.chars().last()?;
    let seconds = match unit.to_ascii_lowercase() {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => return None,
    };
    exact(text[..text.len() - 1].trim()).map(|number| number * BigDecimal::from(seconds))
}

fn exact(text: &str) -> Option<BigDecimal> {
    let shaped = text
        .bytes()
        .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+'))
        && text.bytes().any(|b| b.is_ascii_digit())
        && text.len() < 100;
    shaped
        .then(|| BigDecimal::from_str(text.trim_start_matches('+')).ok())
        .flatten()
}

fn looks_like_date(text: &str) -> bool {
    let b = text.as_bytes();
    b.len() >= 10
        && b[..4].iter().all(u8::is_ascii_digit)
        && b[4] == b'-'
        && b[5..7].iter().all(u8::is_ascii_digit)
        && b[7] == b'-'
        && b[8..10].iter().all(u8::is_ascii_digit)
}

impl JsonSchema for Threshold {
    fn schema_name() -> Cow<'static, str> {
        "Threshold".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": ["number", "string"],
            "description": "A comparison: `= 0`, `!= 3`, `< 5%`, `>= 10`, `between 1 and 9`, `not between 1 and 9`, `< 24h`. A bare number means equality.",
            "examples": ["= 0", "< 5%", "between 10 and 100", "< 1d"]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threshold(text: &str) -> Threshold {
        Threshold {
            comparison: comparison(text).unwrap(),
            text: text.into(),
        }
    }

    fn holds(text: &str, metric: &Metric) -> Option<bool> {
        threshold(text).holds(metric, &|_| None)
    }

    #[test]
    fn a_share_is_compared_without_rounding() {
        let one_of_hundred = Metric::Rows { part: 1, whole: 100 };
        assert_eq!(holds("< 1%", &one_of_hundred), Some(false));
        assert_eq!(holds("<= 1%", &one_of_hundred), Some(true));
        let third = Metric::Percent { part: 1, whole: 3 };
        assert_eq!(holds("< 33.34", &third), Some(true));
        assert_eq!(holds("= 33.33333333333333", &third), Some(false));
    }

    #[test]
    fn durations_have_units_and_units_must_fit() {
        assert_eq!(
            threshold("< 1d").operands(),
            vec![&Operand::Duration(BigDecimal::from(86_400))]
        );
        assert!(threshold("< 5m").fits(MetricKind::Rows).is_err());
        assert!(threshold("< 5%").fits(MetricKind::Number).is_err());
        assert!(threshold("< 5").fits(MetricKind::Duration).is_err());
    }

    #[test]
    fn between_is_inclusive() {
        let ten = Metric::Number(BigDecimal::from(10));
        assert_eq!(holds("between 10 and 100", &ten), Some(true));
        assert_eq!(holds("not between 10 and 100", &ten), Some(false));
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "abc", "=> 5", "> 0 and < 5", "5 days", "<"] {
            assert!(comparison(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_warn_target_can_be_seen_to_be_laxer() {
        assert_eq!(threshold("< 10%").is_laxer_than(&threshold("< 5%")), Some(true));
        assert_eq!(threshold("< 1%").is_laxer_than(&threshold("< 5%")), Some(false));
        assert_eq!(threshold("= 0").is_laxer_than(&threshold("< 5%")), None);
    }
}
