//! What a site does for the transactions that others coordinate.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::ages::{Age, Ages};
use super::id::{DistributedId, OpenId, SiteId};
use super::message::{Decision, Message, Refusal, RefusalReason, Vote};
use super::patience::Patience;
use super::queue::{Queue, Stand, Turn, older_waits};
use super::site::{Io, Outbox};
use super::store::{Failed, PartStore, Refused, RefusedOf, Voting};
use super::unstored::Unstored;
use super::window::Window;

/// A part of a transaction that has not ended.
#[derive(Debug)]
enum Part<P> {
    /// What is prepared is in its way: it becomes `Preparing`, or is refused. After a crash it is gone.
    Waiting { age: Age, has_others: bool, part: Vec<u8> },
    /// It was prepared, and that waits to be stored: it becomes `Prepared`. After a crash it is gone, or `Prepared`, as the disk has it.
    Preparing { held: Held<P>, reply: Vec<u8> },
    /// It has voted: only a decision ends it. After a crash it is `Prepared`, or gone if it does not write.
    Prepared { held: Held<P>, since: Instant },
    /// It was committed, and that waits to be stored: it ends then. After a crash it is `Prepared`, or gone, as the disk has it.
    Committing,
    /// It was refused, and what that follows from waits to be stored: it votes then, and ends. After a crash it is gone.
    Refused(Refusal),
}

/// A part that is to be carried out.
#[derive(Copy, Clone, Debug)]
pub(super) struct NewPart<'a> {
    pub(super) age: Age,
    /// See [`Message::Execute`].
    pub(super) has_others: bool,
    pub(super) open: Option<OpenId>,
    pub(super) part: &'a [u8],
}

/// What keeps a part prepared.
#[derive(Debug)]
struct Held<P> {
    prepared: P,
    writes: bool,
    age: Age,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Participant<S: PartStore> {
    incarnation: u32,
    parts: BTreeMap<DistributedId, Part<S::Prepared>>,
    /// Those that wait to be stored.
    unstored: Unstored<S::Ticket>,
    come: BTreeMap<SiteId, Window>,
    patience: Patience,
    ages: Ages,
    /// Whether something has ended that was prepared, since somebody has asked.
    has_released: bool,
}

impl<S: PartStore> Participant<S> {
    pub(super) fn new(incarnation: u32, ages: Ages, wait: Duration) -> Self {
        Participant {
            incarnation,
            parts: BTreeMap::new(),
            unstored: Unstored::new(),
            come: BTreeMap::new(),
            patience: Patience::new(wait),
            ages,
            has_released: false,
        }
    }

    /// Goes on with a part that was found stored as prepared, and is prepared again.
    pub(super) fn recover<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        prepared: S::Prepared,
    ) {
        io.outbox.send(id.coordinator, &Message::Inquire { id });
        // How old it was is not known any more, and does not count.
        let held = Held { prepared, writes: true, age: Age { since: 0, id } };
        self.parts.insert(id, Part::Prepared { held, since: io.now });
    }

