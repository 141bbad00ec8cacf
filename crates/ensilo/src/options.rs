//! How a database is opened.

mod check;
mod storage;

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ensilo_engine::EngineOptions;
use ensilo_epoch::Epoch;
use ensilo_row::RowId;

use crate::durability::Durability;
use crate::durable::{DurableOptions, Event, EventHook, RecoveryHook, RecoveryProgress};
use crate::pool::PoolOptions;
use crate::slow_request::{SlowRequest, SlowRequestHook};
pub(crate) use check::require;

/// Options of a database that is about to be opened; [`Database::options`](crate::Database::options) makes
/// one.
///
/// ```
/// use std::time::Duration;
/// # fn main() -> ensilo::Result<()> {
/// let db = ensilo::Database::options()
///     .epoch_interval(Duration::from_millis(10))
///     .memory_limit_bytes(256 << 20)
///     .retries(20)
///     .in_memory()?;
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
#[must_use = "options open nothing by themselves"]
pub struct Options {
    pub(crate) epoch_interval: Option<Duration>,
    pub(crate) epochs_per_snapshot: u64,
    pub(crate) snapshot_age_limit: Duration,
    pub(crate) memory_limit_bytes: Option<u64>,
    pub(crate) prefault_bytes: u64,
    pub(crate) retries: u32,
    pub(crate) durability: Option<Durability>,
    pub(crate) durable: DurableOptions,
    pub(crate) read_only: bool,
    /// Whether it is to be written next, see [`Options::for_reading`].
    pub(crate) is_looked_into: bool,
    pub(crate) beside_writer: bool,
    pub(crate) must_exist: bool,
    pub(crate) answer_while_loading: bool,
    #[cfg(feature = "live-statistics")]
    pub(crate) live_statistics: bool,
    pub(crate) on_recovery: Option<RecoveryHook>,
    pub(crate) on_event: Option<EventHook>,
    pub(crate) on_slow_request: Option<SlowRequestHook>,
    pub(crate) pool: PoolOptions,
    pub(crate) row_ids_behind: Option<RowId>,
}

impl Default for Options {
    fn default() -> Self {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        Options {
            epoch_interval: None,
            epochs_per_snapshot: 25,
            snapshot_age_limit: Duration::from_secs(60),
            memory_limit_bytes: None,
            prefault_bytes: 0,
            retries: 1000,
            durability: None,
            durable: DurableOptions::default(),
            read_only: false,
            is_looked_into: false,
            beside_writer: false,
            must_exist: false,
            answer_while_loading: false,
            #[cfg(feature = "live-statistics")]
            live_statistics: false,
            on_recovery: None,
            on_event: None,
            on_slow_request: None,
            pool: PoolOptions { threads, queue_len_max: 1024, pin_to_cores: true },
            row_ids_behind: None,
        }
    }
}

impl Options {
    /// Sets how long an epoch lasts, from 1 ms to 10 s. By default it is 40 ms for a database in memory. In
    /// a directory, the next epoch begins by default as soon as somebody waits for the disk and the epoch
    /// before is stored; while nobody waits, after 5 ms at first, and twice as long each time, up to 40 ms.
    ///
    /// Short epochs are stored sooner and free memory sooner, and cost a little more. A thread that commits
    /// more than 131,071 writing transactions within one epoch waits for nothing: it begins the next one
    /// early, for all threads, also where this option fixes the interval. What counts epochs then comes
    /// sooner in the same measure: snapshots, and with them the end of those that are older than
    /// [`Options::snapshot_age_limit`].
    pub fn epoch_interval(mut self, interval: Duration) -> Self {
        self.epoch_interval = Some(interval);
        self
    }

    /// Sets how many epochs of [`Options::epoch_interval`], or of 40 ms, lie between two snapshots: 1 to
    /// 10,000, by default 25. What [`Database::read_stale`](crate::Database::read_stale) shows is at most
    /// about one such interval old.
    pub fn epochs_per_snapshot(mut self, epochs: u64) -> Self {
        self.epochs_per_snapshot = epochs;
        self
    }

