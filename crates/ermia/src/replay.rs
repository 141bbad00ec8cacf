//! Putting a log and a checkpoint back into the engine.
//!
//! They may come from either engine, in any order and through many threads: of two versions of a record the one with the larger stamp stays,
//! and takes the place of the other in memory, if it fits there and does not leave most of a large block unused.
//! Words that were logged without their row, as Silo's engine does it, wait until all that is older is there.

mod pending;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ensilo_engine::{
    Engine, NewStoreError, ROW_LEN_MAX, Recovered, RecoveredStore, Replayer, Store as _, StoredRow, TableId,
    Tid,
};
use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_index::{InsertError, Inserted, KEY_LEN_MAX, Lookup};
use ensilo_log::{Change, Replay, ReplayError, Write as LogWrite};
use ensilo_slab::OutOfMemory;
use ensilo_sync::Backoff;
use ensilo_sync::atomic::{AtomicU64, Ordering};
use ensilo_sync::sync::Mutex;

use self::pending::PendingRows;
use crate::cold::{COOLING, ColdRows, ColdWord, Leavers, Unreadable, end_cooling};
use crate::engine::Ermia;
use crate::isolation::{Isolation, Serializable};
use crate::oid_array::{DEAD, Oid};
use crate::stamp::{Author, Stamp};
use crate::store::{ErmiaStore, lock};
use crate::version::Version;

/// Puts a log and a checkpoint back into an engine on which no transaction has begun.
pub struct ErmiaReplayer<'e, I: Isolation = Serializable> {
    engine: &'e Ermia<I>,
    pending: PendingRows,
    /// What the workers that have ended leave to do.
    left: Mutex<Vec<Leftover>>,
}

/// One thread's part of a replay.
pub struct ReplayWorker<'r> {
    participant: Participant,
    /// Where the last write went: the next one mostly goes there too.
    store: Option<Arc<ErmiaStore>>,
    leftover: Leftover,
    left: &'r Mutex<Vec<Leftover>>,
}

/// How often memory is looked for once no rows are left that could leave it, and in all: a large row that is read back to be replaced by a larger
/// one may be all that can leave, again and again. Without rows, others who replay may be about to make use of what has left: they get a while,
/// a longer one each time, half a second together.
const ATTEMPTS_WITHOUT_ROWS: u32 = 12;
const ATTEMPTS_MAX: u32 = 1000;
const WAIT_WITHOUT_ROWS: Duration = Duration::from_millis(1);
const WAIT_DOUBLINGS_MAX: u32 = 6;

/// What a worker leaves to do until everything is replayed, and what it has found out.
#[derive(Debug, Default)]
struct Leftover {
    /// Keys that were deleted.
    deleted: Vec<(TableId, Box<[u8]>)>,
    /// Rows by store, as the difference that the worker made.
    rows: HashMap<TableId, i64>,
    /// The largest TID.
    latest: Tid,
}

impl<'e, I: Isolation> ErmiaReplayer<'e, I> {
    /// Returns a replay into `engine`.
    pub(crate) fn new(engine: &'e Ermia<I>) -> Self {
        ErmiaReplayer { engine, pending: PendingRows::new(), left: Mutex::new(Vec::new()) }
    }

    /// Returns the store of a table, made when its first record comes.
    fn store(&self, table: TableId) -> Result<Arc<ErmiaStore>, ReplayError> {
        if !table.is_logged() || table > TableId::MAX {
            return Err(ReplayError::Refused("a table id that no table has".into()));
        }
        loop {
            if let Some(store) = lock(&self.engine.shared.stores).get(&table) {
                return Ok(Arc::clone(store));
            }
            // Another thread may be making it: then the id is taken, and it is there now.
            if let Err(NewStoreError::OutOfMemory(_)) = self.engine.new_store(table) {
                return Err(ReplayError::OutOfMemory);
            }
        }
    }

