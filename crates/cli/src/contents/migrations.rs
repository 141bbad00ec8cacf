//! The steps of migrations that were applied, in the description of a dump.

use std::fmt;

use ensilo::{AppliedMigration, MigrationOutcome, Timestamp};
use serde::{Deserialize, Serialize};

use super::value_text::shown;

/// A step that was applied to the database; its number is its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MigrationDescription {
    name: String,
    outcome: String,
    applied_at: String,
}

impl MigrationDescription {
    /// Returns the descriptions of all steps.
    pub(super) fn of(applied: &[AppliedMigration]) -> Vec<Self> {
        let of = |step: &AppliedMigration| MigrationDescription {
            name: step.name.clone(),
            outcome: step.outcome.to_string(),
            applied_at: step.applied_at.to_string(),
        };
        applied.iter().map(of).collect()
    }

    /// Returns the steps that are described.
    ///
    /// # Errors
    /// Why there are none.
    pub(super) fn applied(described: &[Self]) -> Result<Vec<AppliedMigration>, String> {
        let one = |(number, step): (u32, &Self)| {
            let of_step = |why: String| format!("migration {}: {why}", shown(&step.name));
            let outcome = MigrationOutcome::named(&step.outcome);
            let outcome = outcome.ok_or_else(|| of_step(format!("{} is unknown", shown(&step.outcome))))?;
            let applied_at: Timestamp = step
                .applied_at
                .parse()
                .map_err(|_| of_step(format!("{} is no time", shown(&step.applied_at))))?;
            Ok(AppliedMigration::carried(number, &step.name, outcome, applied_at))
        };
        (1..).zip(described).map(one).collect()
    }

    /// Returns the text that lists them.
    pub(super) fn list(described: &[Self]) -> String {
        (1..).zip(described).map(|(number, step): (u32, _)| format!("migration {number} {step}\n")).collect()
    }
}

impl fmt::Display for MigrationDescription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, outcome, applied_at } = self;
        write!(f, "{}: {outcome}, {applied_at}", name.escape_debug())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_what_their_description_makes() {
        let outcomes =
            [MigrationOutcome::Applied, MigrationOutcome::TableMissing, MigrationOutcome::NewDatabase];
        let step = |(number, outcome)| {
            AppliedMigration::carried(number, "a \"b\"", outcome, Timestamp::from_micros(-7))
        };
        let steps: Vec<_> = (1..).zip(outcomes).map(step).collect();
        let text = serde_json::to_string(&MigrationDescription::of(&steps)).unwrap();
        let read: Vec<MigrationDescription> = serde_json::from_str(&text).unwrap();
        assert_eq!(MigrationDescription::applied(&read).unwrap(), steps);
        for (field, text) in [("outcome", "\"skipped\" is unknown"), ("applied_at", "\"soon\" is no time")] {
            let mut wrong = serde_json::to_value(&read[0]).unwrap();
            wrong[field] = text.split('"').nth(1).unwrap().into();
            let wrong = serde_json::from_value(wrong).unwrap();
            assert!(MigrationDescription::applied(&[wrong]).unwrap_err().contains(text));
        }
    }
}
