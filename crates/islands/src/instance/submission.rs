//! Requests to a worker, and the ways in which they are answered.

use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use super::carry_out::message_of;
use super::client::{OpenPart, Order, Reply};
use super::load::{Load, LoadReport};
use super::maintenance::Maintenance;
use super::snapshot::PointId;
use super::wake::Wake;
use crate::channel::Waiting;
use crate::commit::{Decision, DistributedId, OpenId, Outcome, Refusal, Request, SiteId};

/// What is done with an answer. Where there is none it is dropped, which ends the wait for it.
pub(crate) type Answer<T> = Box<dyn FnOnce(T) + Send>;

/// What a worker is to do.
pub(crate) enum Submission {
    /// Begin a transaction, which was first begun [then](super::machine_nanos).
    Transaction(Request, u64, Answer<Outcome>),
    /// Carry out a part of an open transaction.
    Execute(OpenPart, Answer<Result<Vec<u8>, Refusal>>),
    /// End an open transaction without a commit, and say whether what it has read belongs together.
    Validate(OpenId, Answer<Result<(), Refusal>>),
    /// Undo an open transaction.
    RollBack(OpenId),
    /// Make transactions itself.
    Load(Load, Answer<ensilo::Result<LoadReport>>),
    /// Make no decisions that others take part in, and say when all are carried out.
    Pause(Answer<()>),
    /// Go on with those.
    Resume,
    /// Say which epoch is the last one of what has committed by now.
    EndEpoch(Answer<u64>),
    /// Say when everything up to an epoch is stored.
    WhenStored(u64, Answer<()>),
    /// Have everything count that is stored up to an epoch, and say when that is so.
    Release(u64, Answer<()>),
    /// Have nothing more come to count.
    GiveUp,
    /// End the instance: nothing of what waits comes to count.
    Fail(String),
    /// Begin a snapshot at a consistent point, and say when it has begun.
    BeginSnapshot(PointId, Answer<()>),
    /// Read in a snapshot.
    Read(PointId, Vec<u8>, Answer<ensilo::Result<Vec<u8>>>),
    /// End a snapshot.
    EndSnapshot(PointId),
    /// Do what is no part of a transaction.
    Administer(Vec<u8>, Answer<Result<Vec<u8>, Refusal>>),
    /// Do something with the files of the database.
    Maintain(Maintenance, Answer<Result<Vec<u8>, Refusal>>),
    /// Say which transactions wait for a decision.
    InDoubt(Answer<Vec<DistributedId>>),
    /// Carry out an operator's decision, and say whether the transaction waits for one.
    Resolve(DistributedId, Decision, Answer<bool>),
    /// This site has ended, and comes back with this incarnation; say when that is known.
    Ended(SiteId, u32, Answer<()>),
    /// Reach this site through this channel from now on.
    Link(SiteId, Box<dyn Waiting>),
    /// Serve a client outside of the process.
    Client(Box<dyn Waiting>),
}

impl Submission {
    /// Returns what a client orders.
    pub(super) fn of(order: Order, replier: Replier) -> Self {
        match order {
            Order::Begin(request, since) => {
                Submission::Transaction(request, since, replier.answer(Reply::Ended))
            }
            Order::Execute(part) => Submission::Execute(part, replier.answer(Reply::Executed)),
            Order::Validate(id) => Submission::Validate(id, replier.answer(Reply::Validated)),
            Order::RollBack(id) => Submission::RollBack(id),
            Order::Load(load) => Submission::Load(load, replier.answer(reply_to_load)),
            Order::Pause => Submission::Pause(replier.answer(|()| Reply::Paused)),
            Order::Resume => Submission::Resume,
            Order::EndEpoch => Submission::EndEpoch(replier.answer(Reply::EpochEnded)),
            Order::WhenStored(epoch) => Submission::WhenStored(epoch, replier.answer(|()| Reply::Stored)),
            Order::Release(epoch) => Submission::Release(epoch, replier.answer(|()| Reply::Released)),
            Order::GiveUp => Submission::GiveUp,
            Order::Fail(message) => Submission::Fail(message),
            Order::BeginSnapshot(id) => {
                Submission::BeginSnapshot(id, replier.answer(|()| Reply::SnapshotBegun))
            }
            Order::Read(id, part) => {
                let read = |read: ensilo::Result<_>| Reply::Read(read.map_err(|error| message_of(&error)));
                Submission::Read(id, part, replier.answer(read))
            }
            Order::EndSnapshot(id) => Submission::EndSnapshot(id),
            Order::Administer(request) => {
                Submission::Administer(request, replier.answer(Reply::Administered))
            }
            Order::Maintain(maintenance) => {
                Submission::Maintain(maintenance, replier.answer(Reply::Administered))
            }
            Order::InDoubt => Submission::InDoubt(replier.answer(Reply::InDoubt)),
            Order::Resolve(id, decision) => {
                Submission::Resolve(id, decision, replier.answer(Reply::Resolved))
            }
        }
    }
}

fn reply_to_load(made: ensilo::Result<LoadReport>) -> Reply {
    made.map_or_else(|error| Reply::Refused(message_of(&error)), |made| Reply::Made(made.to_counts()))
}

/// A reply, the client that it is for, and the number of its order.
pub(super) type ReplyTo = (usize, u64, Reply);

/// Replies to an order of a client, also where it is dropped.
pub(super) struct Replier {
    pub(super) replies: Sender<ReplyTo>,
    pub(super) wake: Arc<Wake>,
    pub(super) client: usize,
    pub(super) number: u64,
    pub(super) has_replied: bool,
}

impl Replier {
    /// Returns what replies with an answer.
    fn answer<T: 'static>(mut self, reply: impl FnOnce(T) -> Reply + Send + 'static) -> Answer<T> {
        Box::new(move |answer| {
            self.has_replied = true;
            send(&self.replies, &self.wake, (self.client, self.number, reply(answer)));
        })
    }
}

impl Drop for Replier {
    fn drop(&mut self) {
        if !self.has_replied {
            let refused = Reply::Refused("nobody answers that".to_owned());
            send(&self.replies, &self.wake, (self.client, self.number, refused));
        }
    }
}

fn send(replies: &Sender<ReplyTo>, wake: &Wake, reply: ReplyTo) {
    // A worker that has ended replies nothing.
    let _ = replies.send(reply);
    wake.wake();
}

/// Where submissions for one thread go.
pub(crate) struct Submitter {
    submissions: Mutex<Sender<Submission>>,
    wake: Arc<Wake>,
}

impl Submitter {
    pub(crate) fn new(submissions: Sender<Submission>, wake: Arc<Wake>) -> Self {
        Submitter { submissions: Mutex::new(submissions), wake }
    }

    pub(crate) fn submit(&self, submission: Submission) {
        // A thread that has ended drops it, and with it whoever waits for the answer.
        let _ = self.submissions.lock().unwrap_or_else(PoisonError::into_inner).send(submission);
        self.wake.wake();
    }

    pub(crate) fn wake(&self) {
        self.wake.wake();
    }

    /// Submits nothing any more: the thread finds that out.
    pub(crate) fn close(self) {
        drop(self.submissions);
        self.wake.wake();
    }
}
