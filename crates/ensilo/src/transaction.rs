//! Transactions as closures see them: a handle to pass to the methods of tables.
//!
//! # Invariants
//! - T1: the lifetime `'t` is invariant and chosen by the request, not by the closure, which is generic over
//!   it. So what carries `'t`, such as a found row, means something to this one transaction and does not
//!   compile with another.

#![allow(unsafe_code, reason = "marks that a transaction of the engine is under way")]

mod access;
mod reader;

use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

use crate::Silo;
use crate::attempt::panics::CaughtPanic;
use ensilo_engine::{
    AbortReason, Engine, Prepared as _, PreparedOf, Read, SnapshotOf, Store, TableId, TransactionOf, Write,
    WriteOf,
};
use ensilo_epoch::Epoch;
use ensilo_sync::region::{self, Region};

use crate::catalog::index_core::EPOCH_SHOWN_MAX;
use crate::catalog::index_set::Pinned;
use crate::catalog::refused_opening;
use crate::catalog::table_core::TableCore;
use crate::local::Local;
use crate::outcome::{Undone, may_retry};
use crate::queue::{Generation, HeldClaims, WrittenTable};
use crate::{Error, Result, own_error};

pub(crate) use self::reader::EndedReader;
pub use self::reader::Reader;

/// Marks `'t` as invariant: neither longer nor shorter lifetimes fit.
type Brand<'t> = PhantomData<fn(&'t ()) -> &'t ()>;

/// A serializable read-write transaction, inside [`Database::transact`](crate::Database::transact).
///
/// Pass it to the methods of [`Table`](crate::Table), [`Index`](crate::Index) and
/// [`DynamicTable`](crate::DynamicTable).
///
/// # What a closure may see
/// Each row is whole, and one that some transaction has committed. But two rows may be of different
/// moments, so that they do not belong together: a sum may be wrong, and a row that another one names may
/// be missing. Such reads never count. They are validated when the closure ends, and what it has concluded
/// from them is given up with them: its writes, its value and its error, and also its panic, so that
/// `assert_eq!(sum, expected)` in a closure fails only where it fails at one moment of the database. A
/// panic's message is held back until that is known, and then goes to the program's panic hook, which finds
/// the panic's place in the text; those of panics that the closure catches itself, or of threads that it
/// starts, come in any case. A closure that goes round in circles because of such reads ends with
/// [`Error::Aborted`] at one of its next statements. Then the closure runs again. So a closure must not
/// have effects outside the database.
///
/// For reading alone, [`Database::read`](crate::Database::read) shows all rows at one moment, the present.
///
/// # Own writes
///
/// The transaction sees its own writes: rows that it has inserted or changed it reads as it has written them,
/// and rows that it has deleted are gone. If another transaction has meanwhile replaced or deleted such a
/// row, this one can no longer commit. A statement then either still shows the own write or fails with
/// [`Error::Aborted`], a scan perhaps only at its end. An index may then lack the row or show another one in
/// its place, where the transaction has not changed the row's columns in that index.
pub struct Transaction<'t, E: Engine = Silo> {
    pub(crate) inner: Inner<'t, TransactionOf<'t, E>>,
}

/// A read-only transaction on a recent consistent point of the serial order, inside
/// [`Database::read_stale`](crate::Database::read_stale).
///
/// The point is at most about one snapshot interval old, or as old as
/// [`Request::max_staleness`](crate::Request::max_staleness) allows. The transaction never conflicts with others.
pub struct Snapshot<'t, E: Engine = Silo> {
    pub(crate) inner: Inner<'t, SnapshotOf<'t, E>>,
    /// Shows all that was committed before this.
    shown_since: Instant,
}

/// What both kinds of transactions are made of.
pub(crate) struct Inner<'t, Raw: Read> {
    // Dropped before the claims: Q1 of queues.
    pub(crate) raw: Raw,
    /// The rows that it is about to take, once it has taken one.
    pub(crate) claims: Option<Box<HeldClaims>>,
    pub(crate) local: &'t mut Local<Raw::Found>,
    /// When it began.
    generation: Generation,
    /// The abort after which this transaction cannot commit, whatever its closure makes of it.
    doomed: Option<ensilo_engine::Abort>,
    /// Shows commits of earlier epochs only; [`EPOCH_NOW`] for a read-write transaction.
    pub(crate) epoch_shown: u64,
    /// One bit for each of 64 groups of stores: whether this transaction has deleted in one of them.
    deleted_in: u64,
    /// So many statements come before the next look at what was read, and so many will have come by then.
    statements_left: u64,
    statements_made: u64,
    pub(crate) pinned: Pinned<'t>,
    brand: Brand<'t>,
}

