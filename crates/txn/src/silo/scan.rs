//! Range scans of a read-write transaction.
//!
//! # Source
//! Silo (SOSP 2013) §4.6: every border node that overlaps the range joins the node set, every record in it the read set.

use std::ops::ControlFlow;

use ensilo_engine::history::recorded_range;
use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, RowRef, Tid};
use ensilo_epoch::Guard;
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::cpu_relax;

use super::context::Context;
use super::node_set::latest_removal;
use super::read::{ReadOutcome, read_record};
use super::transaction::Transaction;
use super::variant::Variant;
use crate::handle::RecordHandle;
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::store::Store;

impl<V: Variant> Transaction<'_, V> {
    pub(super) fn scan_range<const MAY_WRITE: bool, R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(RecordHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.context.rely_on_nodes_of(store).map_err(|abort| self.doom(abort))?;
        let mut scan = TransactionScan::<'_, '_, V, _, _, MAY_WRITE> {
            shared: self.shared,
            context: &mut *self.context,
            guard: &self.guard,
            store,
            decode,
            each,
            latest_removal: Tid::ZERO,
            failed: None,
            stopped_at: None,
            met: Vec::new(),
            variant: std::marker::PhantomData,
        };
        store.scan(bounds, direction, &self.guard, &mut scan);
        let (latest, met) = (scan.latest_removal, std::mem::take(&mut scan.met));
        let (failed, stopped_at) = (scan.failed.take(), scan.stopped_at.take());
        let began = self.begin_epoch();
        let failed = failed.or_else(|| self.context.check_writes_in_place(latest, began).err());
        if V::RECORDS_HISTORY {
            let range = recorded_range(store.id(), bounds, direction, stopped_at.as_deref());
            self.context.record_range(&self.shared.recorded_removals, range, &met);
        }
        failed.map_or(Ok(()), |abort| Err(self.doom(abort)))
    }
}

/// Visits nodes and entries on behalf of a transaction.
struct TransactionScan<'a, 'g, V, D, E, const MAY_WRITE: bool> {
    shared: &'a SiloShared,
    context: &'a mut Context,
    guard: &'a Guard<'g>,
    store: &'a Store,
    decode: D,
    each: E,
    /// Of the nodes so far.
    latest_removal: Tid,
    failed: Option<Abort>,
    /// The key at which `each` had enough, when histories are recorded.
    stopped_at: Option<Vec<u8>>,
    /// The keys that were in the tree, when histories are recorded.
    met: Vec<Box<[u8]>>,
    variant: std::marker::PhantomData<V>,
}

impl<V, R, D, E, const MAY_WRITE: bool> ScanVisitor for TransactionScan<'_, '_, V, D, E, MAY_WRITE>
where
    V: Variant,
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(RecordHandle, R) -> ControlFlow<()>,
{
    fn node(&mut self, stamp: NodeStamp) {
        self.rely_on(stamp);
    }

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        if self.failed.is_some() {
            return ControlFlow::Break(());
        }
        if V::RECORDS_HISTORY {
            self.met.push(key.into());
        }
        match self.read_key(key, value) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some((found, value))) => {
                let flow = (self.each)(found, value);
                if V::RECORDS_HISTORY && flow.is_break() {
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

impl<V, R, D, E, const MAY_WRITE: bool> TransactionScan<'_, '_, V, D, E, MAY_WRITE>
where
    V: Variant,
    D: FnMut(&[u8], RowRef<'_>) -> R,
{
    fn rely_on(&mut self, stamp: NodeStamp) {
        // SAFETY: the stamp was reported under this guard just now.
        let latest = unsafe { latest_removal(stamp.node, self.guard) };
        self.context.note_removed(latest);
        self.latest_removal = self.latest_removal.max(latest);
        if !V::VALIDATES {
            return;
        }
        let failed = match self.context.rely_on_node(self.shared, self.guard, stamp) {
            Ok(true) => return,
            Ok(false) => Abort::new(AbortReason::NodeValidation, self.store.id(), &[]),
            Err(abort) => abort,
        };
        self.failed.get_or_insert(failed);
    }

    fn read_key(&mut self, key: &[u8], mut value: u64) -> Result<Option<(RecordHandle, R)>, Abort> {
        loop {
            // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
            let record = unsafe { RecordPtr::from_index_value(value) };
            let (guard, decode) = (self.guard, &mut self.decode);
            let outcome =
                read_record::<V, MAY_WRITE, R>(self.shared, self.context, record, key, guard, |row| {
                    decode(key, row)
                });
            match outcome? {
                ReadOutcome::Present(found, value) => return Ok(Some((found, value))),
                ReadOutcome::Absent => return Ok(None),
                ReadOutcome::Superseded => cpu_relax(),
            }
            match self.store.index().get(key, self.guard) {
                Lookup::Found(newer) => value = newer,
                Lookup::Missing(stamp) => {
                    self.rely_on(stamp);
                    if V::RECORDS_HISTORY {
                        // It has left the tree meanwhile, and is read as a deletion that has.
                        self.met.pop();
                    }
                    return Ok(None);
                }
            }
        }
    }
}
