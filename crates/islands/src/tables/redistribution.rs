//! Typed tables copied to another number of instances, or to other partitionings, with the database closed.
//!
//! # How
//! ```text
//! mark         the target says that it is not finished, and so does the directory of each new instance: nobody else opens them
//! open         the source is opened as ever, which ends what a crash has left, and waits until nothing is in doubt
//! plan         each table gets its new partitioning, or what is asked for is refused
//! make         the new instances are opened
//! copy         table by table: a thread for each old instance reads, one for each new instance writes
//! store        each new instance waits until everything is on disk, and is closed
//! read back    the target is opened again, and its rows are counted
//! unmark       each instance may be opened, and then the target
//! ```
//! Nobody else writes to the source meanwhile: the batches that are read belong to one point. New instances are written to one by one, each in
//! transactions of its own; what is half written is never seen, since the mark is there.
//!
//! # Crash
//! As long as the mark is there the target is not opened. It is removed last. An instance has a mark of its own until all was read back: it could be
//! opened as a database by itself. After an error what was made of the target is removed, the marks included; a process that ends, or a panic, leaves them.

mod batches;
mod beginnings;
mod copy;
mod error;
mod plan;
mod repartitioning;
mod replicas;
mod source;
mod target;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo::row::{Key as _, KeyedRow};
use ensilo::{Database, Options};

use self::copy::copy_table;
pub use self::error::RedistributionError;
use self::plan::{Change, PlannedTable, plan};
pub use self::repartitioning::Repartitioning;
use self::source::Source;
use self::target::{Shape, Target};
use super::partitioning::Partitioning;
use crate::islands::{CommitUnit, Unfinished, create_directories, directory_of};

/// The options that a database is opened with.
type DatabaseOptions = Arc<dyn Fn() -> Options + Send + Sync>;

/// Copies typed tables to another number of instances, or to other partitionings: from a directory that nobody has open to a new one.
///
/// The source is a directory of instances that an [`IslandDatabase`](super::IslandDatabase) has stored, or of a single [`Database`] whose tables have
/// primary keys. All rows of all tables arrive, with their schemas and secondary indexes. The rows of the source stay as they are; what a crash has left
/// there is ended, as by every opening. The target is a directory of instances; of a single one, the directory `instance-0` in it is a [`Database`] by
/// itself, with the tables and those of the instance, whose names begin with `islands_`.
/// Such a directory is also taken as a source, unless its instance commits by epochs.
///
/// Each table keeps its partitioning, and its rows go to where that has them among the new instances. What was partitioned by ranges needs as many
/// beginnings as there are instances now, less one: where their number changes, they are chosen so that each instance gets about as many rows, and
/// rows that were together for the first columns of their keys stay together. [`partitioning`](Self::partitioning) gives a table others, or another
/// partitioning altogether, and [`repartitioning`](Self::repartitioning) does the same for a table whose row type is not at hand.
/// [`IslandDatabase::stored_table`](super::IslandDatabase::stored_table) opens a table with whatever beginnings were chosen.
///
/// The rows of both are in memory at once, as they are in open databases, and besides only some batches of a mebibyte or two. All instances run in
/// threads of this process, on any processors.
///
/// ```
/// # use ensilo::Row;
/// # use ensilo_islands::{IslandsOptions, Instances, Partitioning, Placement, Plan, Redistribution, Topology};
/// # #[derive(Debug, PartialEq, Row)] #[row(table = "account")] struct Account { #[row(key)] id: u32, balance: i64 }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let place = std::env::temp_dir().join(format!("ensilo-redistribution-{}", std::process::id()));
/// # let (from, to) = (place.join("two"), place.join("three"));
/// # let options = |instances| -> Result<_, Box<dyn std::error::Error>> {
/// #     Ok(IslandsOptions::new(Plan::new(&Topology::of_this_machine()?, Instances::Count(instances), Placement::System)).workers(1))
/// # };
/// # let db = options(2)?.directory(&from).open_database()?;
/// # let accounts = db.table::<Account>(Partitioning::hash())?;
/// # db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 100 }))?;
/// # drop(db);
/// let copied = Redistribution::of(&from).instances(3).write_to(&to)?;
/// assert_eq!((copied.instances, copied.rows), (3, 1));
/// let db = options(3)?.directory(&to).open_database()?;
/// let accounts = db.table::<Account>(Partitioning::hash())?;
/// assert!(db.transact(|tx| accounts.contains(tx, 1))?);
/// # drop(db);
/// # std::fs::remove_dir_all(place)?;
/// # Ok(()) }
/// ```
#[must_use = "nothing is copied before it is written to somewhere"]
pub struct Redistribution<'a> {
    from: PathBuf,
    instances: Option<u16>,
    workers: Option<u16>,
    unit: Option<CommitUnit>,
    changes: BTreeMap<String, Change>,
    database: DatabaseOptions,
    progress: Box<dyn FnMut(&RedistributionProgress<'_>) + 'a>,
}

