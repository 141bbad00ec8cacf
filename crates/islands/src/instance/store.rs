//! The rows of an instance, as two-phase commit uses them.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::{fmt, mem};

use ensilo::group::GroupMember;
use ensilo::{Database, Error, PreparedTransaction, Result, Session, Ticket, Transaction};

use super::carry_out::{carry_out, message_of, refusal};
use super::notes::{Found, FoundPart, Notes};
use super::open::{Open, OpenTransactions};
use super::program::Program;
use crate::commit::{
    Decided, DistributedId, Failed, OpenId, OwnPart, PART_BYTES_MAX, PartStore, Participants, Refusal,
    Refused, SiteId, Voting,
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
            InstanceError::Database(error) => {
                write!(f, "an instance cannot be opened: {}", message_of(error))
            }
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
    keeping: Keeping,
    /// Sessions without a transaction.
    idle: Vec<Session>,
    open: Arc<OpenTransactions<P>>,
    /// The slots of decisions that are not forgotten.
    decisions: BTreeMap<DistributedId, u32>,
    /// Parts that are to be undone, whose notes could not be erased: memory is short, or nothing is stored any more.
    not_undone: Vec<PreparedPart>,
    waker: Waker,
    /// Counts how often the waker was called, at least once.
    rounds: u64,
}

/// How what is committed comes to be stored at all instances, or at none.
#[derive(Debug)]
pub(crate) enum Keeping {
    /// Nothing is stored.
    Memory,
    /// Parts and decisions are noted for each transaction.
    Transactions(Notes),
    /// By epochs of all instances.
    Epochs(GroupMember),
}

impl Keeping {
    pub(crate) fn member(&self) -> Option<&GroupMember> {
        match self {
            Keeping::Epochs(member) => Some(member),
            Keeping::Memory | Keeping::Transactions(_) => None,
        }
    }

    fn notes(&mut self) -> Option<&mut Notes> {
        match self {
            Keeping::Transactions(notes) => Some(notes),
            Keeping::Memory | Keeping::Epochs(_) => None,
        }
    }
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
    pub(crate) fn new(
        (db, program): (Database, Arc<P>),
        open: Arc<OpenTransactions<P>>,
        keeping: Keeping,
        waker: Waker,
    ) -> Self {
        InstanceStore {
            db,
            program,
            keeping,
            idle: Vec::new(),
            open,
            decisions: BTreeMap::new(),
            not_undone: Vec::new(),
            waker,
            rounds: 1,
        }
    }

    pub(crate) fn db(&self) -> &Database {
        &self.db
    }

    /// The database, as one of several whose epochs are stored together, if it is one.
    pub(super) fn member(&self) -> Option<&GroupMember> {
        self.keeping.member()
    }

    pub(super) fn open(&self) -> &OpenTransactions<P> {
        &self.open
    }

    /// The waker was called: something is stored, or the log has failed.
    pub(crate) fn note_wake(&mut self) {
        self.rounds += 1;
    }

    /// Carries a part out, and undoes it when what is returned is dropped. What it inserts has its place in the index until then.
    ///
    /// While all parts that were found are carried out so, each can be [recovered](Self::recover): none changes the nodes of the index that another
    /// one relies on.
    ///
    /// # Errors
    /// [`InstanceError::InDoubt`].
    pub(crate) fn try_out(&mut self, found: &FoundPart) -> std::result::Result<Session, InstanceError> {
        let refused =
            |refused: Refused<Storing>| InstanceError::InDoubt { id: found.id, refusal: refused.refusal };
        let execute = |program: &P, tx: &mut Transaction<'_>| {
            found.parts.iter().try_for_each(|part| program.execute(tx, part).map(drop)).map(|()| Vec::new())
        };
        self.carry_out(execute).map(|(session, _)| session).map_err(refused)
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

    /// Keeps a session, which was that of an open transaction or one of the worker's own, and undoes its transaction if that has not ended.
    fn put_back(&mut self, open: Option<OpenId>, mut session: Session) {
        if open.is_some() {
            return self.open.put_back(session);
        }
        let _ = session.rollback();
        self.idle.push(session);
    }

