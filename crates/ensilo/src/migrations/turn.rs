//! Turns of those that migrate a database: one at a time does, others wait.

use std::sync::{Condvar, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use crate::error::NestedCall;
use crate::mutex::lock;
use crate::{Error, Result};

/// So often one that waits looks whether the database was closed.
const LOOK: Duration = Duration::from_millis(10);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct MigrationTurns {
    /// The thread that migrates.
    migrating: Mutex<Option<ThreadId>>,
    ended: Condvar,
}

/// The turn of the thread that has got it. It ends when this goes, also by a panic.
#[derive(Debug)]
pub(super) struct Turn<'t>(&'t MigrationTurns);

impl MigrationTurns {
    /// Waits for the turn of the calling thread.
    ///
    /// # Errors
    /// [`Error::NestedRequest`] when it has it already; [`Error::Closed`] when `is_closed` says so meanwhile.
    pub(super) fn wait(&self, is_closed: impl Fn() -> bool) -> Result<Turn<'_>> {
        let mut migrating = lock(&self.migrating);
        loop {
            match *migrating {
                None => {
                    *migrating = Some(thread::current().id());
                    return Ok(Turn(self));
                }
                Some(thread) if thread == thread::current().id() => {
                    return Err(Error::NestedRequest(NestedCall::MigrationInStep));
                }
                Some(_) if is_closed() => return Err(Error::Closed),
                Some(_) => {}
            }
            let waited = self.ended.wait_timeout(migrating, LOOK);
            migrating = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.migrating) = None;
        self.0.ended.notify_one();
    }
}
