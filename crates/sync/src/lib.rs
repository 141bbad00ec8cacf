//! Internal to `ensilo`, not to be used by itself: atomics, threads and barriers that model checkers can replace.
//!
//! Every lock-free file of Ensilo takes its atomics from [`atomic`] and its threads from [`thread`]. In an ordinary
//! build they are the standard library's; with `--cfg loom` or `--cfg shuttle` they are the model checker's, so that
//! the code that is checked is the code that runs. With `--cfg ensilo_count` they are the standard library's, and report each access
//! (`instrumented`), so that the crate `ensilo-counting` can count what workers do to cache lines. With `--cfg ensilo_regions` threads show which
//! [`region`] they are in, so that it can say where their time goes.
//!
//! The crate also holds the two things every lock-free part of Ensilo shares: [`CachePadded`], which keeps the words of
//! two workers off one cache line, the asymmetric [`barrier`], which lets a worker publish with a plain store,
//! [`prefetch()`] and [`Backoff`]; and [`side_by_side()`], by which long work is divided among threads.
//!
//! With `--cfg ensilo_portable` this crate and those above it take the paths of systems and processors that have
//! nothing of their own, so that they are tested everywhere.
//!
//! A model checker's atomics are larger than a machine word: code that lays out memory must use
//! `size_of::<AtomicU64>()` and may assert 8 bytes in ordinary builds only.

mod backoff;
pub mod barrier;
mod cache_padded;
#[cfg(ensilo_count)]
pub mod instrumented;
mod prefetch;
pub mod region;
mod side_by_side;

pub use backoff::{Backoff, cpu_relax};
pub use cache_padded::CachePadded;
pub use prefetch::{LINE_BYTES, prefetch};
pub use side_by_side::side_by_side;

#[cfg(not(all(unix, target_pointer_width = "64")))]
compile_error!(
    "ensilo runs on 64-bit Unix systems only: Linux, and with less speed others; see \"Systems\" in its documentation"
);

#[cfg(any(
    all(loom, shuttle),
    all(ensilo_count, any(loom, shuttle)),
    all(ensilo_regions, any(loom, shuttle, ensilo_count))
))]
compile_error!("choose one of --cfg loom, --cfg shuttle, --cfg ensilo_count, --cfg ensilo_regions");

/// Atomic types, `Ordering` and `fence`.
pub mod atomic {
    #[cfg(loom)]
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    #[cfg(shuttle)]
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };
    #[cfg(not(any(loom, shuttle, ensilo_count)))]
    pub use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
    };

    #[cfg(ensilo_count)]
    pub use crate::instrumented::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize};
    #[cfg(ensilo_count)]
    pub use std::sync::atomic::{Ordering, fence};
}

/// Atomics that are part of no protocol, such as counts: the standard library's also under a model checker.
pub mod unchecked {
    #[cfg(ensilo_count)]
    pub use crate::instrumented::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
    #[cfg(not(ensilo_count))]
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
}

/// Locks, conditions to wait for, and shared ownership.
pub mod sync {
    #[cfg(loom)]
    pub use loom::sync::{Arc, Condvar, Mutex, MutexGuard};
    #[cfg(shuttle)]
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
    #[cfg(not(any(loom, shuttle)))]
    pub use std::sync::{Arc, Condvar, Mutex, MutexGuard};
}

/// Threads: `spawn`, `yield_now`, `JoinHandle`.
pub mod thread {
    #[cfg(loom)]
    pub use loom::thread::{JoinHandle, spawn, yield_now};
    #[cfg(shuttle)]
    pub use shuttle::thread::{JoinHandle, spawn, yield_now};
    #[cfg(not(any(loom, shuttle)))]
    pub use std::thread::{JoinHandle, spawn, yield_now};
}
