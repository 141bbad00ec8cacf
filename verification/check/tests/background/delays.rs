//! Recording engines that lose time at random at the named places of jobs.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use ensilo::ermia::{Isolation, Serializable};
use ensilo::two_phase_locking::Locking;
use ensilo::variants::{Failpoint, Fault, Variant};

/// From which each thread makes its random numbers.
static SEED: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Lets every thread that comes from now on have numbers that follow from `seed`.
pub(crate) fn set_seed(seed: u64) {
    SEED.store(seed << 16 | 1, Ordering::Relaxed);
}

/// A random number of this thread.
pub(crate) fn random() -> u64 {
    let mut state = STATE.get();
    if state == 0 {
        // Relaxed: the numbers need only differ.
        state = SEED.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    }
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    STATE.set(state);
    state
}

/// Whether something is to happen that happens one time in `times`.
pub(crate) fn one_in(times: u64) -> bool {
    random().is_multiple_of(times)
}

/// Loses time, or not. What happens once for each row is held up seldom.
fn delay(place: Failpoint) {
    let (times, longest) = match place {
        Failpoint::UnhookBegun | Failpoint::PreparedReadRegistered | Failpoint::PreparedReadReleased => {
            (64, 300)
        }
        Failpoint::CheckpointRowsWalked | Failpoint::BackupBytesCopied => (4, 1_000),
        _ => (2, 3_000),
    };
    if one_in(times) {
        thread::sleep(Duration::from_micros(random() % longest));
    } else if one_in(2) {
        thread::yield_now();
    }
}

/// Each engine of the product, recording, with delays.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Delayed;

impl Variant for Delayed {
    const RECORDS_HISTORY: bool = true;

    fn reached(place: Failpoint) {
        delay(place);
    }
}

impl Isolation for Delayed {
    type Dependencies = <Serializable as Isolation>::Dependencies;
    const SERIALIZABLE: bool = true;
    const RECORDS_HISTORY: bool = true;

    fn reached(place: Failpoint) {
        delay(place);
    }
}

/// As [`Delayed`], of two-phase locking.
#[derive(Copy, Clone, Debug)]
pub(crate) struct DelayedLocking;

impl Variant for DelayedLocking {
    const VALIDATES: bool = false;
    const RECORDS_HISTORY: bool = true;

    fn reached(place: Failpoint) {
        delay(place);
    }
}

impl Locking for DelayedLocking {
    const WAITS: bool = true;
}

/// As [`Delayed`], of ERMIA's engine; entries of indexes are taken as they are, whatever the transaction sees of their rows.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SkipsEntryCheck;

impl Isolation for SkipsEntryCheck {
    type Dependencies = <Serializable as Isolation>::Dependencies;
    const SERIALIZABLE: bool = true;
    const RECORDS_HISTORY: bool = true;
    const FAULT: Option<ensilo_ermia::Fault> = Some(ensilo_ermia::Fault::SkipEntryCheck);

    fn reached(place: Failpoint) {
        delay(place);
    }
}

/// As [`Delayed`], of Silo's engine; a row that leaves a unique index takes the entry of another one with it.
#[derive(Debug)]
pub(crate) struct RemovesEntriesOfOthers;

impl Variant for RemovesEntriesOfOthers {
    const RECORDS_HISTORY: bool = true;
    const FAULT: Option<Fault> = Some(Fault::RemoveEntriesOfOthers);

    fn reached(place: Failpoint) {
        delay(place);
    }
}

/// As [`Delayed`], of Silo's engine; tables are truncated while others use them.
#[derive(Debug)]
pub(crate) struct TruncatesUsedTables;

impl Variant for TruncatesUsedTables {
    const RECORDS_HISTORY: bool = true;
    const FAULT: Option<Fault> = Some(Fault::TruncateUsedTables);

    fn reached(place: Failpoint) {
        delay(place);
    }
}
