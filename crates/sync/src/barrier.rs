//! An asymmetric store-load barrier: nearly free where it is frequent, expensive where it is rare.
//!
//! # Source
//! Silo (SOSP 2013) §4.1 lets a worker publish its epoch with a plain store and relies on the advancing thread to wait.
//! We get the same price with a proof: the advancing thread interrupts every core of the process once per epoch.
//!
//! # Memory ordering
//! One side stores `A`, calls [`light`], loads `B`. The other stores `B`, calls [`heavy`], loads `A`.
//! At least one of them sees the other's store. With plain processor fences this is the store-buffering litmus test. With
//! `membarrier(2)` the light side is a compiler barrier only: the system call runs a full fence on every core that runs a thread of this
//! process, at a point which lies either before the light side's store in program order (then its load comes after the
//! heavy side's store and sees it) or after it (then the store has left the store buffer and the heavy side sees it).
//! A thread that is not running passed a full fence when it was switched out.
//!
//! Which of the two is used is decided once per process, before the first light barrier, by [`light_is_free`].

#[cfg(not(any(loom, shuttle)))]
use std::sync::OnceLock;

#[cfg(any(loom, shuttle))]
use crate::atomic::{Ordering, fence};

/// Returns whether the kernel agreed to fence this process's cores on demand, which makes [`light`] a compiler barrier.
///
/// The first call registers the process with the kernel; later calls return what the first one found out.
#[cfg(not(any(loom, shuttle)))]
pub fn light_is_free() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(register)
}

/// Under a model checker both sides use the checker's fence.
#[cfg(any(loom, shuttle))]
pub fn light_is_free() -> bool {
    false
}

/// The frequent side. `free` is what [`light_is_free`] returned to both sides.
#[inline]
pub fn light(free: bool) {
    #[cfg(not(any(loom, shuttle)))]
    if free {
        std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    } else {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    }
    // A checker's heavy side interrupts nobody: `free` is then a planted fault, a barrier that does nothing.
    #[cfg(any(loom, shuttle))]
    if !free {
        fence(Ordering::SeqCst);
    }
}

/// The rare side: costs a system call that interrupts the cores which run this process.
///
/// # Panics
/// When the kernel refuses a barrier it agreed to at registration: without it no memory could be reclaimed safely.
pub fn heavy() {
    #[cfg(not(any(loom, shuttle)))]
    {
        std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
        if light_is_free() {
            interrupt_all_cores();
        }
    }
    #[cfg(any(loom, shuttle))]
    fence(Ordering::SeqCst);
}

/// The store-load barrier after a read-modify-write, as between locking a write set and validating a read set.
///
/// On x86 a locked instruction already is a full barrier, so that a fence for the compiler is enough; elsewhere a fence for both.
#[inline]
pub fn after_rmw() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, shuttle, ensilo_portable))))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(all(any(not(target_arch = "x86_64"), ensilo_portable), not(any(loom, shuttle))))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    #[cfg(any(loom, shuttle))]
    fence(Ordering::SeqCst);
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, ensilo_portable))))]
fn register() -> bool {
    use rustix::thread::{MembarrierCommand, membarrier};
    // ThreadSanitizer and emulators see no kernel interrupts, but neither do they reorder a store with a later load.
    membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok()
}

#[cfg(all(target_os = "linux", not(any(loom, shuttle, ensilo_portable))))]
fn interrupt_all_cores() {
    use rustix::thread::{MembarrierCommand, membarrier};
    if let Err(error) = membarrier(MembarrierCommand::PrivateExpedited) {
        panic!("membarrier was granted at start and is refused now: {error}");
    }
}

#[cfg(all(any(not(target_os = "linux"), ensilo_portable), not(any(loom, shuttle))))]
fn register() -> bool {
    false
}

#[cfg(all(any(not(target_os = "linux"), ensilo_portable), not(any(loom, shuttle))))]
fn interrupt_all_cores() {}
