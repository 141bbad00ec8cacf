//! What the handles, threads and transactions of one database share.

mod close;

use std::sync::{Arc, OnceLock, PoisonError};

use ensilo_engine::{AbortReason, Engine, EngineOptions, Session, Store as _};
use ensilo_log::{Log, is_in_foreign_code};
use ensilo_row::RowId;
use ensilo_sync::atomic::Ordering;
use ensilo_sync::sync::{Mutex, MutexGuard};
use ensilo_sync::unchecked::AtomicBool;

use crate::attempt::RetryPolicy;
use crate::attempt::panics::install_hook;
use crate::catalog::Catalog;
use crate::catalog::dropped::DroppedName;
use crate::catalog::refused_opening;
use crate::catalog::table_core::TableCore;
use crate::changes::notifier::Notifier;
use crate::closing::Closing;
use crate::collector::{Collector, WatchedSlot};
use crate::durability::{self, Durability};
use crate::durable::{Durable, ReadOnly};
use crate::error::{MemoryShortage, Name, NameInTable, NestedCall};
use crate::expiry::Expiries;
#[cfg(feature = "live-statistics")]
use crate::live_statistics::StatisticsServer;
use crate::loading::Loading;
use crate::local::{Local, ThreadWorker};
use crate::migrations::MigrationTurns;
use crate::options::Options;
use crate::outcome::Outcome;
use crate::pool::Pool;
use crate::records::RecordCounts;
use crate::row_ids::{self, RowIdSource};
use crate::row_stream::held_snapshot::HeldSnapshots;
use crate::slow_request::RequestWatch;
use crate::worker::{self, DatabaseKey, Entered, Lease, Slot, SpareSlots};
use crate::{Abort, Error, Result};

/// So many sessions of the engine are used by others than workers, or are about to be, at most: for the catalog, collection, openings.
const OTHER_SESSIONS_MAX: usize = 512;

/// So many slots may be registered before those that are gone are looked for.
const REGISTERED_MIN: usize = 16;

/// See the module's documentation. It outlives the last [`Database`](crate::Database) handle only in threads
/// that are leaving.
pub(crate) struct DatabaseShared<E: Engine> {
    key: DatabaseKey<ThreadWorker<E>>,
    pub(crate) retries: u32,
    pub(crate) engine: Arc<E>,
    pub(crate) catalog: Catalog<E>,
    pub(crate) options: Options,
    pub(crate) records: Arc<RecordCounts>,
    pub(crate) row_ids: Arc<RowIdSource>,
    is_closed: AtomicBool,
    closing: Closing,
    slots: Mutex<RegisteredSlots<E>>,
    spare: SpareSlots<ThreadWorker<E>>,
    pool: OnceLock<Pool>,
    pub(crate) collector: Collector,
    /// Log and checkpoints, once they run. Never for a database in memory only.
    durable: OnceLock<Durable>,
    /// What a database that is only read has in their place.
    read_only: OnceLock<ReadOnly>,
    pub(crate) loading: Loading,
    pub(crate) expiries: Expiries,
    pub(crate) migration_turns: MigrationTurns,
    pub(crate) held_snapshots: HeldSnapshots<E>,
    pub(crate) notifier: Notifier<E>,
    #[cfg(feature = "live-statistics")]
    pub(crate) statistics_server: StatisticsServer,
}

/// The slots of all threads that have made a request.
struct RegisteredSlots<E: Engine> {
    is_closed: bool,
    registered: Vec<Arc<WatchedSlot<E>>>,
    /// At this length, those that are gone are taken out of `registered`.
    registered_max: usize,
    workers_made: u64,
}

impl<E: Engine> RegisteredSlots<E> {
    /// Forgets the slots of threads and sessions that are gone.
    fn forget_gone(&mut self) {
        self.registered.retain(|watched| watched.slot.strong_count() > 0);
        self.registered_max = (2 * self.registered.len()).max(REGISTERED_MIN);
    }
}

