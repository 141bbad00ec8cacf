//! Epochs of all instances, which are stored as one.
//!
//! # Source
//! Y. Lu, X. Yu, L. Cao and S. Madden, "Epoch-based Commit and Replication in Distributed OLTP Databases" (COCO, VLDB 2021): the epoch as the unit of
//! two-phase commit. Differences: who prepares an epoch is the log of an instance, with no record of its own; and an epoch that fails is given up by
//! opening all instances anew, not by undoing it in memory.
//!
//! # How an epoch commits
//! ```text
//! pause        sites make no decision that others take part in; those that were made are carried out by all
//! end          each instance says which epoch of its own is the last one, and goes on in the next one
//! resume       sites go on
//! prepare      each instance says when its log is stored up to there
//! commit       the ends are recorded, in one file for all (`epoch_record`)
//! release      answers go out, and checkpoints may contain what they follow from
//! ```
//! Votes and decisions are neither stored nor waited for: a transaction is carried out by all in one epoch, since nothing is half decided while it
//! ends. So all of it is stored, or nothing of it. The same holds for what it has read from.
//!
//! # Crash
//! What the record says counts, and nothing after it, at any instance: each is opened with what was committed after its end
//! [given up](ensilo::Options::give_up_after). So where one instance ends, all others end with it, and all are opened anew. What was answered is never
//! given up: it was released behind the record.
//!
//! While instances are opened, nothing is held back. What they store then (tables, first rows) is of each by itself; it may be given up as well, or
//! stay, if a checkpoint has it. When they are closed, the last epoch is ended first, and nothing counts that comes later: no checkpoint is made then.
//!
//! # When
//! As long as somebody waits, one epoch follows the other, but not more often than the [interval](INTERVAL); otherwise there is one a second.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use super::epoch_record::EpochRecord;
use super::running::{NoAnswer, Running};
use ensilo::group::GroupMember;

use crate::commit::SiteId;
use crate::instance::{Program, Submission};

/// The least time from the begin of an epoch to its end: what it takes to pause is little beside it.
const INTERVAL: Duration = Duration::from_millis(5);

/// How often there is one while nobody waits.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// How long until it is found out that somebody waits who has not said so: on a database of an instance itself.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// How long sites may take until all decisions are carried out, or an instance that has died to come back.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before another attempt, where an instance has ended.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Ends epochs, on a thread of its own, until it is dropped.
pub(super) struct EpochCommit {
    shared: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread shares with those that wait.
#[derive(Debug, Default)]
struct State {
    /// How many wait for answers.
    waiting: AtomicUsize,
    stops: AtomicBool,
}

/// As long as this exists somebody waits for an answer.
#[derive(Debug)]
pub(super) struct Activity<'a>(&'a State);

impl EpochCommit {
    /// Ends the first epoch, so that there is a record, and goes on with the next ones.
    ///
    /// # Errors
    /// There is no thread for it, or the first one could not be ended.
    pub(super) fn start<P: Program>(
        running: Arc<Running<P>>,
        record: Arc<Mutex<EpochRecord>>,
    ) -> io::Result<Self> {
        let shared = Arc::new(State::default());
        let mut ending = Ending {
            running,
            record,
            state: Arc::clone(&shared),
            last_began: Instant::now(),
            recorded_starts: None,
        };
        ending.end_first()?;
        let thread = thread::Builder::new().name("islands-epochs".to_owned()).spawn(move || ending.run())?;
        Ok(EpochCommit { shared, thread: Some(thread) })
    }

    /// Says that somebody waits from now on.
    pub(super) fn activity(&self) -> Activity<'_> {
        // Relaxed: whoever waits is found sooner or later.
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) == 0 {
            self.thread().into_iter().for_each(Thread::unpark);
        }
        Activity(&self.shared)
    }

    fn thread(&self) -> Option<&Thread> {
        self.thread.as_ref().map(JoinHandle::thread)
    }
}

