//! Range scans of a read-write transaction.

use std::ops::ControlFlow;

use ensilo_engine::history::recorded_range;
use ensilo_engine::{Abort, Direction, KeyBounds, RowRef, Store as _};
use ensilo_index::{NodeStamp, ScanVisitor};

use crate::handle::ErmiaHandle;
use crate::isolation::{Fault, Isolation, has_fault};
use crate::oid_array::Oid;
use crate::read::Seen;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;

impl<'s, I: Isolation> Transaction<'s, I> {
    pub(crate) fn scan_range<const MAY_WRITE: bool, R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(ErmiaHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.use_store(store)?;
        // The guard of a scan is another one of the same participant: the transaction is used meanwhile.
        let participant = std::ptr::from_ref(self.guard.participant());
        // SAFETY: the participant outlives the transaction, which keeps it from everybody else.
        let guard = unsafe { &*participant }.pin();
        let mut scan = TransactionScan::<'_, 's, I, _, _, MAY_WRITE> {
            transaction: self,
            store,
            decode,
            each,
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
struct TransactionScan<'a, 's, I: Isolation, D, E, const MAY_WRITE: bool> {
    transaction: &'a mut Transaction<'s, I>,
    store: &'a ErmiaStore,
    decode: D,
    each: E,
    failed: Option<Abort>,
    /// The key at which `each` had enough, when histories are recorded.
    stopped_at: Option<Vec<u8>>,
    /// The keys whose reads name a version, or are its own, when histories are recorded.
    met: Vec<Box<[u8]>>,
}

impl<I, R, D, E, const MAY_WRITE: bool> ScanVisitor for TransactionScan<'_, '_, I, D, E, MAY_WRITE>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(ErmiaHandle, R) -> ControlFlow<()>,
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
            Ok(Some((found, value))) => {
                let flow = (self.each)(found, value);
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

impl<I, R, D, E, const MAY_WRITE: bool> TransactionScan<'_, '_, I, D, E, MAY_WRITE>
where
    I: Isolation,
    D: FnMut(&[u8], RowRef<'_>) -> R,
{
    fn read_key(&mut self, key: &[u8], oid: Oid) -> Result<Option<(ErmiaHandle, R)>, Abort> {
        if has_fault::<I>(Fault::SkipEntryCheck) && !self.store.id().is_logged() {
            return self.take_entry_unseen(key, oid);
        }
        let (transaction, store) = (&mut *self.transaction, self.store);
        let (version, shown) = match transaction.see(store, oid)? {
            Seen::Nothing(passed_over) => {
                transaction.track_passed_over(passed_over)?;
                return Ok(None);
            }
            Seen::Own(at) => {
                if I::RECORDS_HISTORY {
                    self.met.push(key.into());
                }
                (transaction.context.writes[at].version, None)
            }
            Seen::Version(version, stamp) => {
                transaction.track(version, stamp)?;
                if I::RECORDS_HISTORY {
                    self.met.push(key.into());
                    transaction.context.record_read(store.id(), key, stamp, version.is_deletion());
                }
                (version, Some(version))
            }
        };
        if version.is_deletion() {
            return Ok(None);
        }
        let value = (self.decode)(key, version.row());
        let found = transaction.add_found(store, oid, shown, MAY_WRITE.then_some(key))?;
        Ok(Some((found, value)))
    }

    /// See [`Fault::SkipEntryCheck`].
    fn take_entry_unseen(&mut self, key: &[u8], oid: Oid) -> Result<Option<(ErmiaHandle, R)>, Abort> {
        self.transaction.context.keeps_look = true;
        let Ok(Some(entry)) = self.transaction.newest_row(self.store, oid) else { return Ok(None) };
        let value = (self.decode)(key, entry.row());
        let found = self.transaction.add_found(self.store, oid, Some(entry), MAY_WRITE.then_some(key))?;
        Ok(Some((found, value)))
    }
}
