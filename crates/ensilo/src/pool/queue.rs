//! The bounded queue between submitters and the pool's threads.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Condvar, Mutex, PoisonError};

use ensilo_log::survive;

use super::waits::{Wait, WaitCycle};
use crate::mutex::lock;
use crate::{Error, Result};

/// A job, ready to be run by any thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// Whether a submission may wait for room in the queue.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    Wait,
    Refuse,
}

thread_local! {
    /// The queue that this thread works for: compared, never followed.
    static WORKS_FOR: Cell<*const Queue> = const { Cell::new(ptr::null()) };
}

pub(super) struct Queue {
    len_max: usize,
    state: Mutex<QueueState>,
    job_came: Condvar,
    room_came: Condvar,
}

struct QueueState {
    jobs: VecDeque<Job>,
    is_open: bool,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("len", &lock(&self.state).jobs.len())
            .field("len_max", &self.len_max)
            .finish()
    }
}

impl Queue {
    pub(super) fn new(len_max: usize) -> Self {
        let state = Mutex::new(QueueState { jobs: VecDeque::new(), is_open: true });
        Queue { len_max, state, job_came: Condvar::new(), room_came: Condvar::new() }
    }

    pub(super) fn push(&self, job: Job, when_full: WhenFull) -> Result<()> {
        let mut state = lock(&self.state);
        while state.is_open && state.jobs.len() >= self.len_max && !self.is_own_thread() {
            if when_full == WhenFull::Refuse {
                return Err(Error::QueueFull);
            }
            let Ok(wait) = self.begin_wait() else { break };
            state = self.room_came.wait(state).unwrap_or_else(PoisonError::into_inner);
            drop(wait);
        }
        if !state.is_open {
            return Err(Error::Closed);
        }
        state.jobs.push_back(job);
        drop(state);
        self.job_came.notify_one();
        Ok(())
    }

    /// Refuses further jobs and returns those that nobody has begun.
    pub(super) fn close(&self) -> VecDeque<Job> {
        let mut state = lock(&self.state);
        state.is_open = false;
        let waiting = std::mem::take(&mut state.jobs);
        drop(state);
        self.job_came.notify_all();
        self.room_came.notify_all();
        waiting
    }

    /// What a thread of the pool does from its first moment to its last.
    pub(super) fn work(&self) {
        WORKS_FOR.set(self);
        while let Some(job) = self.pop() {
            // The job reports its own panics. What is left is a panic of a waker or of a result's destructor:
            // the thread goes on.
            survive(job);
        }
        // Destructors of the thread's variables are no jobs, and another queue may get the address.
        WORKS_FOR.set(ptr::null());
    }

    fn pop(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                self.room_came.notify_one();
                return Some(job);
            }
            if !state.is_open {
                return None;
            }
            state = self.job_came.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Returns whether the calling thread works for this queue.
    pub(super) fn is_own_thread(&self) -> bool {
        ptr::eq(WORKS_FOR.get(), self)
    }

    /// Notes that the calling thread waits for the pool of this queue.
    pub(super) fn begin_wait(&self) -> Result<Wait, WaitCycle> {
        Wait::begin(Queue::of_thread(), ptr::from_ref(self).addr())
    }

    /// Returns the address of the queue that the calling thread works for, if it does for any.
    pub(super) fn of_thread() -> Option<usize> {
        let queue = WORKS_FOR.get();
        (!queue.is_null()).then(|| queue.addr())
    }
}