    /// Sets how long a [`Database::read_stale`](crate::Database::read_stale) may run before it ends with
    /// [`AbortReason::SnapshotTooOld`](crate::AbortReason::SnapshotTooOld), or a [`RowStream`](crate::RowStream) last: by default 60 s, at least one
    /// snapshot interval. This bounds how long the old versions are kept that a long reader needs: one of each row that has changed
    /// since it began, and one or two more of a row that changes again and again; over Silo and two-phase locking also what a row leaves
    /// that outgrows its place in memory, or is deleted and inserted again.
    pub fn snapshot_age_limit(mut self, limit: Duration) -> Self {
        self.snapshot_age_limit = limit;
        self
    }

    /// Sets the most bytes that rows and indexes may take, together with sets of running transactions that
    /// are larger than 256 KiB. There is no limit by default; the least is 8 MiB. Memory is taken in chunks
    /// of 2 MiB.
    ///
    /// Some memory lies beside the limit, so that rows can be found and deleted when rows and indexes have taken all of it:
    /// an eighth more for sets of transactions, and a sixteenth more for old versions of updated rows. A deleted row takes
    /// about 100 bytes until no snapshot needs it, and some 100 beside the limit over [ERMIA's engine](crate::ermia). What
    /// deleted rows leave is free for rows of about their size, or of less, and for longer ones where deleted rows lay side
    /// by side.
    ///
    /// While a database is opened, it may take twice the limit. One that holds more than the limit after that refuses
    /// what needs memory until rows were deleted.
    ///
    /// # Rows outside memory
    /// Over [ERMIA's engine](crate::ermia), in a directory, the limit may be smaller than the data: rows that nobody has used
    /// lately leave memory for files in the directory `cold` of the database, and are read back when they are used. Over
    /// the other engine, and in a database that is opened for reading only, all rows have to fit; also for `ensilo
    /// checkpoint create` without `--memory-limit-mib`.
    ///
    /// - *What has to fit*: trees and arrays, about 35 bytes for each row whose keys come in order. An entry of an index
    ///   takes 50 to 160, depending on the length and the order of keys; [`TableStatistics`](crate::TableStatistics)
    ///   tells. A million rows with one index need about 100 MiB, and some for the rows that are in use. At the
    ///   opening, trees and arrays have to fit into twice the limit, of which the process keeps what it took then.
    /// - *Large rows*: an eighth of the limit, and the eighth beside it, are for rows of more than 32 KiB and for the arrays
    ///   that lead to rows, so that small rows cannot take all.
    /// - *Transactions* keep what they read in memory until they end, with up to 100 bytes beside each row. One that reads
    ///   more than fits ends with [`Error::OutOfMemory`](crate::Error::OutOfMemory). While one stays open, rows that were used since it began do not leave, and writers beside
    ///   it may find no memory.
    /// - *Snapshots* ([`Database::read_stale`](crate::Database::read_stale)) leave rows where they are, and beside them rows leave that were not
    ///   changed since they began. They remember nothing of what they read, but 40 bytes of each row that is found for later, as by
    ///   [`Scan::for_each_found`](crate::Scan::for_each_found); those count against the limit until the snapshot ends.
    /// - *[`Database::read`](crate::Database::read)* begins as a transaction, and brings rows back. Where there is no memory
    ///   for them it is run again on a snapshot. For a long report a snapshot is the better choice from the start.
    /// - *Waiting*: a request that finds no memory waits until rows have left, for two seconds, and up to ten as long as
    ///   some leave. A [`Session`](crate::Session) and [`Database::read_stale`](crate::Database::read_stale) do not wait.
    /// - *The disk*: the files are of use to this opening alone. They grow only while the disk has free, beside them, what
    ///   the log and the next checkpoint need, also once memory is full. While it has not, no row leaves, which
    ///   [`Options::on_event`] reports, and a checkpoint is made if that frees much log and
    ///   checkpoints are made by themselves.
    pub fn memory_limit_bytes(mut self, limit: u64) -> Self {
        self.memory_limit_bytes = Some(limit);
        self
    }

