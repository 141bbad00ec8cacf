//! What a site does for the transactions that it coordinates.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::admission::Admission;
use super::ages::{Age, Ages};
use super::coordinated::{Coordinated, Own, Stage};
use super::id::{DistributedId, SiteId};
use super::message::{Decision, Message, Refusal, RefusalReason, Vote};
use super::patience::Patience;
use super::queue::{Queue, Stand, Turn, older_waits};
use super::request::{Outcome, Request};
use super::site::{Io, Outbox, PART_BYTES_MAX};
use super::store::{Decided, Failed, OwnPart, PartStore, Refused, RefusedOf};
use super::unstored::Unstored;
use super::voted::Voted;

/// How often a decision is tried, where the coordinator's own part is in conflict with others: those who have voted need not vote again.
const DECISION_ATTEMPTS_MAX: u32 = 3;

/// What is known of a participant.
#[derive(Debug, Default)]
struct Peer {
    incarnation: u32,
    /// Of the next part that is sent there.
    next_number: u64,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Coordinator<S: PartStore> {
    own: SiteId,
    incarnation: u32,
    ages: Ages,
    next_sequence: u64,
    live: BTreeMap<DistributedId, Coordinated>,
    /// Decisions, and refusals of own parts, that wait to be stored.
    unstored: Unstored<S::Ticket>,
    admission: Admission,
    peers: BTreeMap<SiteId, Peer>,
    patience: Patience,
    outcomes: VecDeque<(DistributedId, Outcome)>,
    /// Whether decisions that others take part in wait.
    is_paused: bool,
}

impl<S: PartStore> Coordinator<S> {
    pub(super) fn new((own, incarnation): (SiteId, u32), ages: Ages, wait: Duration) -> Self {
        Coordinator {
            own,
            incarnation,
            ages,
            next_sequence: 0,
            live: BTreeMap::new(),
            unstored: Unstored::new(),
            admission: Admission::new(),
            peers: BTreeMap::new(),
            patience: Patience::new(wait),
            outcomes: VecDeque::new(),
            is_paused: false,
        }
    }

    /// Goes on with a decision to commit that was found stored: these participants may not have carried it out.
    pub(super) fn recover<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        participants: Vec<SiteId>,
    ) {
        tell(io, &participants, id, Decision::Commit);
        let stage = Stage::Decided { missing: participants };
        self.live.insert(id, Coordinated { stage, since: io.now, is_admitted: false });
    }

