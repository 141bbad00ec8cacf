//! What a request can fail with, and what to do about it.
//!
//! One enum for the whole crate: a closure runs many kinds of statements, and `?` should carry each of their
//! failures out of it. It is two words wide, because every statement of the hot path returns it; the details
//! are behind a pointer and are only built when something fails.

mod abort;
mod convert;
mod details;
mod key_shape;
mod nested_call;

use std::fmt;
use std::sync::Arc;

use ensilo_engine::TRANSACTION_LIMITS;
use ensilo_log::{LogError, OpenError};

use crate::changes::MissedChanges;
pub use abort::{Abort, AbortReason};
pub(crate) use abort::{Conflict, MemoryShortage};
pub use details::{
    DuplicateKey, MigrationFailed, MissingRow, Name, NameInTable, SchemaMismatch, SumOutOfRange, TooLong,
    UnknownValue, UserError, WrongType,
};
pub(crate) use key_shape::{KeyShape, NamedStore};
pub use nested_call::NestedCall;

/// The result of every request and statement.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request or a statement failed. Nothing was changed by what failed.
///
/// A failed *statement* leaves its transaction usable with nothing of that statement applied, except for
/// [`Error::Aborted`], [`Error::OutOfMemory`], [`Error::TransactionTooLarge`] and [`Error::RowUnreadable`]: after
/// those the transaction cannot commit any more. Nor can it after [`Error::UnknownTable`] if it has used the table before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The transaction met a conflict (or a snapshot grew too old) and was undone.
    ///
    /// [`Database::transact`](crate::Database::transact) retries these by itself; the caller sees one when
    /// the retries are used up. Remedy: run the request again later, allow more retries, or touch fewer
    /// contended rows. An abort of another transaction, perhaps of another database, that a closure returns
    /// is handed to the caller as it is, without a retry.
    Aborted(Abort),
    /// The memory limit is reached; the transaction was undone.
    ///
    /// Remedy: delete rows, which needs none of the memory that the limit bounds, or drop tables or indexes,
    /// or open the database with a larger limit. The memory of deleted rows and dropped tables comes back
    /// within about two snapshot intervals, or when snapshots and transactions end that have begun before;
    /// until then requests may still end with this error. A request frees by itself what can be freed, and
    /// runs once more, before it ends so; over [`ermia`](crate::ermia) in a directory it waits for rows to leave
    /// memory, for two seconds, and up to ten as long as some leave. There a transaction that stays open keeps rows in
    /// memory: end those that wait for something. A transaction on a [`Session`](crate::Session) is not run again.
    /// Attempts that have found no memory are no retries, and hooks for aborts are not called for them.
    /// Where one transaction deletes or reads very many rows: split it into several.
    /// Once it has left the request, the text of the error gives the limit, and why rows do not leave memory where they
    /// cannot: then that is to be mended, such as a full disk.
    ///
    /// An update of a row in place keeps the version that snapshots see, for which a sixteenth of the limit
    /// is in reserve: when that is used up, it goes on once those versions are not needed any more, after
    /// about two snapshot intervals.
    OutOfMemory(Abort),
    /// The transaction holds more than one transaction can: 4 GiB of keys, 32 GiB of rows, 4294967295 reads,
    /// writes or nodes scanned, and 1 GiB to log. It was undone, and fails again as it is.
    ///
    /// Remedy: split it into several transactions, such as one for every 100,000 rows.
    TransactionTooLarge(Abort),
    /// A row that had left memory under the memory limit ([`ermia`](crate::ermia)) cannot be read back from the file
    /// that it went to; the transaction was undone. Checkpoint and log, which have the row, are as they were. No
    /// checkpoint is made any more, since it would leave the row out.
    ///
    /// Remedy: open the database again, if the disk is sound.
    ///
    /// Or a part of a long value of the row is lost, which only damage or a salvage can bring about. Remedy: replace or delete the row; its other columns can be
    /// read by themselves.
    ///
    /// From [`rewrite_older_rows`](crate::generic::Database::rewrite_older_rows) also: the bytes of a row from before a change of its table are no
    /// such row. It stays as it is. Remedy: replace or delete the row.
    RowUnreadable(Abort),
    /// No such table, or the table was dropped while a handle to it was still held. A transaction under way
    /// that has used the table was undone. Remedy: create or open it.
    UnknownTable(Name),
    /// The columns of the table were changed, or it was truncated, since this handle to it, or to one of its indexes, was made, or that is being
    /// done. A transaction under way can go on without the table. Remedy: open the table again, by the row type that it has now.
    TableChanged(Name),
    /// The table has no index of that name, or it was dropped. Remedy:
    /// [`Database::create_index`](crate::Database::create_index).
    UnknownIndex(NameInTable),
    /// The table's schema has no column of that name. Remedy: check the name against the table's schema.
    UnknownColumn(NameInTable),
    /// A table of that name exists. Remedy: [`Database::open_table`](crate::Database::open_table).
    TableExists(Name),
    /// No such sequence, or it was dropped while a handle to it was still held, or belongs to another database. Remedy:
    /// [`Database::sequence`](crate::generic::Database::sequence) makes one.
    UnknownSequence(Name),
    /// A sequence cannot be made so, or the one that is there is another one than was asked for; the text says why. Remedy: open it as it is,
    /// or give it other options by [`Database::alter_sequence`](crate::generic::Database::alter_sequence).
    InvalidSequence(Name),
    /// The sequence has not as many numbers left as were asked for. Nothing was given. Remedy: a sequence of a wider type, or
    /// one that [cycles](crate::SequenceOptions::cycle).
    SequenceExhausted(Name),
    /// The table has an index of that name already. Remedy: choose another name.
    IndexExists(NameInTable),
    /// The index is still being built, or is younger than the point in time that a snapshot shows.
    ///
    /// Remedy: wait for the `create_index` that builds it; in a snapshot, try again after about one snapshot
    /// interval or use an ordinary transaction.
    IndexNotReady(NameInTable),
    /// The index does not fit the rows: when the database was opened, two rows had one key of it though it is
    /// unique, or a row's key was too long for it. The rows, and the table's other indexes, are as they were.
    /// Writes do not keep the index, and so may add more rows with one key.
    ///
    /// Remedy: [`Table::duplicates`](crate::Table::duplicates) lists the rows with one key; change or delete
    /// all but one of each, and call [`Database::rebuild_index`](crate::Database::rebuild_index). Or do
    /// without the index, by [`Database::drop_index`](crate::Database::drop_index).
    IndexBroken(NameInTable),
    /// A schema or an index definition contradicts itself. Remedy: the text says what to change.
    InvalidSchema(Name),
    /// The static row type and the stored table differ; the text says in what, and what to write. Remedy: for an
    /// index that the table does not have, [`Database::create_index`](crate::Database::create_index). For other columns,
    /// [`Database::table_with_changes`](crate::Database::table_with_changes) changes the table. Where a later version of the program has changed it,
    /// that version is the one to run.
    SchemaMismatch(SchemaMismatch),
    /// The steps of the program's [`Migrations`](crate::generic::Migrations) are not those of the database, or cannot be a list of steps; nothing has
    /// changed. Remedy: the text says what differs, and what to do.
    InvalidMigrations(Name),
    /// A step of [`Database::migrate`](crate::generic::Database::migrate) has failed. The steps before it are applied. Remedy: that of the error inside, then
    /// migrate again, which begins with this step.
    MigrationFailed(MigrationFailed),
    /// A dynamic value does not fit its column. Remedy: pass the type that the schema names.
    WrongType(WrongType),
    /// A row has a value in a column that the column's type in the program does not have, such as a number that no variant of an
    /// enum has (see [`#[derive(ColumnValue)]`](derive@crate::ColumnValue)). A newer version of the program may have written
    /// it, or a dynamic row. The row is as it was, and the statement has changed nothing.
    ///
    /// Remedy: read it with a type that has the value, or as a row of [`DynamicTable`](crate::DynamicTable), or
    /// read [columns](crate::Columns) without this one. A row can be replaced and deleted without being read.
    UnknownValue(UnknownValue),
    /// The encoded key is longer than an index holds. Remedy: shorten the key's text or bytes.
    KeyTooLong(TooLong),
    /// The encoded row is larger than a record may be. Remedy: split the row.
    RowTooLarge(TooLong),
    /// A row with that primary key, or with that key of a unique index, exists. Remedy: update it, or choose
    /// another key.
    DuplicateKey(DuplicateKey),
    /// There is no row with that primary key. Remedy: insert it.
    MissingRow(MissingRow),
    /// A number was to be [added to](crate::Table::add), or [taken from](crate::Table::subtract), and its type does not have the sum: below 0 where it
    /// has no sign, or too large. Remedy: a smaller amount, or a wider type; where it counts what is left of something, nothing is.
    SumOutOfRange(SumOutOfRange),
    /// The database was closed. Remedy: open another one.
    Closed,
    /// The session has no open transaction: none was begun, or it has ended, by a commit, a rollback or an
    /// error; or a row was used that another transaction has found. Remedy:
    /// [`Session::begin`](crate::Session::begin), and look the row up again.
    NoTransaction,
    /// The session's transaction was cancelled from outside, see [`CancelToken`](crate::CancelToken), and
    /// undone. Remedy: make it again, if it is still wanted.
    Cancelled,
    /// The session's [deadline](crate::Session::set_deadline) has passed, and the transaction was undone.
    /// Remedy: set a later one, or none, and make it again.
    DeadlineExceeded,
    /// The call would wait for itself, or for what it was made from. Remedy: [`NestedCall`] says what was called where, and what helps.
    NestedRequest(NestedCall),
    /// The log could not be written or synced: nothing is committed or acknowledged as stored any more. What
    /// was acknowledged before is stored, and reads of what is stored go on. A request that has read what was
    /// committed last and never stored gets this error, too, unless it asks for
    /// [`Durability::Visible`](crate::Durability::Visible). Remedy: see to the disk that the text names, then
    /// open the database again.
    LogFailed(Box<LogError>),
    /// A checkpoint could not be made. Nothing is lost: the log goes further back. Remedy: see to the disk
    /// that the text names.
    CheckpointFailed(Name),
    /// Rows of a table could not be loaded from the checkpoint, of a database that was opened with
    /// [`Options::answer_while_loading`](crate::Options::answer_while_loading): a file is damaged or cannot be
    /// read, which an ordinary opening would have said. Other rows of the table can be read, and other tables
    /// used. Nothing is written to the table any more, and no checkpoint is made. Remedy: the text says what
    /// helps with the file that it names. Or drop the table, if it is not needed.
    LoadFailed(Name),
    /// A backup could not be made, and what was made of it is gone. The database is as it was. Remedy: see to
    /// the disk, or choose the directory, that the text names.
    BackupFailed(Arc<OpenError>),
    /// The database could not be opened. The text names the file, what is wrong with it and what to do.
    /// Nothing was changed.
    Open(Arc<OpenError>),
    /// The database was to be opened so that other processes see its statistics, by `Options::live_statistics`, and there can be no socket in
    /// its directory. Nothing was changed. Remedy: what the text says, or open it without that option.
    NoStatisticsSocket(Arc<OpenError>),
    /// The recovered catalog names a table or an index, but its definition cannot be read. Remedy: restore a
    /// backup.
    ///
    /// Of `ensilo.migrations`: steps that were applied are missing, as after a salvage that has lost rows. Tables can be opened, and dumped by their
    /// names. Remedy: restore a backup, or load such dumps into a new database that the program has made.
    DamagedCatalog(Name),
    /// Changes were asked for, and the database was not opened to keep them. Remedy: open it with
    /// [`Options::change_feed`](crate::Options::change_feed).
    ChangesNotKept,
    /// The changes behind a position cannot be given: their log files are not kept any more, or the position is of another history.
    /// Remedy: take a [position](crate::generic::Database::change_position), read all rows, and follow from that position; and
    /// keep more log ([`Options::change_feed`](crate::Options::change_feed)) where consumers fall behind.
    ChangesMissed(MissedChanges),
    /// The log files that changes are read from cannot be read. The rows are as they were. Remedy: the text names the file and what helps.
    ChangesUnreadable(Arc<OpenError>),
    /// Something was to be stored by a database that is in memory only. Remedy: open it with
    /// [`Database::open`](crate::Database::open).
    NotDurable,
    /// Something was to be changed in a database that is open for reading only. Remedy: open it without
    /// [`Options::read_only`](crate::Options::read_only).
    ReadOnly,
    /// A snapshot was asked for, and the database's engine keeps none. Remedy: an ordinary transaction.
    NoSnapshots,
    /// So many transactions are open, or threads have used the database and go on, that the engine has no place for another
    /// one: over [`ermia`](crate::ermia) some 65,000. A thread's first request may end so, and whatever a
    /// [`Session`](crate::Session) begins. Remedy: end some of the open transactions, or of the threads.
    TooManyTransactions,
    /// A transaction was to be prepared, and the database's engine cannot do that. Remedy: [`Silo`](crate::Silo).
    NoTwoPhaseCommit,
    /// The request was made while its thread was being torn down. Remedy: make it before the thread's main
    /// function returns.
    ThreadEnding,
    /// The pool's queue is full. Remedy: wait for some handles first, or use `submit`, which waits for room.
    QueueFull,
    /// A submitted job waited for another job of the same database, or of one that has jobs waiting for this
    /// one's: with all threads of the pools waiting, none would run what they wait for. The other job goes
    /// on. Remedy: return its handle from the job and wait outside, or do its work in the transaction at
    /// hand.
    JobWaitsForJob,
    /// A submitted job panicked; its transaction was undone. The text is the panic's message.
    JobPanicked(Name),
    /// A thread of the database panicked before it was closed, which is a mistake in Ensilo. The text is the
    /// panic's message. All else of the database was closed, and what was acknowledged as stored is. Remedy:
    /// open the database again.
    ThreadPanicked(Name),
    /// An option is out of its range. The text says which and why.
    InvalidOption(Name),
    /// The closure asked for the transaction to be undone, see [`Error::rollback`] and [`Error::user`].
    User(UserError),
}

