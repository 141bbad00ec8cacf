//! The durable epoch: up to where everything is stored, and the waits for it.
//!
//! # Invariants
//! - **I1** The durable epoch never falls, and never moves after a failure.
//! - **I2** A wait for an epoch ends with `Ok` only when that epoch is durable.
//! - **I3** Every wait ends: the durable epoch and the end are read again under the lock under which they are
//!   acted on.
//! - **I4** Callbacks and wakers, which are the program's code, are called by threads of the log alone: a
//!   thread of the program that has made a round leaves them to the log. But [`Durable::release`] calls them.
//! - **I5** Where answers are held back, the durable epoch is the released one at most: what is *stored* after it does
//!   not count yet.

use std::collections::BTreeMap;
use std::fmt;
use std::mem;
use std::ops::Bound;
use std::sync::Arc;
use std::task::{Poll, Waker};

use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::error::LogError;
use super::foreign::call_foreign;
use super::monitor::Monitor;
use super::waiter::Waiter;

/// What is called when an epoch is durable, or when it never will be.
pub type Callback = Box<dyn FnOnce(Result<(), LogError>) + Send>;

/// The durable epoch.
#[derive(Debug)]
pub(crate) struct Durable {
    epoch: CachePadded<AtomicU64>,
    /// Everything up to here is stored: the durable epoch, unless answers are held back.
    stored: AtomicU64,
    marks: Monitor<Marks>,
    waiting: Monitor<Waiting>,
    /// Calls that a round's thread has left to the log.
    left_calls: Monitor<ReadyCalls>,
}

/// What a logger's round has made durable.
#[must_use]
pub(crate) struct StoredRound {
    /// Whether all loggers have made the round.
    pub(crate) is_complete: bool,
    pub(crate) calls: ReadyCalls,
}

/// Callbacks and wakers whose epochs are durable, to be called without a lock.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct ReadyCalls(Vec<Group>);

/// What the loggers have stored.
#[derive(Debug)]
struct Marks {
    /// By logger: the mark that it synced last, and the number of that round.
    loggers: Vec<(Epoch, u64)>,
    /// The last epoch that is released, where answers are held back.
    released: Option<Epoch>,
    has_failed: bool,
}

#[derive(Debug, Default)]
struct Waiting {
    groups: BTreeMap<Epoch, Group>,
    /// The waits for epochs to be stored, whether they are released or not.
    of_stored: BTreeMap<Epoch, Group>,
    of_next: NextWaits,
    end: Option<LogError>,
    /// How many futures have left a waker so far: the next one's number.
    futures: u64,
}

/// The waits for the durable epoch to move on, by whoever moves it.
#[derive(Default)]
struct NextWaits {
    /// By their numbers.
    calls: BTreeMap<u64, Callback>,
    /// How many there were so far: the next one's number.
    added: u64,
    /// Why there are none any more.
    end: Option<LogError>,
}

/// The waits for one epoch.
#[derive(Default)]
struct Group {
    /// Once a thread waits.
    waiter: Option<Arc<Waiter>>,
    callbacks: Vec<Callback>,
    /// By the number of its future: one for each.
    wakers: BTreeMap<u64, Waker>,
}

impl Durable {
    /// Returns the state in which everything before `first_epoch` is stored, or was never there.
    pub(crate) fn new(loggers: usize, first_epoch: Epoch) -> Durable {
        let marks = Marks { loggers: vec![(first_epoch, 0); loggers], released: None, has_failed: false };
        Durable {
            epoch: CachePadded::new(AtomicU64::new(before(first_epoch).get())),
            stored: AtomicU64::new(before(first_epoch).get()),
            marks: Monitor::new(marks),
            waiting: Monitor::new(Waiting::default()),
            left_calls: Monitor::new(ReadyCalls::default()),
        }
    }

    #[inline]
    pub(crate) fn epoch(&self) -> Epoch {
        // Acquire: [durable].
        Epoch::new(self.epoch.load(Ordering::Acquire))
    }

    /// Up to here everything is stored; the durable epoch may be held back behind it.
    #[inline]
    pub(crate) fn stored_epoch(&self) -> Epoch {
        // Acquire: [durable].
        Epoch::new(self.stored.load(Ordering::Acquire))
    }

