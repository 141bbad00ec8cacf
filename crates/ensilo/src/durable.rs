//! What a database in a directory has beside its rows: a log, checkpoints, and a way to open it again.
//!
//! # Source
//! SiloR (OSDI 2014) §3 to §5.

mod backup;
mod checkpoint;
mod checkpoint_counters;
mod checkpointer;
mod condition;
mod group;
mod kept_room;
mod log_backlog;
mod next_recovery;
pub(crate) mod open;
mod options;
mod progress;
mod rate_limit;
mod read_only;
mod schedule;
mod statistics;
mod walk;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle, ThreadId};

use ensilo_disk::Disk;
use ensilo_engine::Engine;
use ensilo_log::{Log, LogError};

pub use backup::Backup;
pub use checkpoint::Checkpoint;
pub use condition::{Degraded, DegradedReason, Event};
pub(crate) use condition::{EventHook, report_event};
pub use group::GroupMember;
pub use next_recovery::RecoveryForecast;
pub(crate) use options::DurableOptions;
pub(crate) use progress::RecoveryHook;
pub use progress::RecoveryProgress;
pub(crate) use read_only::ReadOnly;
pub use statistics::{CheckpointStatistics, DurabilityStatistics, RecoveryStatistics};

use crate::closing::FirstPanic;
use crate::loading::LoadStatistics;
use crate::mutex::lock;
use crate::{Error, Result};
use checkpointer::Checkpointer;
use log_backlog::LogBacklog;

/// The log and the checkpoints of an open database.
pub(crate) struct Durable {
    pub(crate) log: Arc<Log>,
    /// Where the database lies.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) directory: PathBuf,
    /// Whether changes are kept for consumers.
    pub(crate) keeps_changes: bool,
    checkpointer: Arc<Checkpointer>,
    /// The checkpointer's, until the database is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
    thread_id: ThreadId,
    makes_last_checkpoint: bool,
    /// How long the log was that the opening has found.
    backlog: LogBacklog,
    recovery: RecoveryStatistics,
}

impl Durable {
    /// Makes a checkpoint now.
    pub(crate) fn checkpoint<E: Engine>(&self, engine: &E) -> Result<Checkpoint> {
        self.checkpointer.checkpoint(engine, &self.log)
    }

    /// Returns whether the calling thread is one of log and checkpoints, as in a hook or a waker: then it
    /// must not wait for them.
    pub(crate) fn is_own_thread(&self) -> bool {
        thread::current().id() == self.thread_id || self.log.is_own_thread()
    }

    /// Ends a checkpoint or a backup under way, and begins no other but the last one.
    pub(crate) fn give_up_checkpoints(&self) {
        self.checkpointer.stop();
        if self.log.is_held() {
            // Checkpoints and jobs may wait for what nobody releases any more.
            self.log.end_held_waits();
        }
    }

    /// Stores what was committed, and lets others open the database. Called once, and not on an own thread.
    /// All jobs have ended, but for those that were not to be waited for.
    pub(crate) fn close<E: Engine>(&self, engine: &E, panics: &mut FirstPanic) -> Result<()> {
        self.give_up_checkpoints();
        let thread = lock(&self.thread).take();
        thread.map_or(Ok(()), JoinHandle::join).unwrap_or_else(|panic| panics.note(panic));
        // What a panic has left half done, in records or files, is not built upon: the log has everything.
        let last = panics.is_none().then(|| panics.catch(|| self.last_checkpoint(engine))).flatten();
        let is_held = self.log.is_held();
        let stored = panics.catch(|| self.log.close().map_err(Error::from_log));
        let is_noted = panics.is_none() && matches!(stored, Some(Ok(())));
        let noted = is_noted.then(|| panics.catch(|| self.checkpointer.note_durable(&self.log))).flatten();
        if matches!(noted, Some(Ok(()))) {
            panics.catch(|| self.checkpointer.remove_unused_files(&self.log));
        }
        // Under the lock of the directory, which ends with the files.
        panics.catch(|| engine.remove_cold_files());
        panics.catch(|| self.checkpointer.release_files());
        let released = is_held.then(|| Err(Error::from_log(LogError::NotReleased)));
        [stored, noted, last, released].into_iter().flatten().collect()
    }

    /// Notes that a callback of changes of this table has panicked.
    pub(crate) fn note_callback_panic(&self, table: &str, panic: String) {
        self.checkpointer.condition.note(Event::CallbackPanicked { table: table.to_owned(), panic });
    }

    /// Checks that the log has not failed.
    pub(crate) fn failure(&self) -> Result<()> {
        self.log.failure().map_or(Ok(()), |failure| Err(Error::from_log(failure)))
    }