    /// Begins a transaction. Its outcome comes [later](Self::next_outcome).
    pub(super) fn begin<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        queue: &mut Queue,
        (request, since): (&Request, u64),
    ) -> DistributedId {
        let id = DistributedId {
            coordinator: self.own,
            incarnation: self.incarnation,
            sequence: self.next_sequence,
        };
        self.next_sequence += 1;
        if let Some(refusal) = self.refusal_of(request) {
            self.abort(io, id, &[], refusal);
            return id;
        }
        let age = Age { since, id };
        if request.remote.is_empty() || self.admission.admit() {
            self.start(io, queue, age, request);
        } else {
            self.admission.add(age, request.clone());
        }
        id
    }

    /// Begins those that have waited for others to end.
    pub(super) fn start_waiting<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, queue: &mut Queue) {
        while let Some((age, request)) = self.admission.next() {
            self.start(io, queue, age, &request);
        }
    }

    fn start<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, queue: &mut Queue, age: Age, request: &Request) {
        let Age { id, since } = age;
        let has_others = request.remote.len() > 1;
        for (site, part) in &request.remote {
            let peer = self.peers.entry(*site).or_default();
            let (number, incarnation) = (peer.next_number, peer.incarnation);
            peer.next_number += 1;
            let open = request.open;
            let message = Message::Execute { id, number, incarnation, since, has_others, open, part };
            io.outbox.send(*site, &message);
        }
        let missing: Vec<SiteId> = request.remote.iter().map(|(site, _)| *site).collect();
        let own = Own { open: request.open, part: request.local.clone() };
        let stage = Stage::Voting { age, own, missing, voted: Voted::default() };
        let is_admitted = !request.remote.is_empty();
        self.live.insert(id, Coordinated { stage, since: io.now, is_admitted });
        self.decide_or_wait(io, queue, id);
    }

    /// Parts for this site are meant for this incarnation from now on.
    pub(super) fn receive_hello(&mut self, from: SiteId, incarnation: u32) {
        let peer = self.peers.entry(from).or_default();
        peer.incarnation = peer.incarnation.max(incarnation);
    }

    pub(super) fn receive_vote<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        queue: &mut Queue,
        (from, incarnation): (SiteId, u32),
        (id, vote): (DistributedId, Vote<'_>),
    ) {
        let peer = self.peers.entry(from).or_default();
        if incarnation < peer.incarnation {
            // It has ended, and what it has voted for is gone, or will be asked for.
            return;
        }
        peer.incarnation = incarnation;
        match self.live.get_mut(&id).map(|coordinated| &mut coordinated.stage) {
            Some(Stage::Voting { missing, voted, .. }) => {
                let Some(at) = missing.iter().position(|site| *site == from) else { return };
                missing.swap_remove(at);
                match voted.note(from, vote) {
                    Ok(()) => self.decide_or_wait(io, queue, id),
                    Err(refusal) => self.give_up(io, id, refusal.into()),
                }
            }
            Some(Stage::Decided { missing }) if missing.contains(&from) => {
                tell(io, &[from], id, Decision::Commit);
            }
            Some(Stage::Deciding { .. } | Stage::Decided { .. }) => {}
            // It was aborted, or has ended everywhere.
            Some(Stage::Refused(_)) | None if !matches!(vote, Vote::No(_)) => {
                tell(io, &[from], id, Decision::Abort);
            }
            Some(Stage::Refused(_)) | None => {}
        }
    }

    pub(super) fn receive_done<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, from: SiteId, id: DistributedId) {
        match self.live.get_mut(&id).map(|coordinated| &mut coordinated.stage) {
            Some(Stage::Decided { missing }) => {
                missing.retain(|site| *site != from);
                if missing.is_empty() {
                    self.live.remove(&id);
                    io.store.forget(id);
                }
            }
            Some(Stage::Deciding { missing, .. }) => missing.retain(|site| *site != from),
            Some(Stage::Voting { .. } | Stage::Refused(_)) | None => {}
        }
    }

    pub(super) fn receive_inquiry<B: Outbox>(&self, io: &mut Io<'_, S, B>, from: SiteId, id: DistributedId) {
        match self.live.get(&id).map(|coordinated| &coordinated.stage) {
            Some(Stage::Deciding { .. }) if io.store.commits_by_epoch() => {
                tell(io, &[from], id, Decision::Commit);
            }
            // The decision comes.
            Some(Stage::Voting { .. } | Stage::Deciding { .. }) => {}
            Some(Stage::Decided { .. }) => tell(io, &[from], id, Decision::Commit),
            Some(Stage::Refused(_)) | None => tell(io, &[from], id, Decision::Abort),
        }
    }

    /// Goes on with what was stored, and does something about what takes too long.
    pub(super) fn poll<B: Outbox>(&mut self, io: &mut Io<'_, S, B>) -> Result<(), Failed> {
        while let Some(id) = self.unstored.next(io.store)? {
            self.go_on(io, id);
        }
        if let Some(since) = self.patience.look(io.now) {
            self.look_at_waiting(io, since);
        }
        Ok(())
    }

    /// A site has ended, and comes back with this incarnation: gives up what needs what it had not stored.
    pub(super) fn ended<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, site: SiteId, next_incarnation: u32) {
        let peer = self.peers.entry(site).or_default();
        peer.incarnation = peer.incarnation.max(next_incarnation);
        let needs_it = |coordinated: &Coordinated| coordinated.stage.needs_memory_of(site);
        let lost: Vec<_> =
            self.live.iter().filter(|(_, coordinated)| needs_it(coordinated)).map(|(id, _)| *id).collect();
        for id in lost {
            let refusal = Refusal::new(RefusalReason::NoVote, "a participant has ended before the decision");
            self.give_up(io, id, refusal.into());
        }
    }

    /// Tells a site that can be reached again the decisions that it may not have heard.
    pub(super) fn meet<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, site: SiteId) {
        for (id, coordinated) in &self.live {
            if let Stage::Decided { missing } = &coordinated.stage
                && missing.contains(&site)
            {
                tell(io, &[site], *id, Decision::Commit);
            }
        }
    }

    /// Returns what has become of a transaction, once for each that was begun in this incarnation.
    pub(super) fn next_outcome(&mut self) -> Option<(DistributedId, Outcome)> {
        self.outcomes.pop_front()
    }

    /// Makes no decisions that others take part in until it is [resumed](Self::resume).
    pub(super) fn pause(&mut self) {
        self.is_paused = true;
    }

    /// Goes on with the decisions that have waited.
    pub(super) fn resume<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, queue: &mut Queue) {
        self.is_paused = false;
        let has_turn = |coordinated: &Coordinated| match coordinated.stage {
            Stage::Voting { age, .. } => !queue.has(age),
            Stage::Deciding { .. } | Stage::Decided { .. } | Stage::Refused(_) => false,
        };
        let ids: Vec<DistributedId> =
            self.live.iter().filter(|(_, coordinated)| has_turn(coordinated)).map(|(id, _)| *id).collect();
        for id in ids {
            self.decide_or_wait(io, queue, id);
        }
    }

    /// Returns whether every decision was carried out by all.
    pub(super) fn has_carried_out(&self) -> bool {
        self.live.values().all(|coordinated| coordinated.stage.is_carried_out())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.live.is_empty() && self.outcomes.is_empty() && self.admission.is_empty()
    }

    /// Returns why a transaction cannot be begun.
    fn refusal_of(&self, request: &Request) -> Option<Refusal> {
        if request.remote.iter().any(|(_, part)| part.len() > PART_BYTES_MAX) {
            return Some(too_long());
        }
        let sites: BTreeSet<SiteId> = request.remote.iter().map(|(site, _)| *site).collect();
        let has_one_for_each = sites.len() == request.remote.len() && !sites.contains(&self.own);
        let message = "a transaction has one part at each site, and that of the coordinator is the local one";
        (!has_one_for_each).then(|| Refusal::new(RefusalReason::Rejected, message))
    }

    /// Decides if all have voted, or has the transaction wait for what is in the way.
    fn decide_or_wait<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, queue: &mut Queue, id: DistributedId) {
        if let Stand::Waits(held) = self.decide_if_all_have_voted(io, id, true)
            && let Some(Coordinated { stage: Stage::Voting { age, .. }, since, .. }) = self.live.get_mut(&id)
        {
            // It waits for this from here on, and no longer for votes.
            *since = io.now;
            queue.add(*age, held, io.now);
        }
    }

    /// `is_new` says that it may wait in any case.
    fn decide_if_all_have_voted<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        is_new: bool,
    ) -> Stand {
        let Some(Coordinated { stage, since, is_admitted }) = self.live.get_mut(&id) else {
            return Stand::Ended;
        };
        let Stage::Voting { own, missing, voted, .. } = stage else { return Stand::Ended };
        if !missing.is_empty() || self.is_paused && !voted.participants().is_empty() {
            return Stand::Stays;
        }
        match decide(io.store, id, own, voted) {
            Ok(Decided { local, ticket }) => {
                // All that is left for them was to keep what they have read until here.
                tell(io, &voted.readers, id, Decision::Commit);
                let Voted { writers: missing, replies, .. } = std::mem::take(voted);
                if io.store.commits_by_epoch() {
                    tell_of_commit(io, &mut self.admission, (id, *is_admitted), &missing);
                }
                (*stage, *since) = (Stage::Deciding { local, replies, missing }, io.now);
                self.unstored.add(ticket, id);
                Stand::Ended
            }
            Err(Refused { refusal, .. }) if own.may_wait(&refusal) && (is_new || self.may_wait(id)) => {
                Stand::Waits(refusal)
            }
            Err(Refused { refusal, ticket }) => {
                self.give_up(io, id, Refused { refusal: refusal.without_waiting(), ticket });
                Stand::Ended
            }
        }
    }

    /// Returns whether a transaction may wait for what is prepared here.
    fn may_wait(&self, id: DistributedId) -> bool {
        match self.live.get(&id) {
            Some(Coordinated { stage: Stage::Voting { age, voted, .. }, .. }) => {
                voted.participants().is_empty() || self.ages.are_younger_than(*age)
            }
            _ => false,
        }
    }

    /// Returns whether a transaction was begun here.
    pub(super) fn has_begun(&self, id: DistributedId) -> bool {
        id.coordinator == self.own
    }

    /// Goes on with a transaction that waits for something.
    pub(super) fn take_turn<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        turn: Turn,
    ) -> Stand {
        let is_undecided =
            matches!(self.live.get(&id), Some(Coordinated { stage: Stage::Voting { .. }, .. }));
        match turn {
            _ if !is_undecided => return Stand::Ended,
            Turn::Try { is_new } => return self.decide_if_all_have_voted(io, id, is_new),
            Turn::Stay if self.may_wait(id) => return Stand::Stays,
            Turn::Stay => self.give_up(io, id, older_waits().into()),
            Turn::GiveUp(refusal) => self.give_up(io, id, refusal.into()),
        }
        Stand::Ended
    }

    /// Goes on behind what was stored: a decision, or what a refusal follows from.
    fn go_on<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, id: DistributedId) {
        let Some(coordinated) = self.live.get_mut(&id) else { return };
        let decided = Stage::Decided { missing: Vec::new() };
        let (local, replies, missing) = match std::mem::replace(&mut coordinated.stage, decided) {
            Stage::Deciding { local, replies, missing } => (local, replies, missing),
            Stage::Refused(refusal) => {
                self.live.remove(&id);
                return self.outcomes.push_back((id, Outcome::Aborted(refusal)));
            }
            Stage::Voting { .. } | Stage::Decided { .. } => {
                unreachable!("what waits to be stored is noted once, and stays so");
            }
        };
        if !io.store.commits_by_epoch() {
            tell_of_commit(io, &mut self.admission, (id, coordinated.is_admitted), &missing);
        }
        self.outcomes.push_back((id, Outcome::Committed { local, remote: replies }));
        if missing.is_empty() {
            self.live.remove(&id);
        } else {
            (coordinated.stage, coordinated.since) = (Stage::Decided { missing }, io.now);
        }
    }

    #[cold]
    fn look_at_waiting<B: Outbox>(&mut self, io: &mut Io<'_, S, B>, since: Instant) {
        let mut overdue = Vec::new();
        for (id, coordinated) in self.live.iter_mut().filter(|(_, coordinated)| coordinated.since <= since) {
            match &coordinated.stage {
                // It waits in the queue.
                Stage::Voting { missing, .. } if missing.is_empty() && !self.is_paused => {}
                Stage::Voting { missing, .. } => overdue.push((*id, missing.is_empty())),
                Stage::Refused(_) => {}
                Stage::Deciding { .. } if !io.store.commits_by_epoch() => {}
                Stage::Deciding { missing, .. } | Stage::Decided { missing } => {
                    tell(io, missing, *id, Decision::Commit);
                    coordinated.since = io.now;
                }
            }
        }
        for (id, is_paused) in overdue {
            let why = if is_paused {
                "decisions have been paused for too long"
            } else {
                "a participant has not voted in time"
            };
            self.give_up(io, id, Refusal::new(RefusalReason::NoVote, why).into());
        }
    }

    /// Aborts a transaction that is not decided: the others at once, and the caller is told when that is stored which it follows from.
    fn give_up<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        Refused { refusal, ticket }: RefusedOf<S>,
    ) {
        let Some(Coordinated { stage: Stage::Voting { mut missing, voted, .. }, is_admitted, .. }) =
            self.live.remove(&id)
        else {
            unreachable!("nobody gives up what was decided");
        };
        // They may be prepared by now.
        missing.extend(voted.all());
        if is_admitted {
            let is_conflict = matches!(refusal.reason, RefusalReason::Conflict | RefusalReason::Held);
            self.admission.note_abort(is_conflict);
        }
        let Some(ticket) = ticket else { return self.abort(io, id, &missing, refusal) };
        tell(io, &missing, id, Decision::Abort);
        self.live
            .insert(id, Coordinated { stage: Stage::Refused(refusal), since: io.now, is_admitted: false });
        self.unstored.add(ticket, id);
    }

    fn abort<B: Outbox>(
        &mut self,
        io: &mut Io<'_, S, B>,
        id: DistributedId,
        participants: &[SiteId],
        refusal: Refusal,
    ) {
        tell(io, participants, id, Decision::Abort);
        self.outcomes.push_back((id, Outcome::Aborted(refusal)));
    }
}

