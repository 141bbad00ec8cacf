//! What a table has of its loading: nothing, once all of its rows are in memory.

use std::sync::{Arc, Mutex};

use ensilo_engine::{Direction, KeyBounds};
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicBool;

use crate::Result;
use crate::catalog::table_core::TableCore;
use crate::mutex::lock;

/// What a statement asks while it waits, to end early.
pub(crate) type Control<'c> = &'c dyn Fn() -> Result<()>;

/// Loads rows of one table. Each call returns when what it is asked for is in memory.
///
/// # Errors
/// Of every method: [`Error::LoadFailed`](crate::Error::LoadFailed) when a block cannot be loaded,
/// [`Error::OutOfMemory`](crate::Error::OutOfMemory), [`Error::Closed`](crate::Error::Closed),
/// [`Error::UnknownTable`](crate::Error::UnknownTable) when the table was dropped; that of `control`.
pub(crate) trait LoadRows<S>: Send + Sync {
    /// Loads the row under a key, if there is one.
    fn load_key(&self, key: &[u8]) -> Result<()>;

    /// Loads the rows with which a scan of the range begins. Where nothing is in memory yet, so many blocks of
    /// each part at most.
    fn load_piece(&self, bounds: KeyBounds<'_>, direction: Direction, blocks_max: usize) -> Result<Piece>;

    /// Loads all rows, and makes the entries of the indexes. A caller that `is_pinned` keeps rows in memory: it does not
    /// wait for some to leave.
    fn load_whole(&self, table: &TableCore<S>, is_pinned: bool, control: Control<'_>) -> Result<()>;

    /// Checks that no block of the table was found damaged, so that it may be written.
    fn check_sound(&self) -> Result<()>;

    /// The table is dropped: nothing of it is loaded any more.
    fn give_up(&self);
}

/// How far a range is loaded.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// All keys up to this one are, without it; or in the other direction, down to it and with it. `None`: all
    /// of the range.
    pub(crate) end: Option<Box<[u8]>>,
    /// How many blocks have them, about.
    pub(crate) blocks: usize,
}

/// See the module's documentation.
pub(crate) struct LoadCell<S> {
    is_loading: AtomicBool,
    load: Mutex<Option<Arc<dyn LoadRows<S>>>>,
}

impl<S> LoadCell<S> {
    /// Returns whether all rows of the table are in memory, and all entries of its indexes.
    #[inline(always)]
    pub(crate) fn is_over(&self) -> bool {
        // Acquire: [table-loaded].
        !self.is_loading.load(Ordering::Acquire)
    }

    /// Sees to it that rows are loaded when they are touched. No transaction has begun.
    pub(super) fn begin(&self, load: Arc<dyn LoadRows<S>>) {
        *lock(&self.load) = Some(load);
        self.is_loading.store(true, Ordering::Release);
    }

    /// Returns what loads rows of the table, unless all are loaded.
    pub(crate) fn get(&self) -> Option<Arc<dyn LoadRows<S>>> {
        lock(&self.load).clone()
    }

    /// All is loaded, or the store of the table is dropped.
    pub(crate) fn end(&self) {
        // Release: [table-loaded].
        self.is_loading.store(false, Ordering::Release);
        *lock(&self.load) = None;
    }

    /// The table is being dropped: nothing of it is loaded any more. [`LoadCell::end`] comes once its store is gone, since rows that are
    /// not there must not seem to be missing.
    pub(crate) fn give_up(&self) {
        if let Some(load) = self.get() {
            load.give_up();
        }
    }
}

impl<S> Default for LoadCell<S> {
    fn default() -> Self {
        LoadCell { is_loading: AtomicBool::new(false), load: Mutex::new(None) }
    }
}
