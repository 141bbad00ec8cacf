//! What a session holds for its transactions: their sets, empty between them.

use std::ptr::NonNull;
use std::sync::Arc;

use ensilo_engine::history::TransactionRecord;
use ensilo_engine::parts::{HeldMemory, Lookups, NodeSet, PointerMap, SetBuffer};
use ensilo_engine::{Abort, TransactionNumber, WorkerCounters};
use ensilo_epoch::{Epoch, Guard};
use ensilo_index::{Masstree, NodeId};
use ensilo_slab::Pool;

use crate::isolation::Isolation;
use crate::log::SessionLog;
use crate::oid_array::Oid;
use crate::read_set::ReadSet;
use crate::shared::ErmiaShared;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::version::Version;

/// A key among those that a transaction keeps.
#[derive(Copy, Clone, Debug, Default)]
pub(crate) struct KeyAt {
    at: u32,
    len: u32,
}

/// A record that was found, for a handle.
#[derive(Copy, Clone, Debug)]
pub(crate) struct FoundEntry<I: Isolation> {
    pub(crate) store: NonNull<ErmiaStore>,
    pub(crate) oid: Oid,
    /// What the transaction sees, and its stamp; `None` for its own.
    pub(crate) version: Option<(Version<I>, Stamp)>,
    pub(crate) key: KeyAt,
}

/// A record that the transaction has written.
#[derive(Copy, Clone, Debug)]
pub(crate) struct WriteEntry<I: Isolation> {
    pub(crate) store: NonNull<ErmiaStore>,
    pub(crate) oid: Oid,
    /// The transaction's own version: the newest one of the record. Behind it may be others of its own, which were too small.
    pub(crate) version: Version<I>,
    /// What was the newest version before; `None` for a record that is new.
    pub(crate) before: Option<Version<I>>,
    pub(crate) key: KeyAt,
}

impl<I: Isolation> WriteEntry<I> {
    /// Returns the transaction's own versions, the newest first.
    pub(crate) fn own_versions(&self) -> impl Iterator<Item = Version<I>> + use<I> {
        let before = self.before;
        std::iter::successors(Some(self.version), move |version| {
            version.older().filter(|older| Some(*older) != before)
        })
    }

    /// Returns whether the transaction has made the record and deleted it: nothing is left of that.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.before.is_none() && self.version.is_deletion()
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Context<I: Isolation> {
    pub(crate) number: TransactionNumber,
    /// Whether a read-write transaction is under way, or was leaked.
    pub(crate) is_open: bool,
    /// Whether the next transaction is one that new snapshots should keep out of the way of, and whether that under way is.
    pub(crate) favor_next: bool,
    pub(crate) is_favored: bool,
    /// Whether the transaction keeps addresses of versions that are not kept for it, see [`Horizon`](crate::horizon::Horizon).
    pub(crate) keeps_look: bool,
    /// Why the transaction cannot commit.
    pub(crate) doomed: Option<Abort>,
    /// Kept where the level is serializable, as are the nodes.
    pub(crate) reads: ReadSet<I>,
    pub(crate) nodes: NodeSet,
    pub(crate) found: SetBuffer<FoundEntry<I>>,
    pub(crate) writes: SetBuffer<WriteEntry<I>>,
    /// Positions in `writes` by the address of the record's slot.
    pub(crate) written: PointerMap,
    keys: SetBuffer<u8>,
    /// The stores that were used; one that is used again may be there again.
    stores: SetBuffer<NonNull<ErmiaStore>>,
    pub(crate) lookups: Lookups,
    pub(crate) held: HeldMemory,
    /// The largest stamp of a version that was read: the transaction comes after it.
    pub(crate) latest_read: Stamp,
    /// The same of a deletion because of which a key was missing, or a later one.
    pub(crate) latest_miss: Stamp,
    /// Where the transaction was when its caller has concluded something last from what it had seen.
    pub(crate) checked_at: Stamp,
    pub(crate) counters: Arc<WorkerCounters>,
    /// Of the transaction under way, and of those that have ended, where histories are recorded.
    pub(crate) recording: TransactionRecord,
    pub(crate) history: Vec<TransactionRecord>,
    /// The session's way into the log, if the database has one.
    pub(crate) log: Option<SessionLog>,
}

// SAFETY: the addresses of stores are used under a pin, on whatever thread the session is by then.
unsafe impl<I: Isolation> Send for Context<I> {}

impl<I: Isolation> Context<I> {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Context {
            number: TransactionNumber::fresh(),
            is_open: false,
            favor_next: false,
            is_favored: false,
            keeps_look: false,
            doomed: None,
            reads: ReadSet::new(),
            nodes: NodeSet::default(),
            found: SetBuffer::new(),
            writes: SetBuffer::new(),
            written: PointerMap::default(),
            keys: SetBuffer::new(),
            stores: SetBuffer::new(),
            lookups: Lookups::default(),
            held: HeldMemory::new(pool),
            latest_read: Stamp::ZERO,
            latest_miss: Stamp::ZERO,
            checked_at: Stamp::ZERO,
            counters: Arc::default(),
            recording: TransactionRecord::default(),
            history: Vec::new(),
            log: None,
        }
    }

