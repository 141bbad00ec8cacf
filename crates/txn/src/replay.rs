//! Putting a log and a checkpoint back into the engine.
//!
//! # Source
//! SiloR (OSDI 2014) §5: the log is replayed in any order and by many threads, because the largest TID of a key wins. Here the
//! same holds word by word: see [`apply`].
//!
//! # Terms
//! - **base**: the whole row or the deletion that a record took last, by TID. A record that only patches have reached has none.
//! - **pending**: the words that patches with a larger TID than the base's have set, with those TIDs.
//!
//! # Invariants
//! - R1: a record's TID word carries the TID of its base, or none.
//! - R2: a live record's row is that of its base with all pending words written over it.
//! - R3: while a record has pending words, its link to the previous version leads to them instead. No transaction runs meanwhile.

mod apply;
mod derive;
mod finish;
mod leftover;
mod pending;

use std::fmt;

use ensilo_engine::{Engine, TableId};
use ensilo_epoch::{Guard, Participant};
use ensilo_index::Lookup;
use ensilo_log::{Replay, ReplayError, Write as LogWrite};
use ensilo_sync::sync::Mutex;

use self::leftover::Leftover;
use crate::engine::Silo;
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::{Standard, Variant};
use crate::store::Store;

pub(crate) use derive::derive_record;

/// So many writes are looked up together.
const BATCH_LEN: usize = 64;

/// Puts a log and a checkpoint back into an engine on which no transaction has begun.
pub struct SiloReplayer<'e, V: Variant = Standard> {
    engine: &'e Silo<V>,
    /// What the workers that have ended leave to do.
    left: Mutex<Vec<Leftover>>,
}

/// One thread's part of a replay.
pub struct ReplayWorker<'r> {
    participant: Participant,
    leftover: Leftover,
    left: &'r Mutex<Vec<Leftover>>,
}

impl<'e, V: Variant> SiloReplayer<'e, V> {
    /// Returns a replay into `engine`.
    pub fn new(engine: &'e Silo<V>) -> Self {
        SiloReplayer { engine, left: Mutex::new(Vec::new()) }
    }

    /// Returns the store of a table, made when its first record comes.
    fn store(&self, table: TableId) -> Result<&'e Store, ReplayError> {
        if !table.is_logged() || table > TableId::MAX {
            return Err(ReplayError::Refused("a table id that no table has".into()));
        }
        loop {
            if let Some(store) = self.engine.shared.stores.store(table) {
                return Ok(store);
            }
            // Another thread may be making it: then the id is taken, and it is there now.
            if let Err(crate::NewStoreError::OutOfMemory(_)) = self.engine.new_store(table) {
                return Err(ReplayError::OutOfMemory);
            }
        }
    }
}

impl<V: Variant> Replay for SiloReplayer<'_, V> {
    type Worker<'r>
        = ReplayWorker<'r>
    where
        Self: 'r;

    fn worker(&self) -> ReplayWorker<'_> {
        let participant = self.engine.shared.epochs.participant();
        let forgets_tombstones = V::FAULT == Some(crate::Fault::ForgetTombstones);
        let mut leftover = Leftover::default();
        leftover.forgets_tombstones = forgets_tombstones;
        ReplayWorker { participant, leftover, left: &self.left }
    }

    fn apply(&self, worker: &mut ReplayWorker<'_>, writes: &[LogWrite<'_>]) -> Result<(), ReplayError> {
        let guard = worker.participant.pin();
        for batch in writes.chunks(BATCH_LEN) {
            self.apply_batch(&guard, &mut worker.leftover, batch)?;
        }
        Ok(())
    }
}

impl<V: Variant> SiloReplayer<'_, V> {
    /// Applies writes, those of one table after those of another: their look-ups wait for memory together.
    fn apply_batch(
        &self,
        guard: &Guard<'_>,
        leftover: &mut Leftover,
        batch: &[LogWrite<'_>],
    ) -> Result<(), ReplayError> {
        let mut order: [u8; BATCH_LEN] = std::array::from_fn(|at| at as u8);
        let order = &mut order[..batch.len()];
        order.sort_unstable_by_key(|&at| (batch[usize::from(at)].table, at));
        for group in
            order.chunk_by(|&one, &other| batch[usize::from(one)].table == batch[usize::from(other)].table)
        {
            let write = |at: usize| &batch[usize::from(group[at])];
            let store = self.store(TableId(write(0).table))?;
            let mut keys = [&[][..]; BATCH_LEN];
            group.iter().enumerate().for_each(|(at, _)| keys[at] = write(at).key);
            let mut found = [None; BATCH_LEN];
            store.index().get_many(&keys[..group.len()], guard, |at, lookup| {
                let Lookup::Found(value) = lookup else { return };
                // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
                let record = unsafe { RecordPtr::from_index_value(value) };
                record.prefetch_header();
                found[at] = Some(record);
            });
            let found = &found[..group.len()];
            found.iter().flatten().for_each(|record| record.prefetch_row_and_side());
            for (at, &record) in found.iter().enumerate() {
                apply::apply::<V>(store, guard, leftover, write(at), record)?;
            }
        }
        Ok(())
    }
}

impl<V: Variant> fmt::Debug for SiloReplayer<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SiloReplayer").field("engine", self.engine).finish_non_exhaustive()
    }
}

impl fmt::Debug for ReplayWorker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWorker").finish_non_exhaustive()
    }
}

impl Drop for ReplayWorker<'_> {
    fn drop(&mut self) {
        lock(self.left).push(std::mem::take(&mut self.leftover));
    }
}
