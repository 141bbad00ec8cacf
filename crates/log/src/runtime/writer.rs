//! The worker's side of the log.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Instant;

use ensilo_epoch::Epoch;
use ensilo_sync::region::{self, Region};

use super::buffer::{BUFFER_BYTES_MAX, Filling};
use super::buffer_size::BufferSize;
use super::error::LogError;
use super::partition::LogPartition;
use super::writer_state::WriterState;
use crate::format::{
    Cursor, encode_delete, encode_left_out, encode_patch, encode_patched, encode_put, encode_transaction,
};

/// Where one worker logs its transactions.
///
/// A transaction takes room while it can still be given up ([`LogWriter::reserve`]), and when it is sure to
/// commit says what it writes: [`LogWriter::begin`], then one call per write, then [`LogWriter::publish`].
/// From there on the log stores it by itself. It is stored when the durable epoch has reached the epoch of
/// its TID, and the worker's commit epoch ([`ensilo_epoch::Participant::begin_commit`]) has to be published
/// from before its TID is chosen until after `publish`.
///
/// Dropping the writer leaves what it published to the log.
pub struct LogWriter {
    filling: Option<Filling>,
    buffer_size: BufferSize,
    /// Whether the buffer is larger than the usual ones: it goes with its transaction.
    is_large: bool,
    /// Whether it is large and waits for the decision of a prepared transaction.
    is_set_aside: bool,
    /// What was asked for when there was no buffer.
    refused_bytes: usize,
    /// Writes that [`LogWriter::begin`] announced and that were not made yet.
    announced: usize,
    /// Whether a transaction with writes was begun.
    is_begun: bool,
    writer_state: Arc<WriterState>,
    partition: Arc<LogPartition>,
    one_thread: PhantomData<Cell<()>>,
}

/// Why there is no room for a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReserveError {
    /// All buffers wait for the disk. Let go of all locks, call [`LogWriter::wait_for_buffer`] and try again.
    Full,
    /// The log has failed or was closed: [`LogWriter::wait_for_buffer`] says why. Final.
    Failed,
    /// More than a transaction may log: 1 GiB.
    TooLarge,
    /// The system has no memory for a buffer.
    OutOfMemory,
}

impl fmt::Display for ReserveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReserveError::Full => "all log buffers wait for the disk",
            ReserveError::Failed => "the log has failed or was closed",
            ReserveError::TooLarge => "the transaction is too large for the log",
            ReserveError::OutOfMemory => "there is no memory for a log buffer",
        })
    }
}

impl std::error::Error for ReserveError {}

impl LogWriter {
    pub(crate) fn new(partition: Arc<LogPartition>, writer_state: Arc<WriterState>) -> LogWriter {
        partition.pool.add_writer();
        LogWriter {
            filling: None,
            buffer_size: BufferSize::new(),
            is_large: false,
            is_set_aside: false,
            refused_bytes: 0,
            announced: 0,
            is_begun: false,
            writer_state,
            partition,
            one_thread: PhantomData,
        }
    }

    /// Takes room for a transaction of at most `bytes` bytes (see [`crate::transaction_bytes`] and its
    /// neighbours). Never waits. A transaction that was begun and not published is given up.
    ///
    /// # Errors
    /// [`ReserveError::Full`], [`ReserveError::Failed`], [`ReserveError::TooLarge`], [`ReserveError::OutOfMemory`].
    #[inline]
    pub fn reserve(&mut self, bytes: usize) -> Result<(), ReserveError> {
        let _log = region::enter(Region::Log);
        if self.writer_state.is_stopped() {
            return Err(ReserveError::Failed);
        }
        if let Some(filling) = &mut self.filling {
            filling.rewind();
            if bytes <= filling.room() {
                return Ok(());
            }
        }
        self.open_buffer(bytes)
    }

    /// Waits until there is a buffer to spare for what was refused. To be called without locks and outside of a commit: the logger
    /// that frees buffers must not have to wait for the caller.
    ///
    /// # Errors
    /// Why the log has stopped.
    pub fn wait_for_buffer(&self) -> Result<(), LogError> {
        let _waiting = region::enter(Region::Waiting);
        self.partition.wait_for_buffer(self.refused_bytes)
    }

    /// Records with a version of an earlier epoch are to be logged as whole rows: see
    /// `Log::set_full_rows_before`.
    #[must_use]
    #[inline]
    pub fn full_rows_before(&self) -> Epoch {
        self.writer_state.full_rows_before()
    }

    /// Begins the entry of a transaction that was given room by [`LogWriter::reserve`]. Exactly `writes`
    /// writes follow; without any, nothing is logged.
    #[inline]
    pub fn begin(&mut self, tid: u64, writes: usize) {
        let _log = region::enter(Region::Log);
        self.announced = writes;
        self.is_begun = writes > 0;
        let Some(filling) = &mut self.filling else { return assert_no_writes(writes) };
        filling.rewind();
        append(filling, |cursor| encode_transaction(cursor, tid, writes));
    }

    /// A row that is new or was replaced: its length in bytes, and its words.
    #[inline]
    pub fn put(&mut self, table: u32, key: &[u8], row_len: usize, words: impl IntoIterator<Item = u64>) {
        self.write(|cursor| encode_put(cursor, table, key, row_len, words));
    }