impl Drop for Activity<'_> {
    fn drop(&mut self) {
        // Relaxed: as where it is added.
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends the last epoch. Nothing counts that comes later.
impl Drop for EpochCommit {
    fn drop(&mut self) {
        // Release: what was done before belongs to the last epoch.
        self.shared.stops.store(true, Ordering::Release);
        self.thread().into_iter().for_each(Thread::unpark);
        if let Some(thread) = self.thread.take() {
            // If it has panicked the last epoch is given up.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for EpochCommit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EpochCommit").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// What ends epochs. When it goes, nothing comes to count any more: nobody waits in vain.
struct Ending<P: Program> {
    running: Arc<Running<P>>,
    record: Arc<Mutex<EpochRecord>>,
    state: Arc<State>,
    last_began: Instant,
    /// How often each instance was started when an epoch was recorded last; `None` before the first one of this opening.
    recorded_starts: Option<Vec<u32>>,
}

/// Why an epoch has not ended.
enum NotEnded {
    /// It took too long, or an instance has ended and may come back.
    NotNow,
    /// Nothing is ever stored again.
    Failed(String),
}

impl<P: Program> Ending<P> {
    fn end_first(&mut self) -> io::Result<()> {
        self.end_epoch().map_err(|not_ended| match not_ended {
            NotEnded::NotNow => io::Error::other("an instance has not ended the first epoch in time"),
            NotEnded::Failed(message) => io::Error::other(message),
        })
    }

    fn run(mut self) {
        while self.waits_for_work() {
            match self.end_epoch() {
                Ok(()) => {}
                Err(NotEnded::NotNow) => thread::sleep(RETRY_INTERVAL),
                Err(NotEnded::Failed(message)) => return self.fail(&message),
            }
        }
        // What is not in it by now is given up.
        let _ = self.end_epoch();
    }

    /// Waits until it is time for the next epoch; `false` when it is over.
    fn waits_for_work(&self) -> bool {
        loop {
            if self.is_over() {
                return false;
            }
            // Relaxed: as where it is added.
            let is_waited_for = self.state.waiting.load(Ordering::Relaxed) > 0 || self.has_waiting();
            let interval = if is_waited_for { INTERVAL } else { IDLE_INTERVAL };
            let left = interval.saturating_sub(self.last_began.elapsed());
            if left.is_zero() {
                return true;
            }
            thread::park_timeout(left.min(LOOK_INTERVAL));
        }
    }

    fn is_over(&self) -> bool {
        // Acquire: what whoever stops it has done before.
        self.state.stops.load(Ordering::Acquire)
    }

    /// Returns whether somebody waits on a database in this process.
    fn has_waiting(&self) -> bool {
        let instances = self.running.local().unwrap_or_default();
        instances.iter().any(|instance| instance.member.as_ref().is_some_and(GroupMember::has_waiting))
    }

    fn end_epoch(&mut self) -> Result<(), NotEnded> {
        self.last_began = Instant::now();
        let starts = self.running.starts();
        let ends = self.running.end_epochs(PATIENCE).map_err(|reason| self.not_ended(reason))?;
        let stored = self.running.wait_until_stored(&ends, self.patience());
        stored.map_err(|reason| self.not_ended(reason))?;
        self.commit(&starts, &ends)?;
        self.recorded_starts = Some(starts);
        let release =
            |site: SiteId, released| Submission::Release(ends[usize::from(site.instance)], released);
        // One that has ended meanwhile comes back with all of it.
        let _ = self.running.ask(self.running.first_sites(), release).wait_while(self.patience());
        Ok(())
    }

    /// Returns whether answers are waited for still: as long as it takes, but when it is over.
    fn patience(&self) -> impl FnMut() -> bool {
        let mut deadline = None;
        move || !self.is_over() || Instant::now() < *deadline.get_or_insert_with(|| Instant::now() + PATIENCE)
    }

    fn not_ended(&self, reason: NoAnswer) -> NotEnded {
        match (reason, self.running.processes()) {
            (NoAnswer::Ended, None) => NotEnded::Failed("an instance has ended".to_owned()),
            (NoAnswer::Ended, Some(_)) | (NoAnswer::Late, _) => NotEnded::NotNow,
        }
    }

    /// Records the ends, unless an instance has ended meanwhile: its successor counts up to the end before.
    fn commit(&self, starts: &[u32], ends: &[u64]) -> Result<(), NotEnded> {
        let is_first = self.recorded_starts.as_deref() != Some(starts);
        let write = || {
            let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            if is_first {
                // Both slots are of these openings from here on: if one is damaged later, the instances know more than the other one says.
                record.write(ends)?;
            }
            record.write(ends)
        };
        let written = match self.running.processes() {
            Some(processes) => processes.if_none_has_ended(starts, write).ok_or(NotEnded::NotNow)?,
            None => write(),
        };
        written.map_err(|error| NotEnded::Failed(format!("the end of an epoch cannot be recorded: {error}")))
    }

    /// Ends all instances.
    fn fail(&self, message: &str) {
        let fail = |site| self.running.submit(site, Submission::Fail(message.to_owned()));
        self.running.sites().for_each(fail);
    }
}

impl<P: Program> Drop for Ending<P> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.fail("what ends epochs has panicked");
        }
        self.running.sites().for_each(|site| self.running.submit(site, Submission::GiveUp));
    }
}
