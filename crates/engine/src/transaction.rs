//! Transactions as the layers above use them.

use std::fmt;
use std::ops::ControlFlow;

use ensilo_epoch::Epoch;

use crate::abort::Abort;
use crate::addition::Addition;
use crate::committed::Committed;
use crate::fault::Fault;
use crate::key_range::KeyBounds;
use crate::prepared::Prepared;
use crate::row::RowRef;
use crate::store::Store;

/// The order in which a scan hands out keys.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Direction {
    /// From small to large.
    Forward,
    /// From large to small.
    Reverse,
}

/// What a transaction is about to do with a key.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum KeyChange {
    /// [`Write::insert`].
    Insert,
    /// [`Write::find_to_write`], and [`Write::delete`] of what that finds.
    Delete,
}

/// Reads of a transaction.
///
/// Closures named `decode` may run on a row that is being overwritten; see [`RowRef`]. What the methods return or pass on to
/// `each` is from a row that was whole, and an [epoch](RowRef::epoch) among that is the one in which this row was committed.
pub trait Read {
    /// What is read.
    type Store: Store;
    /// A handle to a record that this transaction has found. It says which transaction that is, as by a
    /// [`TransactionNumber`](crate::TransactionNumber): no other one takes it.
    type Found: Copy + fmt::Debug;

    /// Returns whether this transaction has found it.
    fn has_found(&self, found: Self::Found) -> bool;

    /// Looks up `key`.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn find(&mut self, store: &Self::Store, key: &[u8]) -> Result<Option<Self::Found>, Abort>;

    /// Looks up all `keys`, their descents interleaved where the engine can, and calls `each`, which may be a program's, with the position
    /// and result of every key, in order.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &Self::Store,
        keys: &[K],
        mut each: impl FnMut(usize, Option<Self::Found>),
    ) -> Result<(), Abort> {
        for (at, key) in keys.iter().enumerate() {
            each(at, self.find(store, key.as_ref())?);
        }
        Ok(())
    }

    /// Computes a value from the row of a record that was found before.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When another transaction has [found](Read::has_found) it, or this one has deleted the record.
    fn read<R>(&mut self, found: Self::Found, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort>;

    /// Looks up `key` and computes a value from its row; `None` when there is no such key.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn get<R>(
        &mut self,
        store: &Self::Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        match self.find(store, key)? {
            Some(found) => self.read(found, decode).map(Some),
            None => Ok(None),
        }
    }

    /// Looks up all `keys` like [`Read::find_many`] and calls `each`, which may be a program's, with the position of every key and the value
    /// that `decode` computes from that position and the row, in order, until it breaks. What lies behind then need not have been read.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &Self::Store,
        keys: &[K],
        mut decode: impl FnMut(usize, RowRef<'_>) -> R,
        mut each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        for (at, key) in keys.iter().enumerate() {
            let value = self.get(store, key.as_ref(), |row| decode(at, row))?;
            if each(at, value).is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Walks the keys within `bounds` in `direction`; `each`, which may be a program's, gets a handle and the value computed from key and
    /// row, until it breaks.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn scan<R>(
        &mut self,
        store: &Self::Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(Self::Found, R) -> ControlFlow<()>,
    ) -> Result<(), Abort>;

    /// Like [`Read::scan`], without handles: nothing needs to be kept for a row that was read but what the commit looks at again, and an
    /// abort at such a row may name no key.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    #[inline]
    fn scan_to_read<R>(
        &mut self,
        store: &Self::Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        mut each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        self.scan(store, bounds, direction, decode, |_, value| each(value))
    }

    /// Checks whether what was read so far belongs together, where reads need not: those of an engine that validates at the commit. By default they
    /// always do.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn check_reads(&mut self) -> Result<(), Abort> {
        Ok(())
    }

    /// Returns the last epoch that what was read so far is of, deletions included: once it is durable, no crash takes back what was read.
    /// An engine that does not log returns any.
    fn largest_epoch_seen(&self) -> Epoch;
}

