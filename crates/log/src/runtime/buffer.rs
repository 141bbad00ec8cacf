//! A buffer that one worker fills while one logger writes what is already filled.
//!
//! # Layout
//! ```text
//! memory:  headroom | taken .. | published, not taken | being filled | never used
//!          owner: the logger ------------------------ | the worker ------------->
//!                              ^ Draining::taken       ^ Filling::published   ^ Filling::cursor
//! published word: bit 63 sealed | 23 bits transactions | 40 bits length
//! ```
//! The headroom, and after it the bytes already taken, give the logger room for the header of a block directly before the
//! payload, so that both leave in one write without being copied.
//!
//! # Invariants
//! - **I1** A buffer has at most one [`Filling`] and one [`Draining`]: [`Buffer::open`] consumes the buffer and makes one of each, and
//!   [`Draining::into_buffer`] gives it back only when the `Filling` is gone.
//! - **I2** Bytes below `HEADROOM + published` belong to the `Draining`, the others to the `Filling`. The published length never falls
//!   while the buffer is open.
//!
//! # Memory ordering
//! One edge, `[publish]`: the store of the published word with Release, its load with Acquire. The seal is part of the same word.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use crate::format::BLOCK_HEADER_BYTES;

/// Bytes before the payload.
pub(crate) const HEADROOM: usize = if cfg!(loom) { 1 } else { BLOCK_HEADER_BYTES };

/// The most bytes that fit the published word.
pub(crate) const BUFFER_BYTES_MAX: usize = 1 << 30;

const LENGTH_BITS: u32 = 40;
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
pub(crate) struct Buffer(Arc<Shared>);

struct Shared {
    memory: Memory,
    /// On cache lines of its own: the worker writes it with every transaction.
    published: CachePadded<AtomicU64>,
}

impl Buffer {
    /// A buffer for `bytes` bytes of entries. The system gives the memory when it is first written.
    pub(crate) fn new(bytes: usize) -> Buffer {
        assert!(bytes <= BUFFER_BYTES_MAX, "a log buffer of {bytes} bytes");
        let published = CachePadded::new(AtomicU64::new(0));
        Buffer(Arc::new(Shared { memory: Memory::new(HEADROOM + bytes), published }))
    }

    /// How many bytes of entries fit.
    pub(crate) fn capacity(&self) -> usize {
        self.0.memory.len() - HEADROOM
    }

    /// Begins to use the buffer, from its first byte.
    pub(crate) fn open(self) -> (Filling, Draining) {
        // Relaxed: nobody else has the buffer; whoever gets a half gets it through a lock.
        self.0.published.store(0, Ordering::Relaxed);
        let draining = Draining { shared: Arc::clone(&self.0), taken: 0, transactions: 0 };
        let filling = Filling { capacity: self.capacity(), shared: self.0, word: 0, cursor: 0, fault: Fault::None };
        (filling, draining)
    }
}

/// What a model plants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// Publishes without Release.
    #[cfg(all(loom, test))]
    RelaxedPublish,
    /// Publishes before the bytes are written.
    #[cfg(all(loom, test))]
    EarlySeal,
}

/// The worker's half of an open buffer.
pub(crate) struct Filling {
    shared: Arc<Shared>,
    /// The published word, without the seal.
    word: u64,
    /// Where the next byte goes; not below the published length.
    cursor: usize,
    capacity: usize,
    fault: Fault,
}

impl Filling {
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

    /// The bytes from the cursor on.
    #[inline]
    pub(crate) fn rest(&mut self) -> &mut [u8] {
        // SAFETY: the bytes lie behind the published length (the cursor is not below it), so that by I2 they belong to this
        // half, of which there is one (I1); `&mut self` is borrowed as long as the slice lives.
        unsafe { self.shared.memory.slice_mut(HEADROOM + self.cursor..HEADROOM + self.capacity) }
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
        if self.fault == Fault::RelaxedPublish {
            return Ordering::Relaxed;
        }
        Ordering::Release
    }

    #[cfg(all(loom, test))]
    pub(crate) fn plant(&mut self, fault: Fault) {
        self.fault = fault;
    }
}
