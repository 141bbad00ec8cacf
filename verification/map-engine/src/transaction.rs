//! Transactions: what they write waits until the commit, which fails if anybody has committed since they began to read.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard};

use ensilo_engine::{
    Abort, AbortReason, Committed, Direction, KeyBounds, NeverPrepared, Read, RowRef, Store, TableId, Tid,
    TransactionNumber, WorkerCounters, Write,
};
use ensilo_epoch::{Epoch, Epochs, ExclusiveGuard};
use ensilo_sync::atomic::Ordering;

use crate::state::{MapState, MapStore, Row, lock};

/// A handle to a record: its place among those that the transaction of this number has found.
#[derive(Debug, Copy, Clone)]
pub struct MapHandle(TransactionNumber, usize);

/// A read-write transaction.
#[derive(Debug)]
pub struct MapTransaction<'s> {
    number: TransactionNumber,
    state: &'s Mutex<MapState>,
    /// Keeps what is freed by epochs while the transaction is under way.
    guard: ExclusiveGuard<'s>,
    counters: &'s WorkerCounters,
    /// The version of the state that this transaction works on, once it has looked.
    version: Option<u64>,
    /// The largest TID among the rows that it has read.
    seen: Tid,
    found: Vec<(TableId, Vec<u8>)>,
    /// What it has written: `None` for a deletion.
    own: BTreeMap<(TableId, Vec<u8>), Option<Row>>,
    doomed: Option<Abort>,
    is_counted: bool,
}

impl<'s> MapTransaction<'s> {
    pub(crate) fn new(
        state: &'s Mutex<MapState>,
        guard: ExclusiveGuard<'s>,
        counters: &'s WorkerCounters,
    ) -> Self {
        let (version, seen, found, own) = (None, Tid::ZERO, Vec::new(), BTreeMap::new());
        MapTransaction {
            number: TransactionNumber::fresh(),
            state,
            guard,
            counters,
            version,
            seen,
            found,
            own,
            doomed: None,
            is_counted: false,
        }
    }

    /// Returns the state, as long as it is the one that this transaction works on.
    fn state(&mut self) -> Result<MutexGuard<'s, MapState>, Abort> {
        let state = lock(self.state);
        if *self.version.get_or_insert(state.version) == state.version {
            return Ok(state);
        }
        Err(self.doom(AbortReason::ReadValidation, TableId::NONE))
    }

    fn doom(&mut self, reason: AbortReason, table: TableId) -> Abort {
        self.doomed.get_or_insert_with(|| Abort::new(reason, table, &[])).clone()
    }

    /// Returns what `decode` makes of a row, if there is one.
    fn look<R>(
        &mut self,
        store: TableId,
        key: &[u8],
        decode: impl FnOnce(&Row) -> R,
    ) -> Result<Option<R>, Abort> {
        let state = self.state()?;
        let Some(rows) = state.rows(store) else { return Err(self.doom(AbortReason::StoreDropped, store)) };
        let own = self.own.get(&(store, key.to_vec()));
        let row = own.map_or_else(|| rows.get(key), Option::as_ref);
        self.seen = row.map_or(self.seen, |row| self.seen.max(row.tid));
        Ok(row.map(decode))
    }

    /// Returns what `decode` makes of the row of a record that was found, which this transaction has not deleted.
    fn look_again<R>(&mut self, found: MapHandle, decode: impl FnOnce(&Row) -> R) -> Result<R, Abort> {
        assert!(self.has_found(found), "a handle of another transaction");
        let (store, key) = self.found[found.1].clone();
        let value = self.look(store, &key, decode)?;
        Ok(value.unwrap_or_else(|| panic!("a deleted record is used")))
    }

    /// Puts a row, or none, in the place of one that was found.
    fn set(&mut self, found: MapHandle, row: Option<Row>) -> Result<(), Abort> {
        self.look_again(found, |_| ())?;
        self.own.insert(self.found[found.1].clone(), row);
        Ok(())
    }

    fn handle(&mut self, store: TableId, key: &[u8]) -> MapHandle {
        self.found.push((store, key.to_vec()));
        MapHandle(self.number, self.found.len() - 1)
    }

    fn install(&mut self) -> Result<Committed, Abort> {
        if self.own.is_empty() {
            return Ok(Committed { tid: self.seen, epoch: self.seen.epoch() });
        }
        let mut state = self.state()?;
        let (tid, epoch) = next_tid(state.last_tid, self.guard.epochs())?;
        for ((store, key), row) in std::mem::take(&mut self.own) {
            // A store that is dropped would have changed the version.
            let Some(Some(rows)) = state.stores.get_mut(&store) else { continue };
            match row {
                Some(row) => _ = rows.insert(key, Row { tid, ..row }),
                None => _ = rows.remove(&key),
            }
        }
        state.last_tid = tid;
        state.version += 1;
        Ok(Committed { tid, epoch })
    }
}

