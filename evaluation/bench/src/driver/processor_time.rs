//! How long the processors have worked for this program.

use std::time::Duration;

/// The time that all threads of the process together have had on processors, in user and kernel mode.
#[cfg(target_os = "linux")]
pub(super) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Not known on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn processor_time() -> Duration {
    Duration::ZERO
}
