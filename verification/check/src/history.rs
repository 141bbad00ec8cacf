//! What a run of the engine leaves behind for the checker: the committed transactions with all that they saw and wrote.

use std::fmt;
use std::ops::{Bound, RangeBounds};

/// The number of a table or of an index: of one tree of records.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A transaction ID without its status bits; 0 is the version of a record that was never written.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub u64);

impl Tid {
    /// The version of a placeholder: a record that an insert put into the tree and nobody has written yet.
    pub const NEVER_WRITTEN: Tid = Tid(0);
}

/// The number of a commit epoch.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);

/// A key of one table.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The table.
    pub table: TableId,
    /// The encoded key; the order of the bytes is the order of the table.
    pub bytes: Box<[u8]>,
}

impl Key {
    /// Returns the key `bytes` of `table`.
    pub fn new(table: TableId, bytes: &[u8]) -> Key {
        Key { table, bytes: bytes.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:\"{}\"", self.table.0, self.bytes.escape_ascii())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One version that a transaction read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The key.
    pub key: Key,
    /// The TID of the record seen; [`Tid::NEVER_WRITTEN`] for a placeholder.
    pub version: Tid,
    /// Whether the reader took the record for a missing row.
    pub absent: bool,
}

/// A range of keys that a transaction scanned: it found nothing in it but the keys among its reads.
///
/// A scan that stopped early ends at the last key that it returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The table.
    pub table: TableId,
    /// Where the range begins.
    pub low: Bound<Box<[u8]>>,
    /// Where the range ends.
    pub high: Bound<Box<[u8]>>,
}

/// One version that a transaction wrote; its TID is the transaction's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: Key,
    /// Whether the version is a delete.
    pub absent: bool,
}

/// Which transaction: the `sequence`-th of a worker.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId {
    /// The worker slot; threads that use one slot after the other count as one worker.
    pub worker: u32,
    /// Grows in the order in which the worker ran its transactions; gaps are allowed.
    pub sequence: u64,
}

/// One committed transaction.
///
/// A read of the transaction's own write is not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Which transaction.
    pub id: TransactionId,
    /// The commit TID: the version of everything it wrote. Without meaning if it wrote nothing.
    pub tid: Tid,
    /// The commit epoch. Without meaning for a snapshot transaction.
    pub epoch: Epoch,
    /// For a snapshot transaction its snapshot epoch: it sees the newest versions of epochs before this one.
    pub snapshot: Option<Epoch>,
    /// The versions read, absences included.
    pub reads: Vec<Read>,
    /// Keys for which it found no record at all.
    pub missing: Vec<Key>,
    /// Ranges in which it found no record but those among `reads`.
    pub ranges: Vec<KeyRange>,
    /// What it wrote; a key stands here at most once.
    pub writes: Vec<Write>,
}

impl Transaction {
    /// Returns an ordinary transaction that has read and written nothing yet.
    pub fn new(id: TransactionId, epoch: Epoch, tid: Tid) -> Transaction {
        Transaction {
            id,
            tid,
            epoch,
            snapshot: None,
            reads: Vec::new(),
            missing: Vec::new(),
            ranges: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Returns a snapshot transaction that has read nothing yet.
    pub fn snapshot(id: TransactionId, snapshot: Epoch) -> Transaction {
        Transaction { snapshot: Some(snapshot), ..Transaction::new(id, snapshot, Tid::NEVER_WRITTEN) }
    }

    /// Adds the read of a row.
    #[must_use]
    pub fn reads(mut self, key: Key, version: Tid) -> Transaction {
        self.reads.push(Read { key, version, absent: false });
        self
    }

    /// Adds the read of an absent record.
    #[must_use]
    pub fn reads_absent(mut self, key: Key, version: Tid) -> Transaction {
        self.reads.push(Read { key, version, absent: true });
        self
    }

    /// Adds a key for which there was no record.
    #[must_use]
    pub fn misses(mut self, key: Key) -> Transaction {
        self.missing.push(key);
        self
    }

    /// Adds a scanned range of `table`.
    #[must_use]
    pub fn scans<'b>(mut self, table: TableId, range: impl RangeBounds<&'b [u8]>) -> Transaction {
        let low = range.start_bound().map(|bytes| Box::from(*bytes));
        let high = range.end_bound().map(|bytes| Box::from(*bytes));
        self.ranges.push(KeyRange { table, low, high });
        self
    }

    /// Adds the write of a row.
    #[must_use]
    pub fn writes(mut self, key: Key) -> Transaction {
        self.writes.push(Write { key, absent: false });
        self
    }

    /// Adds a delete.
    #[must_use]
    pub fn deletes(mut self, key: Key) -> Transaction {
        self.writes.push(Write { key, absent: true });
        self
    }

    /// Returns the epoch before which the states lie that this transaction may see without naming a version.
    pub(crate) fn horizon(&self) -> Epoch {
        self.snapshot.unwrap_or(self.epoch)
    }

    /// Returns the place of the transaction in the order of the epochs; see [`crate`].
    pub(crate) fn level(&self) -> (Epoch, bool) {
        (self.horizon(), self.snapshot.is_none())
    }
}

/// A version that was there before the recording began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InitialVersion {
    /// The key.
    pub key: Key,
    /// The TID of the record.
    pub tid: Tid,
    /// Whether the record was a delete.
    pub absent: bool,
}

/// What was recorded of a run, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The versions that were there before the first transaction; empty when the load was recorded as transactions.
    pub initial: Vec<InitialVersion>,
    /// The committed transactions.
    pub transactions: Vec<Transaction>,
}

impl History {
    /// Returns the history of a run that began with an empty database.
    pub fn of(transactions: Vec<Transaction>) -> History {
        History { initial: Vec::new(), transactions }
    }

    /// Adds a row that was there before the first transaction.
    #[must_use]
    pub fn with_initial(mut self, key: Key, tid: Tid) -> History {
        self.initial.push(InitialVersion { key, tid, absent: false });
        self
    }
}
