//! The barrier of a process that may not call `membarrier(2)`. It is the only test here: which barrier is used is decided once per process.
#![cfg(all(target_os = "linux", not(any(loom, shuttle))))]
#![allow(clippy::unwrap_used, reason = "tests")]

mod litmus;
mod seccomp;

#[test]
fn at_least_one_side_sees_the_other_by_fences() {
    seccomp::refuse_membarrier();
    assert!(!ensilo_sync::barrier::wait_for_registration(), "the filter has no effect");
    litmus::at_least_one_side_sees_the_other(20_000);
}
