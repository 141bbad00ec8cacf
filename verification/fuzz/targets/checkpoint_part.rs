//! A whole part of a checkpoint.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_oracles::checkpoint_part(bytes));
