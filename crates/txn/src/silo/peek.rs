//! Looks at rows that nothing is concluded from.
//!
//! A look puts nothing into the read set or the node set, so that a transaction depends on none of the rows that it has passed over.
//! What it goes on with it reads once more, by a statement that is validated.

use std::ops::ControlFlow;

use ensilo_engine::{Abort, AbortReason, Direction, KeyBounds, RowRef};
use ensilo_epoch::Guard;
use ensilo_index::{Lookup, NodeStamp, ScanVisitor};
use ensilo_sync::cpu_relax;

use super::context::Context;
use super::transaction::Transaction;
use super::variant::Variant;
use crate::record::RecordPtr;
use crate::store::Store;

impl<V: Variant> Transaction<'_, V> {
    pub(super) fn peek_range<R>(
        &mut self,
        store: &Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.check_store(store)?;
        let mut peek =
            Peek { context: &mut *self.context, guard: &self.guard, store, decode, each, failed: None };
        store.scan(bounds, direction, &self.guard, &mut peek);
        match peek.failed.take() {
            None => Ok(()),
            Some(abort) => Err(self.doom(abort)),
        }
    }
}

/// Visits entries on behalf of a transaction that does not rely on them.
struct Peek<'a, 'g, D, E> {
    context: &'a mut Context,
    guard: &'a Guard<'g>,
    store: &'a Store,
    decode: D,
    each: E,
    failed: Option<Abort>,
}

impl<R, D, E> ScanVisitor for Peek<'_, '_, D, E>
where
    D: FnMut(&[u8], RowRef<'_>) -> R,
    E: FnMut(R) -> ControlFlow<()>,
{
    fn node(&mut self, _: NodeStamp) {}

    fn entry(&mut self, key: &[u8], value: u64) -> ControlFlow<()> {
        match self.look(key, value) {
            Ok(Some(value)) => (self.each)(value),
            Ok(None) => ControlFlow::Continue(()),
            Err(abort) => {
                self.failed = Some(abort);
                ControlFlow::Break(())
            }
        }
    }
}

impl<R, D, E> Peek<'_, '_, D, E>
where
    D: FnMut(&[u8], RowRef<'_>) -> R,
{
    /// Returns what is decoded of the row under `key`, where the tree has `value`: the transaction's own, or the last committed one.
    ///
    /// It waits for a commit that installs the row, as reads do. It does not wait for a prepared transaction: then there is no row.
    ///
    /// # Errors
    /// [`AbortReason::LockHeld`] when a commit holds the row's lock for unreasonably long: the row may well be there afterwards.
    fn look(&mut self, key: &[u8], mut value: u64) -> Result<Option<R>, Abort> {
        let decode = &mut self.decode;
        loop {
            // SAFETY: a value of a store's tree is a record, read while this transaction is pinned.
            let record = unsafe { RecordPtr::from_index_value(value) };
            if let Some(at) = self.context.own_write(record) {
                return self.context.read_own(at, |row| decode(key, row));
            }
            let word = match record.stable_tid() {
                Ok(word) => word,
                Err(AbortReason::PreparedLock) => return Ok(None),
                Err(reason) => return Err(Abort::new(reason, record.store(), key)),
            };
            if !word.is_latest() {
                cpu_relax();
                match self.store.index().get(key, self.guard) {
                    Lookup::Found(newer) => value = newer,
                    Lookup::Missing(_) => return Ok(None),
                }
            } else if word.is_absent() {
                return Ok(None);
            } else {
                let seen = decode(key, record.row().committed_in(word.tid().epoch()));
                if record.is_still(word) {
                    return Ok(Some(seen));
                }
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::ops::Bound;
    use std::sync::Arc;

    use ensilo_engine::{Engine, EngineOptions, Session, TableId, Write};

    use super::*;
    use crate::engine::Silo;
    use crate::worker::Worker;

    /// Looks at all keys.
    fn look_at_all(worker: &mut Worker, store: &Store) -> Result<Vec<Vec<u8>>, Abort> {
        let mut keys = Vec::new();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let key_of = |key: &[u8], _: RowRef<'_>| key.to_vec();
        let note = |key| {
            keys.push(key);
            ControlFlow::Continue(())
        };
        worker.begin().peek(store, all, Direction::Forward, key_of, note, drop)?;
        Ok(keys)
    }

    #[test]
    fn a_row_that_a_commit_keeps_locked_for_too_long_is_not_passed_over() {
        let engine: Arc<Silo> = Silo::start(EngineOptions::default()).unwrap();
        let store = engine.new_store(TableId(1)).unwrap();
        let mut worker = engine.session();
        let mut tx = worker.begin();
        assert!(tx.insert(&store, b"a", &[1], 8).unwrap());
        tx.commit().unwrap();
        assert_eq!(look_at_all(&mut worker, &store).unwrap(), [b"a"]);

        let mut locker = engine.session();
        let tx = locker.begin();
        let Lookup::Found(value) = store.index().get(b"a", &tx.guard) else { panic!("a row") };
        // SAFETY: a value of a store's tree is a record, read while `tx` is pinned, which outlives all uses.
        let record = unsafe { RecordPtr::from_index_value(value) };
        let word = record.tid();
        assert!(record.try_lock(word));
        let refused = look_at_all(&mut worker, &store);
        record.publish(word);
        drop(tx);
        assert_eq!(refused.unwrap_err().reason(), AbortReason::LockHeld);
        assert_eq!(look_at_all(&mut worker, &store).unwrap(), [b"a"]);
    }
}
