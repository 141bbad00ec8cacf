//! What a transaction holds for itself: vectors that are bounded, counted, and small again afterwards.
//!
//! Positions in a transaction's sets have 32 bits, so each set is bounded by them. Up to [`KEPT_BYTES`] a set grows like any vector and
//! keeps its memory from one transaction to the next. What it takes beyond counts against the database's memory limit and goes back
//! when the transaction ends. One comparison with the room that a set has decides about all of this.
//!
//! Without a limit a set keeps more, up to [`KEPT_LONGER_BYTES`], as long as some of the next transactions have a use for it: to take it anew each
//! time, and to copy what is there at every growth, costs a long transaction up to a fifth of its time.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use ensilo_slab::Pool;

use crate::abort::{Abort, AbortReason};
use crate::store::TableId;

/// What a set may take without asking, and keeps.
pub const KEPT_BYTES: usize = 256 << 10;

/// What a set keeps for a while where no memory limit is set.
const KEPT_LONGER_BYTES: usize = 32 << 20;

/// For how many transactions in a row that have no use for it.
const UNUSED_MAX: u32 = 1000;

/// The largest number of things in a set: positions have 32 bits, and the last one stands for none.
pub const LEN_MAX: usize = u32::MAX as usize;

/// Memory that the sets of one worker hold beyond what they keep, counted against the limit of the database.
#[derive(Debug)]
pub struct HeldMemory {
    pool: Arc<Pool>,
    bytes: u64,
    /// The most things in a set: [`LEN_MAX`], or fewer in tests.
    #[doc(hidden)]
    pub len_max: usize,
}

impl HeldMemory {
    /// Holds nothing yet.
    #[must_use]
    pub fn new(pool: Arc<Pool>) -> Self {
        HeldMemory { pool, bytes: 0, len_max: LEN_MAX }
    }

    /// Counts so many bytes more.
    ///
    /// # Errors
    /// [`AbortReason::OutOfMemory`]; nothing is counted.
    pub fn add(&mut self, bytes: usize) -> Result<(), Abort> {
        self.pool.count_outside(bytes).map_err(|_| refused(AbortReason::OutOfMemory))?;
        self.bytes += bytes as u64;
        Ok(())
    }

    /// Gives everything back: the sets are small again.
    #[inline]
    pub fn release(&mut self) {
        if self.bytes > 0 {
            self.release_all();
        }
    }

    #[cold]
    fn release_all(&mut self) {
        self.pool.forget_outside(std::mem::take(&mut self.bytes));
    }

    /// Returns what is counted.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for HeldMemory {
    fn drop(&mut self) {
        self.release();
    }
}

/// Returns an abort that concerns the transaction as a whole.
#[cold]
#[must_use]
pub fn refused(reason: AbortReason) -> Abort {
    Abort::new(reason, TableId::NONE, &[])
}

/// A set: a vector with positions of 32 bits.
#[derive(Debug)]
pub struct SetBuffer<T> {
    items: Vec<T>,
    /// How many things it may have without asking.
    room: usize,
    /// Whether it may keep more than [`KEPT_BYTES`] for a while.
    may_keep_more: bool,
    /// How many transactions in a row had no use for that.
    unused: u32,
}

impl<T> SetBuffer<T> {
    const KEPT: usize = KEPT_BYTES / size_of::<T>();
    const KEPT_LONGER: usize = KEPT_LONGER_BYTES / size_of::<T>();

    /// Returns an empty set.
    #[must_use]
    pub const fn new() -> Self {
        SetBuffer { items: Vec::new(), room: Self::KEPT, may_keep_more: false, unused: 0 }
    }

    /// Makes room for so many things more.
    ///
    /// # Errors
    /// [`AbortReason::TransactionTooLarge`] and [`AbortReason::OutOfMemory`]; nothing has changed.
    #[inline]
    pub fn reserve(&mut self, more: usize, held: &mut HeldMemory) -> Result<(), Abort> {
        if more <= self.room - self.items.len() { Ok(()) } else { self.grow(more, held) }
    }

    #[cold]
    fn grow(&mut self, more: usize, held: &mut HeldMemory) -> Result<(), Abort> {
        let needed = self.items.len().checked_add(more).filter(|&needed| needed <= held.len_max);
        let needed = needed.ok_or_else(|| refused(AbortReason::TransactionTooLarge))?;
        // Twice as much, or, near the limit, a little.
        let sizes = [self.room.saturating_mul(2), self.room.saturating_add(self.room / 8)];
        let [wanted, least] = sizes.map(|room| needed.max(room).min(held.len_max));
        let mut count = |room: usize| held.add((room - self.room) * size_of::<T>()).map(|()| room);
        let room = count(wanted).or_else(|_| count(least))?;
        // What is counted too much when the system refuses goes back with the rest, when the transaction ends.
        let reserved = self.items.try_reserve_exact(room - self.items.len());
        reserved.map_err(|_| refused(AbortReason::OutOfMemory))?;
        self.room = room;
        self.may_keep_more = held.pool.limit_bytes().is_none();
        Ok(())
    }

