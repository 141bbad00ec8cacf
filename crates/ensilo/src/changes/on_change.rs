//! Ranges whose changes a closure of the program is called with.

use std::ops::ControlFlow;
use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_row::{Columns, Row, Schema};

use self::sealed::WatchedRange;
use super::subscription::{Callback, Subscription};
use super::{Change, RowChange};
use crate::catalog::table_core::TableCore;
use crate::dynamic::DynamicScan;
use crate::error::Name;
use crate::generic::Database;
use crate::table::{Bounds, Scan};
use crate::{Error, Result};

impl<E: Engine> Database<E> {
    /// Calls `callback` with every change of the rows in a range that is stored from now on, until the [`Subscription`] is dropped.
    ///
    /// The range is a [`Scan`](crate::Scan) without a limit and a direction, and the rows come with its columns:
    /// `accounts.scan()`, `accounts.range(10..20)`, `accounts.range(7..=7)` for a single key, `accounts.prefix((7,))`. Of a
    /// [`DynamicScan`](crate::DynamicScan) by the primary key, which has all columns, it is the [`Change`](crate::Change).
    ///
    /// ```
    /// # use ensilo::{Database, Row, RowChange};
    /// # #[derive(Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = std::env::temp_dir().join(format!("ensilo-on-change-{}", std::process::id()));
    /// let db = Database::options().change_feed(1 << 30).open(&place)?;
    /// let accounts = db.table::<Account>()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let subscription = db.on_change(accounts.range(1..10), move |change| {
    ///     let text = match change {
    ///         Ok(RowChange::Stored(id, account)) => format!("{id} has {}", account.balance),
    ///         Ok(RowChange::Deleted(id)) => format!("{id} is gone"),
    ///         Ok(RowChange::Emptied) => "all are gone".to_owned(),
    ///         Err(error) => error.to_string(), // such as that changes were missed
    ///     };
    ///     let _ = sender.send(text);
    /// })?;
    /// db.transact(|tx| accounts.insert(tx, &Account { id: 7, balance: 100 }))?;
    /// db.transact(|tx| accounts.insert(tx, &Account { id: 70, balance: 100 }))?;
    /// assert_eq!(receiver.recv()?, "7 has 100");
    /// db.transact(|tx| accounts.delete(tx, 7))?;
    /// assert_eq!(receiver.recv()?, "7 is gone");
    /// subscription.end();
    /// # drop(db);
    /// # std::fs::remove_dir_all(place)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # What it is called with
    /// The changes are those of the [change feed](Self::changes), for which the database has to be opened
    /// ([`Options::change_feed`](crate::Options::change_feed)): whole rows as they are now, or that they are gone, not what they were before. They come once they are
    /// stored, in the order of the feed: by epochs, and within one in an order that is right for each row, and for transactions that depend on
    /// each other. What the caller has found stored before this call is not among them, and what commits after it is.
    ///
    /// Where commits come faster than the calls end, changes wait in the log. Of those that wait together the closure gets the last one of each row
    /// alone. So some 16 MiB are held in memory, whatever waits, or a single change if that is larger, and the closure always comes to the newest row.
    ///
    /// # Errors of the call
    /// An [`Error::ChangesMissed`] says that changes are missing, because more log has been written since than the database keeps: the closure reads what
    /// it needs anew, and the calls go on with what is stored from then on. [`Error::UnknownValue`] stands for a change of a row
    /// with a value that the program's types do not have. All others are the last call: [`Error::UnknownTable`], once the table was dropped, by
    /// which changes that were still waiting are left out; [`Error::TableChanged`], with the first change after its columns are not those of the row type any
    /// more; [`Error::LogFailed`], [`Error::ChangesUnreadable`]. When the
    /// database is closed, the calls end without an error.
    ///
    /// # The thread
    /// One thread of the database calls all closures, one call after the other, and holds no lock meanwhile. A closure may make requests to
    /// the database, and call this method; one that takes long keeps the others waiting, and commits do not wait for it. It should not hold a
    /// [`Database`](crate::Database) if it is not needed: as long as the subscription lasts, that keeps the database open. Its panic ends that call and
    /// nothing else: it is [counted](Subscription::panics), and an [event](crate::Event::CallbackPanicked). Closing the database
    /// ends the calls and waits for one that is under way, but not where a closure or a job closes it, of this or another database.
    ///
    /// # Errors
    /// [`Error::NotDurable`] for a database in memory, [`Error::ChangesNotKept`], [`Error::ReadOnly`], [`Error::Closed`],
    /// [`Error::ChangesUnreadable`]; [`Error::UnknownTable`], [`Error::TableChanged`]; [`Error::InvalidOption`] for a scan
    /// that is more than a range, and when the system has no thread left; [`Error::NestedRequest`] inside a request, or while this thread was
    /// the last to use an open transaction of a session; [`Error::ThreadPanicked`].
    pub fn on_change<R: WatchedRange<E>>(
        &self,
        range: R,
        mut callback: impl FnMut(Result<R::Change>) + Send + 'static,
    ) -> Result<Subscription> {
        let watched = range.watched()?;
        // The feed may wait for somebody who changes the catalog, who waits for transactions.
        self.shared.check_may_change()?;
        let mut decode = R::decoder();
        let callback: Callback = Box::new(move |change, flow| {
            let change = change.and_then(&mut decode);
            if let Err(Error::TableChanged(_)) = change {
                *flow = ControlFlow::Break(());
            }
            callback(change);
        });
        self.shared.notifier.subscribe(&self.shared, watched, callback)
    }
}