impl<E: Engine> DatabaseShared<E> {
    pub(crate) fn new(options: Options, engine_options: EngineOptions) -> Result<Self> {
        install_hook();
        let key = DatabaseKey::mint();
        const { assert!(ensilo_row::KEY_LEN_MAX <= E::KEY_LEN_MAX, "the engine takes the keys of tables") };
        let engine = E::start(engine_options)
            .map_err(|error| Error::not_started("the thread that advances the epochs", &error))?;
        let catalog = Catalog::new(&*engine, key.id())?;
        Ok(DatabaseShared {
            key,
            retries: options.retries,
            engine,
            catalog,
            options,
            records: RecordCounts::new(),
            row_ids: Arc::default(),
            is_closed: AtomicBool::new(false),
            closing: Closing::default(),
            slots: Mutex::new(RegisteredSlots {
                is_closed: false,
                registered: Vec::new(),
                registered_max: 0,
                workers_made: 0,
            }),
            spare: SpareSlots::new(),
            pool: OnceLock::new(),
            collector: Collector::default(),
            durable: OnceLock::new(),
            read_only: OnceLock::new(),
            loading: Loading::default(),
            expiries: Expiries::default(),
            migration_turns: MigrationTurns::default(),
            held_snapshots: HeldSnapshots::new(),
            notifier: Notifier::new(),
            #[cfg(feature = "live-statistics")]
            statistics_server: StatisticsServer::default(),
        })
    }

    /// Returns a row id which is at least as large as all that were given.
    pub(crate) fn largest_row_id(&self) -> RowId {
        // Where nothing is written, all that is on disk is of earlier epochs.
        let of_epochs =
            self.read_only().map(|_| row_ids::largest_before(self.engine.epochs().global_epoch()));
        of_epochs.unwrap_or(RowId(0)).max(self.row_ids.largest())
    }

    /// Tells the database from all others of the process.
    #[inline(always)]
    pub(crate) fn id(&self) -> u64 {
        self.key.id()
    }

