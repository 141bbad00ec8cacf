//! A site: what it coordinates, and what it takes part in.

use std::time::{Duration, Instant};

use super::ages::{Age, Ages};
use super::coordinator::Coordinator;
use super::id::{DistributedId, SiteId};
use super::message::{Decision, Message};
use super::participant::{NewPart, Participant};
use super::queue::Queue;
use super::request::{Outcome, Request};
use super::store::{Failed, PartStore};

/// The most bytes that a part may have, and what it returns: a message with it fits into one of a channel.
pub const PART_BYTES_MAX: usize = crate::channel::MESSAGE_BYTES_MAX - 256;

/// Where messages to other sites go. One that is lost is asked for again.
pub trait Outbox {
    /// Sends a message, or keeps it to be sent.
    fn send(&mut self, to: SiteId, message: &Message<'_>);
}

/// What a site acts on.
#[derive(Debug)]
pub struct Io<'a, S, B> {
    /// The rows of the site's instance.
    pub store: &'a mut S,
    /// Where its messages go.
    pub outbox: &'a mut B,
    /// The present, by a clock that does not go back.
    pub now: Instant,
}

/// See the module's documentation. It does nothing by itself: it is handed what has come, and has to be [polled](Site::poll).
#[derive(Debug)]
pub struct Site<S: PartStore> {
    coordinator: Coordinator<S>,
    participant: Participant<S>,
    queue: Queue,
}

impl<S: PartStore> Site<S> {
    /// Returns a site of an instance in this incarnation. It waits for other sites as long as `wait`, and then gives up or asks again; and half as
    /// long for what is prepared. `ages` are those of the instance.
    #[must_use]
    pub fn new(own: SiteId, incarnation: u32, ages: Ages, wait: Duration) -> Self {
        Site {
            coordinator: Coordinator::new((own, incarnation), ages.clone(), wait),
            participant: Participant::new(incarnation, ages, wait),
            queue: Queue::new(wait / 2),
        }
    }

    /// Goes on with a decision to commit that was found [recorded](PartStore::decide), before anything is received.
    pub fn recover_decision<B: Outbox>(
        &mut self,
        mut io: Io<'_, S, B>,
        id: DistributedId,
        participants: Vec<SiteId>,
    ) {
        self.coordinator.recover(&mut io, id, participants);
    }

    /// Goes on with a part that was found stored as prepared, and is prepared again, before anything is received.
    pub fn recover_part<B: Outbox>(
        &mut self,
        mut io: Io<'_, S, B>,
        id: DistributedId,
        prepared: S::Prepared,
    ) {
        self.participant.recover(&mut io, id, prepared);
    }

    /// Takes in that another site has ended, and will come back with this incarnation: gives up the transactions that need what it kept in memory
    /// alone. All sites have to know before it comes back.
    pub fn ended<B: Outbox>(&mut self, mut io: Io<'_, S, B>, site: SiteId, next_incarnation: u32) {
        self.participant.ended(site);
        self.coordinator.ended(&mut io, site, next_incarnation);
    }

    /// Takes in that another site can be reached, for the first time or again: says which incarnation this one is in, asks it for its decisions, and
    /// tells it those that it may not have heard.
    pub fn meet<B: Outbox>(&mut self, mut io: Io<'_, S, B>, site: SiteId) {
        self.participant.meet(&mut io, site);
        self.coordinator.meet(&mut io, site);
    }

    /// Begins a transaction that this site coordinates. Its [outcome](Self::next_outcome) comes later. `since` is when it was begun for the first
    /// time, by a clock that all sites share, in any unit: where transactions wait for each other the older one goes first.
    pub fn begin<B: Outbox>(&mut self, mut io: Io<'_, S, B>, request: &Request, since: u64) -> DistributedId {
        self.coordinator.begin(&mut io, &mut self.queue, (request, since))
    }

