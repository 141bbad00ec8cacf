//! An asymmetric store-load barrier: nearly free where it is frequent, expensive where it is rare.
//!
//! # Source
//! Silo (SOSP 2013) §4.1 lets a worker publish its epoch with a plain store and relies on the advancing thread to wait.
//! We get the same price with a proof: the advancing thread interrupts every core of the process once per epoch.
//!
//! # Memory ordering
//! One side stores `A`, passes a [`LightBarrier`], loads `B`. The other stores `B`, calls [`heavy`], loads `A`.
//! At least one of them sees the other's store. With plain processor fences this is the store-buffering litmus test. With
//! `membarrier(2)` the light side is a compiler barrier only: the system call runs a full fence on every core that runs a thread of this
//! process, at a point which lies either before the light side's store in program order (then its load comes after the
//! heavy side's store and sees it) or after it (then the store has left the store buffer and the heavy side sees it).
//! A thread that is not running passed a full fence when it was switched out.
//!
//! # Registration
//! A process has to register with the kernel first, which takes about 16 ms once it has several threads. Nobody waits for that: a
//! thread of its own does it, and until then both sides pass processor fences. Two steps lead from the one to the other, which
//! `REGISTRATION` says:
//! ```text
//! BEGUN    light side: fence    heavy side: fence
//! GRANTED  light side: fence    heavy side: fence and system call     the registering thread passes a fence
//! FREE     light side: nothing  heavy side: fence and system call
//! ```
//! - `[free]` A light side that finds `FREE`, by Acquire, has the registering thread's fence before its load of `B`. A heavy side that makes
//!   no system call has found less than `GRANTED` behind its own fence, so that this one comes before the registering thread's in the
//!   order of all fences. So the heavy side's store of `B` comes before the light side's load, which sees it.
//! - `[granted]` A heavy side that finds `GRANTED`, by Acquire, calls the kernel after it has registered the process.
//! - In all other cases both have a fence, or the heavy side has made its system call.

#[cfg(not(any(loom, shuttle)))]
use std::sync::OnceLock;
#[cfg(not(any(loom, shuttle)))]
use std::sync::atomic::{AtomicU8, Ordering, compiler_fence, fence};

#[cfg(any(loom, shuttle))]
use crate::atomic::{Ordering, fence};

/// The frequent side.
#[derive(Debug, Clone, Copy)]
pub struct LightBarrier {
    /// A planted fault.
    #[cfg(any(loom, shuttle))]
    is_missing: bool,
}

impl LightBarrier {
    /// Returns the barrier. The first call begins to register the process with the kernel, and does not wait for it.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "it begins something")]
    pub fn new() -> LightBarrier {
        #[cfg(not(any(loom, shuttle)))]
        begin_registration();
        LightBarrier {
            #[cfg(any(loom, shuttle))]
            is_missing: false,
        }
    }

    /// Plants a fault for a model to find: a barrier that does nothing. A checker's heavy side interrupts nobody.
    #[cfg(any(loom, shuttle))]
    #[must_use]
    pub fn missing() -> LightBarrier {
        LightBarrier { is_missing: true }
    }

    /// Passes it.
    #[inline]
    pub fn pass(self) {
        #[cfg(not(any(loom, shuttle)))]
        // Acquire: [free].
        if REGISTRATION.load(Ordering::Acquire) == FREE {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
        #[cfg(any(loom, shuttle))]
        if !self.is_missing {
            fence(Ordering::SeqCst);
        }
    }
}

/// The rare side: costs a system call that interrupts the cores which run this process.
///
/// # Panics
/// When the kernel refuses a barrier it agreed to at registration: without it no memory could be reclaimed safely.
pub fn heavy() {
    fence(Ordering::SeqCst);
    // Acquire: behind the fence for [free]; and [granted] the kernel has registered the process for whoever sees that it has.
    #[cfg(not(any(loom, shuttle)))]
    if REGISTRATION.load(Ordering::Acquire) >= GRANTED {
        interrupt_all_cores();
    }
}

/// The kernel was not asked yet, is being asked, or has refused.
#[cfg(not(any(loom, shuttle)))]
const BEGUN: u8 = 0;
/// The kernel has agreed.
#[cfg(not(any(loom, shuttle)))]
const GRANTED: u8 = 1;
/// The light side is free.
#[cfg(not(any(loom, shuttle)))]
const FREE: u8 = 2;

/// It only rises.
#[cfg(not(any(loom, shuttle)))]
static REGISTRATION: AtomicU8 = AtomicU8::new(BEGUN);

/// Waits until the kernel has agreed or refused, and returns whether the light side is free from now on. For tests.
#[cfg(not(any(loom, shuttle)))]
#[doc(hidden)]
pub fn wait_for_registration() -> bool {
    static REGISTERED: OnceLock<()> = OnceLock::new();
    REGISTERED.get_or_init(|| {
        if register() {
            // Release: [granted]; [free] by the fence behind it.
            REGISTRATION.store(GRANTED, Ordering::Release);
            fence(Ordering::SeqCst);
            // Release: [free].
            REGISTRATION.store(FREE, Ordering::Release);
        }
    });
    REGISTRATION.load(Ordering::Acquire) == FREE
}

#[cfg(not(any(loom, shuttle)))]
fn begin_registration() {
    static BEGIN: OnceLock<()> = OnceLock::new();
    BEGIN.get_or_init(|| {
        let thread = std::thread::Builder::new().name("ensilo-barrier".into());
        if thread.spawn(wait_for_registration).is_err() {
            wait_for_registration();
        }
    });
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