    /// Returns the calling thread's worker.
    #[inline]
    pub(crate) fn enter(&self) -> Result<Entered<'_, ThreadWorker<E>>> {
        worker::enter(&self.key, || self.new_slot())
    }

    /// Lends a worker to a session for a transaction or a request.
    pub(crate) fn lend(&self) -> Result<Lease<'_, ThreadWorker<E>>> {
        self.spare.lend(|| self.new_slot())
    }

    /// Makes a slot for the calling thread or for sessions, which is closed with the database.
    fn new_slot(&self) -> Result<Arc<Slot<ThreadWorker<E>>>> {
        self.check_has_place()?;
        let mut worker = self.new_worker()?;
        let counters = worker.raw.counters();
        let slot = Arc::new(Slot::new(worker));
        let mut slots = self.lock_slots();
        if slots.is_closed {
            return Err(Error::Closed);
        }
        if slots.registered.len() >= slots.registered_max {
            slots.forget_gone();
        }
        slots.registered.push(Arc::new(WatchedSlot::new(&slot, counters)));
        Ok(slot)
    }

    /// Checks whether the engine has a place for one more worker: each may have a transaction under way.
    fn check_has_place(&self) -> Result<()> {
        let workers_max = E::SESSIONS_MAX.saturating_sub(OTHER_SESSIONS_MAX);
        let mut slots = self.lock_slots();
        if slots.is_closed {
            return Err(Error::Closed);
        }
        if slots.registered.len() >= workers_max {
            slots.forget_gone();
        }
        if slots.registered.len() < workers_max { Ok(()) } else { Err(Error::TooManyTransactions) }
    }

    /// Returns the slots of all threads and sessions.
    pub(crate) fn watched(&self) -> Vec<Arc<WatchedSlot<E>>> {
        self.lock_slots().registered.clone()
    }

    fn new_worker(&self) -> Result<ThreadWorker<E>> {
        let mut slots = self.lock_slots();
        if slots.is_closed {
            return Err(Error::Closed);
        }
        slots.workers_made += 1;
        let (number, queues) = (slots.workers_made, &self.catalog.queues);
        let local = Local::new(self.id(), number, &self.row_ids, &self.records, queues);
        Ok(ThreadWorker { raw: self.engine.session(), local })
    }

    /// Watches a request that begins now, with a closure of this type.
    #[inline(always)]
    pub(crate) fn watch(&self, policy: &RetryPolicy, closure: &'static str) -> RequestWatch<'_> {
        RequestWatch::begin(self.options.on_slow_request.as_ref(), policy, closure)
    }

    /// Returns a worker for what closing has to write.
    pub(crate) fn worker_of_closing(&self) -> ThreadWorker<E> {
        let local = Local::new(self.id(), 0, &self.row_ids, &self.records, &self.catalog.queues);
        ThreadWorker { raw: self.engine.session(), local }
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Relaxed: what must not happen after closing is decided under the lock, or by the slots.
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Returns the table of this name, as handles may use it.
    ///
    /// # Errors
    /// [`Error::UnknownTable`], [`Error::Closed`]; [`Error::Aborted`] within a transaction while the table is being changed.
    pub(crate) fn table_core(&self, name: &str) -> Result<Arc<TableCore<E::Store>>> {
        if self.is_closed() {
            return Err(Error::Closed);
        }
        loop {
            let table = self.catalog.table(name)?;
            if !table.is_changed() {
                return Ok(table);
            }
            if worker::check_outside_transactions(self.id()).is_err() {
                let abort = refused_opening::note(self.id(), table.store.id());
                return Err(self.explain(Error::from_raw(abort)));
            }
            // It is being changed, for a moment: the one who does it has the catalog.
            drop(self.catalog.change());
        }
    }

    /// Returns the pool, started by the first job.
    pub(crate) fn pool(&self) -> Result<&Pool> {
        if let Some(pool) = self.pool.get() {
            return Ok(pool);
        }
        // Under the lock of `close`: either it sees the pool and stops it, or this sees that the database is
        // closed.
        let slots = self.lock_slots();
        if slots.is_closed {
            return Err(Error::Closed);
        }
        if self.pool.get().is_none() {
            let _ = self.pool.set(Pool::start(&self.options.pool)?);
        }
        drop(slots);
        self.pool.get().ok_or(Error::Closed)
    }

    /// Log and checkpoints, unless the database is in memory only.
    #[inline]
    pub(crate) fn durable(&self) -> Option<&Durable> {
        self.durable.get()
    }

    /// Lets the database be durable from now on. No transaction has begun.
    pub(crate) fn set_durable(&self, durable: Durable) {
        self.engine.start_log(Arc::clone(&durable.log));
        assert!(self.durable.set(durable).is_ok(), "a database is opened once");
    }

    /// Lets the database be read from now on, and nothing else. No transaction has begun.
    pub(crate) fn set_read_only(&self, read_only: ReadOnly) {
        self.engine.start_log(Arc::clone(&read_only.log));
        assert!(self.read_only.set(read_only).is_ok(), "a database is opened once");
    }

    /// Returns what the database has in the place of log and checkpoints if it is only read.
    pub(crate) fn read_only(&self) -> Option<&ReadOnly> {
        self.read_only.get()
    }

    /// Log and checkpoints, which must be there.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::NotDurable`].
    pub(crate) fn written(&self) -> Result<&Durable> {
        match self.durable() {
            Some(durable) => Ok(durable),
            None if self.read_only().is_some() => Err(Error::ReadOnly),
            None => Err(Error::NotDurable),
        }
    }

    /// Returns the log. That of a database that is only read refuses all entries.
    pub(crate) fn log(&self) -> Option<&Arc<Log>> {
        match self.durable() {
            Some(durable) => Some(&durable.log),
            None => self.read_only().map(|read_only| &read_only.log),
        }
    }

    /// Returns the level that a request waits for. `asked` is its own setting.
    ///
    /// # Errors
    /// [`Error::NotDurable`] when it is to be stored and nothing ever is.
    #[inline]
    pub(crate) fn level(&self, asked: Option<Durability>) -> Result<Durability> {
        match asked {
            Some(Durability::Stored) if self.log().is_none() => Err(Error::NotDurable),
            Some(level) => Ok(level),
            None => Ok(self.options.durability.unwrap_or(Durability::Stored)),
        }
    }

    /// Like [`DatabaseShared::level`], for a request that the calling thread itself will wait for.
    ///
    /// # Errors
    /// Also [`Error::NestedRequest`] in a waker that a thread of the log has called, which would wait for
    /// itself.
    #[inline]
    pub(crate) fn level_here(&self, asked: Option<Durability>) -> Result<Durability> {
        let level = self.level(asked)?;
        if level == Durability::Stored {
            self.check_may_wait()?;
        }
        Ok(level)
    }

    /// Returns a request's answer once `level` is reached. What a database that is only read has found counts
    /// as stored.
    #[inline]
    pub(crate) fn answer<R>(&self, outcome: Outcome<R>, level: Durability) -> Result<R> {
        let log = self.durable().filter(|_| level == Durability::Stored).map(|durable| &*durable.log);
        durability::answer(outcome, log)
    }

    /// Like [`DatabaseShared::answer`], for many requests, which wait together.
    pub(crate) fn answer_many<R>(&self, outcomes: Vec<Outcome<R>>, level: Durability) -> Vec<Result<R>> {
        let log = self.durable().filter(|_| level == Durability::Stored).map(|durable| &*durable.log);
        durability::answer_many(outcomes, log)
    }

    /// Checks that the calling thread is not one of the log, which would wait for itself.
    #[inline]
    pub(crate) fn check_may_wait(&self) -> Result<()> {
        if is_in_foreign_code() && self.log().is_some_and(|log| log.is_own_thread()) {
            return Err(Error::NestedRequest(NestedCall::WaitInWaker));
        }
        Ok(())
    }

    /// Makes an error that leaves a request readable: names the table of an abort.
    #[cold]
    pub(crate) fn explain(&self, mut error: Error) -> Error {
        if let Error::Aborted(abort) = &error
            && abort.reason() == AbortReason::LogFailed
        {
            // A log that takes nothing and has not failed was closed.
            let failure = self.log().and_then(|log| log.failure());
            return failure.map_or(Error::Closed, Error::from_log);
        }
        if let Some(DroppedName::Table(name)) = self.dropped_name(&error) {
            return Error::UnknownTable(Name::new(&*name));
        }
        if let Some(abort) = error.as_abort_mut() {
            self.name_abort(abort);
            if abort.reason() == AbortReason::OutOfMemory {
                abort.explain_shortage(MemoryShortage {
                    limit_bytes: self.options.memory_limit_bytes,
                    eviction_failure: self.engine.eviction_failure(),
                });
            }
        }
        error
    }

    /// Puts the name of the table into an abort.
    pub(crate) fn name_abort(&self, abort: &mut Abort) {
        abort.name_store(|id| self.catalog.named_store(id));
    }

    /// Like [`DatabaseShared::explain`], for a transaction that only reads, and so has used an index because
    /// it was to.
    #[cold]
    pub(crate) fn explain_read(&self, error: Error) -> Error {
        match self.dropped_name(&error) {
            Some(DroppedName::Index { table, index }) => {
                Error::UnknownIndex(NameInTable::new(&*table, &*index))
            }
            _ => self.explain(error),
        }
    }

    /// Returns what was dropped, if `error` is that the transaction has used it.
    fn dropped_name(&self, error: &Error) -> Option<DroppedName> {
        match error {
            Error::Aborted(abort) if abort.reason() == AbortReason::StoreDropped => {
                self.catalog.dropped.get(abort.store())
            }
            _ => None,
        }
    }

    fn lock_slots(&self) -> MutexGuard<'_, RegisteredSlots<E>> {
        // Nothing under this lock panics half-way.
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