    /// A whole row of which some words were changed: its length in bytes, its words before the change, and
    /// the changed ones as for [`LogWriter::patch`].
    #[inline]
    pub fn put_patched(
        &mut self,
        table: u32,
        key: &[u8],
        row_len: usize,
        words: impl IntoIterator<Item = u64>,
        pairs: impl IntoIterator<Item = (u32, u64)>,
    ) {
        self.write(|cursor| encode_patched(cursor, table, key, row_len, words, pairs));
    }

    /// Words of a row that were changed, with their indexes within the row and their values after the change.
    #[inline]
    pub fn patch(&mut self, table: u32, key: &[u8], pairs: impl ExactSizeIterator<Item = (u32, u64)>) {
        self.write(|cursor| encode_patch(cursor, table, key, pairs));
    }

    /// A row that was deleted.
    #[inline]
    pub fn delete(&mut self, table: u32, key: &[u8]) {
        self.write(|cursor| encode_delete(cursor, table, key));
    }

    /// Stands for all writes of a transaction, which is announced to have one: its TID alone is logged.
    /// Nobody can recover from such a log; opening it is refused.
    #[inline]
    pub fn leave_out(&mut self) {
        self.write(encode_left_out);
    }

    /// Gives the transaction that was begun another TID.
    #[inline]
    pub fn set_tid(&mut self, tid: u64) {
        let bytes = tid.to_le_bytes();
        if let Some(entry) = &mut self.filling {
            entry.unpublished()[..bytes.len()].copy_from_slice(&bytes);
        }
    }

    /// Returns the log entry of the transaction that was begun, for the central log buffer
    /// ([`Ring::fill`](super::Ring::fill)) in the place of [`LogWriter::publish`]. Empty if it has no writes.
    ///
    /// # Panics
    /// As [`LogWriter::publish`].
    #[inline]
    pub fn entry(&mut self) -> &[u8] {
        assert_no_writes(self.announced);
        match &mut self.filling {
            Some(filling) if self.is_begun => filling.unpublished(),
            _ => &[],
        }
    }

    /// Gives the transaction to the log: a logger may take it from now on.
    ///
    /// # Panics
    /// When not all writes were made that were announced.
    #[inline]
    pub fn publish(&mut self) {
        let _log = region::enter(Region::Log);
        assert_no_writes(self.announced);
        let Some(filling) = &mut self.filling else { return };
        if self.is_begun {
            self.is_begun = false;
            filling.publish();
            if self.is_large {
                self.seal_buffer();
            }
        }
    }

    /// Keeps the room that was taken for a transaction that may have to wait for long: others take large buffers as if it had none.
    pub fn set_aside(&mut self) {
        if self.is_large
            && !self.is_set_aside
            && let Some(filling) = &self.filling
        {
            self.is_set_aside = true;
            self.partition.pool.set_aside(filling.capacity());
        }
    }

    /// Gives up the transaction that took room, or whose [entry](LogWriter::entry) was copied: what it took beyond the usual buffers goes
    /// back.
    #[inline]
    pub fn give_up(&mut self) {
        if self.is_large {
            self.seal_buffer();
        }
    }

    #[inline]
    fn write(&mut self, encode: impl FnOnce(&mut Cursor<'_>)) {
        let _log = region::enter(Region::Log);
        assert!(self.announced > 0, "more writes than the transaction announced");
        self.announced -= 1;
        if let Some(filling) = &mut self.filling {
            append(filling, encode);
        }
    }

    /// Goes on in another buffer.
    #[cold]
    fn open_buffer(&mut self, bytes: usize) -> Result<(), ReserveError> {
        if bytes > BUFFER_BYTES_MAX {
            return Err(ReserveError::TooLarge);
        }
        self.seal_buffer();
        let now = Instant::now();
        let usual = self.buffer_size.next(now, self.partition.pool.buffer_bytes());
        let bytes = bytes.max(usual);
        let taken = self.partition.pool.take(bytes);
        let buffer = taken.inspect_err(|_| self.refused_bytes = bytes)?;
        self.is_large = buffer.capacity() > self.partition.pool.buffer_bytes();
        self.refused_bytes = 0;
        self.buffer_size.note_opened(now, usual);
        let (filling, draining) = buffer.open();
        self.partition.deliver(draining);
        self.filling = Some(filling);
        Ok(())
    }

    /// Plants a fault for a model to find, in the buffer that is being filled.
    #[cfg(all(loom, test))]
    pub(crate) fn plant_relaxed_publish(&mut self, relaxed: bool) {
        if let Some(filling) = &mut self.filling {
            filling.publishes_relaxed = relaxed;
        }
    }

    #[cold]
    fn seal_buffer(&mut self) {
        let was_set_aside = std::mem::take(&mut self.is_set_aside);
        if let Some(filling) = self.filling.take() {
            self.partition.seal(filling, was_set_aside);
        }
    }
}

#[inline]
fn append(filling: &mut Filling, encode: impl FnOnce(&mut Cursor<'_>)) {
    let mut cursor = Cursor::new(filling.rest());
    encode(&mut cursor);
    let bytes = cursor.filled();
    filling.advance(bytes);
}

#[inline]
fn assert_no_writes(announced: usize) {
    assert!(announced == 0, "{announced} writes of the transaction were announced and not made");
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.seal_buffer();
        self.partition.pool.remove_writer();
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").field("filling", &self.filling).finish_non_exhaustive()
    }
}
