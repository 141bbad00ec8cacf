//! The state of a record that several threads read and write: a version that readers look at before and after they copy, and a lock for
//! writers.
//!
//! # Layout
//! Locked (bit 0), gone (bit 1), the version above. A *gone* record has left its tree: another one may have taken its place.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | publish | [`Version::publish`] Release | [`Version::of`] Acquire | the row before its version |
//! | lock | Release fence in [`Version::try_lock`] | Acquire fence in [`Version::is_still`] | a reader that copied a word of a later writer sees that writer's lock |

use ensilo_sync::Backoff;
use ensilo_sync::atomic::{Ordering, fence};

use crate::record::Record;

const LOCKED: u64 = 1;
const GONE: u64 = 1 << 1;
const STEP: u64 = 1 << 2;

/// The version of a record that no writer is at work on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version(u64);

impl Version {
    /// The first of every record.
    pub(crate) const FIRST: Version = Version(0);

    /// Returns the state as it stands in memory.
    pub(crate) const fn raw(self) -> u64 {
        self.0
    }

    /// Returns the version of a record, once no writer is at work.
    #[inline]
    pub(crate) fn of(record: Record) -> Version {
        // Acquire: [publish].
        let state = record.header().load(Ordering::Acquire);
        if state & LOCKED == 0 { Version(state) } else { Version::wait_for(record) }
    }

    #[cold]
    fn wait_for(record: Record) -> Version {
        let mut backoff = Backoff::new();
        loop {
            backoff.wait();
            // Acquire: [publish].
            let state = record.header().load(Ordering::Acquire);
            if state & LOCKED == 0 {
                return Version(state);
            }
        }
    }

    /// Returns whether the record has left its tree.
    #[inline]
    pub(crate) const fn is_gone(self) -> bool {
        self.0 & GONE != 0
    }

    /// Returns whether this is still the version of the record, so that everything copied since it was read belongs to it.
    #[inline]
    pub(crate) fn is_still(self, record: Record) -> bool {
        // Acquire fence: [lock] if a copied word came from a later writer, the load below sees its lock or its version.
        fence(Ordering::Acquire);
        record.header().load(Ordering::Relaxed) == self.0
    }

    /// Takes the lock if this is still the version of the record.
    #[inline]
    pub(crate) fn try_lock(self, record: Record) -> bool {
        // Acquire: the caller writes over what the previous holder published.
        let locked = self.0 | LOCKED;
        let taken =
            record.header().compare_exchange(self.0, locked, Ordering::Acquire, Ordering::Relaxed).is_ok();
        // Release fence: [lock] no word that is stored after this becomes visible before the lock does.
        fence(Ordering::Release);
        taken
    }

    /// Returns the version after this one.
    #[inline]
    pub(crate) const fn next(self) -> Version {
        Version(self.0.wrapping_add(STEP))
    }

    /// The same version of a record that has left its tree.
    pub(crate) const fn gone(self) -> Version {
        Version(self.0 | GONE)
    }

    /// Makes this the version of a record that the caller has locked, and frees the lock.
    #[inline]
    pub(crate) fn publish(self, record: Record) {
        // Release: [publish].
        record.header().store(self.0, Ordering::Release);
    }
}
