//! How a worker is told from outside of its process what to do.
//!
//! A message may be longer than one of a channel: it goes in pieces, of which each but the last one says that more come.

use std::collections::VecDeque;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::load::{Load, LoadCounts};
use super::maintenance::Maintenance;
use super::snapshot::PointId;
use crate::channel::{ChannelError, MESSAGE_BYTES_MAX, Waiting};
use crate::commit::{Decision, DistributedId, OpenId, Outcome, Refusal, Request};

/// A part of an open transaction, which the first one begins.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct OpenPart {
    pub(crate) id: OpenId,
    pub(crate) is_first: bool,
    pub(crate) part: Vec<u8>,
}

/// What a client asks of a worker. The answer has the same number.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Begin a transaction, which was first begun [then](super::machine_nanos).
    Begin(Request, u64),
    /// Carry out a part of an open transaction.
    Execute(OpenPart),
    /// End an open transaction without a commit, and say whether what it has read belongs together.
    Validate(OpenId),
    /// Undo an open transaction.
    RollBack(OpenId),
    /// Make transactions.
    Load(Load),
    /// Make no decisions that others take part in, and say when all are carried out.
    Pause,
    /// Go on with those.
    Resume,
    /// Say which epoch is the last one of what has committed by now.
    EndEpoch,
    /// Say when everything up to an epoch is stored.
    WhenStored(u64),
    /// Have everything count that is stored up to an epoch.
    Release(u64),
    /// Have nothing more come to count.
    GiveUp,
    /// End the instance.
    Fail(String),
    /// Begin a snapshot at a consistent point, and say when it has begun.
    BeginSnapshot(PointId),
    /// Read in a snapshot.
    Read(PointId, Vec<u8>),
    /// End a snapshot.
    EndSnapshot(PointId),
    /// Do what is no part of a transaction.
    Administer(Vec<u8>),
    /// Do something with the files of the database.
    Maintain(Maintenance),
    /// Say which transactions wait for a decision.
    InDoubt,
    /// Carry out an operator's decision.
    Resolve(DistributedId, Decision),
}

/// What a worker answers to an [`Order`].
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The outcome of a transaction.
    Ended(Outcome),
    /// What a part of an open transaction has returned.
    Executed(Result<Vec<u8>, Refusal>),
    /// Whether what an open transaction has read belongs together.
    Validated(Result<(), Refusal>),
    /// What became of the transactions that it has made.
    Made(LoadCounts),
    /// The program makes none.
    Refused(String),
    /// All decisions are carried out.
    Paused,
    /// The last epoch of what has committed.
    EpochEnded(u64),
    /// Everything up to the epoch is stored.
    Stored,
    /// Everything up to the epoch counts.
    Released,
    /// A snapshot has begun.
    SnapshotBegun,
    /// What was read.
    Read(Result<Vec<u8>, String>),
    /// What has come of what is no part of a transaction.
    Administered(Result<Vec<u8>, Refusal>),
    /// The transactions that wait for a decision.
    InDoubt(Vec<DistributedId>),
    /// Whether the decision was carried out.
    Resolved(bool),
}

/// Says that more pieces come, or that this is the last one.
const MORE: u8 = 1;
const LAST: u8 = 0;

/// One end of the channel between a client and a worker.
#[derive(Debug)]
pub(crate) struct ClientEnd {
    channel: Box<dyn Waiting>,
    unsent: VecDeque<Vec<u8>>,
    piece: Vec<u8>,
    /// The pieces of a message whose last one has not come.
    received: Vec<u8>,
}

impl ClientEnd {
    pub(crate) fn new(channel: Box<dyn Waiting>) -> Self {
        ClientEnd { channel, unsent: VecDeque::new(), piece: Vec::new(), received: Vec::new() }
    }

    /// Sends a message, or keeps it to be [sent](Self::flush).
    pub(crate) fn send<M: Serialize>(&mut self, number: u64, message: &M) {
        let Ok(bytes) = postcard::to_allocvec(&(number, message)) else {
            unreachable!("a message has bytes");
        };
        let pieces = bytes.chunks(MESSAGE_BYTES_MAX - 1);
        let count = pieces.len();
        self.unsent.extend(pieces.enumerate().map(|(at, piece)| {
            let more = if at + 1 < count { MORE } else { LAST };
            [&[more], piece].concat()
        }));
    }

    /// Sends what there is room for, and returns whether that was everything.
    pub(crate) fn flush(&mut self) -> Result<bool, ChannelError> {
        while let Some(piece) = self.unsent.front() {
            match self.channel.send(piece, Some(Instant::now())) {
                Ok(()) => drop(self.unsent.pop_front()),
                Err(ChannelError::TimedOut) => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Returns the next message, if one has come as a whole.
    pub(crate) fn receive<M: for<'a> Deserialize<'a>>(&mut self) -> Result<Option<(u64, M)>, ChannelError> {
        while self.channel.try_receive(&mut self.piece)? {
            let Some((more, piece)) = self.piece.split_first() else {
                return Err(ChannelError::Nonsense("a piece of a message is empty"));
            };
            self.received.extend_from_slice(piece);
            if *more == LAST {
                let message = postcard::from_bytes(&self.received);
                self.received.clear();
                return message.map(Some).map_err(|_| ChannelError::Nonsense("it is no message of a client"));
            }
        }
        Ok(None)
    }

    /// Returns the channel, to be waited for.
    pub(crate) fn channel(&mut self) -> &mut (dyn Waiting + 'static) {
        &mut *self.channel
    }
}