/// Makes the decision to commit, if the coordinator's own part can be carried out.
fn decide<S: PartStore>(
    store: &mut S,
    id: DistributedId,
    Own { open, part }: &Own,
    voted: &Voted,
) -> Result<Decided<S::Ticket>, RefusedOf<S>> {
    let own = part.as_deref().map(|part| OwnPart { open: *open, part, replies: &voted.replies });
    let attempts_max = if open.is_some() { 1 } else { DECISION_ATTEMPTS_MAX };
    let mut attempts = 1;
    loop {
        match store.decide(id, own, voted.participants()) {
            Err(Refused { refusal: Refusal { reason: RefusalReason::Conflict, .. }, .. })
                if attempts < attempts_max =>
            {
                attempts += 1;
            }
            decided => return decided,
        }
    }
}

/// Returns why a part cannot be sent.
fn too_long() -> Refusal {
    let message = format!("a part has {PART_BYTES_MAX} bytes at most");
    Refusal::new(RefusalReason::Rejected, message)
}

/// Tells those who have something to commit; the transaction is under way no more if it was admitted.
fn tell_of_commit<S: PartStore, B: Outbox>(
    io: &mut Io<'_, S, B>,
    admission: &mut Admission,
    (id, is_admitted): (DistributedId, bool),
    writers: &[SiteId],
) {
    tell(io, writers, id, Decision::Commit);
    if is_admitted {
        admission.note_commit();
    }
}

fn tell<S: PartStore, B: Outbox>(
    io: &mut Io<'_, S, B>,
    sites: &[SiteId],
    id: DistributedId,
    decision: Decision,
) {
    for site in sites {
        io.outbox.send(*site, &Message::Decide { id, decision });
    }
}

#[cfg(test)]
#[path = "coordinator/tests.rs"]
mod tests;
