//! Exit codes, a contract with the shell (design §7).

use comporta::contract::{Decision, Effect, Outcome, Report};
use comporta::engine::{Error, ErrorKind};

/// Published, or it would be; warnings included.
pub(crate) const PUBLISHED: u8 = 0;
/// The data was held back because of what it is.
pub(crate) const HELD: u8 = 1;
/// The command line or a document is wrong; nothing was read.
pub(crate) const INVALID: u8 = 2;
/// It could not be told: a place was unreachable, or a check could not be evaluated. Safe to retry.
pub(crate) const UNKNOWN: u8 = 3;
/// A bug of comporta.
pub(crate) const BUG: u8 = 70;

/// Code, meaning and the first version that has it; the reference page is made of them.
#[cfg(test)]
pub(crate) const MEANINGS: &[(u8, &str, &str)] = &[
    (PUBLISHED, "published, or it would be; warnings included", "0.1.0"),
    (HELD, "the data was held back because of what it is", "0.1.0"),
    (
        INVALID,
        "the command line or a document is wrong; nothing was read",
        "0.1.0",
    ),
    (
        UNKNOWN,
        "could not tell: source, target or state unreachable, or a check in error; safe to retry",
        "0.1.0",
    ),
    (BUG, "a bug of comporta; please report it", "0.1.0"),
];

/// The code of a report. Of several causes for a hold the higher code wins: an error before the data.
pub(crate) fn of_report(report: &Report) -> u8 {
    let held_by_error = |check: &comporta::contract::report::CheckReport| {
        check.outcome == Outcome::Error && check.effect == Effect::Held
    };
    match report.decision {
        Decision::Publish | Decision::PublishWithoutQuarantined => PUBLISHED,
        Decision::Hold if report.checks.iter().any(held_by_error) => UNKNOWN,
        Decision::Hold => HELD,
    }
}

/// The code of an error.
pub(crate) fn of_error(error: &Error) -> u8 {
    match error.kind {
        ErrorKind::Invalid => INVALID,
        ErrorKind::Internal => BUG,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::fixtures;

    #[test]
    fn an_error_that_holds_outweighs_data_that_holds() {
        assert_eq!(of_report(&fixtures::published()), PUBLISHED);
        let mut report = fixtures::held();
        assert_eq!(of_report(&report), HELD);
        report.checks[0].outcome = Outcome::Error;
        report.checks[0].effect = Effect::Warned;
        assert_eq!(of_report(&report), HELD, "an error that only warns holds nothing");
        report.checks[0].effect = Effect::Held;
        assert_eq!(of_report(&report), UNKNOWN);
    }

    #[test]
    fn kinds_of_errors_have_their_codes() {
        assert_eq!(of_error(&Error::invalid("x")), INVALID);
        assert_eq!(of_error(&Error::internal("x")), BUG);
        for kind in [
            ErrorKind::NotFound,
            ErrorKind::Corrupt,
            ErrorKind::Refused,
            ErrorKind::Conflict,
        ] {
            assert_eq!(of_error(&Error::new(kind, "x")), UNKNOWN);
        }
    }
}
