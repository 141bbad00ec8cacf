//! What sites say to each other.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::id::{DistributedId, OpenId};

/// The most bytes of what a refusal says.
const MESSAGE_BYTES_MAX: usize = 1000;

/// A message of the protocol, about one transaction but for the first one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message<'a> {
    /// To every other site, once it can be reached: the sender is in this incarnation.
    Hello {
        /// The incarnation.
        incarnation: u32,
    },
    /// To a participant: carry this part out, or take what is open, prepare it, and vote.
    Execute {
        /// The transaction.
        id: DistributedId,
        /// Which one of those that the coordinator has sent to this site.
        number: u64,
        /// The incarnation of the participant that it is meant for.
        incarnation: u32,
        /// When the transaction was first begun, by a clock that all sites share.
        since: u64,
        /// Whether others have parts of it as well, but for the coordinator.
        has_others: bool,
        /// The open transaction that is prepared instead of the part, if there is one.
        open: Option<OpenId>,
        /// What is to be carried out.
        part: &'a [u8],
    },
    /// To the coordinator: the answer to `Execute`.
    Vote {
        /// The transaction.
        id: DistributedId,
        /// The incarnation of the participant.
        incarnation: u32,
        /// The vote.
        vote: Vote<'a>,
    },
    /// To a participant: the decision.
    Decide {
        /// The transaction.
        id: DistributedId,
        /// The decision.
        decision: Decision,
    },
    /// To the coordinator: the decision to commit was carried out and is stored.
    Done {
        /// The transaction.
        id: DistributedId,
    },
    /// To the coordinator: what was decided? `Decide` is the answer, once there is one.
    Inquire {
        /// The transaction.
        id: DistributedId,
    },
}

/// What a participant says of its part. What the part returns comes with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vote<'a> {
    /// It is prepared, and has something to commit.
    Yes(&'a [u8]),
    /// It is prepared, and has only read: it is to be released, and will not acknowledge that.
    ReadOnly(&'a [u8]),
    /// It is not prepared, and has ended.
    No(Refusal),
}

/// The outcome of a transaction.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Decision {
    /// Every part commits.
    Commit,
    /// No part does.
    Abort,
}

/// Why a part, and with it the transaction, was not committed. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The kind of reason.
    pub reason: RefusalReason,
    /// What the part says about it.
    pub message: String,
}

impl Refusal {
    /// Returns a refusal. Of a message with more than a thousand bytes the end is left out.
    #[must_use]
    pub fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        let mut message = message.into();
        message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        Refusal { reason, message }
    }
}

impl Refusal {
    /// Returns the same for one that has not waited for what is in its way: it may succeed soon.
    pub(crate) fn without_waiting(mut self) -> Self {
        if self.reason == RefusalReason::Held {
            self.reason = RefusalReason::Conflict;
        }
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// A kind of reason for a [`Refusal`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefusalReason {
    /// A conflict with another transaction: the same may succeed later.
    Conflict,
    /// What is in the way is prepared, and was waited for in vain: the same may succeed once that has ended. The message says what is in the way.
    Held,
    /// Memory, or places for transactions, are short: the same may succeed later.
    Shortage,
    /// A participant has not voted in time: the same may succeed later.
    NoVote,
    /// The participant was opened anew, in this incarnation: the same may succeed at once.
    Restarted(u32),
    /// The part itself has refused: the same will be refused again.
    Rejected,
}

impl RefusalReason {
    /// Returns whether the same transaction may succeed when it is tried again.
    #[must_use]
    pub fn may_pass(self) -> bool {
        self != RefusalReason::Rejected
    }
}
