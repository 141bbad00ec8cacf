//! The clock by which transactions of all instances are older or younger.

use rustix::time::{ClockId, clock_gettime};

/// Returns the nanoseconds since the machine was started; all of its processes read the same clock.
pub(crate) fn machine_nanos() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.cast_unsigned() * 1_000_000_000 + now.tv_nsec.cast_unsigned()
}
