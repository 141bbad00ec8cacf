//! The rows of an instance, as two-phase commit uses them.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use ensilo::{Database, Error, PreparedTransaction, Result, Session, Ticket};

use super::notes::{Found, FoundPart, Notes};
use super::program::Program;
use crate::commit::{DistributedId, Executed, Failed, PartStore, Refusal, RefusalReason, SiteId};

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
    /// The places of decisions that are not forgotten.
    decisions: BTreeMap<DistributedId, u32>,
    waker: Waker,
    /// Counts how often the waker was called, at least once.
    rounds: u64,
}

/// A part that has voted.
pub(crate) struct PreparedPart {
    prepared: PreparedTransaction,
    /// Where it is noted.
    place: Option<u32>,
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
        InstanceStore { db, program, notes, idle: Vec::new(), decisions: BTreeMap::new(), waker, rounds: 1 }
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// The waker was called: something is stored, or the log has failed.
    pub(crate) fn note_wake(&mut self) {
        self.rounds += 1;
    }

    /// Prepares the parts once more that were found prepared, and takes over the decisions that were found: of those that are this site's own.
    pub(crate) fn recover(
        &mut self,
        found: &Found,
        is_own: impl Fn(&DistributedId) -> bool,
    ) -> std::result::Result<Recovered, InstanceError> {
        let mut recovered = Recovered::default();
        for (id, (place, participants)) in found.decisions.iter().filter(|(id, _)| is_own(id)) {
            self.decisions.insert(*id, *place);
            recovered.decisions.push((*id, participants.clone()));
        }
        for part in found.parts.iter().filter(|part| is_own(&part.id)) {
            recovered.parts.push((part.id, self.recover_part(part)?));
        }
        Ok(recovered)
    }

    fn recover_part(&mut self, found: &FoundPart) -> std::result::Result<PreparedPart, InstanceError> {
        let refused = |refusal| InstanceError::InDoubt { id: found.id, refusal };
        let mut session = self.execute(&found.part).map_err(refused)?.open;
        let prepared = self.prepare_noted(&mut session, Some(found.place))?;
        self.idle.push(session);
        Ok(prepared)
    }

    fn session(&mut self) -> Result<Session> {
        self.idle.pop().map_or_else(|| self.db.session(), Ok)
    }

    /// Prepares the transaction of a session, which takes the note of it away when it commits.
    fn prepare_noted(&self, session: &mut Session, place: Option<u32>) -> Result<PreparedPart> {
        if let (Some(notes), Some(place)) = (&self.notes, place) {
            notes.take_part_away(session, place)?;
        }
        Ok(PreparedPart { prepared: session.prepare()?, place })
    }

    /// Notes a part and prepares it; returns when the note, or what a part without one has read, is stored.
    fn note_and_prepare(
        &mut self,
        id: DistributedId,
        part: &[u8],
        (session, writes): (&mut Session, bool),
    ) -> Result<(PreparedPart, Storing)> {
        let Some(notes) = &mut self.notes else {
            return Ok((self.prepare_noted(session, None)?, Storing(None)));
        };
        if !writes {
            let part = self.prepare_noted(session, None)?;
            let ticket = part.prepared.ticket_of_reads()?;
            return Ok((part, Storing::new(ticket)));
        }
        let (place, ticket) = notes.add_part(&self.db, id, part)?;
        match self.prepare_noted(session, Some(place)) {
            Ok(part) => Ok((part, Storing::new(ticket))),
            Err(error) => {
                self.erase(place);
                Err(error)
            }
        }
    }

    /// Takes the note of a part away that is not prepared any more.
    fn erase(&mut self, place: u32) {
        if let Some(notes) = &mut self.notes {
            // Where this fails nothing is stored any more. The note is found at the next opening, and nobody knows of its transaction.
            let _ = notes.erase_part(&self.db, place);
        }
    }

