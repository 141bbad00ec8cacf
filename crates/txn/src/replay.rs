//! Putting a log and a checkpoint back into the engine.
//!
//! # Source
//! SiloR (OSDI 2014) §5: the log is replayed in any order and by many threads, because the largest TID of a key wins. Here the
//! same holds word by word: see [`apply`]. It comes roughly in order, so that words need be remembered with their TIDs for a while only: see [`fold`].
//!
//! # Terms
//! - **base**: the whole row or the deletion that a record took last, by TID, with the words that became part of it since, and the last TID of all
//!   that. A record that only patches have reached has none.
//! - **chain**: which words the patches have set that became part of the base, so that older writes may still come between them ([`chain`]).
//! - **pending**: the words that other patches with a larger TID than the base's have set, with those TIDs ([`pending`]).
//! - **to fold** a word: to make a pending one part of the base, as soon as nothing older can come ([`fold`]).
//!
//! # Invariants
//! - R1: a record's TID word carries the TID of its base, or none.
//! - R2: a live record's row is that of its base with all pending words written over it.
//! - R3: a record has a chain, or pending words, or neither, and its link to the previous version leads to them instead ([`side`]). No transaction
//!   runs meanwhile.

mod apply;
mod chain;
mod derive;
mod finish;
mod fold;
mod leftover;
mod list_memory;
mod pending;
mod side;
mod touched;

use std::fmt;

use ensilo_engine::{Engine, TableId};
use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_index::Lookup;
use ensilo_log::{Change, Replay, ReplayError, Write as LogWrite};
use ensilo_sync::sync::Mutex;

use self::chain::Floors;
use self::leftover::Leftover;
use crate::engine::Silo;
use crate::record::RecordPtr;
use crate::registry::lock;
use crate::silo::{Standard, Variant};
use crate::store::Store;

pub(crate) use derive::derive_record;

/// So many writes are looked up together.
const BATCH_LEN: usize = 64;

/// A row of more bytes is looked for before it is put, whatever the rows before it were.
const SMALL_ROW_BYTES: usize = 1024;

/// Puts a log and a checkpoint back into an engine on which no transaction has begun.
pub struct SiloReplayer<'e, V: Variant = Standard> {
    engine: &'e Silo<V>,
    floors: Floors,
    /// What the workers that have ended leave to do.
    left: Mutex<Vec<Leftover>>,
}

/// One thread's part of a replay.
pub struct ReplayWorker<'r> {
    participant: Participant,
    leftover: Leftover,
    /// Its number among the floors.
    number: usize,
    floors: &'r Floors,
    left: &'r Mutex<Vec<Leftover>>,
}

impl<'e, V: Variant> SiloReplayer<'e, V> {
    /// Returns a replay into `engine`.
    pub fn new(engine: &'e Silo<V>) -> Self {
        SiloReplayer { engine, floors: Floors::default(), left: Mutex::new(Vec::new()) }
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
        let (number, floor) = self.floors.add();
        leftover.floor = floor;
        ReplayWorker { participant, leftover, number, floors: &self.floors, left: &self.left }
    }

    fn apply(&self, worker: &mut ReplayWorker<'_>, writes: &[LogWrite<'_>]) -> Result<(), ReplayError> {
        let guard = worker.participant.pin();
        for batch in writes.chunks(BATCH_LEN) {
            self.apply_batch(&guard, &mut worker.leftover, batch)?;
        }
        Ok(())
    }

    fn fold(&self, worker: &mut ReplayWorker<'_>, frontier: Epoch) -> Result<(), ReplayError> {
        let ReplayWorker { leftover, number, floors, .. } = worker;
        leftover.floor = leftover.floor.max(frontier);
        leftover.chains.set_least_floor(floors.raise(*number, leftover.floor));
        leftover.touched.let_go_of_many(leftover.floor);
        leftover.fold(leftover.floor)
    }
}