    /// Adds one, for which there is room, and returns its position.
    #[inline]
    pub fn push_reserved(&mut self, item: T) -> u32 {
        let at = self.end();
        self.items.push(item);
        at
    }

    /// Adds one and returns its position.
    ///
    /// # Errors
    /// As for [`SetBuffer::reserve`].
    #[inline]
    pub fn push(&mut self, item: T, held: &mut HeldMemory) -> Result<u32, Abort> {
        self.reserve(1, held)?;
        Ok(self.push_reserved(item))
    }

    /// Adds some, for which there is room.
    #[inline]
    pub fn extend_reserved(&mut self, items: impl IntoIterator<Item = T>) {
        self.items.extend(items);
        debug_assert!(self.items.len() <= self.room, "there was room");
    }

    /// Returns the position of the next one, and how many there are.
    #[inline]
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        reason = "the room, and with it the length, is at most LEN_MAX"
    )]
    pub fn end(&self) -> u32 {
        debug_assert!(self.items.len() <= LEN_MAX);
        self.items.len() as u32
    }

    /// Takes out all behind the first `len`.
    pub fn truncate(&mut self, len: usize) {
        self.items.truncate(len);
    }

    /// Empties it. What it took beyond what it keeps goes back to the system; the caller releases what was counted.
    #[inline]
    pub fn clear(&mut self) {
        let len = self.items.len();
        self.items.clear();
        if self.room > Self::KEPT {
            self.shrink_unless_used(len);
        }
    }

    #[cold]
    fn shrink_unless_used(&mut self, len: usize) {
        self.unused = if len > Self::KEPT { 0 } else { self.unused + 1 };
        if self.may_keep_more && self.room <= Self::KEPT_LONGER && self.unused < UNUSED_MAX {
            return;
        }
        self.items.shrink_to(Self::KEPT);
        (self.room, self.unused) = (Self::KEPT, 0);
    }
}

impl SetBuffer<u8> {
    /// Adds bytes, for which there is room.
    #[inline]
    pub fn extend_from_slice_reserved(&mut self, bytes: &[u8]) {
        self.items.extend_from_slice(bytes);
    }
}

impl<T> Default for SetBuffer<T> {
    fn default() -> Self {
        SetBuffer::new()
    }
}

impl<T> Deref for SetBuffer<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for SetBuffer<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    const KEPT: usize = SetBuffer::<u64>::KEPT;

    #[test]
    fn a_set_keeps_little_and_what_is_beyond_counts_against_the_limit() {
        let pool = Pool::new(Some(1 << 20));
        let mut held = HeldMemory::new(Arc::clone(&pool));
        let mut buffer = SetBuffer::new();
        for number in 0..KEPT {
            assert_eq!(buffer.push(0_u64, &mut held).unwrap() as usize, number);
        }
        assert_eq!((held.bytes(), pool.mapped_bytes()), (0, 0));
        buffer.push(0, &mut held).unwrap();
        assert_eq!(pool.mapped_bytes(), KEPT_BYTES as u64, "twice the room");
        let refused = (0..4 * KEPT).find_map(|_| buffer.push(0, &mut held).err()).unwrap();
        assert_eq!(refused.reason(), AbortReason::OutOfMemory);
        assert!(
            (4 * KEPT + KEPT / 2..=5 * KEPT).contains(&buffer.len()),
            "it held nearly the limit, with what is kept"
        );
        buffer.clear();
        held.release();
        assert_eq!((buffer.items.capacity(), pool.mapped_bytes()), (KEPT, 0));
        buffer.push(0, &mut held).unwrap();
    }

    #[test]
    fn without_a_limit_a_set_keeps_more_while_it_is_used() {
        let mut held = HeldMemory::new(Pool::new(None));
        let mut buffer = SetBuffer::new();
        let mut use_and_clear = |len: usize| {
            buffer.reserve(len, &mut held).unwrap();
            buffer.extend_reserved(0..len as u64);
            buffer.clear();
            held.release();
            buffer.items.capacity()
        };
        for _ in 0..3 {
            assert_eq!(use_and_clear(5 * KEPT), 5 * KEPT);
            assert!((1..UNUSED_MAX).all(|_| use_and_clear(1) == 5 * KEPT));
        }
        assert_eq!(use_and_clear(1), KEPT, "nobody has used it for long");
        assert_eq!(use_and_clear(SetBuffer::<u64>::KEPT_LONGER + 1), KEPT, "it is too large");
    }

    #[test]
    fn positions_end_where_their_bits_do() {
        let mut held = HeldMemory::new(Pool::new(None));
        held.len_max = KEPT + 10;
        let mut buffer = SetBuffer::new();
        buffer.reserve(KEPT + 10, &mut held).unwrap();
        buffer.extend_reserved(0..KEPT as u64 + 9);
        assert_eq!(buffer.push(7, &mut held).unwrap() as usize, KEPT + 9, "the last position");
        assert_eq!(buffer.push(8, &mut held).unwrap_err().reason(), AbortReason::TransactionTooLarge);
        assert_eq!(
            buffer.reserve(usize::MAX, &mut held).unwrap_err().reason(),
            AbortReason::TransactionTooLarge
        );
        assert_eq!(buffer.len(), KEPT + 10);
    }
}
