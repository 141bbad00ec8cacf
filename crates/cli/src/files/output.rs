//! The disk that commands read, and their exit code when it is damaged.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use ensilo::disk::{Disk, RealDisk};
use ensilo_log::Unopened;

use crate::output::FAILED;

/// Returns the disk of the machine.
pub(super) fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// Returns the exit code of a command that has reported damage itself.
pub(super) fn damaged() -> ExitCode {
    ExitCode::from(FAILED)
}

/// Names what the system could not read.
pub(super) fn unread_lines(unread: &[(PathBuf, u64)], unopened: &[Unopened]) -> Vec<String> {
    let unread = unread
        .iter()
        .map(|(file, bytes)| format!("the system cannot read {bytes} bytes of {}", file.display()));
    let unopened = unopened.iter().map(|unopened| {
        format!("the system cannot {} {}: {}", unopened.doing, unopened.path.display(), unopened.error)
    });
    unread.chain(unopened).collect()
}
