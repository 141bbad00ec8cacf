//! In the place of events of the crate `tracing`, without the feature of that name: nothing.

use std::path::Path;
use std::time::Duration;

use crate::durable::{Backup, Checkpoint, Event, RecoveryStatistics};
use crate::migrations::AppliedMigration;
use crate::slow_request::SlowRequest;

pub(crate) const fn event(_: &Event) {}
pub(crate) const fn slow_request(_: &SlowRequest) {}
pub(crate) const fn recovery_phase(_: &'static str, _: Duration) {}
pub(crate) const fn opened(_: &Path, _: &RecoveryStatistics, _is_read_only: bool) {}
pub(crate) const fn checkpoint_made(_: &Checkpoint) {}
pub(crate) const fn backup_made(_: &Path, _: &Backup) {}
pub(crate) const fn migration_applied(_: &AppliedMigration, _: Duration) {}
pub(crate) const fn closed(_: &crate::Result<()>) {}
