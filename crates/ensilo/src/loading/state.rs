//! How far the loading of a database is, and what waits for its end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::{self, ThreadId};
use std::time::Duration;

use ensilo_engine::TableId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::{AtomicBool, AtomicU64};

use crate::catalog::is_of_system;
use crate::error::{Abort, Name, NestedCall};
use crate::mutex::lock;
use crate::{Error, Result};

/// How far the rows of the checkpoint are in memory, of a database that was opened with
/// [`Options::answer_while_loading`](crate::Options::answer_while_loading).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct LoadStatistics {
    /// Bytes of the checkpoint that were left to be loaded when the database was opened, without those of
    /// tables that had been dropped.
    pub bytes_total: u64,
    /// Bytes of these that are loaded.
    pub bytes_done: u64,
    /// In how many blocks they are.
    pub blocks_total: u64,
    /// Blocks that are loaded.
    pub blocks_done: u64,
    /// Tables of programs of which rows, long values or entries of indexes are not in memory yet.
    pub tables_left: u64,
    /// Why a table cannot be loaded: see [`Error::LoadFailed`](crate::Error::LoadFailed).
    pub failure: Option<String>,
}

/// See the module's documentation. Without anything to load it is over from the beginning.
#[derive(Debug, Default)]
pub(crate) struct LoadState {
    left: Mutex<Left>,
    changed: Condvar,
    is_stopped: AtomicBool,
    /// That of the background, which must not wait for itself.
    own_thread: OnceLock<ThreadId>,
    bytes_total: AtomicU64,
    bytes_done: AtomicU64,
    blocks_total: AtomicU64,
    blocks_done: AtomicU64,
}

/// What is left to be loaded.
#[derive(Debug, Default)]
struct Left {
    /// Tables, and stores of long values, that are not loaded yet.
    tables: BTreeMap<TableId, LeftTable>,
    /// Whether the background has found no memory when it tried last.
    is_short_of_memory: bool,
    /// Whether nobody loads in the background any more.
    is_abandoned: bool,
}

/// A table that is not loaded yet, or its long values.
#[derive(Debug)]
struct LeftTable {
    name: Arc<str>,
    /// Why it cannot be.
    failure: Option<Name>,
}

impl Left {
    fn failure(&self) -> Option<&Name> {
        self.tables.values().find_map(|table| table.failure.as_ref())
    }

    /// Returns how many tables of programs are not loaded yet.
    fn tables_of_programs(&self) -> usize {
        let names = self.tables.values().map(|table| &*table.name).filter(|name| !is_of_system(name));
        names.collect::<BTreeSet<_>>().len()
    }

    /// Returns whether there is a table that can still be loaded.
    fn has_more(&self) -> bool {
        self.tables.values().any(|table| table.failure.is_none())
    }
}

// Relaxed, in all of this: what is concluded from the numbers needs no rows; tables and stops come under the lock.
impl LoadState {
    /// A table of this name, or its long values, with so many blocks and bytes is to be loaded.
    pub(super) fn add_table(&self, (table, name): (TableId, &Arc<str>), blocks: u64, bytes: u64) {
        let left = LeftTable { name: Arc::clone(name), failure: None };
        lock(&self.left).tables.insert(table, left);
        self.blocks_total.fetch_add(blocks, Ordering::Relaxed);
        self.bytes_total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// So many blocks, with so many bytes, need not be loaded any more.
    pub(super) fn note_blocks(&self, blocks: u64, bytes: u64) {
        self.blocks_done.fetch_add(blocks, Ordering::Relaxed);
        self.bytes_done.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn blocks_done(&self) -> u64 {
        self.blocks_done.load(Ordering::Relaxed)
    }

    /// All of a table is in memory, or not needed any more.
    pub(super) fn note_table(&self, table: TableId) {
        lock(&self.left).tables.remove(&table);
        self.changed.notify_all();
    }

    /// A table cannot be loaded.
    pub(super) fn note_failure(&self, table: TableId, why: &Name) {
        // It may have been dropped since.
        if let Some(table) = lock(&self.left).tables.get_mut(&table) {
            table.failure.get_or_insert_with(|| why.clone());
        }
        self.changed.notify_all();
    }

    pub(super) fn set_short_of_memory(&self, is_short: bool) {
        lock(&self.left).is_short_of_memory = is_short;
        self.changed.notify_all();
    }

    /// Says that the calling thread is the background's.
    pub(super) fn set_own_thread(&self) {
        let _ = self.own_thread.set(thread::current().id());
    }

    fn is_own_thread(&self) -> bool {
        self.own_thread.get() == Some(&thread::current().id())
    }

    /// Nobody loads in the background any more.
    pub(super) fn abandon(&self) {
        lock(&self.left).is_abandoned = true;
        self.changed.notify_all();
    }

    /// Ends the loading, and all waiting for it.
    pub(super) fn stop(&self) {
        let left = lock(&self.left);
        self.is_stopped.store(true, Ordering::Relaxed);
        drop(left);
        self.changed.notify_all();
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }

    /// Waits for a while, or until the loading is stopped.
    pub(super) fn pause(&self, time: Duration) {
        let left = lock(&self.left);
        let waited = self.changed.wait_timeout_while(left, time, |_| !self.is_stopped());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns whether rows are being loaded in the background, for which there has been memory so far, and the calling thread
    /// may wait for that.
    pub(crate) fn is_under_way(&self) -> bool {
        if self.is_own_thread() {
            return false;
        }
        let left = lock(&self.left);
        left.has_more() && !left.is_short_of_memory && !left.is_abandoned && !self.is_stopped()
    }

    /// Returns whether everything is in memory.
    pub(crate) fn is_whole(&self) -> bool {
        lock(&self.left).tables.is_empty()
    }

    /// Returns why a table cannot be loaded, if there is one.
    pub(crate) fn failure(&self) -> Option<Name> {
        lock(&self.left).failure().cloned()
    }

    /// Waits until everything is in memory.
    ///
    /// # Errors
    /// [`Error::LoadFailed`] when all is that can be; [`Error::OutOfMemory`] when the memory limit holds no
    /// more; [`Error::Closed`]; [`Error::NestedRequest`] in the hook that is told of the progress.
    pub(crate) fn wait(&self) -> Result<()> {
        if self.is_own_thread() {
            return Err(Error::NestedRequest(NestedCall::WaitInLoad));
        }
        let mut left = lock(&self.left);
        // That was in a round before: the next one says whether there is memory now.
        left.is_short_of_memory = false;
        loop {
            if self.is_stopped() {
                return Err(Error::Closed);
            } else if left.tables.is_empty() {
                return Ok(());
            } else if let Some(failure) = left.failure().filter(|_| !left.has_more()) {
                return Err(Error::LoadFailed(failure.clone()));
            } else if left.is_short_of_memory {
                return Err(Error::OutOfMemory(Abort::out_of_memory(TableId::NONE)));
            } else if left.is_abandoned {
                return Err(Error::LoadFailed(Name::new(
                    "nobody loads rows any more; open the database again",
                )));
            }
            left = self.changed.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(crate) fn statistics(&self) -> LoadStatistics {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let left = lock(&self.left);
        LoadStatistics {
            bytes_total: get(&self.bytes_total),
            bytes_done: get(&self.bytes_done),
            blocks_total: get(&self.blocks_total),
            blocks_done: get(&self.blocks_done),
            tables_left: left.tables_of_programs() as u64,
            failure: left.failure().map(ToString::to_string),
        }
    }
}
