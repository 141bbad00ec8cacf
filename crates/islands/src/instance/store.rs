//! The rows of an instance, as two-phase commit uses them.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use ensilo::{AbortReason, Database, Error, PreparedTransaction, Result, Session, Ticket, Transaction};

use super::notes::{Found, FoundPart, Notes};
use super::program::Program;
use crate::commit::{
    DistributedId, Failed, OwnPart, PartStore, Participants, Refusal, RefusalReason, SiteId, Voting,
};

/// Why an instance could not be opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum InstanceError {
    /// Its database, or the program's [`open`](Program::open), has failed.
    Database(Error),
    /// A part that was prepared before a crash could not be prepared again. Its transaction may have committed elsewhere.
    InDoubt {
        /// The transaction.
        id: DistributedId,
        /// What the part says about it.
        refusal: Refusal,
    },
    /// A thread, a channel or a process of it could not be made.
    Io(std::io::Error),
    /// The process of the instance could not open it, and has said why.
    Process(String),
}

impl fmt::Display for InstanceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InstanceError::Database(error) => write!(f, "an instance cannot be opened: {error}"),
            InstanceError::InDoubt { id, refusal } => write!(
                f,
                "a part of transaction {id}, which was prepared before a crash, cannot be prepared again: {refusal}"
            ),
            InstanceError::Io(error) => write!(f, "an instance cannot be started: {error}"),
            InstanceError::Process(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for InstanceError {}

impl From<Error> for InstanceError {
    fn from(error: Error) -> Self {
        InstanceError::Database(error)
    }
}

/// See the module's documentation.
pub(crate) struct InstanceStore<P> {
    db: Database,
    program: Arc<P>,
    /// `None` where nothing is stored.
    notes: Option<Notes>,
    /// Sessions without a transaction.
    idle: Vec<Session>,
    /// The slots of decisions that are not forgotten.
    decisions: BTreeMap<DistributedId, u32>,
    /// Parts that are to be undone, whose notes could not be erased: memory is short, or nothing is stored any more.
    not_undone: Vec<PreparedPart>,
    waker: Waker,
    /// Counts how often the waker was called, at least once.
    rounds: u64,
}

/// A part that has voted.
pub(crate) struct PreparedPart {
    prepared: PreparedTransaction,
    /// Where it is noted.
    slot: Option<u32>,
}

/// What a site goes on with after a crash.
#[derive(Debug, Default)]
pub(crate) struct Recovered {
    pub(crate) decisions: Vec<(DistributedId, Vec<SiteId>)>,
    pub(crate) parts: Vec<(DistributedId, PreparedPart)>,
}

/// When something is stored; at once where nothing is.
pub(crate) struct Storing(Option<(Ticket, AskedIn)>);

/// The last round in which the log was told that somebody waits.
type AskedIn = u64;

impl<P: Program> InstanceStore<P> {
    pub(crate) fn new(db: Database, program: Arc<P>, notes: Option<Notes>, waker: Waker) -> Self {
        InstanceStore {
            db,
            program,
            notes,
            idle: Vec::new(),
            decisions: BTreeMap::new(),
            not_undone: Vec::new(),
            waker,
            rounds: 1,
        }
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// The waker was called: something is stored, or the log has failed.
    pub(crate) fn note_wake(&mut self) {
        self.rounds += 1;
    }

    /// Carries a part out, and undoes it when what is returned is dropped. What it inserts has its place in the index until then.
    ///
    /// While all parts that were found are carried out so, each can be [recovered](Self::recover): none changes the nodes of the index that another one
    /// relies on.
    ///
    /// # Errors
    /// [`InstanceError::InDoubt`].
    pub(crate) fn try_out(&mut self, found: &FoundPart) -> std::result::Result<Session, InstanceError> {
        let refused = |refusal| InstanceError::InDoubt { id: found.id, refusal };
        self.carry_out(|program, tx| program.execute(tx, &found.part))
            .map(|(session, _)| session)
            .map_err(refused)
    }

    /// Prepares the parts once more that were found prepared, and takes over the decisions that were found: of those that are this site's own.
    pub(crate) fn recover(
        &mut self,
        found: &Found,
        is_own: impl Fn(&DistributedId) -> bool,
    ) -> std::result::Result<Recovered, InstanceError> {
        let mut recovered = Recovered::default();
        for (id, (slot, participants)) in found.decisions.iter().filter(|(id, _)| is_own(id)) {
            self.decisions.insert(*id, *slot);
            recovered.decisions.push((*id, participants.clone()));
        }
        for part in found.parts.iter().filter(|part| is_own(&part.id)) {
            let mut session = self.try_out(part)?;
            let prepared = self.prepare_at(&mut session, part.id, Some(part.slot));
            let refused = |error| InstanceError::InDoubt { id: part.id, refusal: refusal(&error) };
            recovered.parts.push((part.id, prepared.map_err(refused)?));
            self.idle.push(session);
        }
        Ok(recovered)
    }

    fn session(&mut self) -> Result<Session> {
        self.idle.pop().map_or_else(|| self.db.session(), Ok)
    }

    /// Returns a session with a transaction.
    fn begun(&mut self) -> Result<Session> {
        let mut session = self.session()?;
        session.begin()?;
        Ok(session)
    }

    /// Keeps a session, and undoes its transaction if that has not ended.
    fn put_back(&mut self, mut session: Session) {
        let _ = session.rollback();
        self.idle.push(session);
    }

    /// Carries a part out in a transaction, which has locked nothing yet, and is undone when the session is dropped. Returns what the part returns.
    fn carry_out(
        &mut self,
        execute: impl FnOnce(&P, &mut Transaction<'_>) -> Result<Vec<u8>>,
    ) -> std::result::Result<(Session, Vec<u8>), Refusal> {
        self.undo_rest();
        let mut session = self.begun().map_err(|error| refusal(&error))?;
        let program = &*self.program;
        let executed = panic::catch_unwind(AssertUnwindSafe(|| session.with(|tx| execute(program, tx))));
        // A panic is an error that nobody has said anything about.
        match executed.unwrap_or_else(|_| Err(Error::rollback("the part has panicked"))) {
            Ok(reply) => Ok((session, reply)),
            Err(error) => {
                let refusal = refusal_by_part(&error, &mut session);
                self.put_back(session);
                Err(refusal)
            }
        }
    }

    /// Prepares the transaction of a session, which says that it is carried out when it commits.
    fn prepare_at(
        &self,
        session: &mut Session,
        id: DistributedId,
        slot: Option<u32>,
    ) -> Result<PreparedPart> {
        if let (Some(notes), Some(slot)) = (&self.notes, slot) {
            notes.carry_out(session, slot, id)?;
        }
        Ok(PreparedPart { prepared: session.prepare()?, slot })
    }

    /// Prepares a part and notes it; returns when the note, or what a part without one has read, is stored.
    fn prepare_and_note(
        &mut self,
        id: DistributedId,
        part: &[u8],
        (session, writes): (&mut Session, bool),
    ) -> Result<(PreparedPart, Storing)> {
        let Some(notes) = &mut self.notes else {
            return Ok((self.prepare_at(session, id, None)?, Storing(None)));
        };
        if !writes {
            let part = self.prepare_at(session, id, None)?;
            let ticket = part.prepared.ticket_of_reads()?;
            return Ok((part, Storing::new(ticket)));
        }
        let slot = notes.take_slot(&self.db)?;
        let noted = self.prepare_at(session, id, Some(slot)).and_then(|prepared| {
            let notes = self.notes.as_ref().ok_or(Error::NotDurable)?;
            Ok((prepared, Storing::new(notes.add_part(&self.db, slot, id, part)?)))
        });
        noted.inspect_err(|_| self.free_slot(slot))
    }

    fn free_slot(&mut self, slot: u32) {
        if let Some(notes) = &mut self.notes {
            notes.free_slot(slot);
        }
    }

    /// Undoes a part, once its note is erased. Returns it where that fails.
    fn undo(&mut self, part: PreparedPart) -> std::result::Result<(), PreparedPart> {
        if let (Some(notes), Some(slot)) = (&mut self.notes, part.slot) {
            if notes.erase_part(&self.db, slot).is_err() {
                return Err(part);
            }
            notes.free_slot(slot);
        }
        Ok(())
    }

    /// Undoes parts that could not be undone before.
    fn undo_rest(&mut self) {
        for part in mem::take(&mut self.not_undone) {
            if let Err(part) = self.undo(part) {
                self.not_undone.push(part);
            }
        }
    }

    /// Validates a part that writes nothing. It was prepared together with the others for a moment, which is as good as a commit.
    fn decide_reads(&self, session: &mut Session) -> Result<Storing> {
        let prepared = session.prepare()?;
        if self.notes.is_some() { prepared.ticket_of_reads().map(Storing::new) } else { Ok(Storing(None)) }
    }

    fn commit_decision(
        &mut self,
        id: DistributedId,
        session: &mut Session,
        writers: &[SiteId],
    ) -> Result<Storing> {
        let Some(notes) = &mut self.notes else { return session.commit().map(|()| Storing(None)) };
        if writers.is_empty() {
            return session.commit_with_ticket().map(Storing::new);
        }
        let slot = notes.add_decision(session, id, writers)?;
        match session.commit_with_ticket() {
            Ok(ticket) => {
                self.decisions.insert(id, slot);
                Ok(Storing::new(ticket))
            }
            Err(error) => {
                notes.free_decision(slot);
                Err(error)
            }
        }
    }
}

impl Storing {
    fn new(ticket: Ticket) -> Self {
        Storing(Some((ticket, 0)))
    }
}

impl<P: Program> PartStore for InstanceStore<P> {
    type Prepared = PreparedPart;
    type Ticket = Storing;

    fn prepare(
        &mut self,
        id: DistributedId,
        part: &[u8],
    ) -> std::result::Result<Voting<PreparedPart, Storing>, Refusal> {
        let (mut session, reply) = self.carry_out(|program, tx| program.execute(tx, part))?;
        let writes = session.has_writes();
        let prepared = self.prepare_and_note(id, part, (&mut session, writes));
        self.put_back(session);
        let (prepared, ticket) = prepared.map_err(|error| refusal(&error))?;
        Ok(Voting { prepared, reply, writes, ticket })
    }

    fn commit(&mut self, _: DistributedId, mut part: PreparedPart) -> std::result::Result<Storing, Failed> {
        let failed = |error: Error| Failed(error.to_string());
        let Some(notes) = &mut self.notes else {
            return part.prepared.commit().map(|()| Storing(None)).map_err(failed);
        };
        let ticket = part.prepared.commit_with_ticket().map_err(failed)?;
        if let Some(slot) = part.slot {
            notes.free_slot(slot);
        }
        Ok(Storing::new(ticket))
    }

    fn abort(&mut self, _: DistributedId, part: PreparedPart) {
        if let Err(part) = self.undo(part) {
            self.not_undone.push(part);
        }
    }

    fn decide(
        &mut self,
        id: DistributedId,
        own: Option<OwnPart<'_>>,
        participants: Participants<'_>,
    ) -> std::result::Result<(Option<Vec<u8>>, Storing), Refusal> {
        let is_noted = self.notes.is_some() && !participants.writers.is_empty();
        let (mut session, reply) = match own {
            Some(OwnPart { part, replies }) => {
                let (session, reply) = self.carry_out(|program, tx| program.conclude(tx, part, replies))?;
                (session, Some(reply))
            }
            None if !is_noted => return Ok((None, Storing(None))),
            None => (self.begun().map_err(|error| refusal(&error))?, None),
        };
        let only_reads = !is_noted && !participants.is_empty() && !session.has_writes();
        let decided = if only_reads {
            self.decide_reads(&mut session)
        } else {
            self.commit_decision(id, &mut session, participants.writers)
        };
        self.put_back(session);
        decided.map(|storing| (reply, storing)).map_err(|error| refusal(&error))
    }

    fn forget(&mut self, id: DistributedId) {
        if let (Some(slot), Some(notes)) = (self.decisions.remove(&id), &mut self.notes) {
            notes.free_decision(slot);
        }
    }

    fn is_stored(&mut self, storing: &mut Storing) -> std::result::Result<bool, Failed> {
        let Some((ticket, asked_in)) = &mut storing.0 else { return Ok(true) };
        if ticket.is_stored() {
            return Ok(true);
        }
        if mem::replace(asked_in, self.rounds) == self.rounds {
            return Ok(false);
        }
        match Pin::new(ticket).poll(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(stored) => stored.map(|()| true).map_err(|error| Failed(error.to_string())),
            Poll::Pending => Ok(false),
        }
    }
}

/// Returns what a participant says of the error of a part: that of the part, if what it has read belongs together, and a conflict otherwise.
fn refusal_by_part(error: &Error, session: &mut Session) -> Refusal {
    match session.prepare() {
        Err(conflict @ Error::Aborted(_)) => refusal(&conflict),
        // It was validated, or has ended before it could be.
        Ok(_) | Err(_) => refusal(error),
    }
}

/// Returns what a participant says of an error.
fn refusal(error: &Error) -> Refusal {
    let reason = match error {
        Error::Aborted(abort)
            if matches!(abort.reason(), AbortReason::PreparedLock | AbortReason::PreparedRead) =>
        {
            RefusalReason::Held
        }
        Error::Aborted(abort) if abort.reason().is_retryable() => RefusalReason::Conflict,
        Error::OutOfMemory(_) | Error::TooManyTransactions => RefusalReason::Shortage,
        _ => RefusalReason::Rejected,
    };
    Refusal::new(reason, error.to_string())
}

impl<P> fmt::Debug for InstanceStore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceStore")
            .field("db", &self.db)
            .field("notes", &self.notes)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PreparedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedPart").field("slot", &self.slot).finish_non_exhaustive()
    }
}

impl fmt::Debug for Storing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Storing").field(&self.0.as_ref().map(|(ticket, _)| ticket)).finish()
    }
}

#[cfg(test)]
#[path = "store/tests.rs"]
mod tests;