    fn apply_write(&self, worker: &mut ReplayWorker<'_>, write: &LogWrite<'_>) -> Result<(), ReplayError> {
        let (table, tid) = (TableId(write.table), Tid::from_raw(write.tid));
        let ReplayWorker { participant, store, leftover, .. } = worker;
        leftover.latest = leftover.latest.max(tid);
        let row = match &write.change {
            Change::Put(row) => Some(*row),
            Change::Delete => {
                leftover.deleted.push((table, write.key.into()));
                None
            }
            Change::Patch(words) => {
                return self.pending.add((table, write.key), tid, words.clone());
            }
        };
        let store = match store {
            Some(store) if store.id() == table => store,
            _ => store.insert(self.store(table)?),
        };
        let guard = participant.pin();
        let put = || put::<I>(self.engine, store, write.key, tid, row, &guard);
        let more = self.within_limit(&guard, put)?;
        *leftover.rows.entry(table).or_default() += more;
        Ok(())
    }

    /// Returns what `put` returns, for which rows leave memory if it finds none. What it has read back itself may be among these, so that some
    /// can always leave: it ends when all have left for a few times, and others have not made use of the memory each time.
    fn within_limit<R>(
        &self,
        guard: &Guard<'_>,
        mut put: impl FnMut() -> Result<R, ReplayError>,
    ) -> Result<R, ReplayError> {
        let mut without_rows = if self.engine.shared.cold.is_some() { 0 } else { ATTEMPTS_WITHOUT_ROWS };
        for _ in 0..ATTEMPTS_MAX {
            match put() {
                Err(ReplayError::OutOfMemory) if without_rows < ATTEMPTS_WITHOUT_ROWS => {
                    if !self.make_room(guard) {
                        thread::sleep(WAIT_WITHOUT_ROWS * (1 << without_rows.min(WAIT_DOUBLINGS_MAX)));
                        without_rows += 1;
                    }
                }
                outcome => return outcome.map_err(|error| self.explain(error)),
            }
        }
        Err(self.explain(ReplayError::OutOfMemory))
    }

    /// Says of rows that do not fit into memory why they could not leave it, where the disk has taken none.
    fn explain(&self, error: ReplayError) -> ReplayError {
        match (error, self.engine.shared.cold.as_ref().and_then(ColdRows::failure)) {
            (ReplayError::OutOfMemory, Some(why)) => ReplayError::RowsCannotLeave(why.to_string()),
            (error, _) => error,
        }
    }

    /// Lets rows leave memory. False if none are left that can.
    #[cold]
    fn make_room(&self, guard: &Guard<'_>) -> bool {
        let is_for_large = self.engine.shared.epochs.pool().take_refused() > 0;
        (is_for_large && self.let_leave(Leavers::Large, guard)) || self.let_leave(Leavers::All, guard)
    }

    /// Lets some of these rows leave memory. False if none are left that can.
    fn let_leave(&self, leavers: Leavers, guard: &Guard<'_>) -> bool {
        let shared = &self.engine.shared;
        let Some(cold) = &shared.cold else { return false };
        lock(&self.engine.evictor).evict_at_rest::<I>(shared, cold, guard, leavers)
    }

    /// Lets rows leave memory until there is as much room as transactions need. What those that have left leave behind is for any use.
    fn keep_limit(&self) {
        let pool = self.engine.shared.epochs.pool();
        let Some(cold) = &self.engine.shared.cold else { return };
        {
            let participant = lock(&self.engine.participant);
            let guard = participant.pin();
            while cold.excess_at_rest(pool).is_some_and(|leavers| self.let_leave(leavers, &guard)) {}
        }
        self.engine.trim_orphaned();
        pool.lend_parked();
    }

