//! What a session's transaction holds of locks.

use std::sync::Arc;
use std::time::Instant;

use ensilo_engine::parts::{HeldMemory, SetBuffer};
use ensilo_engine::{Abort, KeyBounds, TableId};

use crate::key::LockKey;
use crate::lock_table::{Grant, LockTable, Mode, Owner, Requester};
use crate::range::LockRange;

/// So many locks of keys are not counted against the memory limit, as a transaction's sets are not while they are small.
const UNCOUNTED_KEYS: usize = 8192;
/// So many more are counted at once, and so many bytes each: roughly what one takes in the table.
const COUNTED_KEYS: usize = 1024;
const KEY_LOCK_BYTES: usize = 160;

/// So many ranges of one table are locked one by one. Those that follow are merged.
const RANGES_MAX: usize = 64;

/// The locks of a session's transaction.
#[derive(Debug)]
pub(crate) struct LockSet {
    table: Arc<LockTable>,
    requester: Requester,
    /// The engine's start, from which ages count.
    started: Instant,
    keys: SetBuffer<LockKey>,
    /// So many keys need not be counted, or are.
    keys_paid_for: usize,
    /// The last key whose lock is exclusive.
    last_exclusive: Option<LockKey>,
    ranges: Vec<LockRange>,
    held: HeldMemory,
    /// Why the transaction has not got a lock, and gets no more.
    refused: Option<Abort>,
    is_prepared: bool,
    /// Whether the table knows that it commits.
    commits: bool,
    /// Whether the next transaction is another attempt at this one.
    is_retry: bool,
}

/// The locks of a transaction that is under way, which are given back when this is dropped.
#[derive(Debug)]
pub(crate) struct HeldLocks<'s>(pub(crate) &'s mut LockSet);

impl LockSet {
    pub(crate) fn new(
        table: Arc<LockTable>,
        requester: Requester,
        started: Instant,
        held: HeldMemory,
    ) -> Self {
        LockSet {
            table,
            requester,
            started,
            keys: SetBuffer::new(),
            keys_paid_for: UNCOUNTED_KEYS,
            last_exclusive: None,
            ranges: Vec::new(),
            held,
            refused: None,
            is_prepared: false,
            commits: false,
            is_retry: false,
        }
    }

    /// Has the next transaction keep the age of the last one, or not.
    pub(crate) fn set_retry(&mut self, is_retry: bool) {
        self.is_retry = is_retry;
    }

