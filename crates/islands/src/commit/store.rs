//! What the protocol asks of an instance.

use std::fmt;

use super::id::{DistributedId, OpenId, SiteId};
use super::message::Refusal;

/// A part that was carried out and prepared.
#[derive(Debug)]
pub struct Voting<P, T> {
    /// What keeps it prepared.
    pub prepared: P,
    /// What it returns: [`PART_BYTES_MAX`](super::PART_BYTES_MAX) bytes at most.
    pub reply: Vec<u8>,
    /// Whether it will write.
    pub writes: bool,
    /// The vote may be told once this is stored.
    pub ticket: T,
}

/// A decision to commit that was made.
#[derive(Debug)]
pub struct Decided<T> {
    /// What the coordinator's own part returns, if there is one.
    pub local: Option<Vec<u8>>,
    /// The decision may be told once this is stored.
    pub ticket: T,
}

/// Why a part was not carried out, or not prepared.
#[derive(Debug)]
pub struct Refused<T> {
    /// The reason.
    pub refusal: Refusal,
    /// The refusal may be told once this is stored, which it follows from; `None` where it follows from nothing that has to be.
    pub ticket: Option<T>,
}

impl<T> From<Refusal> for Refused<T> {
    fn from(refusal: Refusal) -> Self {
        Refused { refusal, ticket: None }
    }
}

/// What a store refuses with.
pub type RefusedOf<S> = Refused<<S as PartStore>::Ticket>;

/// The coordinator's own part.
#[derive(Copy, Clone, Debug)]
pub struct OwnPart<'a> {
    /// The open transaction that is committed instead of it, if there is one.
    pub open: Option<OpenId>,
    /// What it does.
    pub part: &'a [u8],
    /// What the other parts have returned, in the order in which they have voted.
    pub replies: &'a [(SiteId, Vec<u8>)],
}

/// Those who have voted to commit, but for the coordinator.
#[derive(Copy, Clone, Debug)]
pub struct Participants<'a> {
    /// They have something to commit.
    pub writers: &'a [SiteId],
    /// They have only read.
    pub readers: &'a [SiteId],
}

impl Participants<'_> {
    /// Returns whether there are any.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writers.is_empty() && self.readers.is_empty()
    }
}

/// The instance can store nothing any more: it has to be opened anew. What it was doing is found in its files then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed(pub String);

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// The rows of an instance, as one site of it uses them.
///
/// A ticket names something that will be stored. Those of one store are stored in the order in which they came.
pub trait PartStore {
    /// A part that is prepared: nothing can keep it from committing, and what it has read stays as it is.
    type Prepared: fmt::Debug;

    /// See the trait's documentation.
    type Ticket: fmt::Debug;

    /// Returns whether transactions are stored by epochs of all instances: a decision is carried out by all at once, and its ticket is for what all of
    /// them have of it.
    fn commits_by_epoch(&self) -> bool {
        false
    }

    /// Carries a part out and prepares it; or prepares what was carried out in an open transaction, whereupon the part does not count. Where it
    /// writes, what is needed to prepare it once more after a crash is noted as long as it is prepared; the
    /// ticket is for that note, and for all that the part has read.
    ///
    /// # Errors
    /// Why it cannot be; nothing has changed, and an open transaction has ended.
    fn prepare(
        &mut self,
        id: DistributedId,
        open: Option<OpenId>,
        part: &[u8],
    ) -> Result<Voting<Self::Prepared, Self::Ticket>, RefusedOf<Self>>;

    /// Commits a prepared part, and has its note count no more, both or none.
    ///
    /// # Errors
    /// [`Failed`].
    fn commit(&mut self, id: DistributedId, prepared: Self::Prepared) -> Result<Self::Ticket, Failed>;

    /// Takes the note of a prepared part away, and then undoes it: nobody changes what it has read, and is found stored with the note.
    fn abort(&mut self, id: DistributedId, prepared: Self::Prepared);

    /// Carries out the coordinator's own part, if there is one, and commits it with the record of the decision to commit, which names those who have
    /// to hear of it, both or none. Where nobody else writes there is nothing to record. Where there are participants at all, what the part has read
    /// is as it was while this is called, also if the part writes nothing: the participants have prepared theirs before.
    ///
    /// # Errors
    /// Why the part cannot be committed; nothing has changed, and an open transaction has ended.
    fn decide(
        &mut self,
        id: DistributedId,
        own: Option<OwnPart<'_>>,
        participants: Participants<'_>,
    ) -> Result<Decided<Self::Ticket>, RefusedOf<Self>>;

    /// Takes the record of a decision away. It may come back with a crash.
    fn forget(&mut self, id: DistributedId);

    /// Returns whether what this ticket names is stored.
    ///
    /// # Errors
    /// [`Failed`]: it will not be.
    fn is_stored(&mut self, ticket: &mut Self::Ticket) -> Result<bool, Failed>;
}