/// Writes of a transaction, and its end. Dropping it without [`Write::commit`] aborts it.
pub trait Write: Read + Sized {
    /// As [`Engine::FAULT`](crate::Engine::FAULT).
    #[doc(hidden)]
    const FAULT: Option<Fault> = None;

    /// Whether all that a transaction reads is what was committed when it began. Otherwise it may read what does not belong together, and
    /// who may go on for long by what was read [checks](Write::check) now and then.
    const READS_AS_OF_BEGIN: bool = false;

    /// Whether every history is serializable. Otherwise others may overwrite what a transaction has read, and both commit: one that relies
    /// on a row writes it.
    const IS_SERIALIZABLE: bool = true;

    /// Whether a transaction can [add](Write::add) to numbers of a row that it has not read.
    const ADDS: bool = false;

    /// The transaction once it is prepared; [`NeverPrepared`](crate::NeverPrepared) in an engine without
    /// [two-phase commit](crate::Engine::TWO_PHASE_COMMIT).
    type Prepared: Prepared;

    /// Looks up `key` like [`Read::find`], to write to the record that it finds: an engine that locks what is read may lock it for the write
    /// at once.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    #[inline]
    fn find_to_write(&mut self, store: &Self::Store, key: &[u8]) -> Result<Option<Self::Found>, Abort> {
        self.find(store, key)
    }

    /// Replaces single words of the row; `words` are pairs of word index and new word, computed from what this
    /// transaction read of the row. The row's length stays.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When a word lies outside the row, another transaction has found the record, or this one has deleted it.
    fn patch(&mut self, found: Self::Found, words: &[(u32, u64)]) -> Result<(), Abort>;

    /// Adds to numbers of the row under `key` when the transaction commits, to what they are then: transactions that add to the row until then do not
    /// conflict with this one. Reads of this transaction see the sums; after a read it relies on the row as on any that it has read.
    ///
    /// Returns `false`, and does nothing, where the row has to be read and [patched](Write::patch) instead: because there is no row under the key, or
    /// one of an epoch before `since`, because the transaction has changed the row otherwise or has many additions to it, or because others give way to the
    /// transaction. By default it always returns `false`.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more. Where a number has no room for the sum, the commit, or the read of the row, fails with [`AbortReason::SumOutOfRange`](crate::AbortReason::SumOutOfRange), whether or not its other reads are current.
    ///
    /// # Panics
    /// When a number lies outside the row.
    fn add(
        &mut self,
        store: &Self::Store,
        key: &[u8],
        since: Epoch,
        additions: &[Addition],
    ) -> Result<bool, Abort> {
        let _ = (store, key, since, additions);
        Ok(false)
    }

    /// Replaces the whole row by `len_bytes` bytes in `row`, the last word padded with zero bytes.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When the row is longer than [`crate::ROW_LEN_MAX`] or `row` has not exactly the words it needs, another
    /// transaction has found the record, or this one has deleted it.
    fn put(&mut self, found: Self::Found, row: &[u64], len_bytes: usize) -> Result<(), Abort>;

    /// Inserts a row under `key`; `false`, and nothing changed, when the key exists.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When the key is longer than the engine takes, or the row is longer than [`crate::ROW_LEN_MAX`].
    fn insert(
        &mut self,
        store: &Self::Store,
        key: &[u8],
        row: &[u64],
        len_bytes: usize,
    ) -> Result<bool, Abort>;