const _: () = assert!(size_of::<Error>() <= 16);

impl Error {
    /// Returns whether a row with the primary key is there.
    pub(crate) fn is_duplicate_primary_key(&self) -> bool {
        matches!(self, Error::DuplicateKey(duplicate) if duplicate.index().is_none())
    }

    /// Makes an error that undoes the transaction, is not retried, and is returned to the caller as it is.
    ///
    /// ```
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::in_memory()?;
    /// let refused = db.transact(|_tx| Err::<(), _>(ensilo::Error::rollback("not enough money")));
    /// assert_eq!(refused.unwrap_err().to_string(), "rolled back by the request: not enough money");
    /// # Ok(()) }
    /// ```
    #[cold]
    pub fn rollback(text: impl Into<String>) -> Self {
        Error::User(UserError::from_text(text.into()))
    }

    /// Like [`Error::rollback`], with the caller's own error inside; [`Error::user_error`] returns it again.
    #[cold]
    pub fn user(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Error::User(UserError::new(error))
    }

    /// Returns the caller's own error, when it is of type `E` and came from [`Error::user`].
    #[must_use]
    pub fn user_error<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Error::User(user) => user.get().downcast_ref(),
            Error::MigrationFailed(failed) => failed.error().user_error(),
            _ => None,
        }
    }

    /// Returns whether the same request may succeed when it is made again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Error::Aborted(abort) => abort.is_retryable(),
            Error::MigrationFailed(failed) => failed.error().is_retryable(),
            Error::QueueFull | Error::IndexNotReady(_) => true,
            _ => false,
        }
    }

    pub(crate) fn as_abort_mut(&mut self) -> Option<&mut Abort> {
        match self {
            Error::Aborted(abort)
            | Error::OutOfMemory(abort)
            | Error::TransactionTooLarge(abort)
            | Error::RowUnreadable(abort) => Some(abort),
            _ => None,
        }
    }

    /// Returns the abort, when that is what this error is.
    #[must_use]
    pub fn as_abort(&self) -> Option<&Abort> {
        match self {
            Error::Aborted(abort)
            | Error::OutOfMemory(abort)
            | Error::TransactionTooLarge(abort)
            | Error::RowUnreadable(abort) => Some(abort),
            _ => None,
        }
    }
}

