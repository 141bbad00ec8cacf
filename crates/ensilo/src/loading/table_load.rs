//! Loading the rows of one table: a block by one thread, while others wait for it or load other blocks.
//!
//! Who needs several blocks never holds one while it waits for another: nobody waits for himself, or in a
//! circle.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ensilo_engine::{Engine, Failpoint, ROW_LEN_MAX, Store, StoredRow, TableId, Tid};
use ensilo_epoch::Participant;
use ensilo_log::{BlockScratch, CheckpointBlock, CheckpointBlocks, CheckpointRecord};
use ensilo_row::RowBuf;

use super::cell::Control;
use super::state::LoadState;
use super::table_blocks::{LoadBlock, TableBlocks};
use crate::catalog::rebuild::IndexRebuild;
use crate::catalog::table_core::TableCore;
use crate::error::{Abort, Name, UNREADABLE_ROW};
use crate::mutex::lock;
use crate::records::RecordCounts;
use crate::{Error, Result};

/// Retired memory that a thread frees at most when it has loaded something.
const RETIRED_BUDGET: usize = 4096;

/// Who waits for others looks so often whether it is to stop.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// What the loads of all tables share.
pub(super) struct LoadShared<E: Engine> {
    pub(super) engine: Arc<E>,
    pub(super) blocks: CheckpointBlocks,
    pub(super) records: Arc<RecordCounts>,
    pub(super) state: Arc<LoadState>,
    /// How many threads make the entries of indexes.
    pub(super) threads: usize,
    /// Of threads that have loaded something.
    pub(super) hands: Mutex<Vec<Hand>>,
}

impl<E: Engine> LoadShared<E> {
    /// Gives back what idle hands hold: the memory of rows that they have loaded, and that have left memory since.
    pub(super) fn let_hands_go(&self) {
        lock(&self.hands).clear();
    }
}

/// What a thread needs to load a block.
pub(super) struct Hand {
    participant: Participant,
    scratch: BlockScratch,
    row: RowBuf,
}

/// The load of one table.
pub(super) struct TableLoad<E: Engine> {
    pub(super) shared: Arc<LoadShared<E>>,
    store: Arc<E::Store>,
    name: Arc<str>,
    pub(super) blocks: TableBlocks,
    /// Keys that the log has deleted.
    deleted: HashSet<Box<[u8]>>,
    /// The next block that nobody has taken to load all of the table.
    next: AtomicUsize,
    /// Whether somebody waits for all of the table.
    pub(super) is_wanted: AtomicBool,
    /// Whether somebody makes the entries of its indexes.
    is_finishing: AtomicBool,
    /// Whether whoever makes them waits for rows to leave memory.
    is_short: AtomicBool,
    /// Whether the table was dropped.
    pub(super) is_given_up: AtomicBool,
    /// Whether the statistics count its blocks: not of a table that is loaded before the first request.
    is_counted: bool,
    pub(super) failure: OnceLock<Name>,
    waiting: Mutex<()>,
    changed: Condvar,
}

