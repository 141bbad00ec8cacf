//! The thread that moves the global epoch on.
//!
//! It keeps nothing of the epochs alive: it ends when it is stopped, or when a tick finds that they are gone.

#[cfg(not(any(loom, shuttle)))]
pub(crate) use thread::Advancer;
#[cfg(any(loom, shuttle))]
pub(crate) use unclocked::Advancer;

#[cfg(not(any(loom, shuttle)))]
mod thread {
    use std::io;
    use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    use std::thread::{self, JoinHandle};
    use std::time::{Duration, Instant};

    /// The advancing thread, if it was started.
    #[derive(Debug)]
    pub(crate) struct Advancer {
        stop: Arc<Stop>,
        handle: Mutex<Option<JoinHandle<()>>>,
    }

    impl Advancer {
        pub(crate) fn new() -> Self {
            Advancer { stop: Arc::default(), handle: Mutex::new(None) }
        }

        /// Starts the thread, which calls `tick` until that returns false.
        ///
        /// # Errors
        /// When the system has no thread left.
        pub(crate) fn start(
            &self,
            interval: Duration,
            tick: impl FnMut() -> bool + Send + 'static,
        ) -> io::Result<()> {
            let stop = Arc::clone(&self.stop);
            let thread = thread::Builder::new().name("ensilo-epoch".into());
            let handle = thread.spawn(move || tick_until_stopped(interval, &stop, tick))?;
            *lock(&self.handle) = Some(handle);
            Ok(())
        }

        /// Has the thread end, and waits until it has. Also called on that thread, when its tick held the last
        /// reference: then it ends by itself.
        pub(crate) fn stop(&self) {
            *lock(&self.stop.stopped) = true;
            self.stop.wake.notify_all();
            let handle = lock(&self.handle).take();
            if let Some(handle) = handle
                && handle.thread().id() != thread::current().id()
                && let Err(panic) = handle.join()
                && !thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }

    #[derive(Debug, Default)]
    struct Stop {
        stopped: Mutex<bool>,
        wake: Condvar,
    }

    impl Stop {
        /// Waits until `deadline`, or until the thread is to stop; returns whether it is.
        fn wait_until(&self, deadline: Instant) -> bool {
            let mut stopped = lock(&self.stopped);
            loop {
                let left = deadline.saturating_duration_since(Instant::now());
                if *stopped || left.is_zero() {
                    return *stopped;
                }
                let (guard, _) =
                    self.wake.wait_timeout(stopped, left).unwrap_or_else(PoisonError::into_inner);
                stopped = guard;
            }
        }
    }

    fn tick_until_stopped(interval: Duration, stop: &Stop, mut tick: impl FnMut() -> bool) {
        let mut deadline = Instant::now() + interval;
        while !stop.wait_until(deadline) && tick() {
            // A tick that came late does not make the next ones come early.
            deadline = (deadline + interval).max(Instant::now());
        }
    }

    fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(any(loom, shuttle))]
mod unclocked {
    use std::io;
    use std::time::Duration;

    /// No thread: a model checker has no clock, and its models advance by hand.
    #[derive(Debug)]
    pub(crate) struct Advancer;

    impl Advancer {
        pub(crate) fn new() -> Self {
            Advancer
        }

        pub(crate) fn start(
            &self,
            _interval: Duration,
            _tick: impl FnMut() -> bool + Send + 'static,
        ) -> io::Result<()> {
            Ok(())
        }

        pub(crate) fn stop(&self) {}
    }
}