/// Returns the TID after this one, and its epoch: where an epoch has none left, the next one begins.
fn next_tid(last: Tid, epochs: &Epochs) -> Result<(Tid, Epoch), Abort> {
    loop {
        let epoch = epochs.global_epoch();
        if let Some(tid) = last.next_in(epoch) {
            return Ok((tid, epoch));
        }
        if !epochs.advance_past(epoch) {
            return Err(Abort::new(AbortReason::EpochsExhausted, TableId::NONE, &[]));
        }
    }
}

impl Read for MapTransaction<'_> {
    type Store = MapStore;
    type Found = MapHandle;

    fn has_found(&self, found: MapHandle) -> bool {
        found.0 == self.number
    }

    fn find(&mut self, store: &MapStore, key: &[u8]) -> Result<Option<MapHandle>, Abort> {
        let is_there = self.look(store.id(), key, |_| ())?.is_some();
        Ok(is_there.then(|| self.handle(store.id(), key)))
    }

    fn read<R>(&mut self, found: MapHandle, mut decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.look_again(found, |row| decode(row.as_ref()))
    }

    fn scan<R>(
        &mut self,
        store: &MapStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        mut decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(MapHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        let id = store.id();
        let state = self.state()?;
        let Some(rows) = state.rows(id) else { return Err(self.doom(AbortReason::StoreDropped, id)) };
        let mut seen: BTreeMap<&[u8], &Row> =
            rows.range::<[u8], _>(bounds).map(|(key, row)| (&key[..], row)).collect();
        let own = self.own.iter().filter(|((store, _), _)| *store == id);
        for ((_, key), row) in
            own.filter(|((_, key), _)| std::ops::RangeBounds::<[u8]>::contains(&bounds, &key[..]))
        {
            match row {
                Some(row) => _ = seen.insert(key, row),
                None => _ = seen.remove(&key[..]),
            }
        }
        let mut values: Vec<(Vec<u8>, R)> =
            seen.iter().map(|(key, row)| (key.to_vec(), decode(key, row.as_ref()))).collect();
        self.seen = seen.values().map(|row| row.tid).fold(self.seen, Tid::max);
        drop(state);
        if direction == Direction::Reverse {
            values.reverse();
        }
        for (key, value) in values {
            let found = self.handle(id, &key);
            if each(found, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn largest_epoch_seen(&self) -> Epoch {
        // Nothing is logged.
        Epoch::new(0)
    }
}

impl Write for MapTransaction<'_> {
    type Prepared = NeverPrepared;

    fn patch(&mut self, found: MapHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        let row = self.look_again(found, |row| {
            let before: Vec<u64> = row.as_ref().all_words().collect();
            Row::new(&before, row.len_bytes)
        })?;
        for &(index, word) in words {
            row.words[index as usize].store(word, Ordering::Relaxed);
        }
        self.set(found, Some(row))
    }

    fn put(&mut self, found: MapHandle, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.set(found, Some(Row::new(row, len_bytes)))
    }

    fn insert(&mut self, store: &MapStore, key: &[u8], row: &[u64], len_bytes: usize) -> Result<bool, Abort> {
        if self.look(store.id(), key, |_| ())?.is_some() {
            return Ok(false);
        }
        self.own.insert((store.id(), key.to_vec()), Some(Row::new(row, len_bytes)));
        Ok(true)
    }

    fn delete(&mut self, found: MapHandle) -> Result<(), Abort> {
        self.set(found, None)
    }

    fn commit(mut self) -> Result<Committed, Abort> {
        self.guard.participant().begin_commit();
        let outcome = self.doomed.clone().map_or_else(|| self.install(), Err);
        self.guard.participant().end_commit();
        let committed = outcome.map_err(|abort| self.doomed.insert(abort).clone())?;
        self.counters.count_commit();
        self.is_counted = true;
        Ok(committed)
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        self.state().map(|_| Epoch::default())
    }
}

impl Drop for MapTransaction<'_> {
    fn drop(&mut self) {
        if !self.is_counted {
            let reason = self.doomed.as_ref().map_or(AbortReason::User, Abort::reason);
            self.counters.count_abort(reason);
        }
    }
}