    /// Sets how many bytes to take from the system when the database opens, by default none. Tables that grow
    /// later then do not wait until the system has cleared pages. Bytes that the system does not have at the
    /// opening are taken later, when they are needed.
    pub fn prefault_bytes(mut self, bytes: u64) -> Self {
        self.prefault_bytes = bytes;
        self
    }

    /// Sets how often a request that met a conflict is run again before its caller gets the abort: by default
    /// 1000 times. What finds no memory is run again for as long as [`Options::memory_limit_bytes`] says, which takes
    /// none of these times; with 0 a request is run once, whatever ends it, but for a sum that has no room, which is found by another attempt
    /// ([`Table::add`](crate::Table::add)).
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets what a request waits for before it answers, unless it has a setting of its own
    /// ([`Request::durability`](crate::Request::durability)). For a database in a directory the default is
    /// [`Durability::Stored`]. A database in memory stores nothing, and opening it with `Stored` is an error.
    pub fn durability(mut self, level: Durability) -> Self {
        self.durability = Some(level);
        self
    }

    /// Opens the database in a directory for reading only. Nothing in the directory changes: neither room on the disk nor a right to write is needed,
    /// and the options for log and checkpoints have no effect. Requests that read, and snapshots, work as usual, and what they read counts as stored.
    /// A transaction that has written ends with [`Error::ReadOnly`](crate::Error::ReadOnly) when it commits, and so does every change of tables and indexes,
    /// [`Database::checkpoint`](crate::Database::checkpoint) and [`Database::backup`](crate::Database::backup).
    ///
    /// A database may be open for reading in several processes at once, but not while one has it open for
    /// writing, unless with [`Options::beside_writer`]. What was written after the last sync before a crash may show here, and be gone after a
    /// power failure.
    ///
    /// ```no_run
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::options().read_only(true).open("accounts")?;
    /// # Ok(()) }
    /// ```
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// Sets [`Options::read_only`], and takes back what is for writing alone and would be refused with it: for a database that is to be written
    /// with these options, but is looked into before.
    #[doc(hidden)]
    pub fn for_reading(self) -> Self {
        #[cfg(feature = "live-statistics")]
        let mut this = self.live_statistics(false);
        #[cfg(not(feature = "live-statistics"))]
        let mut this = self;
        this.is_looked_into = true;
        this.read_only(true)
    }

    /// Reads the database also while another process of the same machine has it open to write, with [`Options::read_only`] alone. By default
    /// such an opening is refused with [`OpenError::Locked`](crate::OpenError::Locked), and keeps writers away as long as it lasts. With this option nothing is
    /// locked: the other process goes on, ends, and is started again as if nobody read. Whether there is one makes no difference here.
    ///
    /// What is read is one point, whole epochs up to [`Database::durable_epoch`](crate::generic::Database::durable_epoch): all that had been
    /// acknowledged as [`Durability::Stored`] before the opening began is there, and of what was written during the opening perhaps something.
    /// It stays at that point; opening anew gives a later one. It comes from the last checkpoint and the log, so that the opening takes as long
    /// as a recovery, and all rows need memory once more, in this process. The end of the log may show here although it was not synced yet: after
    /// a power failure it may be gone.
    ///
    /// Files that the other process removes meanwhile keep their place on the disk until this one has read them: with
    /// [`Options::answer_while_loading`], until everything is loaded. Then the place of each comes back at once, for which the other one's
    /// syncs may have to wait, while it gives its own files back in pieces. All files of the log and the checkpoint are open at once meanwhile, with
    /// up to two handles each, for which the process may need a higher limit (`ulimit -n`). What is missing or damaged is an error here as well. Where files change
    /// faster than they can be opened, the opening begins anew, some twenty times, and then ends with
    /// [`OpenError::Changing`](crate::OpenError::Changing).
    ///
    /// ```no_run
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::options().read_only(true).beside_writer(true).open("accounts")?;
    /// # Ok(()) }
    /// ```
    pub fn beside_writer(mut self, beside_writer: bool) -> Self {
        self.beside_writer = beside_writer;
        self
    }