impl<E: Engine> TableLoad<E> {
    pub(super) fn new(
        shared: &Arc<LoadShared<E>>,
        table: &TableCore<E::Store>,
        blocks: Vec<CheckpointBlock>,
        deleted: HashSet<Box<[u8]>>,
        is_counted: bool,
    ) -> Self {
        TableLoad {
            shared: Arc::clone(shared),
            store: Arc::clone(&table.store),
            name: Arc::clone(&table.name),
            blocks: TableBlocks::new(blocks),
            deleted,
            next: AtomicUsize::new(0),
            is_wanted: AtomicBool::new(false),
            is_finishing: AtomicBool::new(false),
            is_short: AtomicBool::new(false),
            is_given_up: AtomicBool::new(false),
            is_counted,
            failure: OnceLock::new(),
            waiting: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    pub(super) fn id(&self) -> TableId {
        self.store.id()
    }

    pub(super) fn blocks(&self) -> &TableBlocks {
        &self.blocks
    }

    /// Returns whether somebody waits for all of the table.
    pub(super) fn is_wanted(&self) -> bool {
        self.is_wanted.load(Ordering::Relaxed)
    }

    /// Returns whether there is a block that nobody has taken.
    pub(super) fn has_next(&self) -> bool {
        let is_left = self.next.load(Ordering::Relaxed) < self.blocks.all().len();
        is_left && self.check_going().is_ok() && self.failure.get().is_none()
    }

    /// Takes the next block, and loads it. Returns whether it was the last one that nobody had taken.
    pub(super) fn load_next(&self) -> Result<bool> {
        // Relaxed: the numbers need only differ.
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if let Some(block) = self.blocks.all().get(number)
            && block.claim()
        {
            self.load_claimed(block)?;
        }
        Ok(number + 1 == self.blocks.all().len())
    }

    /// Checks that there is still something to be loaded for.
    fn check_going(&self) -> Result<()> {
        if self.is_given_up.load(Ordering::Relaxed) {
            return Err(Error::UnknownTable(Name::new(&*self.name)));
        }
        if self.shared.state.is_stopped() { Err(Error::Closed) } else { Ok(()) }
    }

    /// Loads a block, or waits for the thread that does.
    pub(super) fn load_block(&self, block: &LoadBlock, control: Control<'_>) -> Result<()> {
        while !block.is_loaded() {
            self.check_going()?;
            if block.claim() {
                return self.load_claimed(block);
            }
            self.wait_while(|| block.is_being_loaded(), control)?;
        }
        Ok(())
    }

    fn load_claimed(&self, block: &LoadBlock) -> Result<()> {
        let mut claim = Claim { load: self, block, is_loaded: false };
        let put = self.with_hand(|hand| self.put_rows(hand, &block.block));
        put.inspect_err(|_| self.shared.let_hands_go())?;
        claim.is_loaded = true;
        if self.is_counted {
            self.shared.state.note_blocks(1, block.block.bytes as u64);
        }
        Ok(())
    }

    /// Sees to it that the key which a block begins with is right.
    pub(super) fn prove(&self, block: &LoadBlock) -> Result<()> {
        if block.is_proved() {
            return Ok(());
        }
        let read = |hand: &mut Hand| self.read(&block.block, &mut hand.scratch).map(|_| ());
        self.with_hand(read)?;
        block.set_proved();
        Ok(())
    }

    fn read<'b>(
        &self,
        block: &CheckpointBlock,
        scratch: &'b mut BlockScratch,
    ) -> Result<Vec<CheckpointRecord<'b>>> {
        let read = self.shared.blocks.read(block, scratch);
        let records = read.map_err(|error| self.fail(&error.to_string()))?;
        let is_kept = |record: &CheckpointRecord<'_>| {
            record.key.len() <= E::KEY_LEN_MAX && record.row.len() <= ROW_LEN_MAX
        };
        if records.iter().all(is_kept) {
            return Ok(records);
        }
        let file = self.shared.blocks.file_of(block);
        Err(self.fail(&format!("{} has a key or a row that is longer than any can be", file.display())))
    }

    /// Notes that the table cannot be loaded, unless that is known.
    fn fail(&self, why: &str) -> Error {
        let why = Name::new(format!("rows of table {} cannot be loaded: {why}", self.name));
        let why = self.failure.get_or_init(|| why);
        self.shared.state.note_failure(self.id(), why);
        Error::LoadFailed(why.clone())
    }

    /// Puts the rows of a block into memory, but for those that the log has deleted or written since. Where
    /// memory ends some are there: nobody has seen them, and the next attempt passes them over.
    fn put_rows(&self, hand: &mut Hand, block: &CheckpointBlock) -> Result<()> {
        let Hand { participant, scratch, row } = hand;
        let records = self.read(block, scratch)?;
        E::reached(Failpoint::CheckpointBlockRead);
        let mut put = 0;
        let mut records = records.iter().filter(|record| !self.deleted.contains(record.key));
        let outcome = records.try_for_each(|record| {
            row.set_bytes(record.row);
            let (key, tid) = (record.key, Tid::from_raw(record.tid));
            let stored = StoredRow { key, tid, words: row.words(), len_bytes: row.len_bytes() };
            put += u64::from(self.shared.engine.derive(participant, &self.store, &stored)?);
            Ok::<(), ensilo_slab::OutOfMemory>(())
        });
        self.shared.records.add_recovered(self.id(), put);
        outcome.map_err(|_| Error::OutOfMemory(Abort::out_of_memory(self.id())))
    }

    fn with_hand<R>(&self, work: impl FnOnce(&mut Hand) -> R) -> R {
        let idle = lock(&self.shared.hands).pop();
        let mut hand = idle.unwrap_or_else(|| Hand {
            participant: self.shared.engine.epochs().participant(),
            scratch: BlockScratch::default(),
            row: RowBuf::new(),
        });
        let result = work(&mut hand);
        hand.participant.collect(RETIRED_BUDGET);
        lock(&self.shared.hands).push(hand);
        result
    }

    /// Waits while this is so.
    fn wait_while(&self, is_so: impl Fn() -> bool, control: Control<'_>) -> Result<()> {
        let mut waiting = lock(&self.waiting);
        while is_so() {
            self.check_going()?;
            control()?;
            let waited = self.changed.wait_timeout(waiting, LOOK_INTERVAL);
            (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    pub(super) fn note_change(&self) {
        drop(lock(&self.waiting));
        self.changed.notify_all();
    }

    /// Makes the entries of the indexes, and says that the table is loaded. All of its rows are in memory, and
    /// nobody has written to the table if it has indexes.
    pub(super) fn finish(
        &self,
        table: &TableCore<E::Store>,
        is_pinned: bool,
        control: Control<'_>,
    ) -> Result<()> {
        // Who is pinned keeps rows in memory that have to leave: it ends, and may come back.
        let is_in_the_way = || is_pinned && self.is_short.load(Ordering::Relaxed);
        while !table.load.is_over() {
            if is_in_the_way() {
                return Err(Error::OutOfMemory(Abort::out_of_memory(self.id())));
            }
            if self.is_finishing.swap(true, Ordering::Acquire) {
                self.wait_while(|| self.is_finishing.load(Ordering::Relaxed) && !is_in_the_way(), control)?;
                continue;
            }
            let _finishing = Finishing(self);
            // The one before may have just done it.
            if table.load.is_over() {
                break;
            }
            E::reached(Failpoint::TableRowsLoaded);
            // What rows leave of their memory is for the entries.
            self.shared.let_hands_go();
            let LoadShared { engine, records, state, threads, .. } = &*self.shared;
            let when_short = || self.is_short.store(true, Ordering::Relaxed);
            let rebuild = IndexRebuild {
                engine: &**engine,
                records,
                threads: *threads,
                when_short: (!is_pinned).then_some(&when_short),
                is_stopped: &|| self.check_going().is_err(),
            };
            let left_out_before = engine.rows_left_out();
            rebuild.run(&[table])?;
            self.check_going()?;
            if let Some(reason) = engine.unreadable_rows() {
                return Err(self.fail(&format!("{UNREADABLE_ROW}: {reason}")));
            }
            if engine.rows_left_out() > left_out_before {
                // It is tried again.
                return Err(Error::OutOfMemory(Abort::out_of_memory(self.id())));
            }
            table.load.end();
            state.note_table(self.id());
        }
        Ok(())
    }
}

/// A block that this thread loads.
struct Claim<'l, E: Engine> {
    load: &'l TableLoad<E>,
    block: &'l LoadBlock,
    is_loaded: bool,
}

impl<E: Engine> Drop for Claim<'_, E> {
    fn drop(&mut self) {
        self.block.end(self.is_loaded);
        self.load.note_change();
    }
}

/// The end of a table's load, by this thread.
struct Finishing<'l, E: Engine>(&'l TableLoad<E>);

impl<E: Engine> Drop for Finishing<'_, E> {
    fn drop(&mut self) {
        self.0.is_short.store(false, Ordering::Relaxed);
        // Release: whoever tries next sees what was made of the indexes.
        self.0.is_finishing.store(false, Ordering::Release);
        self.0.note_change();
    }
}
