//! Transactions whose parts are carried out one after the other, as their results call for them.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::Ticket;

use super::Islands;
use crate::commit::{OpenId, Outcome, Refusal, RefusalReason, Refused, Request, SiteId};
use crate::instance::{OpenPart, Program, Submission, machine_nanos, pause_before_attempt};

/// How long one waits for what is prepared.
const WAIT: Duration = Duration::from_millis(500);

/// A transaction whose parts are carried out one after the other: each [returns](Self::execute) before the next one is known. [`Islands::begin`]
/// begins one.
///
/// It is serializable like any other, once its [commit](Self::commit) has succeeded: what parts have returned until then need not belong together.
/// Nothing is locked, and nobody waits for it, before that. Nothing is retried: after a [conflict](RefusalReason::may_pass) it has ended, and the
/// caller begins another one.
///
/// Where it has parts at one instance alone it is committed there, without messages to others.
///
/// Dropping it undoes it.
#[derive(Debug)]
pub struct OpenTransaction<'a, P: Program> {
    islands: &'a Islands<P>,
    id: OpenId,
    worker: u16,
    since: u64,
    /// The first instance that a part was carried out at coordinates the commit.
    coordinator: Option<u16>,
    /// Where something is open.
    instances: BTreeSet<u16>,
    /// Why it has ended, if it has.
    refusal: Option<Refusal>,
}

impl<P: Program> Islands<P> {
    /// Begins a transaction whose parts are not known beforehand.
    pub fn begin(&self) -> OpenTransaction<'_, P> {
        self.begin_since(machine_nanos())
    }

    /// Begins another attempt of a transaction that was first begun [then](machine_nanos).
    pub(crate) fn begin_since(&self, since: u64) -> OpenTransaction<'_, P> {
        OpenTransaction {
            islands: self,
            // Relaxed: numbers that differ.
            id: OpenId(self.next_open.fetch_add(1, Ordering::Relaxed)),
            worker: self.take_turn(),
            since,
            coordinator: None,
            instances: BTreeSet::new(),
            refusal: None,
        }
    }
}

impl<P: Program> OpenTransaction<'_, P> {
    /// Has the program [carry out](Program::execute) a part at an instance, and returns what that returns. Parts at one instance see what earlier
    /// ones have written there.
    ///
    /// # Errors
    /// Why it is refused: the transaction has ended then, and changes nothing anywhere.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn execute(&mut self, instance: u16, part: &[u8]) -> Result<Vec<u8>, Refusal> {
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        assert!(usize::from(instance) < self.islands.instances(), "there is no instance {instance}");
        let is_first = self.instances.insert(instance);
        let site = SiteId { instance, worker: self.worker };
        let executed = match is_first {
            true => self.execute_first(site, part),
            false => self.islands.execute(site, self.id, false, part).map_err(Refusal::without_waiting),
        };
        match &executed {
            Ok(_) => {
                self.coordinator.get_or_insert(instance);
            }
            Err(refusal) => {
                // There it has ended.
                self.instances.remove(&instance);
                self.refusal = Some(refusal.clone());
            }
        }
        executed
    }

    /// Carries the first part at an instance out. There is nothing else there that would be lost: so it waits for what is prepared.
    fn execute_first(&self, site: SiteId, part: &[u8]) -> Result<Vec<u8>, Refusal> {
        let (begin, mut tries) = (Instant::now(), 0);
        loop {
            match self.islands.execute(site, self.id, true, part) {
                Err(refusal) if refusal.reason == RefusalReason::Held && begin.elapsed() < WAIT => {
                    tries += 1;
                    thread::sleep(pause_before_attempt(tries));
                }
                executed => return executed,
            }
        }
    }

    /// Commits, and returns what has become of the transaction. What it returns of parts is empty.
    #[must_use = "it may have been aborted"]
    pub fn commit(mut self) -> Outcome {
        if let Some(refusal) = self.refusal.take() {
            return Outcome::Aborted(refusal);
        }
        let Some(coordinator) = self.coordinator else {
            return Outcome::Committed { local: None, remote: Vec::new() };
        };
        let outcome = self.end(coordinator);
        // Otherwise some may not have been asked to prepare it.
        if matches!(outcome, Outcome::Committed { .. }) {
            self.instances.clear();
        }
        outcome
    }

    /// Undoes the transaction, and returns whether all that its parts have returned belongs together, and is stored where instances are: otherwise
    /// nothing follows from it.
    ///
    /// Each instance validates what was read there. All of it has been read before the first one does so: if nothing of it has changed until then, it
    /// was there at once.
    ///
    /// # Errors
    /// Why it may not belong together, or is not known to.
    pub fn undo(mut self) -> Result<(), Refusal> {
        if let Some(refusal) = self.refusal.take().filter(|refusal| refusal.reason.may_pass()) {
            return Err(refusal);
        }
        while let Some(instance) = self.instances.pop_first() {
            self.islands.validate(SiteId { instance, worker: self.worker }, self.id)?;
        }
        Ok(())
    }

    /// Returns the instance that is to coordinate the commit, if there is one by now.
    pub(crate) fn coordinator(&self) -> Option<u16> {
        self.coordinator
    }

    fn end(&self, coordinator: u16) -> Outcome {
        let _activity = self.islands.activity();
        if let (Some(instances), 1) = (self.islands.running.local(), self.instances.len()) {
            return instances[usize::from(coordinator)].open.commit_alone(self.id);
        }
        let others = self.instances.iter().filter(|instance| **instance != coordinator);
        let site = |instance| SiteId { instance, worker: self.worker };
        let request = Request::ending(self.id, others.map(|instance| site(*instance)));
        self.islands.run(site(coordinator), request, self.since)
    }
}