    /// Carries a part out, unless its message has come before.
    pub(super) fn receive_part<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        queue: &mut Queue,
        (number, incarnation): (u64, u32),
        new: NewPart<'_>,
    ) {
        let NewPart { age, has_others, part, .. } = new;
        let id = age.id;
        if incarnation != self.incarnation {
            let reason = RefusalReason::Restarted(self.incarnation);
            return self.vote(io, id, Vote::No(Refusal::new(reason, "the participant was opened anew")));
        }
        let window = self.come.entry(id.coordinator).or_insert_with(|| Window::new(id.incarnation));
        if !window.admit(id.incarnation, number) {
            return;
        }
        if let Stand::Waits(held) = self.prepare_or_refuse(io, new, true) {
            self.parts.insert(id, Part::Waiting { age, has_others, part: part.to_vec() });
            queue.add(age, held, io.now);
        }
    }

    /// Goes on with a part that waits for something.
    pub(super) fn take_turn<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        turn: Turn,
    ) -> Stand {
        let (age, has_others, part) = match self.parts.remove(&id) {
            Some(Part::Waiting { age, has_others, part }) => (age, has_others, part),
            // It was aborted, or does not wait any more.
            other => {
                self.parts.extend(other.map(|part| (id, part)));
                return Stand::Ended;
            }
        };
        let stand = match turn {
            Turn::Try { is_new } => {
                self.prepare_or_refuse(io, NewPart { age, has_others, open: None, part: &part }, is_new)
            }
            Turn::Stay if self.may_wait(age, has_others) => Stand::Stays,
            Turn::Stay => self.refuse(io, id, older_waits().into()),
            Turn::GiveUp(refusal) => self.refuse(io, id, refusal.into()),
        };
        if !matches!(stand, Stand::Ended) {
            self.parts.insert(id, Part::Waiting { age, has_others, part });
        }
        stand
    }

    /// Prepares a part, or refuses it, unless it is to wait; it may in any case where it `is_new`.
    fn prepare_or_refuse<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        new: NewPart<'_>,
        is_new: bool,
    ) -> Stand {
        let NewPart { age, has_others, open, part } = new;
        match io.store.prepare(age.id, open, part) {
            Ok(Voting { prepared, reply, writes, ticket }) => {
                self.ages.enter(age);
                let held = Held { prepared, writes, age };
                self.parts.insert(age.id, Part::Preparing { held, reply });
                self.unstored.add(ticket, age.id);
                Stand::Ended
            }
            // What was open has ended.
            Err(Refused { refusal, .. })
                if refusal.reason == RefusalReason::Held
                    && open.is_none()
                    && (is_new || self.may_wait(age, has_others)) =>
            {
                Stand::Waits(refusal)
            }
            Err(Refused { refusal, ticket }) => {
                self.refuse(io, age.id, Refused { refusal: refusal.without_waiting(), ticket })
            }
        }
    }

    fn may_wait(&self, age: Age, has_others: bool) -> bool {
        !has_others || self.ages.are_younger_than(age)
    }

    fn refuse<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        Refused { refusal, ticket }: RefusedOf<S>,
    ) -> Stand {
        match ticket {
            Some(ticket) => {
                self.parts.insert(id, Part::Refused(refusal));
                self.unstored.add(ticket, id);
            }
            None => self.vote(io, id, Vote::No(refusal)),
        }
        Stand::Ended
    }

    /// A site has ended: what it has begun, and has not voted here, is not carried out any more.
    pub(super) fn ended(&mut self, site: SiteId) {
        let is_lost = |id: &DistributedId, part: &Part<S::Prepared>| {
            id.coordinator == site && matches!(part, Part::Waiting { .. })
        };
        self.parts.retain(|id, part| !is_lost(id, part));
    }

    pub(super) fn receive_decision<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        decision: Decision,
    ) -> Result<(), Failed> {
        match (self.parts.remove(&id), decision) {
            (Some(Part::Prepared { held: Held { prepared, writes: true, age }, .. }), Decision::Commit) => {
                let ticket = io.store.commit(id, prepared)?;
                self.note_release(age);
                self.parts.insert(id, Part::Committing);
                self.unstored.add(ticket, id);
            }
            // What has only read is released in the same way by either decision.
            (Some(Part::Prepared { held, .. }), _)
            | (Some(Part::Preparing { held, .. }), Decision::Abort) => {
                io.store.abort(id, held.prepared);
                self.note_release(held.age);
            }
            (Some(Part::Waiting { .. } | Part::Refused(_)), Decision::Abort) => {}
            // Nobody decides to commit before the vote, or to abort what was committed.
            (Some(part), _) => drop(self.parts.insert(id, part)),
            // It was done before, and the coordinator has not heard of it.
            (None, Decision::Commit) => io.outbox.send(id.coordinator, &Message::Done { id }),
            (None, Decision::Abort) => {}
        }
        Ok(())
    }

    fn note_release(&mut self, age: Age) {
        self.ages.leave(age);
        self.has_released = true;
    }

    /// Returns whether something has ended that was prepared, since this was asked last.
    pub(super) fn take_release(&mut self) -> bool {
        std::mem::take(&mut self.has_released)
    }

    /// Goes on with what was stored, and asks for decisions that have not come.
    pub(super) fn poll<B: Outbox>(&mut self, io: &mut Io<'_, S, B>) -> Result<(), Failed> {
        while let Some(id) = self.unstored.next(io.store)? {
            self.go_on(io, id);
        }
        if let Some(since) = self.patience.look(io.now) {
            self.inquire(io, |_, asked| asked <= since);
        }
        Ok(())
    }

    /// Returns the transactions that wait for a decision.
    pub(super) fn in_doubt(&self) -> impl Iterator<Item = DistributedId> {
        self.parts.iter().filter(|(_, part)| matches!(part, Part::Prepared { .. })).map(|(id, _)| *id)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.parts.is_empty()
    }

    fn vote<B: Outbox>(&self, io: &mut Io<'_, S, B>, id: DistributedId, vote: Vote<'_>) {
        io.outbox.send(id.coordinator, &Message::Vote { id, incarnation: self.incarnation, vote });
    }

    /// Goes on with a part behind what it was waiting for.
    fn go_on<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, id: DistributedId) {
        match self.parts.remove(&id) {
            Some(Part::Preparing { held, reply }) => {
                self.vote(io, id, if held.writes { Vote::Yes(&reply) } else { Vote::ReadOnly(&reply) });
                self.parts.insert(id, Part::Prepared { held, since: io.now });
            }
            Some(Part::Committing) => io.outbox.send(id.coordinator, &Message::Done { id }),
            Some(Part::Refused(refusal)) => self.vote(io, id, Vote::No(refusal)),
            Some(part @ (Part::Waiting { .. } | Part::Prepared { .. })) => {
                self.parts.insert(id, part);
            }
            // It was aborted meanwhile.
            None => {}
        }
    }

    /// Says which incarnation this is to a site that can be reached, and asks it for its decisions.
    pub(super) fn meet<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, site: SiteId) {
        io.outbox.send(site, &Message::Hello { incarnation: self.incarnation });
        self.inquire(io, |id, _| id.coordinator == site);
    }

    #[cold]
    fn inquire<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        is_asked_for: impl Fn(&DistributedId, Instant) -> bool,
    ) {
        for (id, part) in &mut self.parts {
            if let Part::Prepared { since, held } = part
                && is_asked_for(id, *since)
            {
                *since = io.now;
                // Who knows how long it will be in doubt.
                self.ages.leave(held.age);
                io.outbox.send(id.coordinator, &Message::Inquire { id: *id });
            }
        }
    }
}