    /// Refuses a directory without a database, with [`OpenError::NotADatabase`](crate::OpenError::NotADatabase),
    /// instead of making one there. By default a database is made in a directory that is empty or missing, if the
    /// directory above is there.
    pub fn must_exist(mut self, must_exist: bool) -> Self {
        self.must_exist = must_exist;
        self
    }

    /// Sets whether the database answers before its rows are in memory. By default it does not: opening reads checkpoint and log, and returns when
    /// all is there. With `true`, it reads the log and looks where in the checkpoint the rows of each table are, which takes a small part of the time
    /// if the log is short. Rows of the checkpoint are then loaded when they are touched, in blocks of about 256 KiB, and all of them in the
    /// background by [`Options::recovery_threads`]. [`Database::wait_until_loaded`](crate::Database::wait_until_loaded) waits for the end of that,
    /// and [`DurabilityStatistics::load`](crate::DurabilityStatistics::load) says how far it is.
    ///
    /// What requests return is what it would be with everything in memory. What they may have to wait for:
    /// - The row under a key, and the rows with which a scan begins, wait for a few blocks. A scan loads more as it
    ///   goes on.
    /// - The first use of a secondary index, and the first write to a table that has any, wait until the whole
    ///   table is loaded and its indexes have their entries; so does a change of its indexes. Whoever waits so
    ///   helps, and tables that somebody waits for are loaded first.
    /// - A checkpoint waits until everything is loaded, and none is made by itself before that, nor by a database
    ///   that is closed before. The next opening then begins as this one did.
    ///
    /// Three things differ. Under a memory limit [`Database::read_stale`](crate::Database::read_stale) may find no memory
    /// for rows that are loaded for it. A transaction may be undone because a row next to what it has read was loaded
    /// meanwhile; a request tries it again, and one in a [`Session`](crate::Session) sees
    /// [`Error::Aborted`](crate::Error::Aborted). And damage of the checkpoint, which stops an ordinary opening, may be found when a
    /// block is loaded: the request that needs it, and every write to its table from then on, get
    /// [`Error::LoadFailed`](crate::Error::LoadFailed). Until the loading is over, [`Statistics::tables`](crate::Statistics::tables) count the
    /// rows that are loaded, and show indexes of tables that are not loaded as being built.
    ///
    /// ```no_run
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::options().answer_while_loading(true).open("accounts")?;
    /// # Ok(()) }
    /// ```
    pub fn answer_while_loading(mut self, answer: bool) -> Self {
        self.answer_while_loading = answer;
        self
    }

    /// Gives up what was committed after an epoch, at the opening; see [`group`](crate::group).
    #[doc(hidden)]
    pub fn give_up_after(mut self, epoch: u64) -> Self {
        self.durable.give_up_after = Some(Epoch::new(epoch));
        self
    }

    /// Calls `hook` about ten times a second while files are read, and once when all are, on a thread of its own. Then indexes are built, which takes
    /// about as long again and is not reported. With [`Options::answer_while_loading`] it is called so while the log is replayed, and again while the
    /// checkpoint is loaded in the background.
    pub fn on_recovery(mut self, hook: impl Fn(&RecoveryProgress) + Send + Sync + 'static) -> Self {
        self.on_recovery = Some(RecoveryHook::new(hook));
        self
    }

    /// Calls `hook` when something fails outside of requests: a checkpoint that could not be made, a full disk, a log that failed, rows that have expired
    /// and cannot be removed, a callback that has panicked. The hook is called again when what was wrong with the files is over, of which
    /// [`DurabilityStatistics::degraded`](crate::DurabilityStatistics::degraded) has the state. That has nothing of rows that have expired, of which
    /// [`Expiry::failure`](crate::generic::Expiry::failure) has it, nor of callbacks.
    ///
    /// The hook runs on a thread of the database, which holds no lock. Checkpoints, or the removal of rows that have expired, wait for it; requests do
    /// not.
    ///
    /// ```no_run
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::options().on_event(|event| eprintln!("{event}")).open("accounts")?;
    /// # Ok(()) }
    /// ```
    pub fn on_event(mut self, hook: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        self.on_event = Some(EventHook::new(hook));
        self
    }

