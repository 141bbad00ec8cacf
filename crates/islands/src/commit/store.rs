//! What the protocol asks of an instance.

use std::fmt;

use super::id::{DistributedId, SiteId};
use super::message::Refusal;

/// A part that was carried out.
#[derive(Debug)]
pub struct Executed<O> {
    /// What it has read and will write. It has locked nothing yet.
    pub open: O,
    /// What it returns.
    pub reply: Vec<u8>,
    /// Whether it will write.
    pub writes: bool,
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
    /// A part that was carried out, and is not prepared. Dropping it undoes it.
    type Open: fmt::Debug;

    /// A part that is prepared: nothing can keep it from committing, and what it has read stays as it is.
    type Prepared: fmt::Debug;

    /// See the trait's documentation.
    type Ticket: fmt::Debug;

    /// Carries a part out.
    ///
    /// # Errors
    /// Why it cannot be; nothing has changed.
    fn execute(&mut self, part: &[u8]) -> Result<Executed<Self::Open>, Refusal>;

    /// Prepares a part. Where it writes, what is needed to prepare it once more after a crash is noted as long as it is prepared; the ticket is for that
    /// note, and for all that the part has read.
    ///
    /// # Errors
    /// Why it cannot be prepared; nothing has changed.
    fn prepare(
        &mut self,
        id: DistributedId,
        part: &[u8],
        executed: Executed<Self::Open>,
    ) -> Result<(Self::Prepared, Self::Ticket), Refusal>;

    /// Commits a prepared part, and has its note count no more, both or none.
    ///
    /// # Errors
    /// [`Failed`].
    fn commit(&mut self, id: DistributedId, prepared: Self::Prepared) -> Result<Self::Ticket, Failed>;

    /// Takes the note of a prepared part away, and then undoes it: nobody changes what it has read, and is found stored with the note.
    fn abort(&mut self, id: DistributedId, prepared: Self::Prepared);

    /// Commits the coordinator's own part, if there is one, and the record of the decision to commit, which names those who have to hear of it, both or none.
    /// Where nobody else writes there is nothing to record. Where there are participants at all, what the part has read is as it was while this is
    /// called, also if the part writes nothing: the participants have prepared theirs before.
    ///
    /// # Errors
    /// Why the part cannot be committed; nothing has changed.
    fn decide(
        &mut self,
        id: DistributedId,
        open: Option<Executed<Self::Open>>,
        participants: Participants<'_>,
    ) -> Result<Self::Ticket, Refusal>;

    /// Takes the record of a decision away. It may come back with a crash.
    fn forget(&mut self, id: DistributedId);

    /// Returns whether what this ticket names is stored.
    ///
    /// # Errors
    /// [`Failed`]: it will not be.
    fn is_stored(&mut self, ticket: &mut Self::Ticket) -> Result<bool, Failed>;
}
