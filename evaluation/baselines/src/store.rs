//! Stores: trees of records, found by id.

use std::fmt;
use std::sync::{Arc, OnceLock};

use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, NewStoreError, TableId};
use ensilo_epoch::Guard;
use ensilo_index::{InsertError, Inserted, Masstree, ScanVisitor};
use ensilo_slab::AccountId;
use ensilo_sync::atomic::{AtomicBool, Ordering};

use crate::record::{Record, new_record};

/// One tree of records.
pub struct Store {
    id: TableId,
    is_dropped: AtomicBool,
    index: Masstree,
}

/// What came of an insert.
pub(crate) enum Insertion {
    /// The tree has this record now.
    New(Record),
    /// The key was there, and leads to this record.
    Existing(Record),
}

impl Store {
    /// Checks that the store was not dropped.
    ///
    /// # Errors
    /// [`AbortReason::StoreDropped`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Abort> {
        // Relaxed: a dropped store's tree stays, so that nothing depends on the flag but the error.
        if self.is_dropped.load(Ordering::Relaxed) {
            return Err(Abort::new(AbortReason::StoreDropped, self.id, &[]));
        }
        Ok(())
    }

    /// Marks the store as dropped, and returns whether it was not.
    pub(crate) fn mark_dropped(&self) -> bool {
        !self.is_dropped.swap(true, Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn index(&self) -> &Masstree {
        &self.index
    }

    /// Shows the visitor the keys within the bounds, in the order that `direction` says.
    pub(crate) fn scan(
        &self,
        bounds: KeyBounds<'_>,
        direction: Direction,
        guard: &Guard<'_>,
        visitor: &mut impl ScanVisitor,
    ) {
        let direction = match direction {
            Direction::Forward => ensilo_index::Direction::Forward,
            Direction::Reverse => ensilo_index::Direction::Reverse,
        };
        self.index.scan(bounds, direction, guard, visitor);
    }

    /// Puts a new record with this state under `key`, unless that is there.
    ///
    /// # Errors
    /// [`AbortReason::OutOfMemory`].
    ///
    /// # Panics
    /// When the key or the row is too long.
    pub(crate) fn insert(
        &self,
        key: &[u8],
        row: (&[u64], usize),
        state: u64,
        guard: &Guard<'_>,
    ) -> Result<Insertion, Abort> {
        let record = new_record(guard, self.id, key, row, state)?;
        let inserted = self.index.insert_if_absent(key, record.index_value(), guard, &mut ());
        if matches!(inserted, Ok(Inserted::New)) {
            return Ok(Insertion::New(record));
        }
        // SAFETY: the tree did not take the record, so nobody else knows it.
        unsafe { record.free(guard) };
        match inserted {
            Ok(Inserted::Existing(value)) => {
                // SAFETY: a value of a store's tree is a record, read while pinned.
                Ok(Insertion::Existing(unsafe { Record::from_index_value(value) }))
            }
            Ok(Inserted::New) => unreachable!("handled above"),
            Err(InsertError::KeyTooLong { .. }) => panic!("a key longer than KEY_LEN_MAX"),
            Err(_) => Err(Abort::new(AbortReason::OutOfMemory, self.id, key)),
        }
    }

    /// Takes a record out of the tree, to be freed when nobody can reach it any more; false when the tree has another one or none.
    pub(crate) fn take_out(&self, key: &[u8], record: Record, guard: &Guard<'_>) -> bool {
        let is_removed = self.index.remove(key, record.index_value(), guard);
        if is_removed {
            // SAFETY: it has just left the tree, which only the one who took it out is told.
            unsafe { record.retire(guard) };
        }
        is_removed
    }
}

impl ensilo_engine::Store for Store {
    #[inline]
    fn id(&self) -> TableId {
        self.id
    }
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("id", &self.id).finish_non_exhaustive()
    }
}

/// How many segments have all ids.
const SEGMENTS: usize = TableId::MAX.0.ilog2() as usize + 1;

type Segment = Box<[OnceLock<Arc<Store>>]>;

/// The stores of an engine, found by id without a lock. They stay, also when they are dropped.
#[derive(Debug)]
pub struct Stores {
    /// Segment `n` has the ids from 2^n to 2^(n+1) - 1.
    segments: [OnceLock<Segment>; SEGMENTS],
}

impl Stores {
    pub(crate) fn new() -> Self {
        Stores { segments: [const { OnceLock::new() }; SEGMENTS] }
    }

    /// Makes an empty store under an id that was never used before. One thread does so at a time.
    ///
    /// # Errors
    /// [`NewStoreError`]; nothing has changed.
    pub(crate) fn make(&self, id: TableId, guard: &Guard<'_>) -> Result<Arc<Store>, NewStoreError> {
        let place = place_of(id).filter(|_| id <= TableId::MAX && self.get(id).is_none());
        let Some((segment, at)) = place else { return Err(NewStoreError::IdTaken(id)) };
        let index = Masstree::new(guard, AccountId(id.0)).map_err(NewStoreError::OutOfMemory)?;
        let slots =
            self.segments[segment].get_or_init(|| (0..1 << segment).map(|_| OnceLock::new()).collect());
        let store =
            slots[at].get_or_init(|| Arc::new(Store { id, is_dropped: AtomicBool::new(false), index }));
        Ok(Arc::clone(store))
    }

    /// Returns the store under `id`, dropped or not.
    pub(crate) fn get(&self, id: TableId) -> Option<&Store> {
        let (segment, at) = place_of(id)?;
        Some(self.segments.get(segment)?.get()?[at].get()?)
    }

    /// Returns the store of a record.
    pub(crate) fn of(&self, record: Record) -> &Store {
        let Some(store) = self.get(record.store()) else { unreachable!("stores stay") };
        store
    }

    /// Returns every store that was not dropped, by id.
    pub(crate) fn all(&self) -> Vec<Arc<Store>> {
        let made = self.segments.iter().filter_map(OnceLock::get).flatten().filter_map(OnceLock::get);
        made.filter(|store| store.check().is_ok()).cloned().collect()
    }
}

/// Returns the segment of an id and its place there; `None` for 0, which is no id.
fn place_of(id: TableId) -> Option<(usize, usize)> {
    let segment = id.0.checked_ilog2()? as usize;
    Some((segment, id.0 as usize - (1 << segment)))
}
