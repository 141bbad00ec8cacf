//! Whether the steps of a program are those of the database, and what to do where they are not.

use std::collections::HashSet;

use ensilo_engine::Engine;
use ensilo_row::NAME_LEN_MAX;

use super::rows::StoredMigrations;
use super::{Migrations, Step};
use crate::error::Name;
use crate::{Error, Result};

/// Checks the names of steps.
///
/// # Errors
/// [`Error::InvalidMigrations`].
pub(super) fn check_names<'n>(steps: impl ExactSizeIterator<Item = &'n str>) -> Result<()> {
    if u32::try_from(steps.len()).is_err() {
        return Err(invalid("there are too many".into()));
    }
    let mut names = HashSet::new();
    for (number, name) in (1..).zip(steps) {
        if !(1..=NAME_LEN_MAX).contains(&name.len()) {
            return Err(invalid(format!("step {number} has no name of 1 to {NAME_LEN_MAX} bytes")));
        }
        if !names.insert(name) {
            return Err(invalid(format!("step {number} has the name of an earlier one, \"{name}\"")));
        }
    }
    Ok(())
}

impl<E: Engine> Migrations<E> {
    /// Returns the steps that are to be applied, with their numbers.
    ///
    /// # Errors
    /// [`Error::InvalidMigrations`] when those that were applied are not the first ones of these.
    pub(super) fn missing(
        &self,
        stored: &StoredMigrations,
    ) -> Result<impl Iterator<Item = (u32, &Step<E>)> + use<'_, E>> {
        for (applied, name) in stored.steps.iter().zip(self.names()) {
            if applied.name != name {
                return Err(invalid(format!(
                    "step {} is \"{}\" in the database and \"{name}\" in the program; steps that were applied keep their place and their \
                     name, and new ones come behind them",
                    applied.number, applied.name,
                )));
            }
        }
        if let Some(applied) = stored.steps.get(self.steps.len()) {
            return Err(invalid(format!(
                "the database is at version {}, and the program has {} steps, without \"{}\"; run the version of the program that \
                 has migrated the database, or a later one",
                stored.steps.len(),
                self.steps.len(),
                applied.name,
            )));
        }
        Ok((1..).zip(&self.steps).skip(stored.steps.len()))
    }
}

/// Returns the error for a database that is open for reading only, in which this is due.
pub(super) fn due_when_read_only((number, name): (Option<u32>, &str)) -> Error {
    let due = match number {
        Some(number) => format!("step {number}, \"{name}\", is not applied"),
        None => format!("{name} is not done"),
    };
    invalid(format!(
        "{due}, and the database is open for reading only; open it for writing once, and migrate it"
    ))
}

#[cold]
fn invalid(text: String) -> Error {
    Error::InvalidMigrations(Name::new(text))
}
