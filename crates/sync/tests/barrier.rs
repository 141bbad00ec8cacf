//! The asymmetric barrier on this machine: the store-buffering litmus test, many times over.
#![cfg(not(any(loom, shuttle)))]

mod litmus;

#[test]
fn at_least_one_side_sees_the_other() {
    litmus::at_least_one_side_sees_the_other();
}