/// How far a [`Redistribution`] is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RedistributionProgress<'a> {
    /// The source is opened, and read where beginnings of ranges are chosen.
    Opening,
    /// Rows are copied.
    #[non_exhaustive]
    Copying {
        /// The table whose rows are copied.
        table: &'a str,
        /// How many rows of this table were read by now.
        rows: u64,
        /// How many rows of all tables were read by now.
        rows_of_all: u64,
    },
    /// All rows are stored; the target is opened to count them.
    ReadingBack,
}

/// What a [`Redistribution`] has written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Redistributed {
    /// The tables, in the order of their names.
    pub tables: Vec<RedistributedTable>,
    /// The rows of all tables; those of a replicated one count once.
    pub rows: u64,
    /// How many instances the target has.
    pub instances: u16,
    /// How many workers each of them has: it is to be opened with as many.
    pub workers: u16,
    /// What is stored at all of them at once: it is to be opened with the same.
    pub unit: CommitUnit,
    /// How long it took.
    pub duration: Duration,
}

/// A table that a [`Redistribution`] has written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedistributedTable {
    /// Its name.
    pub name: String,
    /// How its rows are placed now, as a text.
    pub partitioning: String,
    /// How many rows it has; those of a replicated one count once.
    pub rows: u64,
    /// How many rows each instance has of it.
    pub rows_by_instance: Vec<u64>,
}

impl<'a> Redistribution<'a> {
    /// Begins with what stays as it is: as many instances as the directory has, one for a single database, each with as many workers, and the same
    /// unit of commit; a single database gets one worker, and transactions as the unit.
    pub fn of(from: impl Into<PathBuf>) -> Self {
        Redistribution {
            from: from.into(),
            instances: None,
            workers: None,
            unit: None,
            changes: BTreeMap::new(),
            database: Arc::new(Database::options),
            progress: Box::new(|_| ()),
        }
    }

    /// Sets how many instances the target has, at least one.
    pub fn instances(mut self, instances: u16) -> Self {
        self.instances = Some(instances.max(1));
        self
    }

    /// Sets how many workers each instance of the target has, at least one.
    pub fn workers(mut self, workers: u16) -> Self {
        self.workers = Some(workers.max(1));
        self
    }

    /// Sets what is stored at all instances of the target at once.
    pub fn commit_unit(mut self, unit: CommitUnit) -> Self {
        self.unit = Some(unit);
        self
    }

    /// Sets the partitioning that the table of a row type has in the target.
    pub fn partitioning<T: KeyedRow>(self, partitioning: Partitioning<T::Key>) -> Self {
        let change = Change::Given { partitioning: partitioning.any, parts: T::Key::PARTS };
        self.change(T::schema().name(), change)
    }

    /// Sets how the table of this name is partitioned in the target.
    pub fn repartitioning(self, table: &str, repartitioning: Repartitioning) -> Self {
        self.change(table, Change::ByName(repartitioning))
    }

    fn change(mut self, table: &str, change: Change) -> Self {
        self.changes.insert(table.to_owned(), change);
        self
    }

    /// Sets the options that the databases of source and target are opened with, by default none.
    pub fn database(mut self, options: impl Fn() -> Options + Send + Sync + 'static) -> Self {
        self.database = Arc::new(options);
        self
    }