    /// Takes deleted keys out of their indexes.
    fn finish_deleted(&self, deleted: &[(TableId, Box<[u8]>)]) -> Result<(), ReplayError> {
        let mut state = self.engine.take_state();
        for (table, key) in deleted {
            let store = self.store(*table)?;
            let guard = state.participant.pin();
            // The key may have come back since, or be gone already.
            let Some(oid) = find(&store, key, &guard) else { continue };
            // What is cold is no deletion.
            let Some(version) = store.in_memory::<I>(oid).filter(Version::is_deletion) else { continue };
            let is_removed = store.index().remove(key, oid.index_value(), &guard);
            assert!(is_removed, "nobody else changes this key");
            store.slot(oid).store(DEAD, Ordering::Relaxed);
            // SAFETY: nothing leads to the version any more, and no transaction has begun.
            unsafe { version.free(&guard) };
            state.garbage.give_back(&store, oid);
        }
        self.engine.give_back(state);
        Ok(())
    }
}

impl<I: Isolation> Replay for ErmiaReplayer<'_, I> {
    type Worker<'r>
        = ReplayWorker<'r>
    where
        Self: 'r;

    fn worker(&self) -> ReplayWorker<'_> {
        let participant = self.engine.shared.epochs.participant();
        ReplayWorker { participant, store: None, leftover: Leftover::default(), left: &self.left }
    }

    fn apply(&self, worker: &mut ReplayWorker<'_>, writes: &[LogWrite<'_>]) -> Result<(), ReplayError> {
        writes.iter().try_for_each(|write| self.apply_write(worker, write))
    }

    fn fold(&self, worker: &mut ReplayWorker<'_>, frontier: Epoch) -> Result<(), ReplayError> {
        self.pending.fold(frontier, self, &worker.participant)
    }
}

impl<I: Isolation> Replayer for ErmiaReplayer<'_, I> {
    fn finish(self) -> Result<Recovered, ReplayError> {
        let mut left = std::mem::take(&mut *lock(&self.left));
        // Before keys leave: words of a deleted row are an error, unless they are older.
        self.pending.finish(left.len(), &self)?;
        left.iter().try_for_each(|of| self.finish_deleted(&of.deleted))?;
        let latest = left.iter().map(|of| of.latest).max().unwrap_or_default();
        // What is on disk and was not replayed is of earlier epochs than the present one: it can come later, and all see it.
        let before_all = Tid::before(self.engine.shared.epochs.global_epoch());
        self.engine.shared.clock.pass(Stamp::of(latest.max(before_all)));
        self.keep_limit();
        let stores = self.engine.stores().into_iter().map(|store| {
            let rows: i64 = left.iter().filter_map(|of| of.rows.get(&store.id())).sum();
            RecoveredStore { id: store.id(), rows: rows.cast_unsigned() }
        });
        let stores = stores.collect();
        let deleted = left.iter_mut().flat_map(|of| std::mem::take(&mut of.deleted)).collect();
        Ok(Recovered { stores, deleted })
    }
}

/// Puts a row into a store, for [`Engine::derive`].
///
/// Transactions may be under way, and it is to them as if the row had always been there. Its version is complete and has its stamp before
/// a key leads to it, and the stamp is before those of all transactions and snapshots, since the clock has passed the epochs on disk
/// when the replay ended: each sees the version, and none sees anything in its place, since nobody has missed the key before. The node of
/// the index that takes it changes as with any insert: who relies on it for other keys aborts.
pub(crate) fn derive<I: Isolation>(
    participant: &Participant,
    store: &ErmiaStore,
    row: &StoredRow<'_>,
) -> Result<bool, OutOfMemory> {
    let StoredRow { key, tid, words, len_bytes } = *row;
    let guard = participant.pin();
    // Behind the pin: from there on nobody takes the store apart.
    // An attempt before may have got this far: what is there takes no memory again.
    if store.is_dropped() || find(store, key, &guard).is_some() {
        return Ok(false);
    }
    let author = Author::At(Stamp::of(tid));
    let version = Version::<I>::allocate(&guard, store.id(), len_bytes, author, None)?;
    version.record().store_row(words.iter().copied(), len_bytes);
    // Not locked: transactions may find it. Nobody lets it leave memory: nobody has marked it.
    let existing = insert(store, key, version, COOLING, &guard);
    if !matches!(existing, Ok(None)) {
        // SAFETY: the index did not take the version, and whoever passes over all slots leaves alone what is cooling.
        unsafe { version.free(&guard) };
    }
    existing.map(|existing| existing.is_none())
}

