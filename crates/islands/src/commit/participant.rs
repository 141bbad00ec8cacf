//! What a site does for the transactions that others coordinate.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::coordinator::too_long;
use super::id::{DistributedId, SiteId};
use super::message::{Decision, Message, Refusal, RefusalReason, Vote};
use super::patience::Patience;
use super::site::{Io, Outbox, PART_BYTES_MAX};
use super::store::{Failed, PartStore, Voting};
use super::unstored::Unstored;
use super::window::Window;

/// A part of a transaction that has not ended.
#[derive(Debug)]
enum Part<P> {
    /// It was prepared, and that waits to be stored: it becomes `Prepared`. After a crash it is gone, or `Prepared`, as the disk has it.
    Preparing { prepared: P, writes: bool, reply: Vec<u8> },
    /// It has voted: only a decision ends it. After a crash it is `Prepared`, or gone if it does not write.
    Prepared { prepared: P, writes: bool, since: Instant },
    /// It was committed, and that waits to be stored: it ends then. After a crash it is `Prepared`, or gone, as the disk has it.
    Committing,
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
}

impl<S: PartStore> Participant<S> {
    pub(super) fn new(incarnation: u32, wait: Duration) -> Self {
        Participant {
            incarnation,
            parts: BTreeMap::new(),
            unstored: Unstored::new(),
            come: BTreeMap::new(),
            patience: Patience::new(wait),
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
        self.parts.insert(id, Part::Prepared { prepared, writes: true, since: io.now });
    }

    /// Carries a part out, unless its message has come before.
    pub(super) fn receive_part<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        (number, incarnation): (u64, u32),
        part: &[u8],
    ) {
        if incarnation != self.incarnation {
            let reason = RefusalReason::Restarted(self.incarnation);
            return self.vote(io, id, Vote::No(Refusal::new(reason, "the participant was opened anew")));
        }
        let window = self.come.entry(id.coordinator).or_insert_with(|| Window::new(id.incarnation));
        if !window.admit(id.incarnation, number) {
            return;
        }
        match prepare(io.store, id, part) {
            Ok((part, ticket)) => {
                self.parts.insert(id, part);
                self.unstored.add(ticket, id);
            }
            Err(refusal) => self.vote(io, id, Vote::No(refusal)),
        }
    }

    pub(super) fn receive_decision<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        decision: Decision,
    ) -> Result<(), Failed> {
        match (self.parts.remove(&id), decision) {
            (Some(Part::Prepared { prepared, writes: true, .. }), Decision::Commit) => {
                let ticket = io.store.commit(id, prepared)?;
                self.parts.insert(id, Part::Committing);
                self.unstored.add(ticket, id);
            }
            // What has only read is released in the same way by either decision.
            (Some(Part::Prepared { prepared, .. }), _)
            | (Some(Part::Preparing { prepared, .. }), Decision::Abort) => io.store.abort(id, prepared),
            // Nobody decides to commit before the vote, or to abort what was committed.
            (Some(part @ (Part::Preparing { .. } | Part::Committing)), _) => {
                self.parts.insert(id, part);
            }
            // It was done before, and the coordinator has not heard of it.
            (None, Decision::Commit) => io.outbox.send(id.coordinator, &Message::Done { id }),
            (None, Decision::Abort) => {}
        }
        Ok(())
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
            Some(Part::Preparing { prepared, writes, reply }) => {
                self.vote(io, id, if writes { Vote::Yes(&reply) } else { Vote::ReadOnly(&reply) });
                self.parts.insert(id, Part::Prepared { prepared, writes, since: io.now });
            }
            Some(Part::Committing) => io.outbox.send(id.coordinator, &Message::Done { id }),
            Some(part @ Part::Prepared { .. }) => {
                self.parts.insert(id, part);
            }
            // It was aborted meanwhile.
            None => {}
        }
    }

    /// Asks a site that can be reached again for its decisions.
    pub(super) fn meet<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, site: SiteId) {
        self.inquire(io, |id, _| id.coordinator == site);
    }

    #[cold]
    fn inquire<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        is_asked_for: impl Fn(&DistributedId, Instant) -> bool,
    ) {
        for (id, part) in &mut self.parts {
            if let Part::Prepared { since, .. } = part
                && is_asked_for(id, *since)
            {
                *since = io.now;
                io.outbox.send(id.coordinator, &Message::Inquire { id: *id });
            }
        }
    }
}

fn prepare<S: PartStore>(
    store: &mut S,
    id: DistributedId,
    part: &[u8],
) -> Result<(Part<S::Prepared>, S::Ticket), Refusal> {
    let Voting { prepared, reply, writes, ticket } = store.prepare(id, part)?;
    if reply.len() > PART_BYTES_MAX {
        store.abort(id, prepared);
        return Err(too_long());
    }
    Ok((Part::Preparing { prepared, writes, reply }, ticket))
}
