//! Several instances with typed tables, as one database.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use ensilo::row::{IndexSchema, Key as _, KeyPart, KeyedRow, PrimaryKey, Schema};

use super::error::IslandError;
use super::partitioning::{AnyPartitioning, Partitioning};
use super::program::TableProgram;
use super::reader::IslandReader;
use super::recording::Recorder;
use super::statement::{HaveTable, from_bytes, to_bytes};
use super::table::IslandTable;
use super::transaction::IslandTransaction;
use crate::instance::InstanceError;
use crate::islands::{Attempts, Islands, IslandsOptions};

/// Tables whose names begin so are those of the instances.
pub(super) const RESERVED: &str = "islands_";

/// Several instances with typed tables, as one database. [`IslandsOptions::open_database`] opens it.
///
/// Each table is [partitioned](Partitioning) over the instances, or kept at all of them. Transactions are serializable over all instances, and stored
/// at all of them before they are answered where instances are stored in a directory.
///
/// ```
/// use ensilo::Row;
/// use ensilo_islands::{
///     Instances, IslandError, IslandsOptions, Partitioning, Placement, Plan, Topology,
/// };
///
/// #[derive(Debug, PartialEq, Row)]
/// #[row(table = "account")]
/// struct Account {
///     #[row(key)]
///     id: u32,
///     balance: i64,
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let plan = Plan::new(&Topology::of_this_machine()?, Instances::Count(2), Placement::System);
/// let db = IslandsOptions::new(plan).workers(1).open_database()?;
/// let accounts = db.table::<Account>(Partitioning::hash())?;
/// db.transact(|tx| {
///     accounts.insert_many(tx, &[Account { id: 1, balance: 100 }, Account { id: 2, balance: 0 }])
/// })?;
/// // All of a transfer happens, or nothing, wherever the two accounts are.
/// db.transact(|tx| {
///     accounts.update(tx, 1, |account| account.balance -= 30)?;
///     accounts.update(tx, 2, |account| account.balance += 30)
/// })?;
/// let balance = |account: Option<Account>| account.map(|account| account.balance);
/// assert_eq!(db.transact(|tx| accounts.get(tx, 2)).map(balance)?, Some(30));
/// assert_eq!(db.transact(|tx| accounts.scan().collect(tx))?.len(), 2);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct IslandDatabase {
    islands: Islands<TableProgram>,
    next_home: AtomicU16,
    number: DatabaseNumber,
    recorder: Arc<Recorder>,
}

/// Tells databases of one process apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DatabaseNumber(u64);

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

impl IslandsOptions {
    /// Opens all instances as one database with typed tables. Where they are [processes](Self::processes), the program that is started calls
    /// [`run_if_instance::<TableProgram>`](crate::run_if_instance).
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_database(self) -> Result<IslandDatabase, InstanceError> {
        // Relaxed: numbers that differ.
        let number = DatabaseNumber(NEXT_NUMBER.fetch_add(1, Ordering::Relaxed));
        let recorder = Arc::default();
        Ok(IslandDatabase { islands: self.open()?, next_home: AtomicU16::new(0), number, recorder })
    }
}

impl IslandDatabase {
    /// Returns the instances: their processes, and what is in doubt among them, for an operator to decide.
    ///
    /// What is read and written through them is no matter of tables: it passes by where rows belong.
    #[must_use]
    pub fn islands(&self) -> &Islands<TableProgram> {
        &self.islands
    }

    /// Opens the table that a row type describes, and makes it if it is not there.
    ///
    /// # Errors
    /// [`IslandError::Unfit`] when it is stored with another schema or partitioning; when the partitioning does not fit the number of instances; when
    /// a unique index lacks a column that decides where a row is, since no instance would see all of its entries; for names that begin with
    /// `islands_`. [`IslandError::Refused`] when an instance has ended meanwhile: the same may succeed later.
    pub fn table<T: KeyedRow>(
        &self,
        partitioning: Partitioning<T::Key>,
    ) -> Result<IslandTable<T>, IslandError> {
        let (schema, partitioning) = (T::schema(), partitioning.any);
        let problem = problem_of(schema, T::Key::PARTS, &partitioning);
        if let Some(problem) = problem.or_else(|| partitioning.problem(self.instances())) {
            return Err(IslandError::Unfit(format!("table {}: {problem}", schema.name())));
        }
        have_table(&self.islands, schema, Some(&partitioning))?;
        Ok(IslandTable::new(partitioning, self.instances(), self.number))
    }

    /// Opens the table that a row type describes with the partitioning that it is stored with: of a program that knows no partitioning, or does not know
    /// the one that a [`Redistribution`](super::Redistribution) has chosen.
    ///
    /// # Errors
    /// [`IslandError::Unfit`] when there is no such table, or not at every instance, since making it was interrupted; when it is stored with another
    /// schema. [`IslandError::Refused`] when an instance has ended meanwhile: the same may succeed later.
    pub fn stored_table<T: KeyedRow>(&self) -> Result<IslandTable<T>, IslandError> {
        let partitioning = have_table(&self.islands, T::schema(), None)?;
        Ok(IslandTable::new(partitioning, self.instances(), self.number))
    }

