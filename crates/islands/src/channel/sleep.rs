//! How one end sleeps, and the other one finds out that it has to wake it.
//!
//! A word in shared memory counts the receiver's sleeps: it is odd while it sleeps. The receiver alone writes it. The sender remembers the last
//! sleep from which it has woken the receiver, so that it does so once for each.
//!
//! # Memory ordering
//! `[sleep]` Who is about to sleep says so, has a fence, and looks for a message once more. Who has put a message in has a fence, and looks
//! whether the other one sleeps. If the first fence comes first, the sleeper is seen and woken. If the second one does, the message is.
//! Both have two accesses of two words, a store and then a load, which nothing but a fence keeps in order.

use ensilo_sync::atomic::{AtomicU64, Ordering, fence};

/// What a receiver knows of its sleeps.
#[derive(Debug, Default)]
pub(super) struct Sleeps {
    /// What its word says.
    count: u64,
}

impl Sleeps {
    /// Says that the receiver is about to sleep: it looks for messages after this, and sleeps if there are none.
    pub(super) fn begin(&mut self, word: &AtomicU64) {
        self.count += 1;
        word.store(self.count, Ordering::Relaxed);
        // SeqCst fence: [sleep] a message that is not seen from here on is followed by a look that finds the receiver asleep.
        fence(Ordering::SeqCst);
    }

    /// Says that the receiver is awake.
    pub(super) fn end(&mut self, word: &AtomicU64) {
        self.count += 1;
        // Relaxed: who still finds it asleep wakes it once more, for nothing.
        word.store(self.count, Ordering::Relaxed);
    }
}

/// What a sender knows of the receiver's sleeps.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    /// The last sleep from which this sender has woken it.
    last: u64,
}

impl Wakeups {
    /// Returns whether the receiver sleeps, after a message was put in. The caller wakes it then.
    #[inline]
    pub(super) fn are_due(&mut self, word: &AtomicU64) -> bool {
        // SeqCst fence: [sleep] the message is seen by whoever is not found asleep.
        fence(Ordering::SeqCst);
        // Relaxed: the fence orders it, and the wake-up itself what comes after.
        let count = word.load(Ordering::Relaxed);
        let is_due = count % 2 == 1 && count != self.last;
        if is_due {
            self.last = count;
        }
        is_due
    }
}