/// Makes a row, or without one a deletion, the version of its key, unless there is a later one. Returns how many rows there are more.
fn put<I: Isolation>(
    engine: &Ermia<I>,
    store: &ErmiaStore,
    key: &[u8],
    tid: Tid,
    row: Option<&[u8]>,
    guard: &Guard<'_>,
) -> Result<i64, ReplayError> {
    if row.is_some_and(|row| row.len() > ROW_LEN_MAX) || key.len() > KEY_LEN_MAX {
        return Err(ReplayError::Refused("a key or a row longer than a record takes".into()));
    }
    let stamp = Stamp::of(tid);
    let oid = match find(store, key, guard) {
        Some(oid) => oid,
        None => {
            let version = allocate::<I>(store, row, stamp, guard)?;
            match insert(store, key, version, LOCKED, guard) {
                // Others may have changed the version since.
                Ok(None) => return Ok(i64::from(row.is_some())),
                existing => {
                    // SAFETY: the index did not take the version, so nobody else knows it.
                    unsafe { version.free(guard) };
                    existing.ok().flatten().ok_or(ReplayError::OutOfMemory)?
                }
            }
        }
    };
    let record = LockedRecord::lock(store.slot(oid));
    let before = record.version::<I>(engine, store, guard)?;
    if before.committed_stamp() >= stamp {
        return Ok(0);
    }
    let rows_before = rows_of(before);
    let version = match replacement(before, store, row, stamp, guard)? {
        None => {
            fill(before, row);
            before.set_created(stamp);
            before
        }
        Some(new) => {
            record.replace(new);
            // SAFETY: nothing leads to it any more, and who looks at a version holds the lock.
            unsafe { before.free(guard) };
            new
        }
    };
    Ok(rows_of(version) - rows_before)
}

/// Returns a version for a row, or a deletion, that does not fit into the one before, or leaves most of a large block unused: the rows of
/// a log, one after the other, need no more memory than they did when they were logged.
fn replacement<I: Isolation>(
    before: Version<I>,
    store: &ErmiaStore,
    row: Option<&[u8]>,
    stamp: Stamp,
    guard: &Guard<'_>,
) -> Result<Option<Version<I>>, ReplayError> {
    let row_len = row.map_or(0, <[u8]>::len);
    let fits = before.record().fits(row_len);
    if fits && !before.record().wastes_large(row_len) {
        return Ok(None);
    }
    match allocate(store, row, stamp, guard) {
        // It takes the room that there is.
        Err(ReplayError::OutOfMemory) if fits => Ok(None),
        allocated => allocated.map(Some),
    }
}

/// Returns a version that nobody else knows.
fn allocate<I: Isolation>(
    store: &ErmiaStore,
    row: Option<&[u8]>,
    stamp: Stamp,
    guard: &Guard<'_>,
) -> Result<Version<I>, ReplayError> {
    let row_len = row.map_or(0, <[u8]>::len);
    let version = Version::allocate(guard, store.id(), row_len, Author::At(stamp), None);
    version.inspect(|&version| fill(version, row)).map_err(|_| ReplayError::OutOfMemory)
}

/// Makes a version a row, or without one a deletion. It has room, and nobody else looks at it.
fn fill<I: Isolation>(version: Version<I>, row: Option<&[u8]>) {
    version.record().store_row_bytes(row.unwrap_or_default());
    version.set_deletion(row.is_none());
}

/// A record of which one thread of a replay alone looks at the version. No transaction has begun.
struct LockedRecord<'a> {
    slot: &'a AtomicU64,
    /// What the slot gets back.
    word: Cell<u64>,
}

/// In a slot: a record is locked.
pub(crate) const LOCKED: u64 = 2;