    /// The transaction that begins is one for which [`Context::favor_next`] was set, and has published a stamp.
    #[cold]
    pub(crate) fn favor(&mut self, shared: &ErmiaShared) {
        self.favor_next = false;
        if I::SERIALIZABLE {
            self.is_favored = true;
            shared.snapshot.begin_read_mostly();
            // Others begin at this one, which was taken before the transaction begins, instead of one that it would have to come before.
            shared.snapshot.current(&shared.epochs, &shared.clock);
        }
    }

    #[cold]
    pub(crate) fn end_favor(&mut self, shared: &ErmiaShared) {
        self.is_favored = false;
        shared.snapshot.end_read_mostly();
    }

    /// Keeps a key.
    #[inline]
    pub(crate) fn keep_key(&mut self, key: &[u8]) -> Result<KeyAt, Abort> {
        self.keys.reserve(key.len(), &mut self.held)?;
        let at = self.keys.end();
        self.keys.extend_from_slice_reserved(key);
        Ok(KeyAt { at, len: self.keys.end() - at })
    }

    #[inline]
    pub(crate) fn key(&self, key: KeyAt) -> &[u8] {
        &self.keys[key.at as usize..][..key.len as usize]
    }

    /// Notes that the store is used.
    #[inline]
    pub(crate) fn note_store(&mut self, store: &ErmiaStore) -> Result<(), Abort> {
        let store = NonNull::from(store);
        if self.stores.last() == Some(&store) {
            return Ok(());
        }
        self.stores.push(store, &mut self.held).map(|_| ())
    }

    /// Returns the stores that were used. Each stays where it is as long as the engine.
    pub(crate) fn stores(&self) -> impl Iterator<Item = &ErmiaStore> {
        // SAFETY: the engine keeps all of its stores, and a session its engine.
        self.stores.iter().map(|store| unsafe { store.as_ref() })
    }

    /// Notes that a transaction that has begun at `begin` has found keys missing in a node.
    ///
    /// # Safety
    /// As [`Masstree::latest_removal`].
    pub(crate) unsafe fn note_miss(&mut self, node: NodeId, begin: Stamp, guard: &Guard<'_>) {
        // SAFETY: the caller's promise.
        self.note_removal(unsafe { Masstree::latest_removal(node, guard) }, begin);
    }

    /// Notes that a transaction that has begun at `begin` has missed a key where this is the latest number of a removal.
    pub(crate) fn note_removal(&mut self, removed: u64, begin: Stamp) {
        // What has left the index was deleted before the transaction began. Larger numbers are those of others who have missed keys.
        self.latest_miss = self.latest_miss.max(Stamp::new(removed).min(begin.before()));
    }

    /// Returns the largest stamp of what was read or found missing.
    pub(crate) fn latest_seen(&self) -> Stamp {
        self.latest_read.max(self.latest_miss)
    }

    /// Returns the last epoch that what was read or found missing is of: once it is durable, no crash takes it back.
    pub(crate) fn epoch_seen(&self) -> Epoch {
        self.latest_seen().tid().epoch()
    }

    /// Makes room for a write and its place in the map.
    pub(crate) fn reserve_write(&mut self) -> Result<(), Abort> {
        if self.written.is_full() {
            self.held.add(self.written.growth_bytes(1))?;
        }
        self.writes.reserve(1, &mut self.held)
    }

    /// Adds a write, for which there is room.
    pub(crate) fn push_write(&mut self, write: WriteEntry<I>, slot: usize) {
        let at = self.writes.push_reserved(write);
        self.written.insert(slot, at);
    }

    /// Empties everything.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.doomed = None;
        self.reads.clear();
        self.nodes.clear();
        self.found.clear();
        self.writes.clear();
        self.written.clear();
        self.keys.clear();
        self.stores.clear();
        self.lookups.clear();
        self.held.release();
        (self.latest_read, self.latest_miss, self.checked_at) = (Stamp::ZERO, Stamp::ZERO, Stamp::ZERO);
        self.is_open = false;
        if I::RECORDS_HISTORY {
            self.recording = TransactionRecord::default();
        }
    }
}
