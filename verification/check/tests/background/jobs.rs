//! Jobs that run beside transactions, each again and again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ensilo::disk::Disk;
use ensilo::generic::{Database, Snapshot, Transaction};
use ensilo::{Engine, Error, IndexState, Order};
use ensilo_test_disk::SimulatedDisk;

use super::delays::random;
use super::history::{Recorder, Recording};
use super::options;
use super::rows::{IDS, Things};

/// What runs beside transactions.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Job {
    /// A unique index is built and dropped.
    UniqueIndex,
    /// An index that is not unique is built and dropped.
    Index,
    /// A checkpoint is made.
    Checkpoint,
    /// A backup is made, and opened.
    Backup,
    /// The table is dropped, and made again.
    DropTable,
    /// Deleted rows leave the trees: rows are inserted and deleted, and snapshots pass.
    Garbage,
    /// The table is truncated.
    Truncate,
    /// The columns of the table are changed.
    ChangeColumns,
}

impl Job {
    pub(crate) const ALL: [Job; 8] = [
        Job::UniqueIndex,
        Job::Index,
        Job::Checkpoint,
        Job::Backup,
        Job::DropTable,
        Job::Garbage,
        Job::Truncate,
        Job::ChangeColumns,
    ];
}

/// What the jobs of a round work on.
pub(crate) struct Round<'r, E: Engine> {
    pub(crate) db: &'r Database<E>,
    pub(crate) disk: &'r Arc<SimulatedDisk>,
    pub(crate) things: &'r Things<E>,
    pub(crate) recorder: &'r Recorder,
    pub(crate) stop: &'r AtomicBool,
    /// Numbers the directories of backups.
    pub(crate) backups: &'r AtomicU64,
}

impl<E: Engine> Round<'_, E> {
    /// Does the job until it is stopped, and counts how often it was done.
    pub(crate) fn run(&self, job: Job, number: usize, done: &AtomicU64) {
        let mut recording = self.recorder.start(self.db);
        while !self.stop.load(Ordering::Relaxed) {
            let is_done = self.once(job, number, &mut recording);
            done.fetch_add(u64::from(is_done), Ordering::Relaxed);
            recording.take(self.db);
        }
    }

    /// Does the job; false when it could not be done, for a reason that others may give.
    fn once(&self, job: Job, number: usize, recording: &mut Recording<'_>) -> bool {
        let db = self.db;
        match job {
            Job::UniqueIndex => self.build(true, "by_value", recording),
            Job::Index => self.build(false, &format!("values_{number}"), recording),
            Job::Checkpoint => {
                db.checkpoint().unwrap();
                true
            }
            Job::Backup => self.back_up(),
            Job::DropTable => {
                self.things.drop_and_create(db);
                true
            }
            Job::Garbage => self.make_garbage(),
            Job::Truncate => self.things.truncate(db, self.recorder, recording),
            Job::ChangeColumns => self.things.change_columns(db),
        }
    }

    /// Builds an index, looks whether it shows exactly the rows, and drops it.
    fn build(&self, is_unique: bool, name: &str, recording: &mut Recording<'_>) -> bool {
        let columns = [("value", Order::Ascending)];
        let built = match is_unique {
            true => self.db.create_unique_index("thing", name, columns),
            false => self.db.create_index("thing", name, columns),
        };
        recording.take(self.db);
        match built {
            Ok(()) => {}
            Err(
                Error::DuplicateKey(_)
                | Error::UnknownTable(_)
                | Error::IndexExists(_)
                | Error::TableChanged(_),
            ) => return false,
            Err(error) => panic!("{error}"),
        }
        check_indexes(self.db);
        loop {
            match self.db.drop_index("thing", name) {
                Ok(()) | Err(Error::UnknownTable(_) | Error::UnknownIndex(_)) => return true,
                // It is truncated or changed meanwhile.
                Err(Error::TableChanged(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Makes a backup, and opens it: its indexes fit its rows.
    fn back_up(&self) -> bool {
        let directory = format!("/backup-{}", self.backups.fetch_add(1, Ordering::Relaxed));
        self.db.backup(&directory).unwrap();
        let disk = Arc::clone(self.disk) as Arc<dyn Disk>;
        let copy: Database<E> = options().open_with(disk, Path::new(&directory)).unwrap();
        check_indexes(&copy);
        copy.close().unwrap();
        true
    }

    /// Deletes rows that others insert, so that this thread has much to take out of the trees.
    fn make_garbage(&self) -> bool {
        let things = self.things.get();
        for _ in 0..100 {
            let id = random() as u32 % IDS;
            match self.db.transact(|tx| things.delete(tx, id)) {
                Ok(_) | Err(Error::UnknownTable(_)) => {}
                Err(Error::TableChanged(_)) => {
                    self.things.open_again(self.db);
                    break;
                }
                Err(error) => panic!("{error}"),
            }
        }
        true
    }
}

/// Every index of every table shows exactly the rows, now and in a snapshot; none is broken.
pub(crate) fn check_indexes<E: Engine>(db: &Database<E>) {
    let statistics = db.statistics().unwrap();
    for table in &statistics.tables {
        for index in table.indexes.iter().filter(|index| index.state != IndexState::Building) {
            let Ok(rows) = db.open_dynamic_table(&table.name) else { continue };
            // So long a transaction seldom gets between two of those that write.
            let now = db
                .request()
                .retries(1_000_000)
                .transact(|tx: &mut Transaction<'_, E>| rows.check_index(tx, &index.name));
            let then = db.read_stale(|tx: &mut Snapshot<'_, E>| rows.check_index(tx, &index.name));
            for checked in [now, then] {
                match checked {
                    Ok(check) => assert!(check.is_whole(), "{}.{}: {check:?}", table.name, index.name),
                    // Somebody has dropped or changed it, or it is younger than the snapshot.
                    Err(
                        Error::UnknownTable(_)
                        | Error::UnknownIndex(_)
                        | Error::IndexNotReady(_)
                        | Error::TableChanged(_),
                    ) => {}
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
}