    /// Takes in what another site has sent.
    ///
    /// # Errors
    /// [`Failed`]: the site ends with its instance.
    pub fn receive<B: Outbox>(
        &mut self,
        mut io: Io<'_, S, B>,
        from: SiteId,
        message: Message<'_>,
    ) -> Result<(), Failed> {
        let io = &mut io;
        match message {
            Message::Hello { incarnation } => self.coordinator.receive_hello(from, incarnation),
            Message::Execute { id, number, incarnation, since, has_others, open, part } => {
                let part = NewPart { age: Age { since, id }, has_others, open, part };
                self.participant.receive_part(io, &mut self.queue, (number, incarnation), part);
            }
            Message::Decide { id, decision } => {
                self.participant.receive_decision(io, id, decision)?;
                // Before somebody comes who has not waited.
                self.go_on_with_waiting(io);
            }
            Message::Vote { id, incarnation, vote } => {
                self.coordinator.receive_vote(io, &mut self.queue, (from, incarnation), (id, vote));
            }
            Message::Done { id } => self.coordinator.receive_done(io, from, id),
            Message::Inquire { id } => self.coordinator.receive_inquiry(io, from, id),
        }
        Ok(())
    }

    /// Goes on with what was stored, and does something about what others have not answered.
    ///
    /// # Errors
    /// [`Failed`]: the site ends with its instance.
    pub fn poll<B: Outbox>(&mut self, mut io: Io<'_, S, B>) -> Result<(), Failed> {
        // First: what has to be stored because of it is asked for behind that.
        self.go_on_with_waiting(&mut io);
        self.participant.poll(&mut io)?;
        self.coordinator.poll(&mut io)?;
        self.coordinator.start_waiting(&mut io, &mut self.queue);
        Ok(())
    }

    fn go_on_with_waiting<B: Outbox>(&mut self, io: &mut Io<'_, S, B>) {
        let Site { coordinator, participant, queue } = self;
        let has_ended = participant.take_release();
        queue.look(io.now, has_ended, |id, turn| {
            if coordinator.has_begun(id) {
                coordinator.take_turn(io, id, turn)
            } else {
                participant.take_turn(io, id, turn)
            }
        });
    }

    /// Returns whether transactions wait for what is prepared: they are [polled](Self::poll) soon.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Returns how many transactions, or parts of others, have waited for what is prepared.
    #[must_use]
    pub fn waited(&self) -> u64 {
        self.queue.added()
    }

    /// Makes no decisions that others take part in until it is [resumed](Self::resume). Those that were made before go on.
    pub fn pause(&mut self) {
        self.coordinator.pause();
    }

    /// Goes on with the decisions that have waited.
    pub fn resume<B: Outbox>(&mut self, mut io: Io<'_, S, B>) {
        self.coordinator.resume(&mut io, &mut self.queue);
    }

    /// Returns whether every decision that was made here was carried out by all. While all sites are [paused](Self::pause) and this is so for each,
    /// no transaction has happened at one instance and not at another.
    #[must_use]
    pub fn has_carried_out(&self) -> bool {
        self.coordinator.has_carried_out()
    }

    /// Returns what has become of a transaction, once for each that was begun.
    pub fn next_outcome(&mut self) -> Option<(DistributedId, Outcome)> {
        self.coordinator.next_outcome()
    }

    /// Carries out a decision that an operator has made, on a part that waits for one. Returns whether there is such a part.
    ///
    /// Nobody else is told: the others may decide otherwise. It is for a coordinator that is lost with its files.
    ///
    /// # Errors
    /// [`Failed`]: the site ends with its instance.
    pub fn resolve<B: Outbox>(
        &mut self,
        mut io: Io<'_, S, B>,
        id: DistributedId,
        decision: Decision,
    ) -> Result<bool, Failed> {
        let is_in_doubt = self.participant.in_doubt().any(|waits| waits == id);
        if is_in_doubt {
            self.participant.receive_decision(&mut io, id, decision)?;
        }
        Ok(is_in_doubt)
    }

    /// Returns the transactions that have voted here and wait for a decision.
    pub fn in_doubt(&self) -> impl Iterator<Item = DistributedId> {
        self.participant.in_doubt()
    }

    /// Returns whether nothing is under way.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.coordinator.is_idle() && self.participant.is_idle()
    }
}
