//! Who waits for room in a queue without keeping a thread: wakers, in the order in which they came.

use std::collections::BTreeMap;
use std::task::Waker;

/// Where a waker stands.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RoomTicket(u64);

/// Each waker is woken for one place. Whoever was woken and does not take it has to pass it on.
#[derive(Debug, Default)]
pub(super) struct RoomWakers {
    wakers: BTreeMap<RoomTicket, Waker>,
    next: u64,
}

impl RoomWakers {
    /// Puts a waker where it stood before, or at the end.
    pub(super) fn put(&mut self, before: Option<RoomTicket>, waker: Waker) -> RoomTicket {
        let ticket = before.unwrap_or_else(|| {
            self.next += 1;
            RoomTicket(self.next)
        });
        self.wakers.insert(ticket, waker);
        ticket
    }

    /// Takes a waker out; `None` if it was woken.
    pub(super) fn remove(&mut self, ticket: RoomTicket) -> Option<Waker> {
        self.wakers.remove(&ticket)
    }

    /// Takes out the one that is to be woken next.
    pub(super) fn take_first(&mut self) -> Option<Waker> {
        self.wakers.pop_first().map(|(_, waker)| waker)
    }

    pub(super) fn into_all(self) -> impl Iterator<Item = Waker> {
        self.wakers.into_values()
    }
}
