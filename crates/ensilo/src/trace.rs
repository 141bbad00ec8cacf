//! Events of the crate `tracing`: what an operator wants to find in a program's log.
//!
//! All have the target `ensilo`. Openings, closings, checkpoints, backups and steps of migrations are at the level `INFO`, the phases of a
//! recovery at `DEBUG`; what [`Options::on_event`](crate::Options::on_event) reports is at `WARN`, a failed log at `ERROR`, and its
//! end at `INFO`. Of transactions, those alone make one that [`Options::on_slow_request`](crate::Options::on_slow_request) asks for, at `WARN`. A subscriber runs as the program's hooks do: without any lock, and its
//! panics end nothing.

use std::path::Path;
use std::time::Duration;

use ensilo_log::call_foreign;
use tracing::{debug, error, info, warn};

use crate::durable::{Backup, Checkpoint, Event, RecoveryStatistics};
use crate::error::Conflict;
use crate::migrations::AppliedMigration;
use crate::slow_request::SlowRequest;

/// Something has happened outside of requests.
pub(crate) fn event(event: &Event) {
    call_foreign(|| match event {
        Event::Recovered => info!(target: "ensilo", "{event}"),
        Event::LogFailed { .. } => error!(target: "ensilo", "{event}"),
        event => warn!(target: "ensilo", "{event}"),
    });
}

/// A request took long, or was run often.
pub(crate) fn slow_request(request: &SlowRequest) {
    call_foreign(|| {
        warn!(
            target: "ensilo",
            label = request.label,
            elapsed_seconds = request.duration.as_secs_f64(),
            attempts = request.attempts,
            has_committed = request.has_committed,
            table = request.last_abort.as_ref().and_then(|abort| abort.table()),
            last_conflict = request.last_abort.as_ref().map(|abort| tracing::field::display(Conflict(abort))),
            "slow request"
        );
    });
}

/// A phase of a recovery is over.
pub(crate) fn recovery_phase(phase: &'static str, elapsed: Duration) {
    call_foreign(|| debug!(target: "ensilo", phase, elapsed_seconds = elapsed.as_secs_f64(), "recovery"));
}

/// A database in a directory is open.
pub(crate) fn opened(directory: &Path, recovery: &RecoveryStatistics, is_read_only: bool) {
    call_foreign(|| {
        info!(
            target: "ensilo",
            directory = %directory.display(),
            is_read_only,
            checkpoint_bytes = recovery.checkpoint_bytes,
            log_bytes = recovery.log_bytes,
            elapsed_seconds = recovery.duration.as_secs_f64(),
            "opened"
        );
    });
}

/// A checkpoint was made.
pub(crate) fn checkpoint_made(made: &Checkpoint) {
    call_foreign(|| {
        info!(
            target: "ensilo",
            checkpoint = made.id,
            rows = made.rows,
            bytes = made.bytes,
            files_removed = made.files_removed,
            elapsed_seconds = made.duration.as_secs_f64(),
            "checkpoint made"
        );
    });
}

/// A backup was made.
pub(crate) fn backup_made(target: &Path, made: &Backup) {
    call_foreign(|| {
        info!(
            target: "ensilo",
            to = %target.display(),
            durable_epoch = made.durable_epoch,
            bytes = made.bytes,
            elapsed_seconds = made.duration.as_secs_f64(),
            "backup made"
        );
    });
}

/// A step of a migration was applied.
pub(crate) fn migration_applied(applied: &AppliedMigration, elapsed: Duration) {
    call_foreign(|| {
        info!(
            target: "ensilo",
            number = applied.number,
            name = applied.name,
            outcome = ?applied.outcome,
            elapsed_seconds = elapsed.as_secs_f64(),
            "migration applied"
        );
    });
}

/// A database is closed.
pub(crate) fn closed(stored: &crate::Result<()>) {
    call_foreign(|| match stored {
        Ok(()) => info!(target: "ensilo", "closed"),
        Err(error) => error!(target: "ensilo", "closed: {error}"),
    });
}
