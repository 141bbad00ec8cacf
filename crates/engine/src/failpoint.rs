//! Named points in the jobs that run beside transactions, for tests that delay them there.
//!
//! [`Engine::reached`](crate::Engine::reached) is called at each of them. By default it does nothing and compiles to nothing. An
//! engine made for a test lets other transactions go first at just this point, or makes threads wait at random.

/// A point in a job that runs beside transactions.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failpoint {
    /// An index that is built is known to all transactions: those that did not know it have ended.
    IndexIntroduced,
    /// A transaction that fills an index has read its rows and has added no entry yet.
    IndexRowsRead,
    /// A transaction that fills an index has committed.
    IndexRowsDone,
    /// An index has all of its entries and is not ready yet.
    IndexFilled,
    /// An index that is dropped or given up takes no reads and no entries any more. Writers still know it.
    IndexDropped,
    /// A table that is about to be changed or truncated is refused to statements, and transactions that are under way are waited for next.
    TableRefused,
    /// The catalog's rows of a table that is dropped, or truncated, are gone, and nothing else of it.
    TableRowsDeleted,
    /// A table is unknown to statements that begin from now on, or its stores are, since it was truncated. They are still there.
    TableForgotten,
    /// A checkpoint has chosen the epoch that it begins in.
    CheckpointBegun,
    /// A checkpoint has walked some rows.
    CheckpointRowsWalked,
    /// The files of a checkpoint are written, and no manifest names them.
    CheckpointWritten,
    /// A manifest names a checkpoint, and files that are not needed any more are gone.
    CheckpointInstalled,
    /// A backup has chosen the epoch that it ends with.
    BackupBegun,
    /// A backup has copied some bytes.
    BackupBytesCopied,
    /// A thread that loads a checkpoint in the background takes a block next.
    BackgroundBlockTaken,
    /// A block of a checkpoint is read, and none of its rows is in memory.
    CheckpointBlockRead,
    /// All rows of a table are loaded, and its indexes have no entries yet.
    TableRowsLoaded,
    /// A deleted record is locked, and leaves its tree next.
    UnhookBegun,
    /// A transaction that prepares has registered one of the records and nodes that it relies on.
    PreparedReadRegistered,
    /// A prepared transaction that ends lets go next of one of the records and nodes that it has relied on.
    PreparedReadReleased,
}
