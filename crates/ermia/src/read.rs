//! Reads: from a key to the version that the transaction sees.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.6.1.
//!
//! What is read is tracked under a serializable level. A key that is missing, or has no version to be seen, is tracked by the node of the
//! index that would hold it, and, where there is a later version, by this too.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, AbortReason, RowRef, Store as _};
use ensilo_index::{Lookup, NodeStamp};

use crate::context::FoundEntry;
use crate::handle::ErmiaHandle;
use crate::isolation::Isolation;
use crate::oid_array::Oid;
use crate::planted::{Step, is_left_out};
use crate::read_set::ReadEntry;
use crate::stamp::Stamp;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;
use crate::version::{Sight, Version};

/// What a transaction sees of a record.
#[derive(Debug)]
pub(crate) enum Seen<I: Isolation> {
    /// Its own version, which may be a deletion: the position of the write.
    Own(usize),
    /// A version with this stamp, which may be a deletion.
    Version(Version<I>, Stamp),
    /// None; there is this one, the oldest, that it does not see.
    Nothing(Option<Version<I>>),
}

/// A row that a transaction sees.
#[derive(Copy, Clone, Debug)]
pub(crate) struct SeenRow<I: Isolation> {
    pub(crate) oid: Oid,
    pub(crate) version: Version<I>,
    /// The stamp by which it is seen; `None` if the transaction has written it.
    pub(crate) stamp: Option<Stamp>,
}

impl<I: Isolation> SeenRow<I> {
    #[inline]
    pub(crate) fn row<'a>(self) -> RowRef<'a> {
        match self.stamp {
            Some(stamp) => self.version.row().committed_in(stamp.tid().epoch()),
            None => self.version.row().uncommitted(),
        }
    }
}

