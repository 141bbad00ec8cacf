//! The header of a log file or of a checkpoint's part.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_oracles::file_header(bytes));