    /// Sets what is called as it goes on, on the thread that waits for it. A panic of it ends the copy, and leaves a target that cannot be opened.
    pub fn progress(mut self, progress: impl FnMut(&RedistributionProgress<'_>) + 'a) -> Self {
        self.progress = Box::new(progress);
        self
    }

    /// Copies all tables to a directory that is empty or missing, and does not lie in the source. When it returns everything is stored there, and was
    /// read back; before, the directory cannot be opened.
    ///
    /// # Errors
    /// [`RedistributionError`]; what was made of the target is removed, unless all that has failed is to store that it is whole.
    pub fn write_to(mut self, target: impl AsRef<Path>) -> Result<Redistributed, RedistributionError> {
        let start = Instant::now();
        let target = self.whole_target(target.as_ref())?;
        let of_target = |error| RedistributionError::Target { directory: target.clone(), error };
        let unfinished = Unfinished::begin(&target).map_err(of_target)?;
        let made = self.make(&target, start);
        if made.is_err() {
            unfinished.give_up(self.instances.unwrap_or(0));
        } else {
            unfinished.end().map_err(of_target)?;
        }
        made
    }

    /// Returns the whole path of a target that does not lie in the source.
    fn whole_target(&self, target: &Path) -> Result<PathBuf, RedistributionError> {
        let of_target = |error| RedistributionError::Target { directory: target.to_owned(), error };
        let whole = std::path::absolute(target).map_err(of_target)?;
        let refused = |message| Err(of_target(io::Error::other(message)));
        let existing = |place: &Path| std::fs::canonicalize(place).ok();
        let Some((above, existing)) = whole.ancestors().find_map(|above| Some((above, existing(above)?)))
        else {
            return Ok(whole);
        };
        let mut missing = whole.components().skip(above.components().count());
        if missing.any(|part| part == Component::ParentDir) {
            return refused("what comes before .. is missing: name the directory without it");
        }
        // Where there is no source its opening says so.
        match std::fs::canonicalize(&self.from).is_ok_and(|from| existing.starts_with(from)) {
            true => refused("the directory lies in the source: name another one"),
            false => Ok(whole),
        }
    }

    fn make(&mut self, directory: &Path, start: Instant) -> Result<Redistributed, RedistributionError> {
        (self.progress)(&RedistributionProgress::Opening);
        let source = Source::open(&self.from, &self.database)?;
        let shape = Shape {
            instances: *self.instances.get_or_insert(source.instances()),
            workers: self.workers.unwrap_or(source.workers),
            unit: self.unit.unwrap_or(source.unit),
        };
        let planned = plan(&source, &self.changes, shape.instances)?;
        let of_target = |error| RedistributionError::Target { directory: directory.to_owned(), error };
        // Before there is anything that could be opened.
        let unfinished = mark_instances(directory, shape.instances).map_err(of_target)?;
        let target = Target::open(directory, shape, &self.database)?;
        let mut tables = Vec::new();
        for table in &planned {
            tables.push(self.copy(&source, &target, table, &tables)?);
        }
        target.store()?;
        // Before they are opened again, and each needs its memory.
        drop((source, target));
        (self.progress)(&RedistributionProgress::ReadingBack);
        Target::open(directory, shape, &self.database)?.check(&tables)?;
        unfinished.into_iter().try_for_each(Unfinished::end).map_err(of_target)?;
        let rows = tables.iter().map(|table| table.rows).sum();
        let Shape { instances, workers, unit } = shape;
        Ok(Redistributed { tables, rows, instances, workers, unit, duration: start.elapsed() })
    }

    fn copy(
        &mut self,
        source: &Source,
        target: &Target,
        table: &PlannedTable,
        before: &[RedistributedTable],
    ) -> Result<RedistributedTable, RedistributionError> {
        let rows_before: u64 = before.iter().map(|table| table.rows).sum();
        let mut rows = 0;
        let copied = copy_table(source, target, table, |more| {
            rows += more;
            let rows_of_all = rows_before + rows;
            (self.progress)(&RedistributionProgress::Copying { table: table.name(), rows, rows_of_all });
        });
        Ok(RedistributedTable {
            rows_by_instance: copied?,
            name: table.name().to_owned(),
            partitioning: table.partitioning.to_string(),
            rows,
        })
    }
}

fn mark_instances(target: &Path, instances: u16) -> io::Result<Vec<Unfinished>> {
    let mark = |instance| {
        let directory = directory_of(target, instance);
        create_directories(&directory)?;
        Unfinished::mark(&directory)
    };
    (0..instances).map(mark).collect()
}

impl fmt::Debug for Redistribution<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Redistribution { from, instances, workers, unit, changes, .. } = self;
        let mut shown = f.debug_struct("Redistribution");
        shown.field("from", from).field("instances", instances).field("workers", workers);
        shown.field("unit", unit).field("changes", changes).finish_non_exhaustive()
    }
}