    /// Walks the keys within `bounds` in `direction`, like [`Read::scan_to_read`], to look for a record that the transaction will then
    /// [find](Read::find): nothing that is passed on to `each` counts as read. It sees the transaction's own writes. Of the rows of others
    /// it passes on those that are committed when it comes to them. It may leave out those that a prepared transaction keeps locked, and, in an engine
    /// that [reads as of the begin](Write::READS_AS_OF_BEGIN), those that were inserted or changed since: it passes them on to `later`.
    ///
    /// An engine that validates what was read gets a method of its own, which relies on nothing that it passes. By default the range
    /// counts as read, and others that change it are in conflict with the transaction.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn peek<R>(
        &mut self,
        store: &Self::Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
        later: impl FnMut(R),
    ) -> Result<(), Abort> {
        let _ = later;
        self.scan_to_read(store, bounds, direction, decode, each)
    }

    /// Starts to load what the transaction needs for these `count` changes, which it makes next: `key` returns the store and the key of each
    /// by its number. The descents are interleaved. Nothing is read or locked, and nothing follows from it but that the changes are made
    /// sooner. By default it does nothing.
    #[inline]
    fn prefetch_changes<'k>(
        &mut self,
        count: usize,
        key: impl Fn(usize) -> (&'k Self::Store, &'k [u8], KeyChange),
    ) where
        Self::Store: 'k,
    {
        let _ = (count, key);
    }

    /// Deletes a record.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    ///
    /// # Panics
    /// When another transaction has found the record, or this one has deleted it before.
    fn delete(&mut self, found: Self::Found) -> Result<(), Abort>;

    /// Ends the transaction: all of its writes become visible at one point of the serial order, or none.
    ///
    /// # Errors
    /// [`Abort`] when another transaction got in between; nothing has changed.
    fn commit(self) -> Result<Committed, Abort>;

    /// Does everything of a commit that can fail, so that the transaction can wait for the decision of a two-phase commit: its vote
    /// to commit. Others go on meanwhile. What they would change of what this transaction has read or will write they leave as it
    /// is, and abort with [`AbortReason::PreparedRead`](crate::AbortReason::PreparedRead) or
    /// [`AbortReason::PreparedLock`](crate::AbortReason::PreparedLock). During the vote itself they may wait, as for any commit.
    /// Nobody queues for what is prepared: a transaction that would change it is refused for as long as some prepared transaction
    /// relies on it. With ranges and missing keys that may be more than was read; a small or empty table takes no inserts while a
    /// prepared transaction has missed any key in it.
    ///
    /// # Errors
    /// [`Abort`] as for [`Write::commit`]: the vote to abort. Nothing has changed. A transaction may be [too
    /// large](crate::AbortReason::TransactionTooLarge) to be prepared that is not too large to be committed: the limit of the log
    /// counts whole rows at the vote.
    ///
    /// # Panics
    /// In an engine without [two-phase commit](crate::Engine::TWO_PHASE_COMMIT).
    fn prepare(self) -> Result<Self::Prepared, Abort> {
        unreachable!("nothing prepares transactions of an engine without two-phase commit")
    }

    /// Checks that all that this transaction has read is still current, so that what its caller concluded from it
    /// holds. It reads what it has [added](Write::add) to for that. A transaction may read what no serial history would show it, and only its commit finds out. A caller that gives up for
    /// a reason that lies in what was read, such as a key that exists already, checks first. Returns the epoch that has to be durable
    /// before no crash can take back what was read.
    ///
    /// # Errors
    /// [`Abort`] when something has changed: the conclusion means nothing.
    fn check(&mut self) -> Result<Epoch, Abort>;

    /// Checks like [`Write::check`], for a transaction that goes on afterwards: what it has [added](Write::add) to stays unread.
    ///
    /// # Errors
    /// [`Abort`] when the transaction cannot commit any more.
    fn check_so_far(&mut self) -> Result<(), Abort> {
        self.check().map(drop)
    }

    /// Returns whether there may be something to commit. By default there may; an engine with
    /// [two-phase commit](crate::Engine::TWO_PHASE_COMMIT) knows.
    fn has_writes(&self) -> bool {
        true
    }

    /// Says why the transaction is about to end without a commit, where the engine does not know it yet: for the counters of aborts. By default
    /// nobody counts.
    fn note_abort(&mut self, abort: &Abort) {
        let _ = abort;
    }

    /// Ends the transaction on the caller's request; nothing has changed.
    fn abort(self) {}
}