    fn commit_decision(
        &mut self,
        id: DistributedId,
        session: &mut Session,
        participants: &[SiteId],
    ) -> Result<Storing> {
        let Some(notes) = &mut self.notes else { return session.commit().map(|()| Storing(None)) };
        if participants.is_empty() {
            return session.commit_with_ticket().map(Storing::new);
        }
        let place = notes.add_decision(session, id, participants)?;
        match session.commit_with_ticket() {
            Ok(ticket) => {
                self.decisions.insert(id, place);
                Ok(Storing::new(ticket))
            }
            Err(error) => {
                notes.free_decision(place);
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
    type Open = Session;
    type Prepared = PreparedPart;
    type Ticket = Storing;

    fn execute(&mut self, part: &[u8]) -> std::result::Result<Executed<Session>, Refusal> {
        let mut session = self.session().map_err(|error| refusal(&error))?;
        let program = &self.program;
        let executed = session.begin().and_then(|()| execute(&**program, &mut session, part));
        match executed {
            Ok(reply) => {
                let writes = session.has_writes();
                Ok(Executed { open: session, reply, writes })
            }
            Err(error) => {
                // It may be open still.
                let _ = session.rollback();
                self.idle.push(session);
                Err(refusal(&error))
            }
        }
    }

    fn prepare(
        &mut self,
        id: DistributedId,
        part: &[u8],
        executed: Executed<Session>,
    ) -> std::result::Result<(PreparedPart, Storing), Refusal> {
        let Executed { open: mut session, writes, .. } = executed;
        let prepared = self.note_and_prepare(id, part, (&mut session, writes));
        let _ = session.rollback();
        self.idle.push(session);
        prepared.map_err(|error| refusal(&error))
    }

    fn commit(&mut self, _: DistributedId, mut part: PreparedPart) -> std::result::Result<Storing, Failed> {
        let failed = |error: Error| Failed(error.to_string());
        let Some(notes) = &mut self.notes else {
            return part.prepared.commit().map(|()| Storing(None)).map_err(failed);
        };
        let ticket = part.prepared.commit_with_ticket().map_err(failed)?;
        if let Some(place) = part.place {
            notes.free_part(place);
        }
        Ok(Storing::new(ticket))
    }

    fn abort(&mut self, _: DistributedId, part: PreparedPart) {
        let PreparedPart { prepared, place } = part;
        // First: it has locked its note.
        drop(prepared);
        if let Some(place) = place {
            self.erase(place);
        }
    }

    fn decide(
        &mut self,
        id: DistributedId,
        executed: Option<Executed<Session>>,
        participants: &[SiteId],
    ) -> std::result::Result<Storing, Refusal> {
        if executed.is_none() && (participants.is_empty() || self.notes.is_none()) {
            return Ok(Storing(None));
        }
        let mut session = match executed {
            Some(executed) => executed.open,
            None => self.begun().map_err(|error| refusal(&error))?,
        };
        let decided = self.commit_decision(id, &mut session, participants);
        let _ = session.rollback();
        self.idle.push(session);
        decided.map_err(|error| refusal(&error))
    }

    fn forget(&mut self, id: DistributedId) {
        if let (Some(place), Some(notes)) = (self.decisions.remove(&id), &mut self.notes) {
            notes.free_decision(place);
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

impl<P: Program> InstanceStore<P> {
    /// Returns a session with a transaction.
    fn begun(&mut self) -> Result<Session> {
        let mut session = self.session()?;
        session.begin()?;
        Ok(session)
    }
}

/// Carries a part out. A panic is an error that nobody has said anything about.
fn execute<P: Program>(program: &P, session: &mut Session, part: &[u8]) -> Result<Vec<u8>> {
    let executed = panic::catch_unwind(AssertUnwindSafe(|| session.with(|tx| program.execute(tx, part))));
    executed.unwrap_or_else(|_| Err(Error::rollback("the part has panicked")))
}

/// Returns what a participant says of an error.
fn refusal(error: &Error) -> Refusal {
    let reason = match error {
        Error::Aborted(abort) if abort.reason().is_retryable() => RefusalReason::Conflict,
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
        f.debug_struct("PreparedPart").field("place", &self.place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Storing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Storing").field(&self.0.as_ref().map(|(ticket, _)| ticket)).finish()
    }
}
