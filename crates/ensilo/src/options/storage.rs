//! What the options say of log, checkpoints and recovery.

use std::path::PathBuf;
use std::time::Duration;

use ensilo_log::Compression;
use ensilo_row::RowId;

use super::Options;

/// Log, checkpoints and recovery.
impl Options {
    /// Sets the directories of the log, one for each disk that shares the work: each gets a logger of its
    /// own. By default there is one, within the database's directory. A missing directory is created, and a
    /// relative path counts from the current directory. The directories must stay for as long as the database
    /// does. A later opening may name others, and one that names none goes on within the database's
    /// directory.
    ///
    /// Each directory is locked while the database is open, and names the database that it belongs to. So a
    /// copy of the database's directory alone is refused; to copy a database with its log elsewhere, use
    /// [`Database::backup`](crate::Database::backup). A directory within that of another database is refused,
    /// too, and so is one with log files that this database has not left there.
    pub fn log_directories<D: Into<PathBuf>>(mut self, directories: impl IntoIterator<Item = D>) -> Self {
        self.durable.log_directories = directories.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the full length of a log file in bytes, from 1 MiB to 16 GiB, by default 64 MiB. In each log directory
    /// one file is written and the next one lies ready, so that no commit waits for it. The space of both is
    /// allocated when they are made. The log goes on in the next file when seven eighths are used, and makes a file
    /// longer only if the next one is not ready.
    ///
    /// An opening begins with files of 1 MiB, so that an empty database takes little more than 2 MiB on the disk. Each
    /// further file is twice as long as the log that was written before it, up to the full length: with the default,
    /// about the seventh file has it. What counts is the log since the last checkpoint began, or the one between the
    /// last two if that is longer: where little is logged between checkpoints, files are short again.
    ///
    /// This option bounds one file. How much log there is altogether follows from the checkpoints, each of which
    /// frees the files of the log before it: at most about twice
    /// [`Options::checkpoint_log_bytes`], and what is logged while a checkpoint takes longer than that.
    pub fn log_file_bytes(mut self, bytes: u64) -> Self {
        self.durable.log_file_bytes = bytes;
        self
    }

    /// Sets how many full buffers may wait for each logger, from 2 to 65,536, by default 32; when there are more,
    /// commits wait for the disk. They have 16 to 512 KiB, by how much their sessions log. A transaction that logs more has a buffer of
    /// its own, which goes when it was written; those of a logger have as many bytes together as these buffers of 512 KiB at most, or
    /// there is one. That of a prepared transaction does not count until it is decided.
    pub fn log_buffers(mut self, buffers: usize) -> Self {
        self.durable.log_buffers = buffers;
        self
    }

    /// Sets how the log is compressed. By default it is not: compression pays only when the disk is slow. It
    /// needs the feature `lz4`, and only programs with that feature can open a database with a compressed
    /// log.
    pub fn log_compression(mut self, compression: Compression) -> Self {
        self.durable.log_compression = compression;
        self
    }

    /// Lets every write take a place in the log by itself, beside that of its transaction. For measurements; ERMIA's
    /// engine alone can do it.
    #[doc(hidden)]
    pub fn log_operations(mut self) -> Self {
        self.durable.logs_operations = true;
        self
    }

    /// Sets how checkpoints are compressed. By default they are not. Compression needs the feature `lz4`, and
    /// only programs with that feature can open a database with a compressed checkpoint.
    pub fn checkpoint_compression(mut self, compression: Compression) -> Self {
        self.durable.checkpoint.compression = compression;
        self
    }

    /// Sets how long a recovery is to take at most, about: by default 10 s, at least 100 ms. A checkpoint is made before the log is
    /// so long that replaying it, and what it changes, would take longer;
    /// [`DurabilityStatistics::next_recovery`](crate::DurabilityStatistics::next_recovery) says how long it would take now. That holds where the log
    /// grows evenly: one that grows faster while a checkpoint is made, which takes up to a minute, takes longer.
    ///
    /// How fast rows come back is measured at each opening that finds at least 16 MiB of checkpoint or of log, and reads them before it
    /// answers. Before that, 100 MB/s are assumed for each of [`Options::recovery_threads`], up to 16, which is less than what most machines
    /// do. After a reboot, when no file is in the system's cache, an opening takes longer.
    ///
    /// The log grows by 64 MiB in any case before a checkpoint is made, and by half of what that takes: a database does not write checkpoints
    /// alone. So a target of a fraction of a second is not kept, and neither is one that the rows alone take most of.
    /// [`Options::answer_while_loading`] opens such a database sooner. [`Options::checkpoint_log_bytes`] and [`Options::checkpoint_interval`] let checkpoints come more often.
    pub fn recovery_time_target(mut self, target: Duration) -> Self {
        self.durable.checkpoint.recovery_time_target = target;
        self
    }

    /// Lets a checkpoint begin so long after the beginning of the one before, at least 100 ms, if something was logged
    /// meanwhile and none was made by then for other reasons. By default time alone is no reason.
    pub fn checkpoint_interval(mut self, interval: Duration) -> Self {
        self.durable.checkpoint.interval = Some(interval);
        self
    }

    /// Lets a database in a directory give new rows ids behind this one, below 2^59, from now on, as for rows that were given it in another database. Its
    /// epochs go on with those that such ids are of.
    #[doc(hidden)]
    pub fn row_ids_behind(mut self, id: RowId) -> Self {
        self.row_ids_behind = Some(id);
        self
    }

    /// Makes no checkpoints but those that [`Database::checkpoint`](crate::Database::checkpoint) asks for, so
    /// that the log, and with it a recovery, goes back to the beginning. For measurements.
    pub fn no_checkpoints(mut self) -> Self {
        self.durable.checkpoint.is_automatic = false;
        self
    }

    /// Sets after how many bytes of log since the beginning of the last checkpoint the next one begins: by
    /// default 4 GiB, at least 1 MiB. Once a checkpoint is complete, the log files from before it began are removed,
    /// so that this bounds what the log takes on the disk: at most about twice as much, as long as checkpoints are
    /// written as fast as the log grows.
    pub fn checkpoint_log_bytes(mut self, bytes: u64) -> Self {
        self.durable.checkpoint.log_bytes = bytes;
        self
    }

    /// Sets the most bytes a second that a checkpoint writes, at least 1 MiB. By default a checkpoint is
    /// spread over four fifths of the time to the next one, so that transactions feel little of it; one that
    /// is asked for, and a backup, over half of [`Options::checkpoint_interval`], or over 30 s.
    pub fn checkpoint_bytes_per_second(mut self, bytes: u64) -> Self {
        self.durable.checkpoint.bytes_per_second = Some(bytes);
        self
    }

    /// Sets how many bytes of a checkpoint each of its threads writes between two syncs: by default 32 MiB,
    /// at least 1 MiB. With more bytes, the log may have to wait longer for the disk because of such a sync.
    /// `u64::MAX` syncs once, at the end.
    pub fn checkpoint_sync_bytes(mut self, bytes: u64) -> Self {
        self.durable.checkpoint.sync_bytes = bytes;
        self
    }

    /// Sets how many threads write a checkpoint, from 1 to 64, by default one for every eight processors.
    /// Each writes a part of the tables into files of its own.
    pub fn checkpoint_threads(mut self, threads: u32) -> Self {
        self.durable.checkpoint.threads = threads;
        self
    }

    /// Sets whether closing makes a last checkpoint, after which the next opening has nothing to replay. By
    /// default it makes one only if the database was opened with a long log and no checkpoint was made since,
    /// and then only if the checkpoint takes little time or the log has become much too long.
    pub fn checkpoint_at_close(mut self, make: bool) -> Self {
        self.durable.checkpoint.at_close = make;
        self
    }

    /// Keeps the changes that commit, so that [`Database::changes`](crate::generic::Database::changes) can give them: rows are logged whole at
    /// each change, with their values of any length, which lie in them then, and log files that checkpoints have taken the place of are kept up to so many bytes, for consumers that are
    /// behind. By default changes are not kept. An opening without this option ends the history of changes: a consumer has to read
    /// all rows anew. It says nothing to a database in memory, which has no log.
    pub fn change_feed(mut self, kept_log_bytes: u64) -> Self {
        self.durable.change_feed = Some(kept_log_bytes);
        self
    }

    /// Sets how many threads read and replay when the database opens, from 1 to 1024; by default one for each
    /// core.
    pub fn recovery_threads(mut self, threads: usize) -> Self {
        self.durable.recovery_threads = threads;
        self
    }
}
