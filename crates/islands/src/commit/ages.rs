//! Who may wait for whom: the older one for the younger.
//!
//! A transaction that waits at one instance, and has parts elsewhere that are prepared, keeps others waiting. So it waits for longer than a moment
//! only as long as all parts that hold something here are younger, which is asked again and again; otherwise it gives up, and is as old as before
//! when it is tried again. So in a circle of transactions that wait for each other, and have done so for a moment, every one would be older than the
//! next. One that holds nothing elsewhere may wait for anybody: nobody waits for it.
//!
//! Two kinds of parts do not count as older: those that have been in doubt for long, whose coordinator has ended, and those of before a crash. Where
//! they close a circle it ends when somebody has waited too long.
//!
//! # Limits
//! Of those who wait for the same the oldest goes first. Who comes just when it is free may be quicker than who waits: one that writes a row which
//! others read without end may be refused again and again.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::id::DistributedId;

/// When a transaction was first begun, by a clock that all instances share, and which one of those begun then. The smaller one is older.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Age {
    pub(super) since: u64,
    pub(super) id: DistributedId,
}

/// The ages of all parts that hold something at an instance; all of its sites have the same.
#[derive(Clone, Debug, Default)]
pub struct Ages(Arc<Mutex<BTreeSet<Age>>>);

impl Ages {
    /// Notes a part that holds something.
    pub(super) fn enter(&self, age: Age) {
        self.lock().insert(age);
    }

    /// Notes that a part holds nothing any more, or does not count.
    pub(super) fn leave(&self, age: Age) {
        self.lock().remove(&age);
    }

    /// Returns whether a transaction may wait for whoever holds something here, also if it keeps others waiting.
    pub(super) fn are_younger_than(&self, age: Age) -> bool {
        self.lock().first().is_none_or(|oldest| *oldest > age)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<Age>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
