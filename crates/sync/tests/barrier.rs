//! The asymmetric barrier on this machine: the store-buffering litmus test, many times over.
#![cfg(not(any(loom, shuttle)))]

mod litmus;

/// The only test here: the process registers once. The first rounds pass fences, and the registration comes in the midst of them.
#[test]
fn at_least_one_side_sees_the_other() {
    litmus::at_least_one_side_sees_the_other(2_000);
    if ensilo_sync::barrier::wait_for_registration() {
        litmus::at_least_one_side_sees_the_other(20_000);
    }
}
