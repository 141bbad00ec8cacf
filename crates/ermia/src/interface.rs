//! Transactions as the layers above know them.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, Committed, Direction, KeyBounds, KeyChange, NeverPrepared, Read, RowRef, Write};
use ensilo_epoch::Epoch;

use crate::handle::ErmiaHandle;
use crate::isolation::Isolation;
use crate::prefetch::prefetch_records;
use crate::store::ErmiaStore;
use crate::transaction::Transaction;

impl<I: Isolation> Read for Transaction<'_, I> {
    type Store = ErmiaStore;
    type Found = ErmiaHandle;

    #[inline]
    fn has_found(&self, found: ErmiaHandle) -> bool {
        found.number == self.context.number
    }

    #[inline]
    fn find(&mut self, store: &ErmiaStore, key: &[u8]) -> Result<Option<ErmiaHandle>, Abort> {
        self.find_key(store, key)
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut each: impl FnMut(usize, Option<ErmiaHandle>),
    ) -> Result<(), Abort> {
        self.see_keys(store, keys, |tx, at, row| {
            let found = row.map(|row| tx.add_found(store, row, keys[at].as_ref()));
            each(at, found.transpose()?);
            Ok(ControlFlow::Continue(()))
        })
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        mut decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        Ok(self.see_key(store, key)?.map(|row| decode(row.row())))
    }

    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &ErmiaStore,
        keys: &[K],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.see_keys(store, keys, |_, at, row| Ok(each(at, row.map(|row| decode(at, row.row())))))
    }

    #[inline]
    fn read<R>(&mut self, found: ErmiaHandle, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        self.read_found(found, decode)
    }

    fn scan<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(ErmiaHandle, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_range(store, bounds, direction, decode, each, |tx, row, key| tx.add_found(store, row, key))
    }

    fn scan_to_read<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan_range(store, bounds, direction, decode, |(), value| each(value), |_, _, _| Ok(()))
    }

    fn largest_epoch_seen(&self) -> Epoch {
        self.context.epoch_seen()
    }
}

impl<I: Isolation> Write for Transaction<'_, I> {
    const READS_AS_OF_BEGIN: bool = true;
    const IS_SERIALIZABLE: bool = I::SERIALIZABLE;

    type Prepared = NeverPrepared;

    fn note_abort(&mut self, abort: &Abort) {
        self.doom(abort.clone());
    }

    fn patch(&mut self, found: ErmiaHandle, words: &[(u32, u64)]) -> Result<(), Abort> {
        self.patch_found(found, words)?;
        self.log_operation()
    }

    fn put(&mut self, found: ErmiaHandle, row: &[u64], len_bytes: usize) -> Result<(), Abort> {
        self.put_found(found, row, len_bytes)?;
        self.log_operation()
    }

    fn insert(
        &mut self,
        store: &ErmiaStore,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<bool, Abort> {
        let is_new = self.insert_row(store, key, row, len_bytes)?;
        if is_new { self.log_operation().map(|()| true) } else { Ok(false) }
    }

    fn peek<R>(
        &mut self,
        store: &ErmiaStore,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
        later: impl FnMut(R),
    ) -> Result<(), Abort> {
        self.peek_range(store, bounds, direction, (decode, each, later))
    }

    fn prefetch_changes<'k>(
        &mut self,
        count: usize,
        key: impl Fn(usize) -> (&'k ErmiaStore, &'k [u8], KeyChange),
    ) {
        // Two descents side by side save no more than it takes to make them again.
        if count > 2 {
            prefetch_records::<I>(self.shared, &self.guard, count, |at| {
                let (store, key, _) = key(at);
                (store, key)
            });
        }
    }

    fn delete(&mut self, found: ErmiaHandle) -> Result<(), Abort> {
        self.delete_found(found)?;
        self.log_operation()
    }

    fn commit(self) -> Result<Committed, Abort> {
        self.end_by_commit()
    }

    fn check(&mut self) -> Result<Epoch, Abort> {
        self.check_reads()
    }

    fn has_writes(&self) -> bool {
        !self.context.writes.is_empty()
    }
}
