//! A step over many epochs, at the opening of a database.

use std::time::Instant;

use super::Epochs;
use crate::Epoch;

impl Epochs {
    /// Moves the global epoch on to `epoch` in one step, or to the first one behind it that begins a snapshot interval. Everything
    /// that was committed before is in the snapshots from there on. Does nothing where the global epoch is as late already, and
    /// where no interval begins before [`Epoch::LAST`].
    ///
    /// It is for an opening, before anybody pins an epoch or commits in one: a participant that has read the global epoch and
    /// publishes it later would come behind horizons that have gone far past it.
    pub fn skip_to(&self, epoch: Epoch) {
        let mut numbers = self.lock_numbers();
        if epoch.get() <= numbers.global || epoch > Epoch::LAST {
            return;
        }
        let start = self.interval.start_from(epoch);
        if start > Epoch::LAST {
            return;
        }
        numbers.due = start.get();
        numbers.due_since = Instant::now();
        self.tick_to(&mut numbers, start);
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::time::Duration;

    use ensilo_slab::Pool;

    use super::*;
    use crate::{Advance, EpochOptions};

    #[test]
    fn epochs_go_on_behind_a_step_as_before_it() {
        for snapshot_interval in [None, Some(Duration::from_secs(3600))] {
            let options = EpochOptions {
                advance: Advance::Manual,
                epochs_per_snapshot: 8,
                snapshot_interval,
                ..EpochOptions::default()
            };
            let epochs = Epochs::new(options, Pool::new(None));
            let far = Epoch::new(1 << 40 | 3);
            epochs.skip_to(far);
            let there = Epoch::new((1 << 40) + 8);
            assert_eq!((epochs.global_epoch(), epochs.snapshot_epoch()), (there, there));
            assert_eq!(epochs.complete_frontier(), there);
            assert!(epochs.memory_horizon() < there && epochs.memory_horizon() >= Epoch::new(1 << 40));
            for earlier in [Epoch::new(0), far, there, Epoch::LAST] {
                epochs.skip_to(earlier);
                assert_eq!(epochs.global_epoch(), there, "{earlier}");
            }
            epochs.advance();
            assert_eq!(epochs.global_epoch(), Epoch::new(there.get() + 1));
            assert_eq!(epochs.snapshot_epoch(), there);
        }
    }
}