    /// Notes that a logger has synced all entries of its workers with an epoch before `mark`, in round
    /// `number`. Wakes the threads that wait for what is durable now.
    pub(crate) fn stored(&self, logger: usize, mark: Epoch, number: u64) -> StoredRound {
        let mut marks = self.marks.lock();
        marks.loggers[logger] = (mark, number);
        let stored = before(marks.loggers.iter().map(|&(mark, _)| mark).min().unwrap_or(mark));
        let is_complete = marks.loggers.iter().all(|&(_, made)| made == number);
        let moves = stored > self.stored_epoch() && !marks.has_failed;
        if moves {
            // Release: [durable]. Under the lock: no logger overtakes another one, and none a failure.
            self.stored.store(stored.get(), Ordering::Release);
            self.move_on(&marks);
        }
        drop(marks);
        let calls = if moves { self.wake() } else { ReadyCalls::default() };
        StoredRound { is_complete, calls }
    }

    /// Holds the durable epoch back where it is, until it is [released](Self::release).
    pub(crate) fn hold(&self) {
        let mut marks = self.marks.lock();
        marks.released = Some(self.epoch());
    }

    pub(crate) fn is_held(&self) -> bool {
        self.marks.lock().released.is_some()
    }

    /// Releases what is stored up to an epoch. Wakes the threads that wait for it, and returns what is to be called.
    pub(crate) fn release(&self, epoch: Epoch) -> ReadyCalls {
        let mut marks = self.marks.lock();
        marks.released = marks.released.max(Some(epoch));
        if !marks.has_failed {
            self.move_on(&marks);
        }
        drop(marks);
        self.wake()
    }

    /// Moves the durable epoch up to what is stored and released.
    fn move_on(&self, marks: &Marks) {
        let stored = self.stored_epoch();
        let durable = marks.released.map_or(stored, |released| stored.min(released));
        if durable > self.epoch() {
            // Release: [durable]. Under the lock: see `stored`.
            self.epoch.store(durable.get(), Ordering::Release);
        }
    }

    /// Returns whether all loggers have made round `number`.
    pub(crate) fn have_all_made(&self, number: u64) -> bool {
        self.marks.lock().loggers.iter().all(|&(_, made)| made == number)
    }

    /// Waits until `epoch` is durable. `wake` is called if there is something to wait for.
    pub(crate) fn wait(&self, epoch: Epoch, wake: impl FnOnce()) -> Result<(), LogError> {
        if self.epoch() >= epoch {
            return Ok(());
        }
        let mut waiting = self.waiting.lock();
        if let Some(result) = self.known(&waiting, epoch) {
            return result;
        }
        let group = waiting.groups.entry(epoch).or_default();
        let waiter = Arc::clone(group.waiter.get_or_insert_default());
        drop(waiting);
        wake();
        waiter.wait()
    }

    /// Calls `callback` when `epoch` is durable: at once, on this thread, if it is, or else on a logger's
    /// thread.
    pub(crate) fn on_durable(&self, epoch: Epoch, callback: Callback, wake: impl FnOnce()) {
        let mut waiting = self.waiting.lock();
        if let Some(result) = self.known(&waiting, epoch) {
            drop(waiting);
            return callback(result);
        }
        waiting.groups.entry(epoch).or_default().callbacks.push(callback);
        drop(waiting);
        wake();
    }

    /// Calls `callback` when the durable epoch may be later than `seen`: at once, on this thread, if it is, or else on a
    /// logger's thread, or on the one that ends the waits. Who is called looks again. Returns the number of a call that was not made at once.
    pub(crate) fn on_next(&self, seen: Epoch, callback: Callback) -> Option<u64> {
        let mut waiting = self.waiting.lock();
        let end = || waiting.end.as_ref().or(waiting.of_next.end.as_ref()).cloned();
        let known = if self.epoch() > seen { Some(Ok(())) } else { end().map(Err) };
        if let Some(result) = known {
            drop(waiting);
            callback(result);
            return None;
        }
        Some(waiting.of_next.add(callback))
    }

    /// Drops a call of [`Durable::on_next`] that was not made yet.
    pub(crate) fn forget_next(&self, number: u64) {
        let call = self.waiting.lock().of_next.calls.remove(&number);
        // Foreign code: dropped without the lock.
        drop(call);
    }

