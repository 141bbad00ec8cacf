//! Open transactions: those whose parts are carried out one after the other, before it is known that they are to commit.
//!
//! They lock nothing, and nobody waits for them. Whoever has begun one ends it: by a commit, for which it is taken from here, or by rolling it back.
//! After a crash of the instance it is gone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ensilo::{Database, Error, Session, Transaction};

use super::carry_out::{carry_out, refusal};
use super::program::Program;
use crate::commit::{OpenId, Outcome, Refusal, RefusalReason};

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
    pub(crate) fn execute(&self, id: OpenId, is_first: bool, part: &[u8]) -> Result<Vec<u8>, Refusal> {
        let open = if is_first { self.begin()? } else { self.take(id)? };
        let (open, reply) = self.go_on(open, part, |program, tx| program.execute(tx, part))?;
        self.held().open.insert(id, open);
        Ok(reply)
    }

    /// Commits a transaction that has no parts elsewhere, with a last part unless that is empty.
    pub(crate) fn commit_alone(&self, id: OpenId, last: &[u8]) -> Outcome {
        let ended = self.take_to_end(id, last, |program, tx| program.execute(tx, last));
        let (mut open, reply) = match ended {
            Ok(ended) => ended,
            Err(refusal) => return Outcome::Aborted(refusal),
        };
        let committed = open.session.commit();
        self.put_back(open.session);
        match committed {
            Ok(()) => Outcome::Committed { local: Some(reply), remote: Vec::new() },
            // It may be found stored, or not.
            Err(error @ Error::LogFailed(_)) => Outcome::Unknown(error.to_string()),
            Err(error) => Outcome::Aborted(refusal(&error)),
        }
    }

    /// Undoes a transaction, if it is open.
    pub(crate) fn roll_back(&self, id: OpenId) {
        if let Ok(open) = self.take(id) {
            self.put_back(open.session);
        }
    }

    /// Returns a transaction that is to end, with its last part carried out unless that is empty, and what that returns.
    pub(super) fn take_to_end(
        &self,
        id: OpenId,
        last: &[u8],
        execute: impl FnOnce(&P, &mut Transaction<'_>) -> ensilo::Result<Vec<u8>>,
    ) -> Result<(Open, Vec<u8>), Refusal> {
        let open = self.take(id)?;
        if last.is_empty() { Ok((open, Vec::new())) } else { self.go_on(open, last, execute) }
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

    fn take(&self, id: OpenId) -> Result<Open, Refusal> {
        let message = "the instance was opened anew, and what the transaction has done there is gone";
        let gone = || Refusal::new(RefusalReason::Conflict, message);
        self.held().open.remove(&id).ok_or_else(gone)
    }

    fn go_on(
        &self,
        mut open: Open,
        part: &[u8],
        execute: impl FnOnce(&P, &mut Transaction<'_>) -> ensilo::Result<Vec<u8>>,
    ) -> Result<(Open, Vec<u8>), Refusal> {
        match carry_out(&mut open.session, |tx| execute(&self.program, tx)) {
            Ok(reply) => {
                if open.session.has_writes() {
                    open.parts.push(part.to_vec());
                }
                Ok((open, reply))
            }
            Err(refusal) => {
                self.put_back(open.session);
                Err(refusal)
            }
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<P> fmt::Debug for OpenTransactions<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenTransactions").field("db", &self.db).finish_non_exhaustive()
    }
}
