//! Read-only transactions on the present.

use std::fmt;
use std::ops::ControlFlow;

use crate::Silo;
use ensilo_engine::{
    Abort, Direction, Engine, KeyBounds, Read, ReadOf, RowRef, SnapshotOf, TransactionOf, Write,
};
use ensilo_epoch::Epoch;

use super::sealed::Sealed;
use super::{EPOCH_NOW, Inner, ReadTransaction, Transaction};
use crate::Result;
use crate::local::Local;

/// A read-only transaction on the present, inside [`Database::read`](crate::Database::read).
///
/// All that it has read, once its closure has ended, was there at one moment.
pub struct Reader<'t, E: Engine = Silo> {
    inner: Inner<'t, Reading<TransactionOf<'t, E>, SnapshotOf<'t, E>>>,
}

/// What a [`Reader`] reads in.
#[derive(Debug)]
#[allow(unreachable_pub, reason = "an associated type of a sealed trait: callers cannot name it")]
#[non_exhaustive]
pub enum Reading<T, S> {
    /// A transaction whose reads are validated at its end.
    Validated(T),
    /// A snapshot that was taken for it.
    Snapshot(S),
}

/// What a [`Reader`] was, at its end.
pub(crate) enum EndedReader<'t, E: Engine> {
    Validated(Transaction<'t, E>),
    Snapshot(Inner<'t, SnapshotOf<'t, E>>),
}

impl<'t, E: Engine> Reader<'t, E> {
    pub(crate) fn validated(raw: TransactionOf<'t, E>, local: &'t mut Local<E::Found>) -> Self {
        Reader { inner: Inner::new(Reading::Validated(raw), local, EPOCH_NOW) }
    }

    pub(crate) fn snapshot(raw: SnapshotOf<'t, E>, local: &'t mut Local<E::Found>, epoch_shown: u64) -> Self {
        Reader { inner: Inner::new(Reading::Snapshot(raw), local, epoch_shown) }
    }

    pub(crate) fn end(self) -> EndedReader<'t, E> {
        match self.inner.raw {
            Reading::Validated(_) => EndedReader::Validated(Transaction {
                inner: self.inner.map(|raw| match raw {
                    Reading::Validated(raw) => raw,
                    Reading::Snapshot(_) => unreachable!("it is validated"),
                }),
            }),
            Reading::Snapshot(_) => EndedReader::Snapshot(self.inner.map(|raw| match raw {
                Reading::Snapshot(raw) => raw,
                Reading::Validated(_) => unreachable!("it is a snapshot"),
            })),
        }
    }
}

impl<T: Write, S: Read> Reading<T, S> {
    /// Looks whether what was read is still current, where that counts.
    fn check_so_far(&mut self) -> Result<(), Abort> {
        match self {
            Reading::Validated(raw) => raw.check_so_far(),
            Reading::Snapshot(_) => Ok(()),
        }
    }
}

/// The same call of either.
macro_rules! either {
    ($reading:expr, $raw:ident => $call:expr) => {
        match $reading {
            Reading::Validated($raw) => $call,
            Reading::Snapshot($raw) => $call,
        }
    };
}

impl<T: Read, S: Read<Store = T::Store, Found = T::Found>> Read for Reading<T, S> {
    type Store = T::Store;
    type Found = T::Found;

    fn has_found(&self, found: T::Found) -> bool {
        either!(self, raw => raw.has_found(found))
    }

    #[inline]
    fn find(&mut self, store: &T::Store, key: &[u8]) -> Result<Option<T::Found>, Abort> {
        either!(self, raw => raw.find(store, key))
    }

    fn find_many<K: AsRef<[u8]>>(
        &mut self,
        store: &T::Store,
        keys: &[K],
        each: impl FnMut(usize, Option<T::Found>),
    ) -> Result<(), Abort> {
        either!(self, raw => raw.find_many(store, keys, each))
    }

    fn get_many<K: AsRef<[u8]>, R>(
        &mut self,
        store: &T::Store,
        keys: &[K],
        decode: impl FnMut(usize, RowRef<'_>) -> R,
        each: impl FnMut(usize, Option<R>) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        either!(self, raw => raw.get_many(store, keys, decode, each))
    }

    #[inline]
    fn read<R>(&mut self, found: T::Found, decode: impl FnMut(RowRef<'_>) -> R) -> Result<R, Abort> {
        either!(self, raw => raw.read(found, decode))
    }

    #[inline]
    fn get<R>(
        &mut self,
        store: &T::Store,
        key: &[u8],
        decode: impl FnMut(RowRef<'_>) -> R,
    ) -> Result<Option<R>, Abort> {
        either!(self, raw => raw.get(store, key, decode))
    }

    fn scan<R>(
        &mut self,
        store: &T::Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(T::Found, R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        either!(self, raw => raw.scan(store, bounds, direction, decode, each))
    }

    fn scan_to_read<R>(
        &mut self,
        store: &T::Store,
        bounds: KeyBounds<'_>,
        direction: Direction,
        decode: impl FnMut(&[u8], RowRef<'_>) -> R,
        each: impl FnMut(R) -> ControlFlow<()>,
    ) -> Result<(), Abort> {
        either!(self, raw => raw.scan_to_read(store, bounds, direction, decode, each))
    }

    fn check_reads(&mut self) -> Result<(), Abort> {
        either!(self, raw => raw.check_reads())
    }

    fn largest_epoch_seen(&self) -> Epoch {
        either!(self, raw => raw.largest_epoch_seen())
    }
}

impl<'t, E: Engine> ReadTransaction<'t, E> for Reader<'t, E> {}

#[allow(private_interfaces, private_bounds, reason = "sealed: callers cannot name this trait")]
impl<'t, E: Engine> Sealed<'t, E> for Reader<'t, E>
where
    Reading<TransactionOf<'t, E>, SnapshotOf<'t, E>>: ReadOf<E>,
{
    type Raw = Reading<TransactionOf<'t, E>, SnapshotOf<'t, E>>;

    #[inline(always)]
    fn statement<R>(&mut self, statement: impl FnOnce(&mut Inner<'_, Self::Raw>) -> Result<R>) -> Result<R> {
        if !TransactionOf::<'t, E>::READS_AS_OF_BEGIN {
            self.inner.count_statement(Reading::check_so_far)?;
        }
        statement(&mut self.inner)
    }
}

impl<E: Engine> fmt::Debug for Reader<'_, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("is_doomed", &self.inner.is_doomed()).finish_non_exhaustive()
    }
}
