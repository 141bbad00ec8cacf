//! Binding a worker's thread to one processor, where the operating system can.

/// The processors that this process may run on; empty where the system cannot say.
#[cfg(target_os = "linux")]
pub(super) fn allowed_processors() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return Vec::new() };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect()
}

/// The processors that this process may run on; empty where the system cannot say.
#[cfg(not(target_os = "linux"))]
pub(super) fn allowed_processors() -> Vec<usize> {
    Vec::new()
}

/// Binds the calling thread to `processor`; false where that is refused.
#[cfg(target_os = "linux")]
pub(super) fn pin_to(processor: usize) -> bool {
    let mut set = rustix::thread::CpuSet::new();
    set.set(processor);
    rustix::thread::sched_setaffinity(None, &set).is_ok()
}

/// Binds the calling thread to `processor`; false where that is refused.
#[cfg(not(target_os = "linux"))]
pub(super) fn pin_to(_processor: usize) -> bool {
    false
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_processor() {
        let processors = allowed_processors();
        assert!(!processors.is_empty());
        let last = processors[processors.len() - 1];
        let allowed = std::thread::spawn(move || {
            assert!(pin_to(last));
            allowed_processors()
        });
        assert_eq!(allowed.join().unwrap(), [last]);
    }
}
