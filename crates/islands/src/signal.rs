//! How a thread that is about to sleep, and those that have something for it, find each other.
//!
//! # Memory ordering
//! - `[sleep]` Who is about to sleep says so, has a fence, and looks whether something has come. Who has something says so, has a fence, and looks
//!   whether the other one sleeps. If the first fence comes first, the sleeper is found and woken; if the second one does, what has come is.
//! - `[come]` `note` Release -> `take` Acquire: what has come, of all that have noted it since the last look. Both are read-modify-writes, so that the
//!   note of one is part of the release sequence of those before: a store would hide what they have brought.

use ensilo_sync::atomic::{AtomicBool, Ordering, fence};

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Signal {
    /// Whether something has come since the thread last looked.
    has_come: AtomicBool,
    sleeps: AtomicBool,
}

impl Signal {
    pub(crate) fn new() -> Self {
        Signal { has_come: AtomicBool::new(false), sleeps: AtomicBool::new(false) }
    }

    /// Notes that something has come. Returns whether the thread sleeps, or is about to: the caller wakes it.
    pub(crate) fn note(&self) -> bool {
        // Release: [come].
        self.has_come.swap(true, Ordering::Release);
        // SeqCst fence: [sleep].
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it.
        self.sleeps.load(Ordering::Relaxed)
    }

    /// Returns whether something has come since the last call.
    pub(crate) fn take(&self) -> bool {
        // Relaxed first: it is written only when something has come. Acquire: [come].
        self.has_come.load(Ordering::Relaxed) && self.has_come.swap(false, Ordering::Acquire)
    }

    /// Says that the thread is about to sleep until it is woken. Returns whether something has come already.
    pub(crate) fn begin_sleep(&self) -> bool {
        self.sleeps.store(true, Ordering::Relaxed);
        // SeqCst fence: [sleep].
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it.
        self.has_come.load(Ordering::Relaxed)
    }

    /// Says that the thread is awake.
    pub(crate) fn end_sleep(&self) {
        // Relaxed: who still finds it asleep wakes it once more, for nothing.
        self.sleeps.store(false, Ordering::Relaxed);
    }
}

/// Without a fence of `[sleep]`, without `[come]`, or with a store in the place of either read-modify-write, this fails.
#[cfg(all(test, loom))]
mod model {
    use std::sync::Arc;

    use ensilo_sync::atomic::AtomicU64;
    use loom::sync::Notify;
    use loom::thread;

    use super::*;

    const BRINGING: u64 = 2;

    /// Loom fails the model when everybody waits for good.
    #[test]
    fn nobody_sleeps_beside_what_has_come() {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(|| {
            let signal = Arc::new(Signal::new());
            let (brought, wakeup) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
            let threads: Vec<_> = (0..BRINGING)
                .map(|_| {
                    let (signal, brought, wakeup) =
                        (Arc::clone(&signal), Arc::clone(&brought), Arc::clone(&wakeup));
                    thread::spawn(move || {
                        brought.fetch_add(1, Ordering::Relaxed);
                        if signal.note() {
                            wakeup.notify();
                        }
                    })
                })
                .collect();
            let mut found = 0;
            while found < BRINGING {
                if signal.take() {
                    found = brought.load(Ordering::Relaxed);
                } else {
                    if !signal.begin_sleep() {
                        wakeup.wait();
                    }
                    signal.end_sleep();
                }
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }
}
