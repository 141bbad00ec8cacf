//! Binding a thread to a core.

/// Binds the calling thread to one of the cores that it may run on, chosen by `number` round and round.
///
/// Does nothing where the system has no such call or refuses it: binding makes a pool faster, never right.
#[cfg(target_os = "linux")]
pub(super) fn pin_to_core(number: usize) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
    let Ok(allowed) = sched_getaffinity(None) else { return };
    let cores: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core)).collect();
    if cores.is_empty() {
        return;
    }
    let mut one = CpuSet::new();
    one.set(cores[number % cores.len()]);
    let _ = sched_setaffinity(None, &one);
}

/// Binds nothing: this system has no call for it that we use.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin_to_core(_number: usize) {}