    /// Carries a part out in a transaction, which has locked nothing yet, and is undone when the session is dropped. Returns what the part returns.
    fn carry_out(
        &mut self,
        execute: impl FnOnce(&P, &mut Transaction<'_>) -> Result<Vec<u8>>,
    ) -> std::result::Result<(Session, Vec<u8>), Refused<Storing>> {
        self.undo_rest();
        let mut session = self.begun().map_err(|error| refusal(&error))?;
        match carry_out(&mut session, |tx| execute(&self.program, tx)) {
            Ok(reply) => Ok((session, reply)),
            Err(Refused { refusal, ticket }) => {
                self.put_back(None, session);
                // Where epochs commit the outcome waits for all of them: see `RejectedOutcomes`.
                let waits = matches!(self.keeping, Keeping::Transactions(_));
                Err(Refused { refusal, ticket: ticket.filter(|_| waits).map(Storing::new) })
            }
        }
    }

    /// Carries a part out, or takes the open transaction that is to end instead.
    fn carry_out_or_take(
        &mut self,
        open: Option<OpenId>,
        execute: impl FnOnce(&P, &mut Transaction<'_>) -> Result<Vec<u8>>,
    ) -> std::result::Result<(Open, Vec<u8>), Refused<Storing>> {
        if let Some(id) = open {
            self.undo_rest();
            return Ok((self.open.take(id)?, Vec::new()));
        }
        let (session, reply) = self.carry_out(execute)?;
        Ok((Open { session, parts: Vec::new() }, reply))
    }

    /// Prepares the transaction of a session, which says that it is carried out when it commits.
    fn prepare_at(
        &self,
        session: &mut Session,
        id: DistributedId,
        slot: Option<u32>,
    ) -> Result<PreparedPart> {
        if let (Keeping::Transactions(notes), Some(slot)) = (&self.keeping, slot) {
            notes.carry_out(session, slot, id)?;
        }
        Ok(PreparedPart { prepared: session.prepare()?, slot })
    }

    /// Prepares what was carried out in a session and notes it; returns whether it writes, and when the note, or what a part without one has read,
    /// is stored.
    fn prepare_and_note(
        &mut self,
        id: DistributedId,
        parts: &[impl AsRef<[u8]>],
        session: &mut Session,
    ) -> Result<(PreparedPart, bool, Storing)> {
        let writes = session.has_writes();
        let Keeping::Transactions(notes) = &mut self.keeping else {
            return Ok((self.prepare_at(session, id, None)?, writes, Storing(None)));
        };
        if !writes {
            let part = self.prepare_at(session, id, None)?;
            let ticket = part.prepared.ticket_of_reads()?;
            return Ok((part, writes, Storing::new(ticket)));
        }
        let slot = notes.take_slot(&self.db)?;
        let noted = self.prepare_at(session, id, Some(slot)).and_then(|prepared| {
            let notes = self.keeping.notes().ok_or(Error::NotDurable)?;
            Ok((prepared, writes, Storing::new(notes.add_part(&self.db, slot, id, parts)?)))
        });
        noted.inspect_err(|_| self.free_slot(slot))
    }

    fn free_slot(&mut self, slot: u32) {
        if let Some(notes) = self.keeping.notes() {
            notes.free_slot(slot);
        }
    }

    /// Undoes a part, once its note is erased. Returns it where that fails.
    fn undo(&mut self, part: PreparedPart) -> std::result::Result<(), PreparedPart> {
        if let (Keeping::Transactions(notes), Some(slot)) = (&mut self.keeping, part.slot) {
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
        match &self.keeping {
            Keeping::Memory => Ok(Storing(None)),
            Keeping::Transactions(_) => prepared.ticket_of_reads().map(Storing::new),
            Keeping::Epochs(member) => Ok(Storing::new(member.ticket())),
        }
    }

    /// Returns when what others have of a transaction is stored, where they do not wait for it themselves.
    fn storing_of_others(&self) -> Storing {
        self.member().map_or(Storing(None), |member| Storing::new(member.ticket()))
    }

    fn commit_decision(
        &mut self,
        id: DistributedId,
        session: &mut Session,
        participants: Participants<'_>,
    ) -> Result<Storing> {
        let notes = match &mut self.keeping {
            Keeping::Memory => return session.commit().map(|()| Storing(None)),
            Keeping::Transactions(notes) if !participants.writers.is_empty() => notes,
            // What the others have of it is of epochs that end with the present one here.
            Keeping::Epochs(member) if !participants.is_empty() => {
                return session.commit_with_ticket().map(|_| Storing::new(member.ticket()));
            }
            Keeping::Transactions(_) | Keeping::Epochs(_) => {
                return session.commit_with_ticket().map(Storing::new);
            }
        };
        let slot = notes.add_decision(session, id, participants.writers)?;
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

/// Refuses a reply that cannot be sent.
fn checked_reply(reply: Vec<u8>) -> Result<Vec<u8>> {
    if reply.len() > PART_BYTES_MAX {
        return Err(Error::rollback(format!("a part returns {PART_BYTES_MAX} bytes at most")));
    }
    Ok(reply)
}

impl Storing {
    pub(super) fn new(ticket: Ticket) -> Self {
        Storing(Some((ticket, 0)))
    }
}

impl<P: Program> PartStore for InstanceStore<P> {
    type Prepared = PreparedPart;
    type Ticket = Storing;

    fn commits_by_epoch(&self) -> bool {
        matches!(self.keeping, Keeping::Epochs(_))
    }

    fn prepare(
        &mut self,
        id: DistributedId,
        open: Option<OpenId>,
        part: &[u8],
    ) -> std::result::Result<Voting<PreparedPart, Storing>, Refused<Storing>> {
        let execute =
            |program: &P, tx: &mut Transaction<'_>| program.execute(tx, part).and_then(checked_reply);
        let (Open { mut session, parts }, reply) = self.carry_out_or_take(open, execute)?;
        let prepared = match &parts[..] {
            [] => self.prepare_and_note(id, &[part], &mut session),
            parts => self.prepare_and_note(id, parts, &mut session),
        };
        self.put_back(open, session);
        let (prepared, writes, ticket) = prepared.map_err(|error| refusal(&error))?;
        Ok(Voting { prepared, reply, writes, ticket })
    }

    fn commit(&mut self, _: DistributedId, mut part: PreparedPart) -> std::result::Result<Storing, Failed> {
        let failed = |error: Error| Failed(error.to_string());
        match &mut self.keeping {
            Keeping::Memory => part.prepared.commit().map(|()| Storing(None)).map_err(failed),
            Keeping::Transactions(notes) => {
                let ticket = part.prepared.commit_with_ticket().map_err(failed)?;
                part.slot.into_iter().for_each(|slot| notes.free_slot(slot));
                Ok(Storing::new(ticket))
            }
            // The coordinator waits for it.
            Keeping::Epochs(_) => part.prepared.commit_with_ticket().map(|_| Storing(None)).map_err(failed),
        }
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
    ) -> std::result::Result<Decided<Storing>, Refused<Storing>> {
        let is_noted = self.keeping.notes().is_some() && !participants.writers.is_empty();
        let open = own.and_then(|own| own.open);
        let (mut session, local) = match own {
            Some(OwnPart { part, replies, .. }) => {
                let conclude = |program: &P, tx: &mut Transaction<'_>| program.conclude(tx, part, replies);
                let (Open { session, .. }, reply) = self.carry_out_or_take(open, conclude)?;
                (session, Some(reply))
            }
            None if !is_noted => return Ok(Decided { local: None, ticket: self.storing_of_others() }),
            None => (self.begun().map_err(|error| refusal(&error))?, None),
        };
        let only_reads = !is_noted && !participants.is_empty() && !session.has_writes();
        let decided = if only_reads {
            self.decide_reads(&mut session)
        } else {
            self.commit_decision(id, &mut session, participants)
        };
        self.put_back(open, session);
        decided.map(|ticket| Decided { local, ticket }).map_err(|error| refusal(&error).into())
    }

    fn forget(&mut self, id: DistributedId) {
        if let (Some(slot), Some(notes)) = (self.decisions.remove(&id), self.keeping.notes()) {
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

impl<P> fmt::Debug for InstanceStore<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InstanceStore")
            .field("db", &self.db)
            .field("keeping", &self.keeping)
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