    /// Nobody waits any more, now or later, for the durable epoch to move on: they get `error`.
    pub(crate) fn end_next_waits(&self, error: &LogError) {
        let mut waiting = self.waiting.lock();
        waiting.of_next.end.get_or_insert_with(|| error.clone());
        let of_next = waiting.of_next.take();
        drop(waiting);
        of_next.call(&Err(error.clone()));
    }

    /// Does what [`Durable::on_durable`] does, when `epoch` is stored, released or not.
    pub(crate) fn on_stored(&self, epoch: Epoch, callback: Callback, wake: impl FnOnce()) {
        let mut waiting = self.waiting.lock();
        if self.stored_epoch() >= epoch {
            drop(waiting);
            return callback(Ok(()));
        }
        if let Some(end) = waiting.end.clone() {
            drop(waiting);
            return callback(Err(end));
        }
        waiting.of_stored.entry(epoch).or_default().callbacks.push(callback);
        drop(waiting);
        wake();
    }

    /// Returns the answer for `epoch`; if it is not known yet, `waker` is woken once it is. A future has one
    /// waker here, under the number that the first call puts into `number`; it takes it back by
    /// [`Durable::forget`].
    pub(crate) fn poll(
        &self,
        epoch: Epoch,
        number: &mut Option<u64>,
        waker: &Waker,
        wake: impl FnOnce(),
    ) -> Poll<Result<(), LogError>> {
        let waiting = self.waiting.lock();
        if let Some(result) = self.known(&waiting, epoch) {
            return Poll::Ready(result);
        }
        if waiting.has_waker(epoch, *number, waker) {
            return Poll::Pending;
        }
        // Wakers are foreign code: cloned and dropped without the lock.
        drop(waiting);
        let waker = waker.clone();
        let mut waiting = self.waiting.lock();
        if let Some(result) = self.known(&waiting, epoch) {
            drop(waiting);
            return Poll::Ready(result);
        }
        let is_first = number.is_none();
        let number = *number.get_or_insert(waiting.futures);
        waiting.futures += u64::from(is_first);
        let replaced = waiting.groups.entry(epoch).or_default().wakers.insert(number, waker);
        drop(waiting);
        drop(replaced);
        if is_first {
            wake();
        }
        Poll::Pending
    }

    /// Takes a future's waker back.
    pub(crate) fn forget(&self, epoch: Epoch, number: u64) {
        let mut waiting = self.waiting.lock();
        let Some(group) = waiting.groups.get_mut(&epoch) else { return };
        let waker = group.wakers.remove(&number);
        if group.is_empty() {
            waiting.groups.remove(&epoch);
        }
        drop(waiting);
        drop(waker);
    }

    /// Returns whether somebody waits for `epoch`, or an earlier one, to be stored.
    pub(crate) fn is_waited_for(&self, epoch: Epoch) -> bool {
        let waiting = self.waiting.lock();
        let stored = self.stored_epoch();
        // What is stored waits for nothing but to be released.
        let mut after = waiting.groups.range((Bound::Excluded(stored), Bound::Unbounded));
        let first = after.next().into_iter().chain(waiting.of_stored.first_key_value());
        first.map(|(first, _)| *first).min().is_some_and(|first| first <= epoch)
    }

