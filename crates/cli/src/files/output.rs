//! The disk that commands read, and their exit code when it is damaged.

use std::process::ExitCode;
use std::sync::Arc;

use ensilo::disk::{Disk, RealDisk};

use crate::output::FAILED;

/// The disk of the machine.
pub(super) fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// The exit code of a command that has told of damage itself.
pub(super) fn damaged() -> ExitCode {
    ExitCode::from(FAILED)
}
