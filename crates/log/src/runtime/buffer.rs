//! A buffer that one worker fills while one logger writes what is already filled.
//!
//! # Layout
//! ```text
//! memory:  headroom | taken .. | published, not taken | being filled | never used
//!          owner: the logger ------------------------ | the worker ------------->
//!                              ^ Draining::taken       ^ Filling::published   ^ Filling::cursor
//! published word: bit 63 sealed | 32 bits transactions | 31 bits length
//! ```
//! The headroom, and after it the bytes already taken, give the logger room for the header of a block
//! directly before the payload, so that both leave in one write without being copied.
//!
//! # Invariants
//! - **I1** A buffer has at most one [`Filling`] and one [`Draining`]: [`Buffer::open`] consumes the buffer
//!   and makes one of each, and [`Draining::into_buffer`] gives it back only when the `Filling` is gone.
//! - **I2** Bytes below `HEADROOM + published` belong to the `Draining`, the others to the `Filling`. The
//!   published length never falls while the buffer is open.
//!
//! # Memory ordering
//! One edge, `[publish]`: the store of the published word with Release, its load with Acquire. The seal is
//! part of the same word.

use std::fmt;
use std::sync::Arc;

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::memory::Memory;
use crate::format::BLOCK_HEADER_BYTES;

/// Bytes before the payload.
pub(crate) const HEADROOM: usize = if cfg!(loom) { 1 } else { BLOCK_HEADER_BYTES };

/// The most bytes that fit the published word.
pub(crate) const BUFFER_BYTES_MAX: usize = 1 << 30;

const LENGTH_BITS: u32 = 31;
const SEALED: u64 = 1 << 63;
const ONE_TRANSACTION: u64 = 1 << LENGTH_BITS;

/// How far a buffer is filled: length, transactions and seal in one word, so that one store publishes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Published(u64);

impl Published {
    fn length(self) -> usize {
        (self.0 & (ONE_TRANSACTION - 1)) as usize
    }

    fn transactions(self) -> u64 {
        (self.0 & !SEALED) >> LENGTH_BITS
    }

    fn is_sealed(self) -> bool {
        self.0 & SEALED != 0
    }
}

/// Memory for log entries that nobody uses at the moment.
#[derive(Debug)]
pub(crate) struct Buffer(Arc<SharedBuffer>);

struct SharedBuffer {
    memory: Memory,
    /// On cache lines of its own: the worker writes it with every transaction.
    published: CachePadded<AtomicU64>,
}

impl Buffer {
    /// Returns a buffer for `bytes` bytes of entries; `None` if the system has no memory. It gives the memory when that is first written.
    pub(crate) fn new(bytes: usize) -> Option<Buffer> {
        assert!(bytes <= BUFFER_BYTES_MAX, "a log buffer of {bytes} bytes");
        let published = CachePadded::new(AtomicU64::new(0));
        Some(Buffer(Arc::new(SharedBuffer { memory: Memory::try_new(HEADROOM + bytes)?, published })))
    }

    /// Returns how many bytes of entries fit.
    pub(crate) fn capacity(&self) -> usize {
        self.0.memory.len() - HEADROOM
    }

    /// Begins to use the buffer, from its first byte.
    pub(crate) fn open(self) -> (Filling, Draining) {
        // Relaxed: nobody else has the buffer; whoever gets a half gets it through a lock.
        self.0.published.store(0, Ordering::Relaxed);
        let draining = Draining { shared: Arc::clone(&self.0), taken: 0, transactions: 0 };
        let filling = Filling {
            capacity: self.capacity(),
            shared: self.0,
            word: 0,
            cursor: 0,
            #[cfg(all(loom, test))]
            publishes_relaxed: false,
        };
        (filling, draining)
    }
}

/// The worker's half of an open buffer.
pub(crate) struct Filling {
    shared: Arc<SharedBuffer>,
    /// The published word, without the seal.
    word: u64,
    /// Where the next byte goes; not below the published length.
    cursor: usize,
    capacity: usize,
    /// What a model plants: lengths are published without Release.
    #[cfg(all(loom, test))]
    pub(crate) publishes_relaxed: bool,
}

impl Filling {
    /// Returns how many bytes of entries fit.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that are left, the published ones of this transaction counted as used.
    #[inline]
    pub(crate) fn room(&self) -> usize {
        self.capacity - self.cursor
    }

    /// Goes back to the published length: the transaction that was begun is as if it had never been.
    #[inline]
    pub(crate) fn rewind(&mut self) {
        self.cursor = Published(self.word).length();
    }

