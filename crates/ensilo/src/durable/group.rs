//! A database that is one of several which are durable together.
//!
//! What one of them has stored counts once the others have stored what belongs to it. Until then answers, and
//! checkpoints, wait as if it was not stored: the durable epoch is held back. Which epochs of which databases belong
//! together is known to whoever has made the group, and so is, after a crash, how far each of them counts: the rest is
//! [given up](crate::Options::give_up_after) when it is opened.

use std::fmt;
use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_epoch::{Epoch, Epochs};
use ensilo_log::Log;

use crate::database::Database;
use crate::durability::Ticket;
use crate::{Error, Result};

/// See the module's documentation.
#[derive(Clone)]
pub struct GroupMember {
    log: Arc<Log>,
    epochs: Arc<Epochs>,
}

impl<E: Engine> Database<E> {
    /// Returns the database as one of several.
    ///
    /// # Errors
    /// [`Error::NotDurable`] when nothing of it is ever stored.
    #[doc(hidden)]
    pub fn group_member(&self) -> Result<GroupMember> {
        let log = Arc::clone(self.shared.log().ok_or(Error::NotDurable)?);
        Ok(GroupMember { log, epochs: Arc::clone(self.shared.engine.epochs()) })
    }
}

impl GroupMember {
    /// From now on what is stored counts once it is [released](Self::release).
    pub fn hold(&self) {
        self.log.hold();
    }

    /// Returns the last epoch of what has committed by now. What begins to commit later has a later one.
    pub fn end_epoch(&self) -> u64 {
        let epoch = self.epochs.global_epoch();
        // There is a next one for as long as the numbers of epochs last.
        let _ = self.epochs.advance_past(epoch);
        epoch.get()
    }

    /// Calls `callback` once everything up to an epoch is stored, or never will be: on this thread, or on one of the
    /// log, where it must neither wait nor take long.
    pub fn on_stored(&self, epoch: u64, callback: impl FnOnce(Result<()>) + Send + 'static) {
        let callback =
            Box::new(move |stored: std::result::Result<(), _>| callback(stored.map_err(Error::from_log)));
        self.log.on_stored(Epoch::new(epoch), callback);
    }

    /// Has everything count that is stored up to an epoch.
    pub fn release(&self, epoch: u64) {
        self.log.release(Epoch::new(epoch));
    }

    /// Nothing more comes to count: who waits, now or later, gets [`Error::LogFailed`].
    pub fn give_up(&self) {
        self.log.end_held_waits();
    }

    /// Checks that the log has not failed.
    ///
    /// # Errors
    /// [`Error::LogFailed`].
    pub fn check(&self) -> Result<()> {
        self.log.failure().map_or(Ok(()), |failure| Err(Error::from_log(failure)))
    }

    /// Returns whether somebody waits for what is held back, or not stored.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.log.has_waiting()
    }

    /// Returns a ticket for everything that has committed by now.
    pub fn ticket(&self) -> Ticket {
        Ticket::new(self.epochs.global_epoch(), Arc::clone(&self.log))
    }
}

impl fmt::Debug for GroupMember {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupMember").field("log", &self.log).finish_non_exhaustive()
    }
}
