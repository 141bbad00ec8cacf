//! The payload of a block of a log file.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_oracles::entries(bytes));
