//! A future that waits for an epoch to be durable.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use ensilo_epoch::Epoch;

use super::error::LogError;
use super::log::Log;

/// Becomes ready when all transactions of an epoch and of earlier ones are stored, or with the reason why
/// that will not be.
///
/// However often it is polled, it keeps one waker with the log: the last one. Dropping it takes that back.
pub struct Stored {
    log: Arc<Log>,
    epoch: Epoch,
    /// Names the waker that was left with the log.
    number: Option<u64>,
}

impl Stored {
    /// Waits for `epoch` once it is polled.
    #[must_use]
    pub fn new(log: Arc<Log>, epoch: Epoch) -> Stored {
        Stored { log, epoch, number: None }
    }

    /// Returns the epoch that is waited for.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the log that stores it.
    #[must_use]
    pub fn log(&self) -> &Log {
        &self.log
    }
}

impl Future for Stored {
    type Output = Result<(), LogError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), LogError>> {
        let Stored { log, epoch, number } = self.get_mut();
        log.poll_durable(*epoch, number, context.waker())
    }
}

/// Another future for the same epoch, with a waker of its own.
impl Clone for Stored {
    fn clone(&self) -> Self {
        Stored::new(Arc::clone(&self.log), self.epoch)
    }
}

impl Drop for Stored {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.log.forget_waker(self.epoch, number);
        }
    }
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stored").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[cfg(all(not(loom), test))]
mod tests {
    use std::task::{Wake, Waker};

    use super::super::durable::Durable;
    use super::*;

    struct Nothing;

    impl Wake for Nothing {
        fn wake(self: Arc<Self>) {}
    }

    fn counted() -> (Arc<Nothing>, Waker) {
        let counter = Arc::new(Nothing);
        (Arc::clone(&counter), Waker::from(counter))
    }

    #[test]
    fn a_future_that_is_polled_often_leaves_one_waker() {
        let durable = Durable::new(1, Epoch::new(5));
        let ((one, waker), (other, other_waker)) = (counted(), counted());
        let (epoch, mut number, mut wakes) = (Epoch::new(9), None, 0);
        for _ in 0..1000 {
            assert!(durable.poll(epoch, &mut number, &waker, || wakes += 1).is_pending());
        }
        assert_eq!((Arc::strong_count(&one), wakes, durable.is_waited_for(epoch)), (3, 1, true));
        assert!(durable.poll(epoch, &mut number, &other_waker, || wakes += 1).is_pending());
        assert_eq!((Arc::strong_count(&one), Arc::strong_count(&other)), (2, 3));
        durable.forget(epoch, number.unwrap());
        assert_eq!((Arc::strong_count(&other), wakes, durable.is_waited_for(epoch)), (2, 1, false));
    }

    #[test]
    fn what_becomes_durable_wakes_its_futures_and_keeps_no_waker() {
        let durable = Durable::new(1, Epoch::new(5));
        let (one, waker) = counted();
        let mut numbers = [None; 3];
        for (at, number) in numbers.iter_mut().enumerate() {
            assert!(durable.poll(Epoch::new(6 + at as u64), number, &waker, || ()).is_pending());
        }
        assert_eq!(Arc::strong_count(&one), 5);
        durable.stored(0, Epoch::new(8), 1).calls.call();
        assert_eq!(Arc::strong_count(&one), 3);
        assert!(durable.poll(Epoch::new(7), &mut numbers[1], &waker, || ()).is_ready());
        durable.end(&LogError::Closed);
        assert_eq!(Arc::strong_count(&one), 2);
        assert!(matches!(
            durable.poll(Epoch::new(8), &mut numbers[2], &waker, || ()),
            Poll::Ready(Err(LogError::Closed))
        ));
    }
}
