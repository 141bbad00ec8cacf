//! Open transactions: those whose parts are carried out one after the other, before it is known that they are to commit.
//!
//! They lock nothing, and nobody waits for them. Whoever has begun one ends it: by a commit, for which it is taken from here, or by rolling it back.
//! After a crash of the instance it is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo::{Database, Error, Session, Ticket};

use super::carry_out::{carry_out, refusal};
use super::program::Program;
use crate::commit::{OpenId, Outcome, Refusal, RefusalReason, Refused};

/// A transaction with parts that were carried out.
pub(super) struct Open {
    pub(super) session: Session,
    /// The parts from the first one on that has written something.
    pub(super) parts: Vec<Vec<u8>>,
}

/// The open transactions of an instance. See the module's documentation.
pub(crate) struct OpenTransactions<P> {
    db: Database,
    program: Arc<P>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    open: BTreeMap<OpenId, Open>,
    /// Sessions without a transaction.
    idle: Vec<Session>,
}

impl<P: Program> OpenTransactions<P> {
    pub(crate) fn new(db: Database, program: Arc<P>) -> Self {
        OpenTransactions { db, program, held: Mutex::new(Held::default()) }
    }

    /// Carries a part out, and returns what it returns. The first one begins the transaction.
    ///
    /// # Errors
    /// Why it is refused; the transaction has ended here.
    pub(crate) fn execute(
        &self,
        id: OpenId,
        is_first: bool,
        part: &[u8],
    ) -> Result<Vec<u8>, Refused<Ticket>> {
        let mut open = if is_first { self.begin()? } else { self.take(id)? };
        let executed = carry_out(&mut open.session, |tx| self.program.execute(tx, part));
        match &executed {
            Ok(_) => {
                if open.session.has_writes() {
                    open.parts.push(part.to_vec());
                }
                self.held().open.insert(id, open);
            }
            Err(_) => self.put_back(open.session),
        }
        executed
    }

    /// Commits a transaction that has no parts elsewhere.
    pub(crate) fn commit_alone(&self, id: OpenId) -> Outcome {
        let mut open = match self.take(id) {
            Ok(open) => open,
            Err(refusal) => return Outcome::Aborted(refusal),
        };
        let committed = commit(&mut open.session);
        self.put_back(open.session);
        match committed.map(|ticket| ticket.map_or(Ok(()), |ticket| ticket.wait())) {
            Ok(Ok(())) => Outcome::Committed { local: None, remote: Vec::new() },
            // It may be found stored, or not.
            Ok(Err(error)) | Err(error @ Error::LogFailed(_)) => Outcome::Unknown(error.to_string()),
            Err(error) => Outcome::Aborted(refusal(&error).without_waiting()),
        }
    }

    /// Ends a transaction without a commit. Returns when that is stored which it has read, where the database is; `None` in memory.
    ///
    /// # Errors
    /// What it has read has changed since, or is about to.
    pub(crate) fn validate(&self, id: OpenId) -> Result<Option<Ticket>, Refusal> {
        let mut open = self.take(id)?;
        let validated = open.session.prepare().and_then(|prepared| match prepared.ticket_of_reads() {
            Err(Error::NotDurable) => Ok(None),
            ticket => ticket.map(Some),
        });
        self.put_back(open.session);
        validated.map_err(|error| refusal(&error).without_waiting())
    }

    /// Undoes a transaction, if it is open.
    pub(crate) fn roll_back(&self, id: OpenId) {
        if let Ok(open) = self.take(id) {
            self.put_back(open.session);
        }
    }

    /// Keeps a session, and undoes its transaction if that has not ended.
    pub(super) fn put_back(&self, mut session: Session) {
        let _ = session.rollback();
        self.held().idle.push(session);
    }

    fn begin(&self) -> Result<Open, Refusal> {
        let idle = self.held().idle.pop();
        let begun = idle.map_or_else(|| self.db.session(), Ok).and_then(|mut session| {
            session.begin()?;
            Ok(session)
        });
        let session = begun.map_err(|error| refusal(&error))?;
        Ok(Open { session, parts: Vec::new() })
    }

    /// Returns a transaction that is to end.
    ///
    /// # Errors
    /// It is gone.
    pub(super) fn take(&self, id: OpenId) -> Result<Open, Refusal> {
        let message = "the instance was opened anew, and what the transaction has done there is gone";
        let gone = || Refusal::new(RefusalReason::Conflict, message);
        self.held().open.remove(&id).ok_or_else(gone)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Commits, and returns a ticket for it, where the database is stored.
fn commit(session: &mut Session) -> ensilo::Result<Option<Ticket>> {
    match session.commit_with_ticket() {
        Err(Error::NotDurable) => session.commit().map(|()| None),
        committed => committed.map(Some),
    }
}

impl<P> fmt::Debug for OpenTransactions<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransactions").field("db", &self.db).finish_non_exhaustive()
    }
}
