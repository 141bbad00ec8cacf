//! How single runs end.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How a single run ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// With a report.
    Measured(Value),
    /// The program does not know an option or a value, or refuses their combination.
    Refused(String),
    /// Something failed: a consistency check, the disk, too little memory.
    Failed(String),
    /// Somebody wanted it to end.
    Interrupted,
}

/// How a run ended that has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StoredOutcome {
    /// With the report.
    Measured(Value),
    /// The program does not know what was asked for.
    Refused(String),
    /// It failed.
    Failed(String),
}

impl StoredOutcome {
    /// What is kept of an outcome; `None` if the run was interrupted.
    pub(crate) fn of(outcome: Outcome) -> Option<Self> {
        match outcome {
            Outcome::Measured(report) if report["interrupted"] == true => None,
            Outcome::Measured(report) => Some(Self::Measured(report)),
            Outcome::Refused(why) => Some(Self::Refused(why)),
            Outcome::Failed(why) => Some(Self::Failed(why)),
            Outcome::Interrupted => None,
        }
    }
}
