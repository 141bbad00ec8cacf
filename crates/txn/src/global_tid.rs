//! TIDs from one counter that all workers share: what Silo does without, to be compared with it.
//!
//! # Source
//! Silo (SOSP 2013) §5.2, MemSilo+GlobalTID: the commit protocol is the same but for where TIDs come from. The counter holds whole TIDs
//! and follows the epochs, so that TIDs are still in the order of epochs.

use std::cmp::Ordering as Order;

use ensilo_engine::Tid;
use ensilo_epoch::Epoch;
use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

/// The last TID that was given out. No TID is given out twice.
#[derive(Debug)]
pub(crate) struct GlobalTid(CachePadded<AtomicU64>);

impl GlobalTid {
    pub(crate) fn new() -> Self {
        GlobalTid(CachePadded::new(AtomicU64::new(0)))
    }

    /// Returns the next TID, if it lies in `epoch`; `None` when TIDs of a later epoch have been given out, or this one's are used
    /// up, or it is the last one.
    ///
    /// Relaxed throughout: all TIDs that the caller has seen were given out before, which is all that it has to know, and operations on
    /// one word have one order.
    pub(crate) fn next_in(&self, epoch: Epoch) -> Option<Tid> {
        if epoch >= Epoch::LAST {
            return None;
        }
        loop {
            let tid = Tid::from_raw(self.0.fetch_add(Tid::STEP, Ordering::Relaxed) + Tid::STEP);
            match tid.epoch().cmp(&epoch) {
                Order::Equal => return Some(tid),
                Order::Greater => return None,
                Order::Less => _ = self.0.fetch_max(Tid::before(epoch).get(), Ordering::Relaxed),
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tids_follow_the_epochs_and_never_go_back() {
        let tids = GlobalTid::new();
        let [first, second] = [(); 2].map(|()| tids.next_in(Epoch::new(7)).unwrap());
        assert!(first < second && first.epoch() == Epoch::new(7) && second.epoch() == Epoch::new(7));
        let later = tids.next_in(Epoch::new(9)).unwrap();
        assert!(later > second && later.epoch() == Epoch::new(9));
        assert_eq!(tids.next_in(Epoch::new(8)), None);
        assert!(tids.next_in(Epoch::new(9)).unwrap() > later);
    }

    #[test]
    fn an_epoch_without_tids_left_ends() {
        let tids = GlobalTid::new();
        let last = Tid::before(Epoch::new(8)).get() - Tid::STEP;
        tids.0.store(last, Ordering::Relaxed);
        assert_eq!(tids.next_in(Epoch::new(7)), None);
        assert_eq!(tids.next_in(Epoch::new(8)).unwrap().epoch(), Epoch::new(8));
    }

    #[test]
    fn the_last_epoch_has_no_tids() {
        let tids = GlobalTid::new();
        assert!(tids.next_in(Epoch::new(Epoch::LAST.get() - 1)).is_some());
        assert_eq!(tids.next_in(Epoch::LAST), None);
    }

    #[test]
    fn threads_get_different_tids() {
        let tids = GlobalTid::new();
        let drawn = std::thread::scope(|scope| {
            let draw = || (0..20_000).filter_map(|turn| tids.next_in(Epoch::new(1 + turn / 1000))).collect();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(draw)).collect();
            let drawn = threads.into_iter().map(|thread| thread.join().unwrap());
            drawn.collect::<Vec<Vec<Tid>>>()
        });
        assert!(drawn.iter().all(|tids| tids.is_sorted_by(|one, other| one < other)));
        let count: usize = drawn.iter().map(Vec::len).sum();
        assert_eq!(drawn.into_iter().flatten().collect::<BTreeSet<_>>().len(), count);
        assert!(count >= 20_000);
    }
}
