//! Range scans of a read-write transaction.

use std::ops::ControlFlow;

use ensilo_engine::history::recorded_range;
use ensilo_engine::{Abort, Direction, KeyBounds, RowRef, Store as _};
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::isolation::{Fault, Isolation, has_fault};
use crate::oid_array::Oid;
use crate::read::{Seen, SeenRow};
use crate::store::ErmiaStore;
use crate::transaction::Transaction;

impl<'s, I: Isolation> Transaction<'s, I> {
    /// Passes what `hold` returns for every row, such as a handle, and the value computed from it to `each`.
    pub(crate) fn scan_range<T, R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(T, R) -> ControlFlow<()>,
        hold: impl Fn(&mut Self, SeenRow<I>, &[u8]) -> Result<T, Abort>,
    ) -> Result<(), Abort> {
        self.use_store(store)?;
        // The guard of a scan is another one of the same participant: the transaction is used meanwhile.
        let participant = std::ptr::from_ref(self.guard.participant());
        // SAFETY: the participant outlives the transaction, which keeps it from everybody else.
        let guard = unsafe { &*participant }.pin();
        let mut scan = TransactionScan {
            transaction: self,
            store,
            decode,
            each,
            hold,
            failed: None,
            stopped_at: None,
            met: Vec::new(),
        };
        store.scan(bounds, direction, &guard, &mut scan);
        let (failed, stopped_at, met) = (scan.failed, scan.stopped_at, scan.met);
        if I::RECORDS_HISTORY {
            let range = recorded_range(store.id(), bounds, direction, stopped_at.as_deref());
            let removed = self.shared.recorded_removals.in_range(&range, &met);
            self.context.recording.reads.extend(removed);
            self.context.recording.ranges.push(range);
        }
        failed.map_or(Ok(()), Err)
    }
}

/// Visits nodes and entries on behalf of a transaction.
struct TransactionScan<'a, 's, I: Isolation, D, E, H> {
    transaction: &'a mut Transaction<'s, I>,
    store: &'a ErmiaStore,
    decode: D,
    each: E,
    hold: H,
    failed: Option<Abort>,
    /// The key at which `each` had enough, when histories are recorded.
    stopped_at: Option<Vec<u8>>,
    /// The keys whose reads name a version, or are its own, when histories are recorded.
    met: Vec<Box<[u8]>>,
}

impl<'s, I, R, T, D, E, H> ScanVisitor for TransactionScan<'_, 's, I, D, E, H>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(T, R) -> ControlFlow<()>,
    H: Fn(&mut Transaction<'s, I>, SeenRow<I>, &[u8]) -> Result<T, Abort>,
{
    fn node(&mut self, stamp: NodeStamp) {
        if let Err(abort) = self.transaction.rely_on_node(self.store, stamp) {
            self.failed = Some(abort);
        }
    }

    #[inline]
    fn approach(&mut self, value: u64) {
        // SAFETY: the value was read from the store's index, under a pin.
        self.store.load_header::<I>(unsafe { Oid::from_index_value(value) });
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        if self.failed.is_some() {
            return ControlFlow::Break(());
        }
        // SAFETY: the value was read from the store's index, under a pin.
        match self.read_key(key, unsafe { Oid::from_index_value(value) }) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some((held, value))) => {
                let flow = (self.each)(held, value);
                if I::RECORDS_HISTORY && flow.is_break() {
                    self.stopped_at = Some(key.to_vec());
                }
                flow
            }
            Err(abort) => {
                self.failed = Some(abort);
                ControlFlow::Break(())
            }
        }
    }
}

impl<'s, I, R, T, D, E, H> TransactionScan<'_, 's, I, D, E, H>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    H: Fn(&mut Transaction<'s, I>, SeenRow<I>, &[u8]) -> Result<T, Abort>,
{
    fn read_key(&mut self, key: &[u8], oid: Oid) -> Result<Option<(T, R)>, Abort> {
        let Some(row) = self.see_row(key, oid)? else { return Ok(None) };
        let value = (self.decode)(key, row.row());
        let held = (self.hold)(self.transaction, row, key)?;
        Ok(Some((held, value)))
    }

    /// Returns the row that the transaction sees under an entry, if there is one.
    fn see_row(&mut self, key: &[u8], oid: Oid) -> Result<Option<SeenRow<I>>, Abort> {
        let (transaction, store) = (&mut *self.transaction, self.store);
        if has_fault::<I>(Fault::SkipEntryCheck) && !store.id().is_logged() {
            transaction.context.keeps_look = true;
            return Ok(transaction.newest_row(store, oid).ok().flatten());
        }
        let (version, stamp) = match transaction.see(store, oid)? {
            Seen::Nothing(passed_over) => {
                transaction.track_passed_over(passed_over)?;
                return Ok(None);
            }
            Seen::Own(at) => (transaction.context.writes[at].version, None),
            Seen::Version(version, stamp) => {
                transaction.track(version, stamp)?;
                if I::RECORDS_HISTORY {
                    transaction.context.record_read(store.id(), key, stamp, version.is_deletion());
                }
                (version, Some(stamp))
            }
        };
        if I::RECORDS_HISTORY {
            self.met.push(key.into());
        }
        Ok((!version.is_deletion()).then_some(SeenRow { oid, version, stamp }))
    }
}
