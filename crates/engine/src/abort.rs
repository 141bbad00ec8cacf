//! Why a transaction did not commit, and whether trying again makes sense.

use std::fmt;

use crate::store::TableId;

/// The cause of an abort.
///
/// All engines share these reasons, so that statistics and retries mean the same over each. An engine returns the
/// one that comes closest in what it means for the caller.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AbortReason {
    /// A record that was read has changed since. Over ERMIA's engine: what was read and written, by this transaction and
    /// others, may belong to no serial order; or another one has written since the begin what this one writes.
    ReadValidation,
    /// Keys came or went in a range that was read, or a key that was missing exists now.
    NodeValidation,
    /// Another transaction held a record's lock for longer than a commit may take. Over ERMIA's engine: it has written the
    /// record first, and is still under way. Over two-phase locking: it holds the lock of a key or a range, and this one does not wait
    /// for it, or has waited for long.
    LockHeld,
    /// Another transaction inserted the same key first.
    KeyExists,
    /// The snapshot has grown older than the limit allows.
    SnapshotTooOld,
    /// The memory limit is reached.
    OutOfMemory,
    /// The closure returned an error, or the transaction was given up.
    User,
    /// The table or index was dropped.
    StoreDropped,
    /// The log could not be written: nothing is committed any more until the database is opened again.
    LogFailed,
    /// The transaction holds more keys, rows, reads, writes or bytes to log than one transaction can.
    TransactionTooLarge,
    /// The last epoch has come, in which nothing commits: numbers of epochs have 44 bits.
    EpochsExhausted,
    /// A prepared transaction holds the record's lock until its decision.
    PreparedLock,
    /// A transaction that is prepared, or was tried so often that others give way to it, has read the record or the range of keys that would
    /// change: it stays as it is until that one has ended.
    PreparedRead,
    /// A row that had left memory cannot be read back from the disk.
    RowUnreadable,
    /// A number that was added to without a look at it has no room for the sum: the next attempt reads it first.
    SumOutOfRange,
    /// The transaction was to open a table that is being changed or truncated. The change waits for the transaction to end, so that the next attempt
    /// comes after it.
    TableChanging,
}

/// What bounds a transaction, in words.
pub const TRANSACTION_LIMITS: &str =
    "4 GiB of keys, 32 GiB of rows, 4294967295 reads, writes or nodes scanned, and 1 GiB to log";

impl AbortReason {
    /// Every reason, in the order in which they are counted.
    pub const ALL: &'static [AbortReason] = &[
        AbortReason::ReadValidation,
        AbortReason::NodeValidation,
        AbortReason::LockHeld,
        AbortReason::KeyExists,
        AbortReason::SnapshotTooOld,
        AbortReason::OutOfMemory,
        AbortReason::User,
        AbortReason::StoreDropped,
        AbortReason::LogFailed,
        AbortReason::TransactionTooLarge,
        AbortReason::EpochsExhausted,
        AbortReason::PreparedLock,
        AbortReason::PreparedRead,
        AbortReason::RowUnreadable,
        AbortReason::SumOutOfRange,
        AbortReason::TableChanging,
    ];

    /// Returns whether the same transaction may succeed when it is run again.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        !matches!(
            self,
            AbortReason::OutOfMemory
                | AbortReason::User
                | AbortReason::StoreDropped
                | AbortReason::LogFailed
                | AbortReason::TransactionTooLarge
                | AbortReason::EpochsExhausted
                | AbortReason::RowUnreadable
        )
    }

    /// Returns the reason in words that suit a table's heading.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            AbortReason::ReadValidation => "read validation",
            AbortReason::NodeValidation => "node validation",
            AbortReason::LockHeld => "lock held",
            AbortReason::KeyExists => "key exists",
            AbortReason::SnapshotTooOld => "snapshot too old",
            AbortReason::OutOfMemory => "out of memory",
            AbortReason::User => "user",
            AbortReason::StoreDropped => "table or index dropped",
            AbortReason::LogFailed => "log failed",
            AbortReason::TransactionTooLarge => "transaction too large",
            AbortReason::EpochsExhausted => "epochs used up",
            AbortReason::PreparedLock => "prepared lock",
            AbortReason::PreparedRead => "prepared read",
            AbortReason::RowUnreadable => "row unreadable",
            AbortReason::SumOutOfRange => "sum out of range",
            AbortReason::TableChanging => "table being changed",
        }
    }

    /// Returns the reason's place in [`AbortReason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for AbortReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A transaction that did not commit: the reason, and the table and key where it showed.
///
/// One pointer wide, so that the results of the hot path stay small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort(Box<Cause>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cause {
    reason: AbortReason,
    table: TableId,
    key: Box<[u8]>,
}

impl Abort {
    /// Returns an abort for `reason` that showed at `key` of `table`.
    #[cold]
    pub fn new(reason: AbortReason, table: TableId, key: &[u8]) -> Self {
        Abort(Box::new(Cause { reason, table, key: key.into() }))
    }

    /// Returns why the transaction did not commit.
    #[must_use]
    pub fn reason(&self) -> AbortReason {
        self.0.reason
    }

    /// Returns the table or index in which the reason showed; [`TableId::NONE`] when it concerns no table.
    #[must_use]
    pub fn table(&self) -> TableId {
        self.0.table
    }

    /// Returns the encoded key at which the reason showed; empty when it concerns a range, a row that a scan has read, or no key.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.0.key
    }

    /// Returns whether the same transaction may succeed when it is run again.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.0.reason.is_retryable()
    }
}

impl fmt::Display for Abort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "transaction aborted: {} (table {}", self.0.reason, self.0.table.0)?;
        if !self.0.key.is_empty() {
            f.write_str(", key ")?;
            for byte in &self.0.key {
                write!(f, "{byte:02x}")?;
            }
        }
        f.write_str(if self.is_retryable() { "); a retry may succeed" } else { ")" })
    }
}

impl std::error::Error for Abort {}
