//! Rules that count rows: the count or the share of rows, and what unknown ones mean for it (S9, S10).

use crate::measure::{Measure, MeasureValue};
use crate::rule::{Bound, Finding, TableCheck};
use crate::scope::Scope;
use comporta_contract::NullPolicy;
use comporta_contract::check::ShareOf;
use comporta_contract::threshold::Metric;
use datafusion_expr::Expr;
use std::sync::Arc;

/// How a rule counts rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counting {
    percent: bool,
    of: ShareOf,
    unknown_counts: bool,
}

impl Counting {
    /// As the check says; as a percentage or as a number of rows.
    pub(crate) fn new(scope: &Scope, percent: bool) -> Self {
        Counting {
            percent,
            of: scope.of,
            unknown_counts: scope.nulls == NullPolicy::Violate,
        }
    }

    /// What was found, from rows that break the promise, unknown ones, and all in scope. The sentence is made of
    /// the number of broken rows and of those it is a share of: "3 of 7 rows".
    pub(crate) fn finding(self, broken: u64, unknown: u64, rows: u64, sentence: impl Fn(&str) -> String) -> Finding {
        let (part, whole) = match (self.unknown_counts, self.of) {
            (true, _) => (broken + unknown, rows),
            (false, ShareOf::All) => (broken, rows),
            (false, ShareOf::Known) => (broken, rows.saturating_sub(unknown)),
        };
        let noun = if whole == 1 { "row" } else { "rows" };
        let mut finding = Finding {
            metric: match (self.percent, whole) {
                (false, _) => Some(Metric::Rows { part, whole }),
                (true, 0) => None,
                (true, _) => Some(Metric::Percent { part, whole }),
            },
            failed_count: part,
            evaluated: Some(rows),
            message: match whole {
                0 if self.percent => "no row is there to take a share of".into(),
                _ => sentence(&format!("{part} of {whole} {noun}")),
            },
            ..Finding::default()
        };
        if unknown > 0 {
            finding.details.insert("unknown_count".into(), unknown.into());
        }
        finding
    }

    /// A check that counts the rows on which an expression is true.
    pub(crate) fn matches(self, broken: Expr, sentence: impl Fn(&str) -> String + Send + Sync + 'static) -> Bound {
        Bound::Table(TableCheck {
            measures: vec![Measure::Matches(broken)],
            judge: Arc::new(move |values| match values {
                [MeasureValue::Matches { matched, unknown, rows }] => {
                    self.finding(*matched, *unknown, *rows, &sentence)
                }
                other => Finding::unexpected(other),
            }),
        })
    }

    /// A check that counts the rows that share their key with another.
    pub(crate) fn repeats(self, keys: Vec<Expr>, nulls_equal: bool, names: String) -> Bound {
        Bound::Table(TableCheck {
            measures: vec![Measure::Keys { keys, nulls_equal }],
            judge: Arc::new(move |values| {
                let [MeasureValue::Keys(counts)] = values else {
                    return Finding::unexpected(values);
                };
                let rows = counts.rows + counts.unknown;
                let sentence = |rows: &str| format!("{rows} share their {names} with another");
                let mut finding = self.finding(counts.repeated_rows, counts.unknown, rows, sentence);
                finding
                    .details
                    .insert("duplicated_keys".into(), counts.repeated_keys.into());
                let surplus = counts.repeated_rows.saturating_sub(counts.repeated_keys);
                finding.details.insert("surplus_rows".into(), surplus.into());
                finding
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counting(percent: bool, of: ShareOf, unknown_counts: bool) -> Counting {
        Counting {
            percent,
            of,
            unknown_counts,
        }
    }

    #[test]
    fn unknown_rows_are_in_the_whole_unless_left_out_and_broken_only_if_asked() {
        let metric = |counting: Counting| counting.finding(2, 3, 10, |rows| rows.into()).metric;
        assert_eq!(
            metric(counting(false, ShareOf::All, false)),
            Some(Metric::Rows { part: 2, whole: 10 })
        );
        assert_eq!(
            metric(counting(true, ShareOf::Known, false)),
            Some(Metric::Percent { part: 2, whole: 7 })
        );
        assert_eq!(
            metric(counting(true, ShareOf::Known, true)),
            Some(Metric::Percent { part: 5, whole: 10 })
        );
    }

    #[test]
    fn of_no_rows_there_is_a_count_but_no_share() {
        let empty = |percent| counting(percent, ShareOf::All, false).finding(0, 0, 0, |rows| rows.into());
        assert_eq!(empty(false).metric, Some(Metric::Rows { part: 0, whole: 0 }));
        assert_eq!(empty(true).metric, None);
    }
}