impl<'a> LockedRecord<'a> {
    fn lock(slot: &'a AtomicU64) -> Self {
        let mut backoff = Backoff::new();
        loop {
            // Acquire: [replay] what others have made of the version.
            let word = slot.fetch_or(LOCKED, Ordering::Acquire);
            if word & LOCKED == 0 {
                return LockedRecord { slot, word: Cell::new(word) };
            }
            backoff.wait();
        }
    }

    /// Returns the version, which is read back if it has left memory.
    fn version<I: Isolation>(
        &self,
        engine: &Ermia<I>,
        store: &ErmiaStore,
        guard: &Guard<'_>,
    ) -> Result<Version<I>, ReplayError> {
        if let Some(place) = ColdWord::from_slot(self.word.get()) {
            let cold = engine.shared.cold_rows();
            let record = cold.read_locked(place, self.slot);
            let record = record.map_err(|unreadable| not_read(unreadable, cold))?;
            self.replace(store.version_of::<I>(&record, guard).map_err(|_| ReplayError::OutOfMemory)?);
            cold.note_loaded(place);
        }
        // SAFETY: a key leads to the record, so that it has a version, which leaves it only under the lock.
        match unsafe { Version::from_word(self.word.get()) } {
            Some(version) => Ok(version),
            None => unreachable!("a record without a version"),
        }
    }

    fn replace<I: Isolation>(&self, version: Version<I>) {
        self.word.set(version.to_word());
    }
}

impl Drop for LockedRecord<'_> {
    fn drop(&mut self) {
        // Release: [replay].
        self.slot.store(self.word.get(), Ordering::Release);
    }
}

fn not_read(unreadable: Unreadable, cold: &ColdRows) -> ReplayError {
    match unreadable {
        Unreadable::OutOfMemory => ReplayError::OutOfMemory,
        Unreadable::Damaged => ReplayError::Refused(cold.unreadable().as_deref().unwrap_or_default().into()),
    }
}

/// Returns how many rows a version is.
fn rows_of<I: Isolation>(version: Version<I>) -> i64 {
    i64::from(!version.is_deletion())
}

fn find(store: &ErmiaStore, key: &[u8], guard: &Guard<'_>) -> Option<Oid> {
    match store.index().get(key, guard) {
        // SAFETY: the value was read from the store's index, under a pin.
        Lookup::Found(value) => Some(unsafe { Oid::from_index_value(value) }),
        Lookup::Missing(_) => None,
    }
}

/// Makes a record of a version, which is [`LOCKED`] or [`COOLING`] until it is known whose the version is. Returns the one that has this key
/// already; then, and after an error, the version is the caller's still.
fn insert<I: Isolation>(
    store: &ErmiaStore,
    key: &[u8],
    version: Version<I>,
    mark: u64,
    guard: &Guard<'_>,
) -> Result<Option<Oid>, OutOfMemory> {
    let oid = store.records().take_one()?;
    let slot = store.slot(oid);
    // Release: [head].
    let word = version.to_word() | mark;
    slot.store(word, Ordering::Release);
    let inserted = store.index().insert_if_absent(key, oid.index_value(), guard, &mut ());
    if inserted != Ok(Inserted::New) {
        // No key leads to the record, and none will: the identifier is lost, which takes eight bytes. Relaxed: who passes over all
        // slots finds nothing to follow.
        slot.store(DEAD, Ordering::Relaxed);
    } else if mark == LOCKED {
        // Release: [replay].
        slot.store(version.to_word(), Ordering::Release);
    } else {
        end_cooling(slot, word);
    }
    match inserted {
        Ok(Inserted::New) => Ok(None),
        // SAFETY: the value was read from the store's index, under a pin.
        Ok(Inserted::Existing(value)) => Ok(Some(unsafe { Oid::from_index_value(value) })),
        Err(InsertError::OutOfMemory(error)) => Err(error),
        Err(error) => panic!("a key that was checked when its row was written: {error}"),
    }
}

impl<I: Isolation> fmt::Debug for ErmiaReplayer<'_, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErmiaReplayer").field("engine", self.engine).finish_non_exhaustive()
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
