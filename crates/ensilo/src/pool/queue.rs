//! The bounded queues between submitters and the pool's threads: one for each priority.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ptr;
use std::sync::{Condvar, Mutex, PoisonError};
use std::task::Waker;

use ensilo_log::{call_foreign, survive};

use super::room::{RoomPlace, RoomWakers};
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

/// How urgent a job is, see [`JobRequest::priority`](crate::JobRequest::priority).
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Priority {
    /// For work that may take long, and is done in the order in which it comes.
    #[default]
    Normal,
    /// For short work that somebody waits for: it is done before all of normal priority that has not begun, and beside
    /// what has, by a thread of its own.
    High,
}

/// Which jobs a thread runs.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Serves {
    All,
    HighPriority,
}

thread_local! {
    /// The queue that this thread works for: compared, never followed.
    static WORKS_FOR: Cell<*const Queue> = const { Cell::new(ptr::null()) };
}

pub(super) struct Queue {
    /// For each priority.
    len_max: usize,
    state: Mutex<QueueState>,
    /// For threads that run all jobs.
    job_came: Condvar,
    /// For the thread that runs those of high priority alone.
    high_job_came: Condvar,
    room_came: Condvar,
    high_room_came: Condvar,
}

struct QueueState {
    normal: Line,
    high: Line,
    is_open: bool,
}

/// The jobs of one priority, and who waits for room among them without keeping a thread.
#[derive(Default)]
struct Line {
    jobs: VecDeque<Job>,
    wakers: RoomWakers,
}

/// What has come of a job that was to be submitted without waiting.
pub(super) enum Pushed {
    Submitted,
    /// There is no room: the waker that was given is woken when there may be some.
    Full(Job),
    Closed,
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = lock(&self.state);
        f.debug_struct("Queue")
            .field("len", &(state.normal.jobs.len() + state.high.jobs.len()))
            .field("len_max", &self.len_max)
            .finish()
    }
}

impl QueueState {
    fn line(&mut self, priority: Priority) -> &mut Line {
        match priority {
            Priority::Normal => &mut self.normal,
            Priority::High => &mut self.high,
        }
    }

    /// Takes the job that is next for a thread, and whoever may be waiting for its place.
    fn take(&mut self, serves: Serves) -> Option<(Job, Priority, Option<Waker>)> {
        for priority in [Priority::High, Priority::Normal] {
            if serves == Serves::HighPriority && priority == Priority::Normal {
                break;
            }
            let line = self.line(priority);
            if let Some(job) = line.jobs.pop_front() {
                return Some((job, priority, line.wakers.take_first()));
            }
        }
        None
    }
}

impl Queue {
    pub(super) fn new(len_max: usize) -> Self {
        let state = QueueState { normal: Line::default(), high: Line::default(), is_open: true };
        Queue {
            len_max,
            state: Mutex::new(state),
            job_came: Condvar::new(),
            high_job_came: Condvar::new(),
            room_came: Condvar::new(),
            high_room_came: Condvar::new(),
        }
    }

    pub(super) fn push(&self, job: Job, priority: Priority, when_full: WhenFull) -> Result<()> {
        let mut state = lock(&self.state);
        while state.is_open && state.line(priority).jobs.len() >= self.len_max && !self.is_own_thread() {
            if when_full == WhenFull::Refuse {
                return Err(Error::QueueFull);
            }
            let Ok(wait) = self.begin_wait() else { break };
            state = self.room_came(priority).wait(state).unwrap_or_else(PoisonError::into_inner);
            drop(wait);
        }
        if !state.is_open {
            return Err(Error::Closed);
        }
        state.line(priority).jobs.push_back(job);
        drop(state);
        self.note_job(priority);
        Ok(())
    }

    /// Submits a job if there is room, and has `waker` woken otherwise when there may be some. `place` is where it waits,
    /// until it is submitted or [gives up](Queue::give_up_room).
    pub(super) fn push_or_wait(
        &self,
        job: Job,
        priority: Priority,
        place: &mut Option<RoomPlace>,
        waker: Waker,
    ) -> Pushed {
        let mut state = lock(&self.state);
        if !state.is_open {
            return Pushed::Closed;
        }
        let line = state.line(priority);
        let is_full = line.jobs.len() >= self.len_max && !self.is_own_thread();
        let waited = place.take();
        let before = waited.and_then(|place| line.wakers.remove(place));
        let pushed = if is_full {
            // Whoever has waited goes on in its place.
            *place = Some(line.wakers.put(waited, waker));
            Pushed::Full(job)
        } else {
            line.jobs.push_back(job);
            Pushed::Submitted
        };
        drop(state);
        if !is_full {
            self.note_job(priority);
        }
        // Wakers are foreign code: dropped without the lock, and when all else is done.
        drop(before);
        pushed
    }

    /// Waits for room no longer. Whoever was woken for it and does not take it passes it on.
    pub(super) fn give_up_room(&self, priority: Priority, place: RoomPlace) {
        let mut state = lock(&self.state);
        let wakers = &mut state.line(priority).wakers;
        let own = wakers.remove(place);
        let next = if own.is_none() { wakers.take_first() } else { None };
        drop(state);
        drop(own);
        if let Some(next) = next {
            call_foreign(|| next.wake());
        }
    }

    fn room_came(&self, priority: Priority) -> &Condvar {
        match priority {
            Priority::Normal => &self.room_came,
            Priority::High => &self.high_room_came,
        }
    }

    fn note_job(&self, priority: Priority) {
        self.job_came.notify_one();
        if priority == Priority::High {
            self.high_job_came.notify_one();
        }
    }

    /// Refuses further jobs and returns those that nobody has begun, and whoever has waited for room.
    pub(super) fn close(&self) -> (VecDeque<Job>, Vec<Waker>) {
        let mut state = lock(&self.state);
        state.is_open = false;
        let (high, normal) = (std::mem::take(&mut state.high), std::mem::take(&mut state.normal));
        drop(state);
        self.job_came.notify_all();
        self.high_job_came.notify_all();
        self.room_came.notify_all();
        self.high_room_came.notify_all();
        let jobs = high.jobs.into_iter().chain(normal.jobs).collect();
        (jobs, high.wakers.into_all().chain(normal.wakers.into_all()).collect())
    }

    pub(super) fn is_open(&self) -> bool {
        lock(&self.state).is_open
    }

    /// What a thread of the pool does from its first moment to its last.
    pub(super) fn work(&self, serves: Serves) {
        WORKS_FOR.set(self);
        while let Some(job) = self.pop(serves) {
            // The job reports its own panics. What is left is a panic of a waker or of a result's destructor:
            // the thread goes on.
            survive(job);
        }
        // Destructors of the thread's variables are no jobs, and another queue may get the address.
        WORKS_FOR.set(ptr::null());
    }

    fn pop(&self, serves: Serves) -> Option<Job> {
        let job_came = if serves == Serves::All { &self.job_came } else { &self.high_job_came };
        let mut state = lock(&self.state);
        loop {
            if let Some((job, priority, waker)) = state.take(serves) {
                drop(state);
                self.room_came(priority).notify_one();
                if let Some(waker) = waker {
                    survive(|| call_foreign(|| waker.wake()));
                }
                return Some(job);
            }
            if !state.is_open {
                return None;
            }
            state = job_came.wait(state).unwrap_or_else(PoisonError::into_inner);
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