/// After so many statements a read-write transaction looks for the first time whether what it has read is
/// still current.
const UNCHECKED_STATEMENTS: u64 = 1024;

/// The point in time that a read-write transaction shows: after all epochs that have a number.
const EPOCH_NOW: u64 = EPOCH_SHOWN_MAX;

/// A transaction that rows can be read in: [`Transaction`], [`Reader`], [`Snapshot`], or a
/// [`Session`](crate::Session) with an open one.
///
/// Sealed: implemented by the transactions of this crate only.
pub trait ReadTransaction<'t, E: Engine = Silo>: sealed::Sealed<'t, E> {}

/// A transaction that rows can be written in: [`Transaction`], or a [`Session`](crate::Session) with an open
/// one.
///
/// Sealed: implemented by the transactions of this crate only.
#[diagnostic::on_unimplemented(
    message = "rows cannot be written in `{Self}`",
    note = "rows are written in a `Transaction`, or in a `Session` with an open one"
)]
pub trait WriteTransaction<'t, E: Engine = Silo>:
    ReadTransaction<'t, E> + sealed::Sealed<'t, E, Raw: WriteOf<E>>
{
}

impl<'t, E: Engine> ReadTransaction<'t, E> for Transaction<'t, E> {}
impl<'t, E: Engine> WriteTransaction<'t, E> for Transaction<'t, E> {}
impl<'t, E: Engine> ReadTransaction<'t, E> for Snapshot<'t, E> {}

pub(crate) mod sealed {
    use ensilo_engine::{Engine, ReadOf, SnapshotOf, TransactionOf, Write as _};

    use super::{Inner, Snapshot, Transaction};
    use crate::Result;

    #[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
    pub trait Sealed<'t, E: Engine> {
        type Raw: ReadOf<E>;

        /// Makes a statement. The transaction is ended if it cannot go on afterwards and stays open between
        /// calls.
        fn statement<R>(
            &mut self,
            statement: impl FnOnce(&mut Inner<'_, Self::Raw>) -> Result<R>,
        ) -> Result<R>;
    }

    #[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
    impl<'t, E: Engine> Sealed<'t, E> for Transaction<'t, E> {
        type Raw = TransactionOf<'t, E>;

        #[inline(always)]
        fn statement<R>(
            &mut self,
            statement: impl FnOnce(&mut Inner<'_, Self::Raw>) -> Result<R>,
        ) -> Result<R> {
            if !Self::Raw::READS_AS_OF_BEGIN {
                self.inner.count_statement(|raw| raw.check_so_far())?;
            }
            statement(&mut self.inner)
        }
    }

    #[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
    impl<'t, E: Engine> Sealed<'t, E> for Snapshot<'t, E> {
        type Raw = SnapshotOf<'t, E>;

        #[inline(always)]
        fn statement<R>(
            &mut self,
            statement: impl FnOnce(&mut Inner<'_, Self::Raw>) -> Result<R>,
        ) -> Result<R> {
            statement(&mut self.inner)
        }
    }
}

impl<'t, Raw: Read> Inner<'t, Raw> {
    #[inline]
    pub(crate) fn new(raw: Raw, local: &'t mut Local<Raw::Found>, epoch_shown: u64) -> Self {
        // The one before may not have committed.
        local.records.discard();
        local.written.clear();
        local.begin_transaction();
        let generation = local.queues.generation();
        // SAFETY: kept beside `raw`, which is a transaction of the engine; X2 of the index set.
        let pinned = unsafe { Pinned::new() };
        Inner {
            raw,
            claims: None,
            local,
            generation,
            doomed: None,
            epoch_shown,
            deleted_in: 0,
            statements_left: UNCHECKED_STATEMENTS,
            statements_made: UNCHECKED_STATEMENTS,
            pinned,
            brand: PhantomData,
        }
    }

    /// Returns whether this transaction may have deleted records of the store.
    #[inline(always)]
    pub(crate) fn may_have_deleted_in(&self, store: &Raw::Store) -> bool {
        self.deleted_in & 1 << (store.id().0 % 64) != 0
    }

    /// Notes that this transaction has inserted or changed a row of the table, for its cursors, and if anybody observes that.
    #[inline(always)]
    pub(crate) fn note_change(&mut self, table: &TableCore<Raw::Store>) {
        self.local.steps += 1;
        if self.generation.observes() && table.queue.is_noted() {
            WrittenTable::note(&mut self.local.written, &table.queue);
        }
    }

    /// Turns the engine's abort into an error, and remembers that this transaction is lost.
    #[cold]
    pub(crate) fn lost(&mut self, abort: ensilo_engine::Abort) -> Error {
        self.doomed = Some(abort.clone());
        Error::from_raw(abort)
    }

