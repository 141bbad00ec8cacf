//! Who waits for room in a queue without keeping a thread: wakers, in the order in which they came.

use std::collections::BTreeMap;
use std::task::Waker;

/// Where a waker stands among those that wait.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoomPlace(u64);

/// Each waker is woken for one place. Whoever was woken and does not take it has to pass it on.
#[derive(Debug, Default)]
pub(super) struct RoomWakers {
    wakers: BTreeMap<RoomPlace, Waker>,
    next: u64,
}

impl RoomWakers {
    /// Puts a waker where it stood before, or at the end.
    pub(super) fn put(&mut self, before: Option<RoomPlace>, waker: Waker) -> RoomPlace {
        let place = before.unwrap_or_else(|| {
            self.next += 1;
            RoomPlace(self.next)
        });
        self.wakers.insert(place, waker);
        place
    }

    /// Takes a waker out; `None` if it was woken.
    pub(super) fn remove(&mut self, place: RoomPlace) -> Option<Waker> {
        self.wakers.remove(&place)
    }

    /// Takes out the one that is to be woken next.
    pub(super) fn take_first(&mut self) -> Option<Waker> {
        self.wakers.pop_first().map(|(_, waker)| waker)
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = Waker> {
        self.wakers.into_values()
    }
}