    /// Makes the checkpoint that closing asks for, or the one that was overdue since the opening and was not
    /// made, if it is worth its time.
    fn last_checkpoint<E: Engine>(&self, engine: &E) -> Result<()> {
        let is_worth_waiting = || {
            let statistics = engine.statistics();
            self.backlog.is_worth_waiting(statistics.memory.live_bytes + statistics.cold.row_bytes)
        };
        if self.log.failure().is_some() || self.log.is_held() {
            Ok(())
        } else if self.makes_last_checkpoint {
            self.checkpointer.make_last(engine, &self.log)
        } else {
            if self.checkpointer.is_overdue() && is_worth_waiting() {
                // Nobody has asked for it. If it fails, the next opening finds it overdue again.
                let _ = self.checkpointer.make_last(engine, &self.log);
            }
            Ok(())
        }
    }

    pub(crate) fn statistics<E: Engine>(&self, engine: &E, load: LoadStatistics) -> DurabilityStatistics {
        let condition = &self.checkpointer.condition;
        condition.observe(&self.log);
        condition.observe_load(self.checkpointer.load());
        condition.observe_eviction(engine.eviction_failure());
        DurabilityStatistics {
            degraded: condition.degraded(),
            next_recovery: self.checkpointer.next_recovery(engine, &self.log),
            ..DurabilityStatistics::new(
                &self.log.statistics(),
                self.checkpointer.statistics(),
                self.recovery.clone(),
                load,
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc;

    use ensilo_test_disk::SimulatedDisk;

    use super::schedule::LogGrowth;
    use super::*;
    use crate::{ColumnType, Database, Order, Schema};

    #[test]
    fn a_backup_sees_that_the_last_checkpoint_waits_for_it() {
        let db: Database = Database::options().open_with(Arc::new(SimulatedDisk::new()), "/db").unwrap();
        let (shared, is_about_to_wait) = (&db.shared, AtomicBool::new(false));
        let durable = shared.durable().unwrap();
        let checkpointer = &durable.checkpointer;
        thread::scope(|scope| {
            let last = checkpointer.with_files(|_| {
                checkpointer.stop();
                let last = scope.spawn(|| {
                    is_about_to_wait.store(true, Ordering::Relaxed);
                    checkpointer.make_last(&*shared.engine, &durable.log)
                });
                let mut looks = 0;
                while looks < 10_000 {
                    assert!(checkpointer.is_stopped());
                    looks += u32::from(is_about_to_wait.load(Ordering::Relaxed));
                    thread::yield_now();
                }
                Ok(last)
            });
            last.unwrap().join().unwrap().unwrap();
        });
        assert!(matches!(durable.checkpoint(&*shared.engine), Err(Error::Closed)));
        assert!(matches!(checkpointer.with_files(|_| Ok(())), Err(Error::Closed)));
        assert_eq!(checkpointer.statistics().made, 1);
    }

    #[test]
    fn a_backup_holds_up_no_events_and_one_behind_it_lets_a_due_checkpoint_go_first() {
        let (happened, events) = mpsc::channel();
        let options = Database::options().on_event(move |event| happened.send(event.clone()).unwrap());
        let db: Database = options.open_with(Arc::new(SimulatedDisk::new()), "/db").unwrap();
        let durable = db.shared.durable().unwrap();
        let checkpointer = &durable.checkpointer;
        let backup = checkpointer.with_files(|_| {
            checkpointer.set_overdue();
            while !checkpointer.has_waiting_checkpoint() {
                checkpointer.call();
                thread::yield_now();
            }
            durable.note_callback_panic("account", "planned".to_owned());
            assert!(events.iter().any(|event| matches!(event, Event::CallbackPanicked { .. })));
            Ok(checkpointer.statistics().made)
        });
        assert_eq!(backup.unwrap(), 0);
        let has_been_made = || {
            checkpointer.let_waiting_checkpoint_begin();
            checkpointer.with_files(|_| Ok(checkpointer.statistics().made == 1))
        };
        assert!((0..100).any(|_| has_been_made().unwrap()));
    }

    #[test]
    fn a_checkpoint_leaves_nothing_that_another_one_would_be_made_for() {
        let db: Database = Database::options().open_with(Arc::new(SimulatedDisk::new()), "/db").unwrap();
        let schema = Schema::builder("account").column("id", ColumnType::U32).key([("id", Order::Ascending)]);
        db.create_dynamic_table(schema.build().unwrap()).unwrap();
        let durable = db.shared.durable().unwrap();
        durable.checkpoint(&*db.shared.engine).unwrap();
        let LogGrowth { written, replaced, .. } =
            durable.checkpointer.log_growth(&*db.shared.engine, &durable.log);
        // It has waited for marks of rounds itself.
        assert!(written.bytes > replaced.bytes);
        assert!(replaced.transactions > 0);
        assert_eq!(written.transactions, replaced.transactions);
    }
}
