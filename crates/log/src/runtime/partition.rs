//! What the workers of one logger share with it.

use ensilo_epoch::Epoch;
use ensilo_sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::buffer::{Draining, Filling, Taken};
use super::error::LogError;
use super::monitor::Monitor;
use super::notifier::{Notifier, Sleep};
use super::pool::Pool;

/// The way from some workers to their logger: buffers go over when they are opened, and come back through the
/// pool.
///
/// A worker takes the lock of the inbox once per buffer, a logger once per look. What is in a buffer passes
/// no lock.
#[derive(Debug)]
pub(crate) struct LogPartition {
    pub(crate) pool: Pool,
    pub(crate) notifier: Notifier,
    /// Buffers that were opened since the logger looked last, each from its first byte on.
    inbox: Monitor<Vec<Draining>>,
    /// The buffers that the logger knows. Held by the logger while it writes what is in them.
    open: Monitor<Vec<Draining>>,
    /// No entry that was written has a later epoch.
    largest_epoch: AtomicU64,
    /// The logger is to go on in a new file.
    wants_rotation: AtomicBool,
}

/// Which buffers to take from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// From all what was published.
    All,
    /// From those that are full.
    Sealed,
}

impl LogPartition {
    pub(crate) fn new(pool: Pool) -> LogPartition {
        LogPartition {
            pool,
            notifier: Notifier::new(),
            inbox: Monitor::new(Vec::new()),
            open: Monitor::new(Vec::new()),
            largest_epoch: AtomicU64::new(0),
            wants_rotation: AtomicBool::new(false),
        }
    }

    /// Gives a buffer to the logger, before anything is published in it: a logger that sees a commit's end
    /// sees its buffer here.
    pub(crate) fn deliver(&self, opened: Draining) {
        self.inbox.lock().push(opened);
    }

    /// Seals a buffer, which may have been set aside. A logger that makes rounds anyway is left to it.
    pub(crate) fn seal(&self, filling: Filling, was_set_aside: bool) {
        let is_urgent = self.pool.note_sealed(filling.capacity(), was_set_aside);
        filling.seal();
        // Who waits has woken the logger before, perhaps when this buffer was not sealed yet.
        if is_urgent || self.pool.is_waited_for() {
            self.notifier.notify(Sleep::Short, |signals| signals.write = true);
        }
    }

    /// Waits for a buffer of so many bytes; the logger learns that one is wanted.
    pub(crate) fn wait_for_buffer(&self, bytes: usize) -> Result<(), LogError> {
        self.pool.wait(bytes, || self.notifier.notify(Sleep::Short, |signals| signals.write = true))
    }

    /// Gives to `write` what was published and not taken yet, at least all that was published before the call
    /// as far as the caller knows ([frontier]). Then gives the buffers back that are done with. After an
    /// error they stay: nobody writes them any more.
    pub(crate) fn drain<R, E>(
        &self,
        which: Which,
        write: impl FnOnce(Vec<Taken<'_>>) -> Result<R, E>,
    ) -> Result<R, E> {
        let mut open = self.open.lock();
        // The inbox first: a buffer that was delivered before a commit ended is then among the open ones.
        open.append(&mut self.inbox.lock());
        let taken: Vec<_> = open
            .iter_mut()
            .filter(|draining| which == Which::All || draining.is_sealed())
            .filter_map(Draining::take)
            .collect();
        let written = write(taken)?;
        for draining in std::mem::take(&mut *open) {
            match draining.into_buffer() {
                Ok(buffer) => self.pool.give_back(buffer),
                Err(draining) => open.push(draining),
            }
        }
        Ok(written)
    }

    /// Returns how many transactions were published and not written; `None` while the logger writes.
    pub(crate) fn pending(&self) -> Option<u64> {
        let pending = |open: &Vec<Draining>| open.iter().map(Draining::pending).sum::<u64>();
        Some(pending(&self.inbox.lock()) + pending(&*self.open.try_lock()?))
    }

    /// Returns the latest epoch that an entry may have that was written.
    pub(crate) fn largest_epoch(&self) -> Epoch {
        Epoch::new(self.largest_epoch.load(Ordering::Relaxed))
    }

    /// Entries of up to this epoch were written. Called by the logger alone.
    pub(crate) fn note_written(&self, epoch: Epoch) {
        self.largest_epoch.store(epoch.get(), Ordering::Relaxed);
    }

    /// Asks the logger to go on in a new file.
    pub(crate) fn ask_for_rotation(&self) {
        self.wants_rotation.store(true, Ordering::Relaxed);
    }

    /// Returns whether the logger was asked to go on in a new file since it called this last. A request that
    /// comes while it does so is for another one.
    pub(crate) fn take_rotation_request(&self) -> bool {
        self.wants_rotation.swap(false, Ordering::Relaxed)
    }
}
