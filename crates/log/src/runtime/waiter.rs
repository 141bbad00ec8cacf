//! Where threads wait for an answer that is given once.

use super::error::LogError;

/// Where threads wait for one epoch: one system call wakes all of them, and none takes a lock after that.
#[cfg(not(any(loom, shuttle)))]
#[derive(Debug, Default)]
pub(crate) struct Waiter(std::sync::OnceLock<Result<(), LogError>>);

#[cfg(not(any(loom, shuttle)))]
impl Waiter {
    pub(crate) fn wait(&self) -> Result<(), LogError> {
        self.0.wait().clone()
    }

    /// Gives the answer. It is given once: later ones have no effect.
    pub(crate) fn set(&self, answer: Result<(), LogError>) {
        let _ = self.0.set(answer);
    }
}

/// The same, for model checkers.
#[cfg(any(loom, shuttle))]
#[derive(Debug)]
pub(crate) struct Waiter(super::monitor::Monitor<Option<Result<(), LogError>>>);

#[cfg(any(loom, shuttle))]
impl Default for Waiter {
    fn default() -> Self {
        Waiter(super::monitor::Monitor::new(None))
    }
}

#[cfg(any(loom, shuttle))]
impl Waiter {
    pub(crate) fn wait(&self) -> Result<(), LogError> {
        let mut answer = self.0.lock();
        loop {
            if let Some(answer) = &*answer {
                return answer.clone();
            }
            answer = self.0.wait(answer);
        }
    }

    pub(crate) fn set(&self, answer: Result<(), LogError>) {
        self.0.lock().get_or_insert(answer);
        self.0.notify_all();
    }
}
