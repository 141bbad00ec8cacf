//! What lies on the disk: checkpoints, backups, and up to where everything is stored.

use std::path::Path;
use std::sync::Arc;

use ensilo_engine::Engine;
use ensilo_epoch::Epoch;

use super::Database;
use crate::durable::{Backup, Checkpoint};
use crate::{Error, Result, Ticket, trace};

impl<E: Engine> Database<E> {
    /// Makes a checkpoint now, and removes the log files that are not needed any more because of it. If a
    /// checkpoint is under way, the call waits for it first. The database also makes checkpoints by itself,
    /// see [`Options::checkpoint_interval`](crate::Options::checkpoint_interval). Before everything
    /// [is loaded](Database::wait_until_loaded), the call waits for that.
    ///
    /// # Errors
    /// [`Error::NotDurable`], [`Error::CheckpointFailed`], [`Error::LogFailed`], [`Error::Closed`].
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        self.check_open()?;
        let durable = self.shared.written()?;
        durable.checkpoint(&*self.shared.engine)
    }

    /// Copies the database to the directory `target` while transactions go on. The directory must be empty or
    /// missing, and must not lie in a database. The copy is a database of its own, with its log in one
    /// directory, and was read back and verified when this returns. To restore it, open it.
    ///
    /// The copy has every transaction that was acknowledged as stored before the call. It holds everything up
    /// to the end of the epoch [`Backup::durable_epoch`], and nothing later; over [`Silo`](crate::Silo) that is
    /// a prefix of the serial order, over [ERMIA's engine](crate::ermia) not always. Secondary indexes are
    /// rebuilt when it is opened. Copying takes no more of the disk's bandwidth than a checkpoint does
    /// ([`Options::checkpoint_bytes_per_second`](crate::Options::checkpoint_bytes_per_second)).
    ///
    /// The call waits for a checkpoint or backup under way, and for a checkpoint that waits for one. The next checkpoint waits for this backup, so the
    /// log grows meanwhile. Closing the database ends a backup under way. After a failure of the log, what
    /// was stored before it can still be copied.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let place = std::env::temp_dir().join(format!("ensilo-backup-{}", std::process::id()));
    /// # std::fs::create_dir_all(&place)?;
    /// # let db = ensilo::Database::open(place.join("accounts"))?;
    /// let backup = db.backup(place.join("backup"))?;
    /// println!("everything up to epoch {}, {} bytes", backup.durable_epoch, backup.bytes);
    /// let restored = ensilo::Database::open(place.join("backup"))?;
    /// # assert_eq!(restored.list_tables()?, db.list_tables()?);
    /// # drop((restored, db));
    /// # std::fs::remove_dir_all(place)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// [`Error::BackupFailed`]: the target is not empty, lies in a database, or its disk fails or is full.
    /// What was made of it is removed, and the database goes on as if nothing had been.
    /// [`Error::NotDurable`], [`Error::Closed`]. If the process or the machine ends before this returns, the
    /// directory holds the whole backup or cannot be opened.
    pub fn backup(&self, target: impl AsRef<Path>) -> Result<Backup> {
        self.check_open()?;
        let made = self.shared.written()?.backup::<E>(target.as_ref(), self.row_bytes())?;
        trace::backup_made(target.as_ref(), &made);
        Ok(made)
    }

    /// Copies the database as it was at the end of an epoch that is stored; `None` if a checkpoint has more by now; see
    /// [`group`](crate::group).
    #[doc(hidden)]
    pub fn backup_up_to(&self, target: impl AsRef<Path>, epoch: u64) -> Result<Option<Backup>> {
        self.check_open()?;
        self.shared.written()?.backup_up_to::<E>(target.as_ref(), Epoch::new(epoch), self.row_bytes())
    }

    /// Returns how many bytes the rows have.
    fn row_bytes(&self) -> u64 {
        let statistics = self.shared.engine.statistics();
        statistics.memory.live_bytes + statistics.cold.row_bytes
    }

    /// Waits until all rows are loaded, and the entries of all indexes are made, of a database that was opened with
    /// [`Options::answer_while_loading`](crate::Options::answer_while_loading). Any other one has them when it is
    /// opened, and the call returns at once.
    ///
    /// # Errors
    /// [`Error::LoadFailed`] when everything is that can be loaded; [`Error::OutOfMemory`] when the memory limit
    /// holds no more now: it is tried again and again. [`Error::Closed`].
    pub fn wait_until_loaded(&self) -> Result<()> {
        self.check_open()?;
        self.shared.check_may_wait()?;
        self.shared.loading.state.wait().map_err(|error| self.shared.explain(error))
    }

    /// Returns the last epoch up to which everything is stored, or `None` for a database in memory. It never
    /// decreases. In a database that was opened with [`Options::beside_writer`](crate::Options::beside_writer) it is the epoch as of which the
    /// database is read: the other process had written everything up to there, and perhaps not stored all of it yet.
    #[inline]
    #[must_use]
    pub fn durable_epoch(&self) -> Option<u64> {
        let of_log = self.shared.durable().map(|durable| durable.log.durable_epoch().get());
        of_log.or_else(|| self.shared.read_only().map(|read_only| read_only.durable_epoch.get()))
    }

    /// Returns the ticket of an epoch that [`Request::transact_with_epoch`](crate::Request::transact_with_epoch) has returned.
    ///
    /// # Errors
    /// [`Error::NotDurable`] when the database is in memory only.
    pub fn ticket(&self, epoch: u64) -> Result<Ticket> {
        let log = self.shared.log().ok_or(Error::NotDurable)?;
        Ok(Ticket::new(Epoch::new(epoch), Arc::clone(log)))
    }
}