    /// Begins a transaction. What one has left that was leaked is given back first, unless that was prepared: then there is no decision,
    /// and its locks stay.
    #[inline]
    pub(crate) fn begin(&mut self, next_session: impl FnOnce() -> u32) -> HeldLocks<'_> {
        if self.is_prepared {
            self.forget(next_session());
        } else if !self.keys.is_empty() || !self.ranges.is_empty() || self.refused.is_some() {
            self.release();
        }
        if !std::mem::take(&mut self.is_retry) && self.requester.waits {
            self.requester.owner.began_ns = self.started.elapsed().as_nanos() as u64;
        }
        HeldLocks(self)
    }

    /// Locks a key.
    ///
    /// # Errors
    /// [`Abort`] for why it cannot be had.
    #[inline]
    pub(crate) fn lock_key(&mut self, table: TableId, key: &[u8], mode: Mode) -> Result<(), Abort> {
        let is_locked = self.last_exclusive.as_ref().is_some_and(|last| last.is(table, key));
        if is_locked {
            return Ok(());
        }
        let locked = self.lock_another_key(table, key, mode);
        locked.map_err(|abort| self.refuse(abort))
    }

    #[inline]
    fn lock_another_key(&mut self, table: TableId, key: &[u8], mode: Mode) -> Result<(), Abort> {
        self.check()?;
        self.keys.reserve(1, &mut self.held)?;
        if self.keys.len() >= self.keys_paid_for {
            self.held.add(COUNTED_KEYS * KEY_LOCK_BYTES)?;
            self.keys_paid_for += COUNTED_KEYS;
        }
        let key = LockKey::new(table, key);
        let granted = self.table.lock_key(self.requester, &key, mode);
        let grant = granted.map_err(|reason| Abort::new(reason, table, key.bytes()))?;
        if mode == Mode::Exclusive {
            self.last_exclusive = Some(key.clone());
        }
        if grant == Grant::New {
            self.keys.push_reserved(key);
        }
        Ok(())
    }

    /// Returns whether a range is locked as a whole, as a part of another one.
    pub(crate) fn covers(&self, range: &LockRange) -> bool {
        range.is_empty() || self.ranges.iter().any(|held| held.covers(range))
    }

    /// Locks the keys within bounds. `at` is the range that this one is merged with, and says afterwards where it is. Without one, a range that
    /// this one adjoins grows: scans that go on behind each other, as at each row that lacks long values, lock one range.
    ///
    /// # Errors
    /// [`Abort`] for why it cannot be had.
    pub(crate) fn lock_range(
        &mut self,
        table: TableId,
        bounds: KeyBounds<'_>,
        at: &mut Option<usize>,
    ) -> Result<(), Abort> {
        self.check()?;
        let mut range = LockRange::new(table, bounds);
        if range.is_empty() {
            return Ok(());
        }
        let merged_with = at.or_else(|| self.adjoining_range(&range));
        let merged_with = merged_with.or_else(|| self.full_table_range(table));
        if let Some(held) = merged_with.map(|number| &self.ranges[number]) {
            if held.covers(&range) {
                *at = merged_with;
                return Ok(());
            }
            range.extend_over(held);
        }
        // Noted before it is locked: an attempt may have locked it in some stripes.
        let number = merged_with.unwrap_or_else(|| {
            self.ranges.push(range.clone());
            self.ranges.len() - 1
        });
        *at = Some(number);
        let locked = self.table.lock_range(self.requester, number as u32, &range);
        locked.map_err(|reason| self.refuse(Abort::new(reason, table, &[])))?;
        self.ranges[number] = range;
        Ok(())
    }

    /// Checks that the transaction has got every lock that it has asked for.
    ///
    /// # Errors
    /// [`Abort`] for why not.
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Abort> {
        self.refused.clone().map_or(Ok(()), Err)
    }

    #[cold]
    fn refuse(&mut self, abort: Abort) -> Abort {
        self.refused.get_or_insert(abort).clone()
    }

    /// Returns a range that can grow over this one without a key beside.
    fn adjoining_range(&self, range: &LockRange) -> Option<usize> {
        self.ranges.iter().position(|held| held.adjoins(range))
    }

    /// Returns a range of a table of which so many are locked that the next ones are merged.
    fn full_table_range(&self, table: TableId) -> Option<usize> {
        if self.ranges.len() < RANGES_MAX {
            return None;
        }
        let mut of_table = (0..self.ranges.len()).rev().filter(|&at| self.ranges[at].table() == table);
        let last = of_table.next()?;
        (of_table.count() + 1 >= RANGES_MAX).then_some(last)
    }

    /// Notes that the transaction commits: it asks for no lock any more.
    #[inline]
    pub(crate) fn begin_commit(&mut self) {
        self.commits = true;
        self.table.begin_commit(self.requester.owner);
    }

    /// Notes that the transaction is prepared.
    pub(crate) fn prepare(&mut self) {
        self.is_prepared = true;
        let owner = self.requester.owner;
        self.keys.iter().for_each(|key| self.table.prepare_key(owner, key));
        for at in 0..self.ranges.len() {
            let table = self.ranges[at].table();
            if self.ranges[..at].iter().all(|earlier| earlier.table() != table) {
                self.table.prepare_ranges(owner, table);
            }
        }
    }

    /// Gives all locks back.
    #[inline]
    fn release(&mut self) {
        let owner = self.requester.owner;
        self.keys.iter().for_each(|key| self.table.unlock_key(owner, key));
        if !self.ranges.is_empty() {
            self.release_ranges(owner);
        }
        if std::mem::take(&mut self.commits) {
            self.table.end_commit(owner);
        }
        self.clear();
    }

    fn release_ranges(&mut self, owner: Owner) {
        for at in 0..self.ranges.len() {
            let table = self.ranges[at].table();
            if self.ranges[..at].iter().all(|earlier| earlier.table() != table) {
                self.table.unlock_ranges(owner, table);
            }
        }
    }

    /// Leaves the locks of a prepared transaction that was leaked where they are, and goes on under another number.
    #[cold]
    fn forget(&mut self, next_session: u32) {
        self.requester.owner.session = next_session;
        self.clear();
    }

    #[inline]
    fn clear(&mut self) {
        self.keys.clear();
        self.ranges.clear();
        self.last_exclusive = None;
        self.refused = None;
        self.is_prepared = false;
        self.keys_paid_for = UNCOUNTED_KEYS;
        self.held.release();
    }
}

impl Drop for HeldLocks<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Drop for LockSet {
    fn drop(&mut self) {
        if !self.is_prepared {
            self.release();
        }
    }
}
