//! The header of a log file or of a checkpoint's part.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ensilo_log::fuzzing::file_header(bytes));
