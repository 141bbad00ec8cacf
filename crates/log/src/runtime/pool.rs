//! The buffers of one logger: how many there may be, and the workers that wait for one.
//!
//! # Source
//! SiloR (OSDI 2014) §3.4: a bounded number of buffers is the backpressure of the log. They come back after
//! the write, not after the sync, so that a hiccup of the disk's sync does not stop the workers.
//!
//! # Invariants
//! - **I1** Of all open buffers at most `circulating` plus one per writer are out. Each writer may sit on one
//!   that is not full; so there are always `circulating` that only wait for the logger, and nobody waits for
//!   a worker that has nothing to do.
//! - **I2** A *large* buffer, one of more than the usual bytes, is sealed as soon as its transaction is published or given up, and freed when
//!   it was written. All that are out have as many bytes as `circulating` usual ones at most, or there is one. What is set aside is not
//!   counted, from then until it is sealed: a transaction that is prepared waits for its decision as long as that takes, and then for
//!   nobody. From its decision on it counts again, also above that bound, and others wait.
//!
//! Those that wait for large buffers have no order among themselves, nor do small ones wait for them.

use std::time::{Duration, Instant};

use super::buffer::Buffer;
use super::error::LogError;
use super::monitor::Monitor;
use super::writer::ReserveError;

/// The buffers of one logger.
#[derive(Debug)]
pub(crate) struct Pool {
    buffer_bytes: usize,
    circulating: usize,
    state: Monitor<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    /// Used last, given out first: its memory may still be in a cache.
    free: Vec<Buffer>,
    /// Buffers that were given out and not given back.
    out: usize,
    /// Buffers of those that are full and wait for the logger.
    sealed: usize,
    /// What of those that are out is large and not set aside (I2).
    large_bytes: usize,
    writers: usize,
    /// Threads in [`Pool::wait`].
    waiting: usize,
    /// Those of them that wait for a large buffer.
    waiting_for_large: usize,
    failure: Option<LogError>,
    pressure: Pressure,
}

/// How the bounded number of buffers held workers back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Pressure {
    pub(crate) waits: u64,
    pub(crate) waited: Duration,
}

impl Pool {
    pub(crate) fn new(buffer_bytes: usize, circulating: usize) -> Pool {
        Pool { buffer_bytes, circulating: circulating.max(1), state: Monitor::new(PoolState::default()) }
    }

    /// Returns how many bytes the largest of the usual buffers have: those that are kept.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Returns a buffer of so many bytes at least.
    ///
    /// # Errors
    /// [`ReserveError::Full`] when too many are out, [`ReserveError::OutOfMemory`].
    pub(crate) fn take(&self, bytes: usize) -> Result<Buffer, ReserveError> {
        let mut state = self.state.lock();
        if !self.has_room(&state, bytes) {
            return Err(ReserveError::Full);
        }
        state.out += 1;
        state.large_bytes += self.large_bytes(bytes);
        let fits = (self.buffer_bytes / 2 + 1..=self.buffer_bytes).contains(&bytes);
        let kept = if fits { state.free.pop() } else { None };
        let is_one_too_many = state.out + state.free.len() > self.limit(&state);
        let surplus = if is_one_too_many { state.free.pop() } else { None };
        // Allocation and what frees memory outside the lock.
        drop(state);
        drop(surplus);
        let bytes = if fits { self.buffer_bytes } else { bytes };
        kept.or_else(|| Buffer::new(bytes)).ok_or_else(|| {
            self.note_not_made(bytes);
            ReserveError::OutOfMemory
        })
    }

    /// There was no memory for a buffer of so many bytes that was to be out.
    #[cold]
    fn note_not_made(&self, bytes: usize) {
        let mut state = self.state.lock();
        state.out -= 1;
        state.large_bytes -= self.large_bytes(bytes);
        drop(state);
        self.state.notify_all();
    }

    /// One of the buffers, of so many bytes, is not counted any more, until it is sealed.
    #[cold]
    pub(crate) fn set_aside(&self, bytes: usize) {
        self.state.lock().large_bytes -= self.large_bytes(bytes);
        self.state.notify_all();
    }

    /// One of the buffers, for so many bytes, is about to be sealed; it may have been set aside. Returns whether so many are that the logger
    /// should not leave them to its next round.
    pub(crate) fn note_sealed(&self, bytes: usize, was_set_aside: bool) -> bool {
        let mut state = self.state.lock();
        state.sealed += 1;
        if was_set_aside {
            state.large_bytes += self.large_bytes(bytes);
        }
        state.sealed >= self.circulating.div_ceil(4)
            || state.large_bytes >= self.circulating_bytes().div_ceil(4)
    }

