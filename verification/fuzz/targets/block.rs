//! A block of a log file, and the entries in it.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_oracles::block(bytes));
