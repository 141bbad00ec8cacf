//! How many records each table and index has, counted without a word that two workers write.
//!
//! A transaction tallies its inserts and deletes by store. When it commits, its worker adds the tally to
//! counters of its own, which a reader sums over all workers. A worker that goes leaves its counts to the
//! database.

use std::sync::{Arc, OnceLock, PoisonError};

use ensilo_engine::TableId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::sync::{Mutex, MutexGuard};
use ensilo_sync::unchecked::AtomicU64;

/// Counters of one segment of stores: segment `i` has `FIRST_SEGMENT_LEN << i`.
type Segment = OnceLock<Box<[AtomicU64]>>;

const FIRST_SEGMENT_LEN: usize = 64;
const SEGMENTS: usize = 26;

/// Counters by store, each the sum of differences modulo 2^64: one worker's may be "negative", the sum over
/// all is not.
#[derive(Debug)]
struct Counts {
    segments: [Segment; SEGMENTS],
}

/// The counts of all workers of a database.
#[derive(Debug)]
pub(crate) struct RecordCounts {
    workers: Mutex<Vec<Arc<Counts>>>,
    departed: Counts,
}

/// One worker's counts, and what its running transaction would add to them.
#[derive(Debug)]
pub(crate) struct RecordTally {
    all: Arc<RecordCounts>,
    own: Arc<Counts>,
    /// Differences by store id, of the stores in `touched`.
    differences: Vec<i64>,
    touched: Vec<u32>,
}

impl RecordCounts {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(RecordCounts { workers: Mutex::new(Vec::new()), departed: Counts::new() })
    }

    /// Returns the counters of a new worker.
    pub(crate) fn tally(self: &Arc<Self>) -> RecordTally {
        let own = Arc::new(Counts::new());
        self.lock().push(Arc::clone(&own));
        RecordTally { all: Arc::clone(self), own, differences: Vec::new(), touched: Vec::new() }
    }

    /// Counts records that were there when the database was opened.
    pub(crate) fn add_recovered(&self, store: TableId, records: u64) {
        // Under the lock, as all that is added to these.
        let _workers = self.lock();
        self.departed.add_as_owner(store.0, records.cast_signed());
    }

    /// Returns how many records the store has: what was committed, also where snapshots still see a deleted
    /// record.
    pub(crate) fn of(&self, store: TableId) -> u64 {
        let workers = self.lock();
        let sum =
            workers.iter().fold(self.departed.get(store.0), |sum, own| sum.wrapping_add(own.get(store.0)));
        // Read while workers count, a row that one inserted and another deleted may show half.
        sum.cast_signed().max(0).cast_unsigned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Counts>>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordTally {
    /// Notes that the running transaction adds a record to the store.
    #[inline]
    pub(crate) fn inserted(&mut self, store: TableId) {
        self.add(store.0, 1);
    }

    /// Notes that the running transaction deletes a record of the store.
    #[inline]
    pub(crate) fn deleted(&mut self, store: TableId) {
        self.add(store.0, -1);
    }

    #[inline]
    fn add(&mut self, store: u32, difference: i64) {
        match self.differences.get_mut(store as usize) {
            Some(sum) if *sum != 0 => *sum += difference,
            _ => self.touch(store, difference),
        }
    }

    fn touch(&mut self, store: u32, difference: i64) {
        if self.differences.len() <= store as usize {
            self.differences.resize(store as usize + 1, 0);
        }
        self.differences[store as usize] += difference;
        self.touched.push(store);
    }

    /// Counts what the running transaction has noted, when it has committed.
    #[inline(always)]
    pub(crate) fn commit(&mut self) {
        if !self.touched.is_empty() {
            self.count();
        }
    }

    #[inline(never)]
    fn count(&mut self) {
        // A store whose sum returned to 0 in between is there twice, the second time with 0.
        for store in self.touched.drain(..) {
            let difference = std::mem::take(&mut self.differences[store as usize]);
            self.own.add_as_owner(store, difference);
        }
    }

    /// Forgets what a transaction that did not commit has noted.
    #[inline(always)]
    pub(crate) fn discard(&mut self) {
        if !self.touched.is_empty() {
            self.forget();
        }
    }

    #[cold]
    fn forget(&mut self) {
        self.touched.drain(..).for_each(|store| self.differences[store as usize] = 0);
    }
}

impl Drop for RecordTally {
    fn drop(&mut self) {
        // Under the lock a reader sees the counts in one place or the other.
        let mut workers = self.all.lock();
        workers.retain(|own| !Arc::ptr_eq(own, &self.own));
        self.own.move_to(&self.all.departed);
    }
}

impl Counts {
    fn new() -> Self {
        Counts { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    fn get(&self, store: u32) -> u64 {
        let (segment, at) = place(store);
        // Relaxed: a recent value will do.
        self.segments[segment].get().map_or(0, |counters| counters[at].load(Ordering::Relaxed))
    }

    /// Called by one thread at a time.
    #[inline]
    fn add_as_owner(&self, store: u32, difference: i64) {
        let (segment, at) = place(store);
        let counters = self.segments[segment]
            .get_or_init(|| (0..FIRST_SEGMENT_LEN << segment).map(|_| AtomicU64::new(0)).collect());
        let counter = &counters[at];
        // Relaxed, and no read-modify-write: there is one writer.
        counter.store(counter.load(Ordering::Relaxed).wrapping_add_signed(difference), Ordering::Relaxed);
    }

    fn move_to(&self, other: &Counts) {
        for (number, segment) in self.segments.iter().enumerate() {
            let first = (FIRST_SEGMENT_LEN << number) - FIRST_SEGMENT_LEN;
            for (at, counter) in segment.get().into_iter().flatten().enumerate() {
                let difference = counter.load(Ordering::Relaxed).cast_signed();
                if difference != 0 {
                    other.add_as_owner((first + at) as u32, difference);
                }
            }
        }
    }
}

/// Returns the segment of a store's counter, and its place there.
#[inline]
fn place(store: u32) -> (usize, usize) {
    let shifted = store as usize + FIRST_SEGMENT_LEN;
    let segment = (shifted / FIRST_SEGMENT_LEN).ilog2() as usize;
    (segment, shifted - (FIRST_SEGMENT_LEN << segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense_and_do_not_overlap() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(63), (0, 63));
        assert_eq!(place(64), (1, 0));
        assert_eq!(place(191), (1, 127));
        assert_eq!(place(192), (2, 0));
        assert!(place(ensilo_engine::TableId::MAX.0).0 < SEGMENTS);
    }

    #[test]
    fn counts_outlive_their_workers() {
        let all = RecordCounts::new();
        let (mut one, mut two) = (all.tally(), all.tally());
        for store in [1, 1, 1, 700] {
            one.add(store, 1);
        }
        one.commit();
        two.add(1, -1);
        two.commit();
        two.add(1, -1);
        two.discard();
        assert_eq!((all.of(TableId(1)), all.of(TableId(700)), all.of(TableId(9))), (2, 1, 0));
        drop((one, two));
        assert_eq!((all.of(TableId(1)), all.of(TableId(700))), (2, 1));
        assert!(all.lock().is_empty());
    }

    #[test]
    fn a_sum_that_returns_to_zero_goes_on_counting() {
        let all = RecordCounts::new();
        let mut tally = all.tally();
        for difference in [1, -1, 1, 1] {
            tally.add(5, difference);
        }
        tally.commit();
        assert_eq!(all.of(TableId(5)), 2);
    }
}