    /// Returns whether somebody waits for anything.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.lock().groups.is_empty()
    }

    /// Nobody waits any more, now or later, for what is held back: they get `error`. The log goes on.
    pub(crate) fn end_waits(&self, error: &LogError) {
        let mut waiting = self.waiting.lock();
        waiting.end.get_or_insert_with(|| error.clone());
        let (groups, of_stored) = (mem::take(&mut waiting.groups), std::mem::take(&mut waiting.of_stored));
        let of_next = waiting.of_next.take();
        drop(waiting);
        of_next.call(&Err(error.clone()));
        // A logger may have moved the durable epoch and not yet come to wake these.
        Self::answer(groups, self.epoch(), error);
        Self::answer(of_stored, self.stored_epoch(), error);
    }

    fn answer(groups: BTreeMap<Epoch, Group>, reached: Epoch, error: &LogError) {
        let result = |epoch| if epoch <= reached { Ok(()) } else { Err(error.clone()) };
        groups.iter().for_each(|(&epoch, group)| group.wake_threads(&result(epoch)));
        groups.into_iter().for_each(|(epoch, group)| group.call(&result(epoch)));
    }

    /// The durable epoch does not move any more. Whoever waits, now or later, for an epoch that is not
    /// durable gets `error`.
    pub(crate) fn end(&self, error: &LogError) {
        self.marks.lock().has_failed = true;
        self.end_waits(error);
    }

    /// Leaves calls to the log, whose thread makes them by [`Durable::call_left`]. To be called as the leader:
    /// the log's thread looks once more when there is none.
    pub(crate) fn leave_calls(&self, calls: ReadyCalls) {
        self.left_calls.lock().0.extend(calls.0);
    }

    pub(crate) fn has_left_calls(&self) -> bool {
        !self.left_calls.lock().is_empty()
    }

    /// Makes the calls that were left to the log.
    pub(crate) fn call_left(&self) {
        let calls = mem::take(&mut *self.left_calls.lock());
        calls.call();
    }

    /// Returns the answer for `epoch`, if it is known already.
    fn known(&self, waiting: &Waiting, epoch: Epoch) -> Option<Result<(), LogError>> {
        if self.epoch() >= epoch {
            return Some(Ok(()));
        }
        waiting.end.clone().map(Err)
    }

    /// Wakes the threads that wait for what is durable, or stored. Returns what is to be called.
    fn wake(&self) -> ReadyCalls {
        let mut waiting = self.waiting.lock();
        let mut ready = take_up_to(&mut waiting.groups, self.epoch());
        ready.extend(take_up_to(&mut waiting.of_stored, self.stored_epoch()));
        if !waiting.of_next.calls.is_empty() {
            ready.push(waiting.of_next.take());
        }
        drop(waiting);
        ready.iter().for_each(|group| group.wake_threads(&Ok(())));
        ready.retain(Group::has_calls);
        ReadyCalls(ready)
    }
}

/// Takes the groups out that wait for `epoch` or an earlier one.
fn take_up_to(groups: &mut BTreeMap<Epoch, Group>, epoch: Epoch) -> Vec<Group> {
    let mut taken = Vec::new();
    while let Some(first) = groups.first_entry()
        && *first.key() <= epoch
    {
        taken.push(first.remove());
    }
    taken
}

impl ReadyCalls {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Calls them.
    pub(crate) fn call(self) {
        self.0.into_iter().for_each(|group| group.call(&Ok(())));
    }
}

impl Waiting {
    /// Returns whether the future `number` has left a waker that does what this one does.
    fn has_waker(&self, epoch: Epoch, number: Option<u64>, waker: &Waker) -> bool {
        let left = number.and_then(|number| self.groups.get(&epoch)?.wakers.get(&number));
        left.is_some_and(|left| left.will_wake(waker))
    }
}

impl NextWaits {
    fn add(&mut self, callback: Callback) -> u64 {
        self.added += 1;
        self.calls.insert(self.added, callback);
        self.added
    }

    fn take(&mut self) -> Group {
        Group { callbacks: mem::take(&mut self.calls).into_values().collect(), ..Group::default() }
    }
}

impl Group {
    fn is_empty(&self) -> bool {
        self.waiter.is_none() && !self.has_calls()
    }

    fn has_calls(&self) -> bool {
        !self.callbacks.is_empty() || !self.wakers.is_empty()
    }

    fn wake_threads(&self, result: &Result<(), LogError>) {
        if let Some(waiter) = &self.waiter {
            // Only who has taken the group out of the waiting ones wakes it.
            waiter.set(result.clone());
        }
    }

    fn call(self, result: &Result<(), LogError>) {
        for callback in self.callbacks {
            call_foreign(|| callback(result.clone()));
        }
        for waker in self.wakers.into_values() {
            call_foreign(|| waker.wake());
        }
    }
}

impl fmt::Debug for NextWaits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NextWaits").field("calls", &self.calls.len()).field("end", &self.end).finish()
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("waiter", &self.waiter)
            .field("callbacks", &self.callbacks.len())
            .field("wakers", &self.wakers.len())
            .finish()
    }
}

/// Returns the epoch before `mark`.
fn before(mark: Epoch) -> Epoch {
    Epoch::new(mark.get().saturating_sub(1))
}

#[cfg(all(loom, test))]
#[path = "durable_model.rs"]
mod model;