    /// Runs a closure as one serializable transaction, and returns what it returns. When it meets a conflict it is undone and run again, so it has no
    /// effects outside of the database; one that has been tried a thousand times and for five seconds, or has waited ten times in vain, ends with the
    /// [refusal](IslandError::Refused) of the last attempt.
    ///
    /// Where all of its rows are at one instance, it commits there as a transaction of that instance alone: that takes a fraction of the time of one
    /// at several ([`IslandTable::instance_of`] says where a row is). What reads a great many rows does so by [`read`](Self::read), since among
    /// writers it would be in conflict again and again.
    ///
    /// There is no limit of time: an instance that is stopped (by `SIGSTOP`, for example) is waited for until it goes on.
    ///
    /// # Errors
    /// What the closure returns, once what it has read is known to belong together: the transaction is undone. [`IslandError::Refused`],
    /// [`IslandError::Unknown`].
    ///
    /// # Panics
    /// When the closure does, once what it has read is known to belong together: the transaction is undone. The message of an attempt that does not
    /// count may have been printed.
    pub fn transact<R>(
        &self,
        mut body: impl FnMut(&mut IslandTransaction<'_>) -> Result<R, IslandError>,
    ) -> Result<R, IslandError> {
        retry(|since| {
            let mut tx = self.begin_since(since);
            match panic::catch_unwind(AssertUnwindSafe(|| body(&mut tx))) {
                Ok(Ok(value)) => tx.commit().map(|()| value),
                // Where what it has read does not belong together, these do not follow from the rows.
                Ok(Err(error)) => tx.undo().and(Err(error)),
                Err(panicked) => tx.undo().map(|()| panic::resume_unwind(panicked)),
            }
        })
    }

    /// Runs a closure that reads at one consistent point of all instances, the present one, and returns what it returns. It is in conflict with
    /// nobody, however much it reads.
    ///
    /// To fix the point transactions at several instances are held up for some milliseconds: what reads a few rows does so in a
    /// [transaction](Self::transact). When an instance ends meanwhile the closure is run again, at another point.
    ///
    /// # Errors
    /// What the closure returns; [`IslandError::Refused`] when no point could be fixed.
    pub fn read<R>(
        &self,
        mut body: impl FnMut(&mut IslandReader<'_>) -> Result<R, IslandError>,
    ) -> Result<R, IslandError> {
        retry(|_| {
            let point = self.islands.read_point()?;
            body(&mut IslandReader::new(point, self.next_home(), self.number))
        })
    }

    /// Begins a transaction that its caller ends. Nothing is retried.
    pub fn begin(&self) -> IslandTransaction<'_> {
        self.begin_since(Attempts::begin().since)
    }

    fn begin_since(&self, since: u64) -> IslandTransaction<'_> {
        let recorded = self.recorder.transaction();
        IslandTransaction::new(self.islands.begin_since(since), self.next_home(), self.number, recorded)
    }

    pub(super) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    fn next_home(&self) -> u16 {
        // Relaxed: a matter of who does the work.
        self.next_home.fetch_add(1, Ordering::Relaxed) % self.instances()
    }

    fn instances(&self) -> u16 {
        self.islands.instances() as u16
    }
}

/// Does something again as long as it is refused and may succeed. It is told when the first attempt has begun.
fn retry<R>(mut attempt: impl FnMut(u64) -> Result<R, IslandError>) -> Result<R, IslandError> {
    let mut attempts = Attempts::begin();
    loop {
        match attempt(attempts.since) {
            Err(IslandError::Refused(refusal)) if attempts.may_go_on(refusal.reason) => {}
            ended => return ended,
        }
    }
}

/// Has every instance have a table, with the partitioning that it is stored with if none is given; returns that.
pub(super) fn have_table(
    islands: &Islands<TableProgram>,
    schema: &Schema,
    partitioning: Option<&AnyPartitioning>,
) -> Result<AnyPartitioning, IslandError> {
    let mut encoded = Vec::new();
    schema.encode(&mut encoded);
    let request = to_bytes(&HaveTable { schema: encoded, partitioning: partitioning.cloned() });
    let mut stored = Vec::new();
    for instance in 0..islands.instances() as u16 {
        let had = islands.administer(instance, &request);
        stored = had.map_err(|refusal| match refusal.reason.may_pass() {
            true => IslandError::Refused(refusal),
            false => IslandError::Unfit(refusal.message),
        })?;
    }
    Ok(from_bytes(&stored)?)
}

/// Returns why rows with such keys cannot be placed so.
pub(super) fn problem_of(
    schema: &Schema,
    parts: &[KeyPart],
    partitioning: &AnyPartitioning,
) -> Option<String> {
    if schema.name().starts_with(RESERVED) {
        return Some(format!("names that begin with {RESERVED} are those of the instances' own tables"));
    }
    let PrimaryKey::Columns(key) = schema.primary_key() else {
        return Some("it has no primary key".to_owned());
    };
    let placed_by = &key[..partitioning.columns(parts)];
    let lacks = |index: &&IndexSchema| {
        let has = |column| index.parts().iter().any(|part| part.column == column);
        index.is_unique() && !placed_by.iter().all(|part| has(part.column))
    };
    let lacking = schema.indexes().iter().find(lacks)?;
    Some(format!(
        "its unique index {} lacks a column that decides where a row is, so that no instance would see all of its entries; \
         a table with the index's columns as its primary key, written in the same transactions, keeps them unique",
        lacking.name()
    ))
}
