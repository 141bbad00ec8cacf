//! A history of changes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_oracles::changes(bytes));