mod sealed {
    use super::{Arc, Bounds, Change, Engine, Result, TableCore};

    /// A scan that is a range of keys, and what its changes are.
    #[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
    pub trait WatchedRange<E: Engine> {
        type Change;

        /// # Errors
        /// [`Error::InvalidOption`](crate::Error::InvalidOption) where it is more than a range.
        fn watched(self) -> Result<(Arc<TableCore<E::Store>>, Bounds)>;

        /// Returns what makes such changes.
        fn decoder() -> impl FnMut(&Change) -> Result<Self::Change> + Send + 'static;
    }
}

#[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
impl<T: Row, C: Columns<T>, E: Engine> WatchedRange<E> for Scan<'_, T, C, E> {
    type Change = RowChange<T::Key, C>;

    fn watched(self) -> Result<(Arc<TableCore<E::Store>>, Bounds)> {
        let (table, range) = self.into_parts();
        let bounds = range.into_bounds().ok_or_else(no_range)?;
        Ok((Arc::clone(table), bounds))
    }

    fn decoder() -> impl FnMut(&Change) -> Result<Self::Change> + Send + 'static {
        // Of the last change that had the columns of `T`.
        let mut fitting: Option<Arc<Schema>> = None;
        move |change| {
            if !fitting.as_ref().is_some_and(|fitting| change.has_schema(fitting)) {
                fitting = Some(change.check_columns(T::schema())?);
            }
            change.decode::<T, C>()
        }
    }
}

#[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
impl<E: Engine> WatchedRange<E> for DynamicScan<'_, E> {
    type Change = Change;

    fn watched(self) -> Result<(Arc<TableCore<E::Store>>, Bounds)> {
        let (table, range) = self.into_range().ok_or_else(no_range)?;
        let bounds = range.into_bounds().ok_or_else(no_range)?;
        Ok((Arc::clone(table), bounds))
    }

    fn decoder() -> impl FnMut(&Change) -> Result<Change> + Send + 'static {
        |change| Ok(change.clone())
    }
}

#[cold]
fn no_range() -> Error {
    let why = "changes are watched in a range of primary keys: without a limit, a direction, an index, or columns of a dynamic scan";
    Error::InvalidOption(Name::new(why))
}