/// What helps where a row cannot be read that has lost a part of a long value.
const LOST_PIECES: &str = "where a part of a long value is lost, replace the row or delete it";

/// What helps where a row that had left memory cannot be read back.
pub(crate) const UNREADABLE_ROW: &str = "a row that had left memory cannot be read back: open the database again, whose checkpoint and log have it";

/// What is to be done about a walk that has [left a row out](ensilo_engine::Engine::rows_left_out).
pub(crate) const NO_MEMORY_FOR_ROW: &str =
    "the system had no memory to read a row back that had left memory: try again when there is some";

const NO_TRANSACTION: &str = "no transaction is open in this session, or not the one that has found the row";

const DEADLINE_EXCEEDED: &str = "the session's deadline has passed; a transaction that was open is undone";

const CHANGES_NOT_KEPT: &str = "the database was not opened to keep changes: see `Options::change_feed`";

const JOB_WAITS_FOR_JOB: &str = "a submitted job waits for another one of the same database";

/// Why an index is broken, and what helps.
const BROKEN_INDEX: &str = "its entries could not be made of the table's rows; delete or change the rows that `duplicates` lists and call \
     `rebuild_index`, or drop the index";

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Aborted(abort) => abort.fmt(f),
            Error::OutOfMemory(abort) => {
                write!(
                    f,
                    "{abort}; delete rows or drop tables, split what reads or writes very much, or open the database \
                     with a larger limit"
                )
            }
            Error::TransactionTooLarge(abort) => {
                write!(f, "{abort}: at most {TRANSACTION_LIMITS}; split it into several")
            }
            Error::RowUnreadable(abort) => write!(f, "{abort}; {UNREADABLE_ROW}; {LOST_PIECES}"),
            Error::UnknownTable(name) => write!(f, "no table named {name}"),
            Error::TableChanged(name) => {
                write!(f, "table {name} was changed or truncated since this handle was made; open it again")
            }
            Error::UnknownIndex(of) => of.write_unknown_index(f),
            Error::UnknownColumn(of) => write!(f, "table {} has no column {}", of.table(), of.name()),
            Error::TableExists(name) => write!(f, "a table named {name} exists"),
            Error::UnknownSequence(name) => write!(f, "no sequence named {name}"),
            Error::InvalidSequence(text) => write!(f, "invalid sequence: {text}"),
            Error::SequenceExhausted(name) => {
                write!(f, "sequence {name} has no more numbers, or fewer than were asked for")
            }
            Error::IndexExists(of) => write!(f, "table {} has an index {} already", of.table(), of.name()),
            Error::IndexNotReady(index) => write!(f, "index {index} is not ready to be used here"),
            Error::IndexBroken(index) => write!(f, "index {index} is broken: {BROKEN_INDEX}"),
            Error::InvalidSchema(text) => write!(f, "invalid schema: {text}"),
            Error::SchemaMismatch(mismatch) => mismatch.fmt(f),
            Error::InvalidMigrations(text) => write!(f, "invalid migrations: {text}"),
            Error::MigrationFailed(failed) => failed.fmt(f),
            Error::WrongType(wrong) => wrong.fmt(f),
            Error::UnknownValue(unknown) => unknown.fmt(f),
            Error::KeyTooLong(length) => write!(f, "key too long: {length}"),
            Error::RowTooLarge(length) => write!(f, "row too large: {length}"),
            Error::DuplicateKey(duplicate) => duplicate.fmt(f),
            Error::MissingRow(missing) => missing.fmt(f),
            Error::SumOutOfRange(sum) => sum.fmt(f),
            Error::Closed => f.write_str("the database is closed"),
            Error::NoTransaction => f.write_str(NO_TRANSACTION),
            Error::Cancelled => f.write_str("the transaction was cancelled"),
            Error::DeadlineExceeded => f.write_str(DEADLINE_EXCEEDED),
            Error::NestedRequest(call) => call.fmt(f),
            Error::LogFailed(error) => write!(f, "nothing can be stored any more: {error}"),
            Error::CheckpointFailed(text) => write!(f, "the checkpoint could not be made: {text}"),
            Error::LoadFailed(text) => f.write_str(text),
            Error::BackupFailed(error) => write!(f, "the backup could not be made: {error}"),
            Error::Open(error) | Error::NoStatisticsSocket(error) => error.fmt(f),
            Error::DamagedCatalog(name) => write!(f, "the catalog's entry of {name} cannot be read"),
            Error::ChangesNotKept => f.write_str(CHANGES_NOT_KEPT),
            Error::ChangesMissed(missed) => missed.fmt(f),
            Error::ChangesUnreadable(error) => write!(f, "changes cannot be read: {error}"),
            Error::NotDurable => f.write_str("the database is in memory only"),
            Error::ReadOnly => f.write_str("the database is open for reading only"),
            Error::NoSnapshots => f.write_str("the database's engine has no snapshots"),
            Error::TooManyTransactions => {
                f.write_str("the database's engine has no place for another transaction")
            }
            Error::NoTwoPhaseCommit => f.write_str("the database's engine cannot prepare transactions"),
            Error::ThreadEnding => f.write_str("a request from a thread that is being torn down"),
            Error::QueueFull => f.write_str("the queue of submitted jobs is full"),
            Error::JobWaitsForJob => f.write_str(JOB_WAITS_FOR_JOB),
            Error::JobPanicked(message) => write!(f, "the submitted job panicked: {message}"),
            Error::ThreadPanicked(message) => write!(f, "a thread of the database panicked: {message}"),
            Error::InvalidOption(text) => write!(f, "invalid option: {text}"),
            Error::User(user) => write!(f, "rolled back by the request: {user}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            // The text has that of all others.
            Error::User(user) => user.get().source(),
            Error::MigrationFailed(failed) => failed.error().source(),
            _ => None,
        }
    }
}
