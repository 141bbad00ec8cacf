//! The names of the files and directories of a database, but for those of log files ([`crate::LogFileName`])
//! and of checkpoints.

/// The lock file, in the directory of a database and in each log directory.
pub(super) const LOCK: &str = "LOCK";
/// The manifest.
pub(super) const MANIFEST: &str = "MANIFEST";
/// The next manifest, while it is written.
pub(super) const MANIFEST_NEW: &str = "MANIFEST.new";
/// The copy of the manifest.
pub(super) const MANIFEST_COPY: &str = "MANIFEST.copy";
/// What says from where on the log has every change.
pub(super) const CHANGES: &str = "CHANGES";
/// The next `CHANGES`, while it is written.
pub(super) const CHANGES_NEW: &str = "CHANGES.new";
/// The file in a log directory that names the database that logs there.
pub(super) const OWNER: &str = "OWNER";
/// The next `OWNER`, while it is written.
pub(super) const OWNER_NEW: &str = "OWNER.new";
/// The socket at which the process answers that has the database open.
pub(super) const STATISTICS: &str = "STATISTICS";
/// The mark of a backup that is being made.
pub(super) const UNFINISHED: &str = "BACKUP.unfinished";
/// The directory for log files in a new database that a backup or a salvage makes.
pub(super) const LOG: &str = "log";
/// What the names of the copies that repairs make begin with; a number follows.
pub(super) const BEFORE_REPAIR: &str = "before-repair-";
