//! How a thread that serves channels goes on when nothing comes: it looks again for a while, then lets others run between its looks, and then sleeps.

use std::thread;
use std::time::Duration;

use ensilo_sync::cpu_relax;

/// How often it looks again before it sleeps.
const LOOKS: u32 = 2000;

/// From so many on it lets others run after each few: there may be more threads than processors.
const LOOKS_ALONE: u32 = 64;
const LOOKS_PER_YIELD: u32 = 16;

/// How long it sleeps at most, since some things are to be done by time.
const SLEEP_MAX: Duration = Duration::from_millis(100);

/// The same while it waits for something that does not wake it, such as room in a channel.
const SLEEP_MAX_SOON: Duration = Duration::from_micros(100);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Idle {
    looks: u32,
}

impl Idle {
    /// Notes that something has come.
    pub(crate) fn end(&mut self) {
        self.looks = 0;
    }

    /// Notes that nothing has come. Returns whether it is time to sleep, and until then passes a moment.
    pub(crate) fn is_long(&mut self) -> bool {
        self.looks = self.looks.saturating_add(1);
        if self.looks < LOOKS {
            cpu_relax();
        }
        // Whoever is to bring something may wait for this processor.
        if self.looks >= LOOKS_ALONE && self.looks.is_multiple_of(LOOKS_PER_YIELD) {
            thread::yield_now();
        }
        self.looks >= LOOKS
    }

    /// Returns how long to sleep at most.
    pub(crate) fn sleep_max(is_soon: bool) -> Duration {
        if is_soon { SLEEP_MAX_SOON } else { SLEEP_MAX }
    }
}