    /// Returns whether somebody waits for a buffer.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.state.lock().waiting > 0
    }

    /// Takes a sealed buffer back. Called by the logger alone.
    pub(crate) fn give_back(&self, buffer: Buffer) {
        let mut state = self.state.lock();
        state.out -= 1;
        state.sealed -= 1;
        state.large_bytes -= self.large_bytes(buffer.capacity());
        let (is_waited_for, is_for_large) = (state.waiting > 0, state.waiting_for_large > 0);
        // One that was made for a large transaction or for a writer that logs little goes, and one that was kept for a writer that went.
        let is_kept =
            buffer.capacity() == self.buffer_bytes && state.out + state.free.len() < self.limit(&state);
        let surplus = if is_kept {
            state.free.push(buffer);
            None
        } else {
            Some(buffer)
        };
        drop(state);
        drop(surplus);
        if is_for_large {
            // Who wants a large one may have to wait on, and somebody else not.
            self.state.notify_all();
        } else if is_waited_for {
            self.state.notify_one();
        }
    }

    /// Waits until [`Pool::take`] would find a buffer of so many bytes. Calls `wake` if there is none now.
    pub(crate) fn wait(&self, bytes: usize, wake: impl FnOnce()) -> Result<(), LogError> {
        let mut state = self.state.lock();
        if let Some(known) = self.known(&state, bytes) {
            return known;
        }
        let began = Instant::now();
        let for_large = usize::from(self.large_bytes(bytes) > 0);
        state.waiting += 1;
        state.waiting_for_large += for_large;
        drop(state);
        wake();
        let mut state = self.state.lock();
        let result = loop {
            if let Some(known) = self.known(&state, bytes) {
                break known;
            }
            state = self.state.wait(state);
        };
        state.waiting -= 1;
        state.waiting_for_large -= for_large;
        state.pressure.waits += 1;
        state.pressure.waited += began.elapsed();
        result
    }

    /// Returns what a waiting worker gets, if it is known.
    fn known(&self, state: &PoolState, bytes: usize) -> Option<Result<(), LogError>> {
        match &state.failure {
            Some(failure) => Some(Err(failure.clone())),
            None => self.has_room(state, bytes).then_some(Ok(())),
        }
    }

    /// Returns whether one more buffer, of so many bytes, may be out.
    fn has_room(&self, state: &PoolState, bytes: usize) -> bool {
        // I2.
        let others = state.large_bytes;
        let is_large = self.large_bytes(bytes) > 0;
        state.out < self.limit(state)
            && (!is_large || others == 0 || others.saturating_add(bytes) <= self.circulating_bytes())
    }

    /// Returns the bytes of a buffer if it is large, or else 0.
    fn large_bytes(&self, bytes: usize) -> usize {
        if bytes > self.buffer_bytes { bytes } else { 0 }
    }

    fn circulating_bytes(&self) -> usize {
        self.circulating.saturating_mul(self.buffer_bytes)
    }

    /// Ends every wait, now and later.
    pub(crate) fn fail(&self, failure: &LogError) {
        self.state.lock().failure.get_or_insert_with(|| failure.clone());
        self.state.notify_all();
    }

    pub(crate) fn add_writer(&self) {
        self.state.lock().writers += 1;
        self.state.notify_all();
    }

    /// Frees a buffer if there is now one too many.
    pub(crate) fn remove_writer(&self) {
        let mut state = self.state.lock();
        state.writers -= 1;
        let surplus = if state.out + state.free.len() > self.limit(&state) { state.free.pop() } else { None };
        drop(state);
        drop(surplus);
    }

    pub(crate) fn writers(&self) -> usize {
        self.state.lock().writers
    }

    /// Returns how many threads wait for a buffer.
    #[cfg(all(not(loom), test))]
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting
    }

    /// Returns how many buffers are given out, and the bytes of the large ones that are not set aside.
    #[cfg(all(not(loom), test))]
    pub(crate) fn out(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.out, state.large_bytes)
    }

    pub(crate) fn pressure(&self) -> Pressure {
        self.state.lock().pressure
    }

    fn limit(&self, state: &PoolState) -> usize {
        self.circulating + state.writers
    }
}
