//! Transactions on tables over several instances.

use super::database::DatabaseNumber;
use super::error::IslandError;
use super::program::TableProgram;
use super::reader::IslandRead;
use super::reader::sealed::Sealed;
use super::recording::Accesses;
use super::statement::{Answer, Statement, from_bytes, to_bytes};
use crate::commit::{Outcome, Refusal, RefusalReason};
use crate::islands::OpenTransaction;

/// A serializable transaction on an [`IslandDatabase`](super::IslandDatabase), to be passed to the methods of [`IslandTable`](super::IslandTable)
/// and others.
///
/// It sees its own writes. What it reads belongs together once its commit has succeeded, not before. It locks nothing until then. Dropping it undoes
/// it.
#[derive(Debug)]
pub struct IslandTransaction<'a> {
    open: OpenTransaction<'a, TableProgram>,
    /// Where replicated rows are read, unless it has something elsewhere.
    home: u16,
    /// Why it cannot commit any more, where that has to do with rows at several instances.
    given_up: Option<Refusal>,
    /// Whether it has changed rows.
    writes: bool,
    database: DatabaseNumber,
    /// Where its accesses are recorded, if they are.
    recorded: Option<Box<Accesses>>,
}

impl<'a> IslandTransaction<'a> {
    pub(super) fn new(
        open: OpenTransaction<'a, TableProgram>,
        home: u16,
        database: DatabaseNumber,
        recorded: Option<Box<Accesses>>,
    ) -> Self {
        IslandTransaction { open, home, given_up: None, writes: false, database, recorded }
    }

    /// Commits, and returns when the transaction is stored, where instances are.
    ///
    /// # Errors
    /// [`IslandError::Refused`]: nothing has changed; [`IslandError::Unknown`].
    pub fn commit(self) -> Result<(), IslandError> {
        if let Some(refusal) = self.given_up {
            return Err(IslandError::Refused(refusal));
        }
        match self.open.commit() {
            Outcome::Committed { .. } => {
                self.recorded.iter().for_each(|accesses| accesses.commit());
                Ok(())
            }
            Outcome::Aborted(refusal) => Err(IslandError::Refused(refusal)),
            // There was nothing to be done: it can be done again.
            Outcome::Unknown(message) if !self.writes => {
                Err(IslandError::Refused(Refusal::new(RefusalReason::NoVote, message)))
            }
            Outcome::Unknown(message) => Err(IslandError::Unknown(message)),
        }
    }

    /// Undoes the transaction.
    ///
    /// # Errors
    /// What it has read does not belong together, or nobody knows: the same may do something else when it is tried again.
    pub(super) fn undo(self) -> Result<(), IslandError> {
        self.open.undo().map_err(IslandError::Refused)
    }

    /// Ends the transaction: it cannot commit any more.
    pub(super) fn give_up(&mut self, reason: RefusalReason, message: &str) {
        self.given_up = Some(Refusal::new(reason, message));
    }
}

impl IslandRead for IslandTransaction<'_> {}

#[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
impl Sealed for IslandTransaction<'_> {
    fn database(&self) -> DatabaseNumber {
        self.database
    }

    fn home(&self) -> u16 {
        self.open.coordinator().unwrap_or(self.home)
    }

    fn ask(&mut self, instance: u16, statement: &Statement) -> Result<Answer, IslandError> {
        if let Some(refusal) = &self.given_up {
            return Err(IslandError::Refused(refusal.clone()));
        }
        self.writes |= statement.writes();
        Ok(from_bytes(&self.open.execute(instance, &to_bytes(statement))?)?)
    }

    fn recorded(&mut self) -> Option<&mut Accesses> {
        self.recorded.as_deref_mut()
    }
}
