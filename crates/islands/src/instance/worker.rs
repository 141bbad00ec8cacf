//! The thread that serves an instance's channels, and the transactions that begin there.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use ensilo_sync::cpu_relax;

use super::links::{Links, read_messages};
use super::load::{Load, RunningLoad};
use super::program::Program;
use super::store::{InstanceStore, Recovered};
use super::wake::Wake;
use crate::channel::Channel;
use crate::commit::{DistributedId, Failed, Io, Outcome, Request, Site, SiteId};

/// How often a worker that finds nothing to do looks again before it sleeps.
const LOOKS: u32 = 2000;

/// How long it sleeps, at most: what comes through a channel does not wake it.
const NAP_MIN: Duration = Duration::from_micros(20);
const NAP_MAX: Duration = Duration::from_millis(1);

/// How many frames of one channel are received before the next one's turn.
const FRAMES_AT_ONCE: usize = 16;

/// The channels of a worker, by the site that each leads to.
pub(crate) type WorkerChannels = Vec<(SiteId, Box<dyn Channel>)>;

/// What is done with the outcome of a transaction.
pub(crate) type Answer = Box<dyn FnOnce(Outcome) + Send>;

/// What a worker is to do.
pub(crate) enum Submission {
    /// Begin a transaction.
    Transaction(Request, Answer),
    /// Make transactions itself.
    Load(Load),
}

/// See the module's documentation.
pub(crate) struct Worker<P: Program> {
    site: Site<InstanceStore<P>>,
    store: InstanceStore<P>,
    links: Links,
    peers: Vec<SiteId>,
    submissions: Receiver<Submission>,
    /// How the outcomes of transactions are answered that have not ended.
    answers: BTreeMap<DistributedId, Answer>,
    load: Option<RunningLoad>,
    wake: Arc<Wake>,
    messages: Vec<u8>,
}

impl<P: Program> Worker<P> {
    pub(crate) fn new(
        site: Site<InstanceStore<P>>,
        store: InstanceStore<P>,
        channels: WorkerChannels,
        (submissions, wake): (Receiver<Submission>, Arc<Wake>),
    ) -> Self {
        let links = Links::new(channels);
        let peers = links.sites();
        let (answers, load, messages) = (BTreeMap::new(), None, Vec::new());
        Worker { site, store, links, peers, submissions, answers, load, wake, messages }
    }

    /// Serves until `stops`, and nothing is under way any more that began here.
    ///
    /// # Errors
    /// [`Failed`].
    pub(crate) fn run(&mut self, recovered: Recovered, stops: &AtomicBool) -> Result<(), Failed> {
        self.recover(recovered);
        let (mut looks, mut nap) = (0, NAP_MIN);
        loop {
            if self.turn()? {
                (looks, nap) = (0, NAP_MIN);
                continue;
            }
            // Acquire: what whoever stops it has done before.
            if stops.load(Ordering::Acquire) && self.site.is_idle() && self.links.flush() {
                return Ok(());
            }
            looks += 1;
            if looks < LOOKS {
                cpu_relax();
            } else {
                self.wake.sleep(nap);
                nap = NAP_MAX.min(2 * nap);
            }
        }
    }

    fn recover(&mut self, recovered: Recovered) {
        let now = Instant::now();
        let Worker { site, store, links, .. } = self;
        for (id, participants) in recovered.decisions {
            site.recover_decision(Io { store, outbox: links, now }, id, participants);
        }
        for (id, prepared) in recovered.parts {
            site.recover_part(Io { store, outbox: links, now }, id, prepared);
        }
    }

    /// Looks once at everything that may have come. Returns whether something had.
    fn turn(&mut self) -> Result<bool, Failed> {
        if self.wake.take() {
            self.store.note_wake();
        }
        let now = Instant::now();
        let mut has_come = self.receive_all(now)?;
        has_come |= self.begin_submitted(now);
        self.go_on_with_load(now);
        self.site.poll(Io { store: &mut self.store, outbox: &mut self.links, now })?;
        while let Some((id, outcome)) = self.site.next_outcome() {
            has_come = true;
            self.answer(id, outcome, now);
        }
        self.links.flush();
        Ok(has_come)
    }

    fn answer(&mut self, id: DistributedId, outcome: Outcome, now: Instant) {
        let outcome = match &mut self.load {
            Some(load) => load.end(id, outcome, now),
            None => Some(outcome),
        };
        if let (Some(outcome), Some(answer)) = (outcome, self.answers.remove(&id)) {
            answer(outcome);
        }
    }

    fn go_on_with_load(&mut self, now: Instant) {
        let Worker { site, store, links, load, .. } = self;
        let Some(running) = load else { return };
        running.begin_more(now, |request| site.begin(Io { store, outbox: links, now }, request));
        if running.has_ended(now) {
            *load = None;
        }
    }

    fn receive_all(&mut self, now: Instant) -> Result<bool, Failed> {
        let mut has_come = false;
        for at in 0..self.peers.len() {
            let from = self.peers[at];
            for _ in 0..FRAMES_AT_ONCE {
                // A site that is gone is waited for by the protocol.
                let Ok(true) = self.links.receive(from, &mut self.messages) else { break };
                has_come = true;
                self.receive(from, now)?;
            }
        }
        Ok(has_come)
    }

    /// Takes in the messages that one frame has brought.
    fn receive(&mut self, from: SiteId, now: Instant) -> Result<(), Failed> {
        let Worker { site, store, links, messages, .. } = self;
        let mut received = Ok(());
        read_messages(messages, |message| {
            if received.is_ok() {
                received = site.receive(Io { store, outbox: links, now }, from, message);
            }
        });
        received
    }

    fn begin_submitted(&mut self, now: Instant) -> bool {
        let mut has_begun = false;
        while let Ok(submission) = self.submissions.try_recv() {
            has_begun = true;
            match submission {
                Submission::Transaction(request, answer) => {
                    let io = Io { store: &mut self.store, outbox: &mut self.links, now };
                    self.answers.insert(self.site.begin(io, &request), answer);
                }
                Submission::Load(load) => self.load = Some(RunningLoad::new(load)),
            }
        }
        has_begun
    }
}

impl<P: Program> fmt::Debug for Worker<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("peers", &self.peers).finish_non_exhaustive()
    }
}
