//! Reads at a consistent point of all instances.

use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use super::Islands;
use super::epochs::Activity;
use crate::commit::{Refusal, RefusalReason, SiteId};
use crate::instance::{PointId, Program, Submission, message_of};

/// How long instances may take until all decisions are carried out.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to wait before another attempt, where an instance has ended.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Reads at one consistent point of all instances: one moment of their serial order. [`Islands::read_point`] fixes it.
///
/// As long as it exists each instance keeps the versions of rows that it shows.
#[derive(Debug)]
pub struct PointReader<'a, P: Program> {
    islands: &'a Islands<P>,
    id: PointId,
}

impl<P: Program> Islands<P> {
    /// Fixes a point of all instances that can be read then. Everything that was answered before the call is there.
    ///
    /// Meanwhile transactions with parts at several instances wait: a few milliseconds, or as long as it takes an instance that has died to come
    /// back.
    ///
    /// # Errors
    /// The point could not be fixed within ten seconds.
    pub fn read_point(&self) -> Result<PointReader<'_, P>, Refusal> {
        let _one_at_a_time = self.running.lock_pauses();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let starts = self.running.starts();
            let reader = self.try_to_fix_point(deadline);
            // One that has come back meanwhile has not paused.
            if let Some(reader) = reader.filter(|_| self.running.starts() == starts) {
                return Ok(reader);
            }
            if Instant::now() >= deadline {
                let message = "an instance has not paused, or begun a snapshot, in time";
                return Err(Refusal::new(RefusalReason::NoVote, message));
            }
            thread::sleep(RETRY_INTERVAL);
        }
    }

    /// Reads at several instances, as the [program](Program::read) reads by a part for each, at one [point](Self::read_point). Returns what each part
    /// has returned, in their order.
    ///
    /// # Errors
    /// What a part says; that the point could not be fixed within ten seconds.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn read_all(&self, parts: &[(u16, Vec<u8>)]) -> Result<Vec<Vec<u8>>, Refusal> {
        let reader = self.read_point()?;
        let reads: Vec<_> = parts.iter().map(|(instance, part)| reader.begin(*instance, part)).collect();
        reads.into_iter().map(Reading::end).collect()
    }

    fn try_to_fix_point(&self, deadline: Instant) -> Option<PointReader<'_, P>> {
        let _paused = self.running.pause(deadline).ok()?;
        // Relaxed: numbers that differ.
        let id = PointId(self.next_point.fetch_add(1, Ordering::Relaxed));
        let reader = PointReader { islands: self, id };
        let begin = |_, begun| Submission::BeginSnapshot(id, begun);
        let begun = self.running.ask(self.running.first_sites(), begin);
        begun.wait_while(|| Instant::now() < deadline).ok().map(|_| reader)
    }
}

impl<P: Program> PointReader<'_, P> {
    /// Has the program [read](Program::read) a part at an instance, and returns what that returns.
    ///
    /// # Errors
    /// What the program says; [`RefusalReason::NoVote`] when the instance has ended, and with it what it had of the point.
    ///
    /// # Panics
    /// When there is no such instance.
    pub fn read(&self, instance: u16, part: &[u8]) -> Result<Vec<u8>, Refusal> {
        self.begin(instance, part).end()
    }

    fn begin(&self, instance: u16, part: &[u8]) -> Reading<'_> {
        assert!(usize::from(instance) < self.islands.instances(), "there is no instance {instance}");
        let (sender, read) = mpsc::channel();
        let answer = Box::new(move |result| drop(sender.send(result)));
        let site = SiteId { instance, worker: 0 };
        let activity = self.islands.activity();
        self.islands.running.submit(site, Submission::Read(self.id, part.to_vec(), answer));
        Reading { read, _activity: activity }
    }
}

impl<P: Program> Drop for PointReader<'_, P> {
    fn drop(&mut self) {
        let running = &self.islands.running;
        running.first_sites().for_each(|site| running.submit(site, Submission::EndSnapshot(self.id)));
    }
}

/// What will have been read.
struct Reading<'a> {
    read: mpsc::Receiver<ensilo::Result<Vec<u8>>>,
    _activity: Option<Activity<'a>>,
}

impl Reading<'_> {
    fn end(self) -> Result<Vec<u8>, Refusal> {
        let ended =
            |_| Refusal::new(RefusalReason::NoVote, "the instance has ended, and its snapshot with it");
        let read = self.read.recv().map_err(ended)?;
        read.map_err(|error| Refusal::new(RefusalReason::Rejected, message_of(&error)))
    }
}