impl<V: Variant> SiloReplayer<'_, V> {
    /// Applies writes, those of one table after those of another. Look-ups wait for memory together, and so do the rows.
    fn apply_batch(
        &self,
        guard: &Guard<'_>,
        leftover: &mut Leftover,
        batch: &[LogWrite<'_>],
    ) -> Result<(), ReplayError> {
        let mut order = [Place::default(); BATCH_LEN];
        let order = &mut order[..batch.len()];
        order
            .iter_mut()
            .zip(batch)
            .enumerate()
            .for_each(|(at, (place, write))| *place = Place::new(write, at));
        order.sort_unstable();
        let groups = || order.chunk_by(|one, other| one.table() == other.table());
        let mut found = [None; BATCH_LEN];
        for group in groups() {
            find(self.store(group[0].table())?, guard, group, batch, leftover.puts_are_new, &mut found);
        }
        batch.iter().zip(&found).for_each(|(write, record)| prefetch(write, *record));
        for group in groups() {
            let store = self.store(group[0].table())?;
            for place in group {
                apply::apply::<V>(store, guard, leftover, &batch[place.at()], found[place.at()])?;
            }
        }
        Ok(())
    }
}

/// Which table a write of a batch is to, and where in the batch it stands, in one word to sort by.
#[derive(Copy, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Place(u64);

const _: () = assert!(BATCH_LEN <= 1 << 8);

impl Place {
    fn new(write: &LogWrite<'_>, at: usize) -> Place {
        Place(u64::from(write.table) << 8 | at as u64)
    }

    fn table(self) -> TableId {
        TableId((self.0 >> 8) as u32)
    }

    fn at(self) -> usize {
        (self.0 & 0xff) as usize
    }
}

/// Finds the records of some writes of a batch to one table, and starts to load their headers. Where `puts_are_new`, it does not look for rows
/// that come behind their neighbours: the way to their places was just gone.
fn find(
    store: &Store,
    guard: &Guard<'_>,
    group: &[Place],
    batch: &[LogWrite<'_>],
    puts_are_new: bool,
    found: &mut [Option<RecordPtr>; BATCH_LEN],
) {
    let (mut keys, mut places, mut len) = ([&[][..]; BATCH_LEN], [0; BATCH_LEN], 0);
    let mut before = &[][..];
    for place in group {
        let write = &batch[place.at()];
        let is_new = puts_are_new && is_small_put(write) && is_neighbour(before, write.key);
        if !is_new {
            (keys[len], places[len], len) = (write.key, place.at(), len + 1);
        }
        before = write.key;
    }
    store.index().get_many(&keys[..len], guard, |at, lookup| {
        let Lookup::Found(value) = lookup else { return };
        // SAFETY: a value of a store's tree is a record, read while this thread is pinned.
        let record = unsafe { RecordPtr::from_index_value(value) };
        record.prefetch_header();
        found[places[at]] = Some(record);
    });
}

/// Returns whether a write is a row that costs little where it turns out that there is a record for it.
fn is_small_put(write: &LogWrite<'_>) -> bool {
    matches!(write.change, Change::Put(row) if row.len() <= SMALL_ROW_BYTES)
}

/// Returns whether two keys differ in nothing but their last byte.
#[inline]
fn is_neighbour(one: &[u8], other: &[u8]) -> bool {
    if let (Ok(one), Ok(other)) = (one.try_into(), other.try_into()) {
        // What most keys of many parts are: compared without a call.
        return u64::from_be_bytes(one) >> 8 == u64::from_be_bytes(other) >> 8;
    }
    let start = |key: &[u8]| key.len().checked_sub(1);
    start(one).is_some_and(|len| start(other) == Some(len) && one[..len] == other[..len])
}

/// Starts to load what a write changes of its record.
fn prefetch(write: &LogWrite<'_>, record: Option<RecordPtr>) {
    let Some(record) = record else { return };
    match &write.change {
        Change::Put(_) => record.prefetch_row(),
        Change::Patch(words) => words.clone().for_each(|(index, _)| record.prefetch_word(index as usize)),
        Change::Delete => {}
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
        self.floors.end(self.number);
        lock(self.left).push(std::mem::take(&mut self.leftover));
    }
}