    /// Calls `hook` after each request that took at least `duration_min`, without the wait until it is stored, or was run at least
    /// `attempts_min` times; `Duration::MAX` and `u32::MAX` are never reached. The hook gets its label, how it ended, and the table and key
    /// of its last conflict. With the feature `tracing` it is an event as well. Requests are those of
    /// [`Database::transact`](crate::Database::transact) and its like, of reads, of batches, one by one, jobs, and what a
    /// [`RowStream`](crate::RowStream) reads at once; statements of a
    /// [`Session`](crate::Session)'s open transaction are not watched. By default nothing is, and no clock is read.
    ///
    /// The hook runs on the thread of the request, which goes on afterwards; so it must be quick, and should not use this database: its
    /// requests end with [`Error::NestedRequest`](crate::Error::NestedRequest), but for those of sessions, which are not reported. Its panics end
    /// nothing. A read whose closure panics is not reported.
    ///
    /// ```
    /// use std::time::Duration;
    /// # fn main() -> ensilo::Result<()> {
    /// let db = ensilo::Database::options()
    ///     .on_slow_request(Duration::from_millis(50), 100, |request| eprintln!("slow: {request}"))
    ///     .in_memory()?;
    /// # Ok(()) }
    /// ```
    pub fn on_slow_request(
        mut self,
        duration_min: Duration,
        attempts_min: u32,
        hook: impl Fn(&SlowRequest) + Send + Sync + 'static,
    ) -> Self {
        self.on_slow_request = Some(SlowRequestHook { duration_min, attempts_min, hook: Arc::new(hook) });
        self
    }

    /// Lets other processes of the same user see the [statistics](crate::Statistics) of the database while it is open, as `ensilo stat --live`
    /// shows them: by a thread that answers at the socket `STATISTICS` in its directory, and sleeps while nobody asks. By default nobody can.
    /// [`live_statistics`](crate::live_statistics) describes the answers. An opening for reading only, and one in memory, refuse the option with
    /// [`Error::InvalidOption`](crate::Error::InvalidOption); where the file system has no sockets, an opening with it fails before it changes
    /// anything, with [`Error::NoStatisticsSocket`](crate::Error::NoStatisticsSocket).
    #[cfg(feature = "live-statistics")]
    pub fn live_statistics(mut self, answer: bool) -> Self {
        self.live_statistics = answer;
        self
    }

    /// Sets how many threads run submitted jobs, from 1 to 4096; by default one for each core. They start
    /// with the first [`Database::submit`](crate::Database::submit).
    pub fn pool_threads(mut self, threads: usize) -> Self {
        self.pool.threads = threads;
        self
    }

    /// Sets how many submitted jobs may wait for a thread: at least 1, by default 1024.
    pub fn pool_queue_len_max(mut self, jobs: usize) -> Self {
        self.pool.queue_len_max = jobs;
        self
    }

    /// Sets whether each thread of the pool is bound to a core, on Linux. By default it is.
    pub fn pin_pool(mut self, pin: bool) -> Self {
        self.pool.pin_to_cores = pin;
        self
    }

    pub(crate) fn snapshot_interval(&self) -> Duration {
        let epoch_interval = self.epoch_interval.unwrap_or(EPOCH_INTERVAL_MAX);
        epoch_interval.saturating_mul(u32::try_from(self.epochs_per_snapshot).unwrap_or(u32::MAX))
    }

    pub(crate) fn engine_options(&self) -> EngineOptions {
        let mut options = EngineOptions::default();
        options.epochs.epoch_interval = self.epoch_interval.unwrap_or(EPOCH_INTERVAL_MAX);
        options.epochs.epochs_per_snapshot = self.epochs_per_snapshot;
        options.memory_limit_bytes = self.memory_limit_bytes;
        options.prefault_bytes = self.prefault_bytes;
        let snapshots = self.snapshot_age_limit.as_micros().div_ceil(self.snapshot_interval().as_micros());
        options.snapshot_age_max = u64::try_from(snapshots).unwrap_or(u64::MAX);
        options
    }
}

/// The paper's epochs; those that go by the disk are not longer.
pub(crate) const EPOCH_INTERVAL_MAX: Duration = Duration::from_millis(40);