    /// Returns the bytes from the cursor on.
    #[inline]
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        // SAFETY: the bytes lie behind the published length (the cursor is not below it), so that by I2 they
        // belong to this half, of which there is one (I1); `&mut self` is borrowed as long as the slice
        // lives.
        unsafe { self.shared.memory.slice_mut(HEADROOM + self.cursor..HEADROOM + self.capacity) }
    }

    /// Returns what was written of the transaction that was begun.
    #[inline]
    pub(crate) fn unpublished(&mut self) -> &mut [u8] {
        let from = HEADROOM + Published(self.word).length();
        // SAFETY: the bytes lie behind the published length, so that by I2 they belong to this half, of which
        // there is one (I1); `&mut self` is borrowed as long as the slice lives.
        unsafe { self.shared.memory.slice_mut(from..HEADROOM + self.cursor) }
    }

    /// Says that the next `bytes` bytes were written.
    #[inline]
    pub(crate) fn advance(&mut self, bytes: usize) {
        assert!(bytes <= self.room(), "a log entry ran over its buffer");
        self.cursor += bytes;
    }

    /// Gives everything up to the cursor to the logger, as one transaction.
    #[inline]
    pub(crate) fn publish(&mut self) {
        let transactions = self.word & !(ONE_TRANSACTION - 1);
        self.word = (transactions + ONE_TRANSACTION) | self.cursor as u64;
        // Release: [publish] the bytes below the length.
        self.shared.published.store(self.word, self.publish_ordering());
    }

    /// Ends the use of the buffer. What was not published is lost.
    pub(crate) fn seal(self) {
        // Release: [publish] as above. The buffer may be reused from here on.
        self.shared.published.store(self.word | SEALED, self.publish_ordering());
    }

    #[inline]
    fn publish_ordering(&self) -> Ordering {
        #[cfg(all(loom, test))]
        if self.publishes_relaxed {
            return Ordering::Relaxed;
        }
        Ordering::Release
    }
}

/// The logger's half of an open buffer.
pub(crate) struct Draining {
    shared: Arc<SharedBuffer>,
    /// Bytes of the payload that were taken.
    taken: usize,
    /// Transactions that were taken.
    transactions: u64,
}

/// What [`Draining::take`] found.
pub(crate) struct Taken<'a> {
    /// Room for the header of a block, then what was published since the last time. Never empty.
    pub(crate) frame: &'a mut [u8],
    /// How many transactions that are.
    pub(crate) transactions: u64,
}

impl Taken<'_> {
    /// Returns what was published since the last time.
    pub(crate) fn payload(&self) -> &[u8] {
        &self.frame[HEADROOM..]
    }
}

impl Draining {
    /// Returns how many transactions were published and not taken.
    pub(crate) fn pending(&self) -> u64 {
        // Relaxed, here and in the next: whoever takes it looks again.
        Published(self.shared.published.load(Ordering::Relaxed)).transactions() - self.transactions
    }

    /// Returns whether the worker is done with the buffer.
    pub(crate) fn is_sealed(&self) -> bool {
        Published(self.shared.published.load(Ordering::Relaxed)).is_sealed()
    }

    /// Takes what was published since the last time.
    pub(crate) fn take(&mut self) -> Option<Taken<'_>> {
        // Acquire: [publish] the bytes below the length.
        let published = Published(self.shared.published.load(Ordering::Acquire));
        let length = published.length();
        if length == self.taken {
            return None;
        }
        let range = self.taken..HEADROOM + length;
        let transactions = published.transactions() - self.transactions;
        self.taken = length;
        self.transactions = published.transactions();
        // SAFETY: the bytes lie below the published length, so that by I2 they belong to this half, of which
        // there is one (I1); `&mut self` is borrowed as long as the slice lives. What the worker wrote there
        // came before [publish].
        let frame = unsafe { self.shared.memory.slice_mut(range) };
        Some(Taken { frame, transactions })
    }

    /// Returns the buffer, if it was sealed and everything in it was taken.
    pub(crate) fn into_buffer(self) -> Result<Buffer, Draining> {
        // Acquire: [publish] the worker's last access comes before the next one's.
        let published = Published(self.shared.published.load(Ordering::Acquire));
        if !published.is_sealed() || published.length() != self.taken {
            return Err(self);
        }
        let mut draining = self;
        // The other half is sealed, but its owner may still be about to let go of it: then the buffer is
        // given back later.
        if Arc::get_mut(&mut draining.shared).is_none() {
            return Err(draining);
        }
        Ok(Buffer(draining.shared))
    }
}

impl fmt::Debug for SharedBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let published = Published(self.published.load(Ordering::Relaxed));
        f.debug_struct("Shared").field("bytes", &self.memory.len()).field("published", &published).finish()
    }
}

impl fmt::Debug for Filling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filling").field("cursor", &self.cursor).field("capacity", &self.capacity).finish()
    }
}

impl fmt::Debug for Draining {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draining").field("shared", &self.shared).field("taken", &self.taken).finish()
    }
}
