//! The closed vocabularies: outcome, severity, effect, decision, dimension (design §1, S1).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every word, in order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word as it stands in documents and reports.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The value of a word, if it is one of ours.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

words! {
    /// What is true of a check. Only `pass` is green.
    Outcome {
        /// Really evaluated, and the promise is kept.
        Pass = "pass",
        /// Really evaluated; only the stricter `warn` target is broken.
        Warn = "warn",
        /// The promise is broken.
        Fail = "fail",
        /// There was nothing to measure, so nothing can be said.
        NoData = "no_data",
        /// Left out on purpose: disabled, filtered on the command line, text only.
        NotEvaluated = "not_evaluated",
        /// The check could not be evaluated.
        Error = "error",
    }
}

words! {
    /// What a broken check asks for, weakest first.
    Severity {
        /// Record only: never alerts, never changes a decision or an exit code.
        Observe = "observe",
        /// Say so, publish all the same.
        Warn = "warn",
        /// Set the broken rows aside and publish the rest.
        Quarantine = "quarantine",
        /// Hold the whole batch.
        Fail = "fail",
    }
}

words! {
    /// What was done about a check, weakest first (S8: the strongest is reported).
    Effect {
        /// Nothing.
        None = "none",
        /// Somebody was told.
        Warned = "warned",
        /// Rows were set aside.
        Quarantined = "quarantined",
        /// The batch was held back.
        Held = "held",
    }
}

words! {
    /// What the gate decided about the batch.
    Decision {
        /// Everything is published.
        Publish = "publish",
        /// The valid rows are published, the others set aside.
        PublishWithoutQuarantined = "publish_without_quarantined",
        /// Nothing is published.
        Hold = "hold",
    }
}

words! {
    /// Whether a rule speaks of each row or of the batch.
    RuleKind {
        /// Says of each row whether it holds, so it can quarantine.
        Row = "row",
        /// Judges the batch as a whole.
        Table = "table",
    }
}

words! {
    /// The side of quality that a check looks at. The first seven are those of seed 001;
    /// `volume` and `schema` are this field's, for what the seven have no place for.
    Dimension {
        /// Are the required fields filled in?
        Completeness = "completeness",
        /// Is anything there twice?
        Uniqueness = "uniqueness",
        /// Do values keep to their domains and formats?
        Validity = "validity",
        /// Do fields and systems agree with one another?
        Consistency = "consistency",
        /// Is the data there in time?
        Timeliness = "timeliness",
        /// Do values describe the real world?
        Accuracy = "accuracy",
        /// Do references point at something?
        Integrity = "integrity",
        /// Is there as much data as there should be?
        Volume = "volume",
        /// Has the data the columns and types it should have?
        Schema = "schema",
    }
}
