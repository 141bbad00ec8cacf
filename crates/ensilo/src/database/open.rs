//! The ways to open a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_disk::{Disk, RealDisk};
use ensilo_engine::Engine;
use ensilo_log::OpenError;

use super::{Database, Owner};
use crate::durability::Durability;
use crate::durable::open;
use crate::options::{Options, require};
use crate::shared::DatabaseShared;
use crate::{Error, Result};

impl Options {
    /// Opens an empty database in memory, with the engine [`Silo`](crate::Silo).
    ///
    /// # Errors
    /// [`Error::InvalidOption`] when an option is out of its range or the system has no thread left,
    /// [`Error::OutOfMemory`] when the limit does not even hold the catalog.
    pub fn in_memory(self) -> Result<crate::Database> {
        self.in_memory_with()
    }

    /// Opens an empty database in memory, with the engine `E`.
    ///
    /// # Errors
    /// As [`Options::in_memory`].
    pub fn in_memory_with<E: Engine>(self) -> Result<Database<E>> {
        self.check()?;
        require(!self.read_only, "read_only", "false in memory, where there is nothing to read")?;
        #[cfg(feature = "live-statistics")]
        require(
            !self.live_statistics,
            "live_statistics",
            "false in memory, where there is no place for a socket",
        )?;
        if self.durability == Some(Durability::Stored) {
            return Err(Error::NotDurable);
        }
        Database::open_in_memory(self)
    }

    /// Opens the database in this directory with the engine [`Silo`](crate::Silo), and creates it if the
    /// directory is empty or missing, unless [`Options::must_exist`] forbids that. The directory above has to be
    /// there: what is mistyped in the middle of a path makes no directories.
    ///
    /// Everything that was acknowledged as stored is there, and with it everything before it in the serial
    /// order. Damage is an error, and so are files of another time or of another copy of the database. There
    /// are three exceptions:
    /// - A copy of all of the database's directories that is put back is the database as it was.
    /// - An older copy of a log directory alone is noticed only if the database was closed since, or was open
    ///   for at least ten seconds more (`docs/format.md` gives the reason).
    /// - Log files of format versions 1 and 2 do not name their opening. One of another copy, which has gone on
    ///   by itself, is taken for the one of the same name.
    ///
    /// # Errors
    /// [`Error::InvalidOption`]; [`Error::Open`] when the files are damaged, missing, foreign or in use, or the
    /// memory limit does not hold the rows ([`OpenError::Replay`](crate::OpenError::Replay)), in which case
    /// nothing was changed; [`Error::OutOfMemory`] when it does not hold the indexes; [`Error::DamagedCatalog`].
    /// Where the system has no thread left it is [`Error::InvalidOption`], [`Error::Open`], [`Error::LogFailed`] or
    /// [`Error::CheckpointFailed`], by what the thread is for, and the text says so.
    pub fn open(self, directory: impl Into<PathBuf>) -> Result<crate::Database> {
        self.open_as(directory)
    }

    /// Like [`Options::open`], with the engine `E`. Every engine that logs opens what another one has written;
    /// [`ermia`](crate::ermia) says what differs.
    ///
    /// # Errors
    /// As [`Options::open`]; [`Error::NotDurable`] when the engine keeps no log.
    pub fn open_as<E: Engine>(mut self, directory: impl Into<PathBuf>) -> Result<Database<E>> {
        self.durable.log_directories = self.durable.log_directories.into_iter().map(whole_path).collect();
        self.open_with(Arc::new(RealDisk), whole_path(directory.into()))
    }

    /// Like [`Options::open_as`], on another disk. It gets all paths as they are given here: where a relative one
    /// may come to mean another directory, give the whole path.
    ///
    /// # Errors
    /// As [`Options::open_as`].
    pub fn open_with<E: Engine>(
        self,
        disk: Arc<dyn Disk>,
        directory: impl Into<PathBuf>,
    ) -> Result<Database<E>> {
        self.check()?;
        if !E::LOGS {
            return Err(Error::NotDurable);
        }
        require(E::LOGS_OPERATIONS || !self.durable.logs_operations, "log_operations", "of ERMIA's engine")?;
        Database::open_on(self, disk, directory.into())
    }
}

impl<E: Engine> Database<E> {
    fn open_in_memory(options: Options) -> Result<Self> {
        let engine_options = options.engine_options();
        Self::owning(DatabaseShared::new(options, engine_options)?)
    }

    fn open_on(options: Options, disk: Arc<dyn Disk>, directory: PathBuf) -> Result<Self> {
        if options.must_exist {
            ensilo_log::manifest_of(&*disk, &directory).map_err(Error::from_open)?;
        }
        let open = if options.read_only {
            open::to_read
        } else {
            check_parent(&*disk, &directory)?;
            open::to_write
        };
        #[cfg(feature = "live-statistics")]
        let answers_in = options.live_statistics.then(|| directory.clone());
        let database = Self::owning(open(options, disk, directory)?)?;
        #[cfg(feature = "live-statistics")]
        if let Some(directory) = answers_in {
            database.shared.statistics_server.start(&database.shared, &directory)?;
        }
        Ok(database)
    }

    fn owning(shared: DatabaseShared<E>) -> Result<Self> {
        let shared = Arc::new(shared);
        let database = Database { owner: Arc::new(Owner(Arc::clone(&shared))), shared: Arc::clone(&shared) };
        shared.start_collector()?;
        Ok(database)
    }
}

/// Refuses a directory that is missing together with the one above it.
fn check_parent(disk: &dyn Disk, directory: &Path) -> Result<()> {
    let exists = |path: &Path| {
        let failed = |error| OpenError::Io { doing: "look for", path: path.to_path_buf(), error };
        disk.exists(path).map_err(|error| Error::from_open(failed(error)))
    };
    match directory.parent() {
        Some(parent) if !parent.as_os_str().is_empty() && !exists(directory)? && !exists(parent)? => {
            let (directory, parent) = (directory.to_path_buf(), parent.to_path_buf());
            Err(Error::from_open(OpenError::MissingParent { directory, parent }))
        }
        _ => Ok(()),
    }
}

/// Makes a path absolute: the process may change its current directory while the database is open. A path
/// that cannot be made absolute is an error when the directory is opened.
fn whole_path(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}