    /// Returns whether the transaction cannot commit any more.
    pub(crate) fn is_doomed(&self) -> bool {
        self.doomed.is_some()
    }

    /// Returns whether `error` is that this transaction was to stop. One of another session that was passed
    /// on is not.
    pub(crate) fn is_stopped_by(&self, error: &Error) -> bool {
        matches!(error, Error::Cancelled | Error::DeadlineExceeded) && self.local.check_control().is_err()
    }

    /// Returns whether the statement that has ended with `error` was the last one: what the transaction has read does not count.
    pub(crate) fn is_ended_by(&self, error: &Error) -> bool {
        self.is_doomed() || self.is_stopped_by(error)
    }

    /// Gives the transaction up because what it read does not belong together: an entry of an index without
    /// its row.
    ///
    /// A transaction that has read this could not commit anyway; it need not go on to find that out.
    #[cold]
    pub(crate) fn inconsistent(&mut self, table: TableId, key: &[u8]) -> Error {
        self.lost(ensilo_engine::Abort::new(AbortReason::ReadValidation, table, key))
    }
}

impl<'t, E: Engine> Transaction<'t, E> {
    #[inline]
    pub(crate) fn new(raw: TransactionOf<'t, E>, local: &'t mut Local<E::Found>) -> Self {
        Transaction { inner: Inner::new(raw, local, EPOCH_NOW) }
    }

    /// Commits, unless an abort was swallowed; returns the epoch that has to be durable before the
    /// transaction is.
    #[inline(always)]
    pub(crate) fn commit(self) -> Result<Epoch, ensilo_engine::Abort> {
        if let Some(abort) = self.inner.doomed {
            return Err(abort);
        }
        let engine = region::enter(Region::Engine);
        let committed = self.inner.raw.commit()?;
        engine.leave();
        let Inner { claims, local, generation, .. } = self.inner;
        let epoch = local.epoch_with_numbers(committed.epoch);
        note_commit(claims, local, generation);
        Ok(epoch)
    }

    /// Votes, unless an abort was swallowed.
    pub(crate) fn prepare(self) -> Result<Prepared<'t, E>, ensilo_engine::Abort> {
        if let Some(abort) = self.inner.doomed {
            return Err(abort);
        }
        let Inner { raw, claims, local, generation, .. } = self.inner;
        let _engine = region::enter(Region::Engine);
        let epoch_of_reads = local.epoch_with_numbers(raw.largest_epoch_seen());
        Ok(Prepared { raw: raw.prepare()?, claims, local, generation, epoch_of_reads })
    }

    /// Ends a transaction after its closure has returned `error`, and returns the error that the request ends
    /// with.
    ///
    /// The closure may have come to its error by reads that do not belong together, which no serial order
    /// could have shown it. So an error of the closure's own counts only when the reads are valid; otherwise
    /// the request has met a conflict. What it was concluded from has to be durable before the error counts
    /// as stored.
    #[cold]
    pub(crate) fn roll_back(mut self, error: Error) -> Undone {
        if let Some(abort) = self.inner.doomed.take()
            && (may_retry(abort.reason()) || is_abort(&error))
        {
            return self.end_by(abort);
        }
        if is_abort(&error)
            && let Some(abort) = refused_opening::take(self.inner.local.database)
        {
            return self.end_by(abort);
        }
        if own_error::is_stand_in(&error)
            && let Err(stopped) = self.inner.local.check_control()
        {
            return stopped.into();
        }
        if self.inner.is_stopped_by(&error) {
            // It follows from nothing that was read.
            return error.into();
        }
        let _engine = region::enter(Region::Engine);
        match self.inner.raw.check() {
            Ok(epoch) => {
                let epoch = self.inner.local.epoch_with_numbers(epoch);
                self.inner.raw.abort();
                Undone { error, epoch, is_own_abort: false }
            }
            Err(abort) => Undone::by_abort(abort),
        }
    }
}

/// A transaction that has voted to commit. Dropping it is the decision to abort.
pub(crate) struct Prepared<'t, E: Engine> {
    // Dropped before the claims: Q1 of queues.
    raw: PreparedOf<'t, E>,
    claims: Option<Box<HeldClaims>>,
    local: &'t mut Local<E::Found>,
    generation: Generation,
    /// Once it is durable, no crash takes back what was read.
    pub(crate) epoch_of_reads: Epoch,
}