impl<I: Isolation> Transaction<'_, I> {
    /// Returns what the transaction sees of a record.
    #[inline]
    pub(crate) fn see(&mut self, store: &ErmiaStore, oid: Oid) -> Result<Seen<I>, Abort> {
        let _indirection = crate::region::indirection();
        self.renew_look();
        let mut next = match store.newest::<I>(oid, self.shared, &self.guard) {
            Ok(newest) => newest,
            Err(reason) => return Err(self.doom_at(reason, store, &[])),
        };
        let mut passed_over = None;
        while let Some(version) = next {
            match version.sight(&self.shared.table, self.begin, Some(self.id)) {
                Sight::Visible(stamp) => return Ok(Seen::Version(version, stamp)),
                Sight::Own => match self.own_write(store, oid) {
                    Some(at) => return Ok(Seen::Own(at)),
                    None => unreachable!("an own version was written"),
                },
                Sight::Invisible => {
                    passed_over = Some(version);
                    next = version.older();
                }
            }
        }
        Ok(Seen::Nothing(passed_over))
    }

    /// Notes that a version was read. A row is kept for the transaction. A deletion that every transaction sees may leave the index and be freed:
    /// then the node says so, and who relies on that aborts before it looks at the deletion again.
    #[inline]
    pub(crate) fn track(&mut self, version: Version<I>, stamp: Stamp) -> Result<(), Abort> {
        self.context.latest_read = self.context.latest_read.max(stamp);
        if I::SERIALIZABLE {
            self.add_read(ReadEntry { version, is_passed_over: false })?;
        }
        Ok(())
    }

    #[inline]
    fn add_read(&mut self, entry: ReadEntry<I>) -> Result<(), Abort> {
        let added = self.context.reads.add(entry, &mut self.context.held);
        added.map_err(|abort| self.doom(abort))
    }

    /// Notes that a record has no version that the transaction sees: an insert was passed over, if there was one.
    #[inline]
    pub(crate) fn track_passed_over(&mut self, version: Option<Version<I>>) -> Result<(), Abort> {
        // Without one the record is dead: its deletion was committed before the transaction began. The index may not say so yet.
        let Some(version) = version else {
            self.context.latest_miss = self.begin.before();
            return Ok(());
        };
        if !I::SERIALIZABLE {
            return Ok(());
        }
        self.context.keeps_look = true;
        self.add_read(ReadEntry { version, is_passed_over: true })
    }

    /// Notes that the transaction relies on a node of the index, for keys that are missing.
    #[inline]
    pub(crate) fn rely_on_node(&mut self, store: &ErmiaStore, stamp: NodeStamp) -> Result<(), Abort> {
        // SAFETY: the node was reported under this guard.
        unsafe { self.context.note_miss(stamp.node, self.begin, &self.guard) };
        if !I::SERIALIZABLE {
            return Ok(());
        }
        match self.context.nodes.add(stamp, &mut self.context.held) {
            Ok(true) => Ok(()),
            Ok(false) => Err(self.doom_at(AbortReason::NodeValidation, store, &[])),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Looks a key up.
    #[inline]
    pub(crate) fn find_key(&mut self, store: &ErmiaStore, key: &[u8]) -> Result<Option<ErmiaHandle>, Abort> {
        self.use_store(store)?;
        match self.see_key(store, key)? {
            Some(row) => self.add_found(store, row, key).map(Some),
            None => Ok(None),
        }
    }

    /// Returns what the transaction sees under a key.
    #[inline]
    pub(crate) fn see_key(&mut self, store: &ErmiaStore, key: &[u8]) -> Result<Option<SeenRow<I>>, Abort> {
        self.use_store(store)?;
        let lookup = store.index().get(key, &self.guard);
        self.resolve(store, key, lookup)
    }

    /// Looks many keys up, and calls `each` with the position of every key and what the transaction sees under it, until it breaks.
    pub(crate) fn see_keys<K: AsRef<[u8]>>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut each: impl FnMut(&mut Self, usize, Option<SeenRow<I>>) -> Result<ControlFlow<()>, Abort>,
    ) -> Result<(), Abort> {
        self.use_store(store)?;
        let mut lookups = std::mem::take(&mut self.context.lookups);
        let filled = lookups.look_up(store.index(), keys, &self.guard, &mut self.context.held);
        let mut outcome = filled.map_err(|abort| self.doom(abort));
        store.load_rows::<I>(&lookups);
        for (at, (key, lookup)) in keys.iter().zip(lookups.iter()).enumerate() {
            match self.resolve(store, key.as_ref(), lookup).and_then(|row| each(self, at, row)) {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(())) => break,
                Err(abort) => {
                    outcome = Err(abort);
                    break;
                }
            }
        }
        self.context.lookups = lookups;
        outcome
    }

    /// Returns what the transaction sees where an index has found something, or nothing.
    #[inline]
    fn resolve(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        lookup: Lookup,
    ) -> Result<Option<SeenRow<I>>, Abort> {
        match lookup {
            Lookup::Found(value) => {
                // SAFETY: the value was read from the store's index, under a pin.
                let oid = unsafe { Oid::from_index_value(value) };
                match self.see(store, oid)? {
                    Seen::Own(at) => {
                        let version = self.context.writes[at].version;
                        Ok((!version.is_deletion()).then_some(SeenRow { oid, version, stamp: None }))
                    }
                    Seen::Version(version, stamp) if !version.is_deletion() => {
                        self.track(version, stamp)?;
                        if I::RECORDS_HISTORY {
                            self.context.record_read(store.id(), key, stamp, false);
                        }
                        Ok(Some(SeenRow { oid, version, stamp: Some(stamp) }))
                    }
                    seen => self.miss_record(store, key, seen).map(|()| None),
                }
            }
            Lookup::Missing(stamp) => self.miss_key(store, key, stamp).map(|()| None),
        }
    }

    /// A key is in the index, with a record that the transaction does not see: that is looked at again behind the node.
    #[cold]
    fn miss_record(&mut self, store: &ErmiaStore, key: &[u8], first: Seen<I>) -> Result<(), Abort> {
        let (lookup, stamp) = store.index().get_with_node(key, &self.guard);
        let Lookup::Found(value) = lookup else { return self.miss_key(store, key, stamp) };
        self.rely_on_node(store, stamp)?;
        let again = if is_left_out(Step::SecondLookAtRecord) {
            first
        } else {
            // SAFETY: the value was read from the store's index, under a pin.
            self.see(store, unsafe { Oid::from_index_value(value) })?
        };
        match again {
            Seen::Version(version, stamp) if version.is_deletion() => {
                self.track(version, stamp)?;
                if I::RECORDS_HISTORY {
                    self.context.record_read(store.id(), key, stamp, true);
                }
                Ok(())
            }
            Seen::Nothing(passed_over) => {
                self.track_passed_over(passed_over)?;
                if I::RECORDS_HISTORY {
                    self.context.record_missing(&self.shared.recorded_removals, store.id(), key);
                }
                Ok(())
            }
            // What a transaction sees of a key stays as it is: it was a deletion that has left the index since, and the key came back.
            Seen::Version(..) | Seen::Own(_) => Err(self.doom_at(AbortReason::NodeValidation, store, key)),
        }
    }

    fn miss_key(&mut self, store: &ErmiaStore, key: &[u8], stamp: NodeStamp) -> Result<(), Abort> {
        if I::RECORDS_HISTORY {
            self.context.record_missing(&self.shared.recorded_removals, store.id(), key);
        }
        self.rely_on_node(store, stamp)
    }

    /// Returns a handle to a row that the transaction has seen.
    #[inline]
    pub(crate) fn add_found(
        &mut self,
        store: &ErmiaStore,
        row: SeenRow<I>,
        key: &[u8],
    ) -> Result<ErmiaHandle, Abort> {
        let version = row.stamp.map(|stamp| (row.version, stamp));
        let added = self.context.keep_key(key).and_then(|key| {
            let entry = FoundEntry { store: store.into(), oid: row.oid, version, key };
            self.context.found.push(entry, &mut self.context.held)
        });
        match added {
            Ok(at) => Ok(ErmiaHandle { number: self.context.number, at }),
            Err(abort) => Err(self.doom(abort)),
        }
    }

    /// Returns what was found.
    #[inline]
    pub(crate) fn found(&self, handle: ErmiaHandle) -> FoundEntry<I> {
        assert!(handle.number == self.context.number, "a handle of another transaction");
        self.context.found[handle.at as usize]
    }

    /// Computes a value from the row of a record that was found before.
    #[inline]
    pub(crate) fn read_found<R>(
        &mut self,
        handle: ErmiaHandle,
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<R, Abort> {
        let found = self.found(handle);
        Self::store_of(found.store).check(&self.shared.epochs).map_err(|abort| self.doom(abort))?;
        let row = match self.own_write(Self::store_of(found.store), found.oid) {
            Some(at) => {
                let own = self.context.writes[at].version;
                assert!(!own.is_deletion(), "a deleted record is used");
                own.row().uncommitted()
            }
            None => match found.version {
                Some((version, stamp)) => version.row().committed_in(stamp.tid().epoch()),
                None => unreachable!("an own version was written"),
            },
        };
        Ok(decode(row))
    }
}