impl<P: Program> Drop for OpenTransaction<'_, P> {
    fn drop(&mut self) {
        for instance in &self.instances {
            self.islands.roll_back(SiteId { instance: *instance, worker: self.worker }, self.id);
        }
    }
}

impl<P: Program> Islands<P> {
    fn execute(&self, site: SiteId, id: OpenId, is_first: bool, part: &[u8]) -> Result<Vec<u8>, Refusal> {
        if let Some(instances) = self.running.local() {
            let executed = instances[usize::from(site.instance)].open.execute(id, is_first, part);
            return executed.map_err(|refused| self.when_stored(refused));
        }
        // A refusal may wait for an epoch.
        let _activity = self.activity();
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |executed| drop(sender.send(executed)));
        self.running
            .submit(site, Submission::Execute(OpenPart { id, is_first, part: part.to_vec() }, answer));
        receiver.recv().map_err(|_| ended())?
    }

    /// Waits until that is stored which a refusal follows from.
    fn when_stored(&self, Refused { refusal, ticket }: Refused<Ticket>) -> Refusal {
        let _activity = ticket.is_some().then(|| self.activity());
        match ticket.map(|ticket| ticket.wait()) {
            Some(Err(_)) => ended(),
            Some(Ok(())) | None => refusal,
        }
    }

    fn validate(&self, site: SiteId, id: OpenId) -> Result<(), Refusal> {
        let _activity = self.activity();
        if let Some(instances) = self.running.local() {
            let stored = instances[usize::from(site.instance)].open.validate(id)?;
            return stored.map_or(Ok(()), |ticket| ticket.wait().map_err(|_| ended()));
        }
        let (sender, receiver) = mpsc::channel();
        let answer = Box::new(move |validated| drop(sender.send(validated)));
        self.running.submit(site, Submission::Validate(id, answer));
        receiver.recv().map_err(|_| ended())?
    }

    fn roll_back(&self, site: SiteId, id: OpenId) {
        match self.running.local() {
            Some(instances) => instances[usize::from(site.instance)].open.roll_back(id),
            None => self.running.submit(site, Submission::RollBack(id)),
        }
    }
}

fn ended() -> Refusal {
    Refusal::new(RefusalReason::NoVote, "the instance has ended before it answered")
}