impl<E: Engine> Prepared<'_, E> {
    /// Carries out the decision to commit; returns the epoch that has to be durable before the transaction is.
    pub(crate) fn commit(self) -> Result<Epoch, ensilo_engine::Abort> {
        let Prepared { raw, claims, local, generation, .. } = self;
        let engine = region::enter(Region::Engine);
        let committed = raw.commit()?;
        engine.leave();
        let epoch = local.epoch_with_numbers(committed.epoch);
        note_commit(claims, local, generation);
        Ok(epoch)
    }
}

/// Counts and reports what a transaction has done that has just committed.
#[inline(always)]
fn note_commit<F>(claims: Option<Box<HeldClaims>>, local: &mut Local<F>, generation: Generation) {
    local.records.commit();
    local.end_transaction();
    if let Some(claims) = claims {
        claims.end_committed();
    }
    // After the claims: Q2 of queues.
    local.queues.report_commit(generation, &mut local.written);
}

impl<E: Engine> Transaction<'_, E> {
    /// Ends a transaction that has met an abort.
    fn end_by(mut self, abort: ensilo_engine::Abort) -> Undone {
        self.inner.raw.note_abort(&abort);
        Undone::by_abort(abort)
    }

    /// Ends a transaction whose closure was left by a panic. The closure may have come to it by reads that
    /// do not belong together: then the request has met a conflict. Otherwise the panic goes on.
    #[cold]
    pub(crate) fn give_up(mut self, panic: CaughtPanic) -> Undone {
        let doomed = self.inner.doomed.take().filter(|abort| may_retry(abort.reason()));
        let doomed = doomed.or_else(|| refused_opening::take(self.inner.local.database));
        let conflict = doomed.or_else(|| self.inner.raw.check().err());
        match conflict {
            Some(abort) => {
                let undone = self.end_by(abort);
                panic.discard();
                undone
            }
            None => {
                drop(self);
                panic.resume()
            }
        }
    }
}

impl<'t, Raw: Read> Inner<'t, Raw> {
    /// Makes another kind of transaction of this one.
    fn map<T: Read<Found = Raw::Found>>(self, map: impl FnOnce(Raw) -> T) -> Inner<'t, T> {
        let Inner { raw, claims, local, generation, doomed, epoch_shown, deleted_in, .. } = self;
        let Inner { statements_left, statements_made, pinned, brand, .. } = self;
        Inner {
            raw: map(raw),
            claims,
            local,
            generation,
            doomed,
            epoch_shown,
            deleted_in,
            statements_left,
            statements_made,
            pinned,
            brand,
        }
    }

    /// Counts a statement, and looks now and then whether what was read before is still current. So a
    /// closure that goes round in circles because of reads that do not belong together comes to an end. It
    /// looks after twice as many statements each time: all looks together cost about what one at the commit
    /// does.
    #[inline(always)]
    fn count_statement(
        &mut self,
        check: impl FnOnce(&mut Raw) -> Result<(), ensilo_engine::Abort>,
    ) -> Result<()> {
        self.statements_left -= 1;
        if self.statements_left > 0 { Ok(()) } else { self.look_again(check) }
    }

    #[cold]
    fn look_again(&mut self, check: impl FnOnce(&mut Raw) -> Result<(), ensilo_engine::Abort>) -> Result<()> {
        self.statements_left = self.statements_made;
        self.statements_made = self.statements_made.saturating_mul(2);
        check(&mut self.raw).map_err(|abort| self.lost(abort))
    }
}

impl<Raw: Read> Inner<'_, Raw> {
    /// Returns the abort that `error` is, if it is of this transaction. One that was passed on from another
    /// is not.
    #[cold]
    pub(crate) fn own_abort(&self, error: &Error) -> Option<ensilo_engine::Abort> {
        self.doomed.clone().filter(|_| is_abort(error))
    }
}

fn is_abort(error: &Error) -> bool {
    error.as_abort().is_some() || own_error::is_stand_in(error)
}

impl<'t, E: Engine> Snapshot<'t, E> {
    #[inline]
    pub(crate) fn new(
        raw: SnapshotOf<'t, E>,
        local: &'t mut Local<E::Found>,
        epoch_shown: u64,
        shown_since: Instant,
    ) -> Self {
        Snapshot { inner: Inner::new(raw, local, epoch_shown), shown_since }
    }

    /// Returns how old the state that the transaction shows is by now, at most: it has everything that was
    /// committed longer ago than this. It grows while the transaction goes on.
    #[must_use]
    pub fn staleness(&self) -> Duration {
        self.shown_since.elapsed()
    }
}

impl<E: Engine> fmt::Debug for Transaction<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("doomed", &self.inner.doomed).finish_non_exhaustive()
    }
}

impl<E: Engine> fmt::Debug for Snapshot<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("epoch_shown", &self.inner.epoch_shown).finish_non_exhaustive()
    }
}
