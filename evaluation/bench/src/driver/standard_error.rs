//! Lines on standard error. One that cannot be written ends nothing; the program asks at its end whether there was one.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static HAS_FAILED: AtomicBool = AtomicBool::new(false);

/// Writes a line to standard error, as far as that can be done.
pub fn complain(line: fmt::Arguments<'_>) {
    if writeln!(std::io::stderr(), "{line}").is_err() {
        HAS_FAILED.store(true, Relaxed);
    }
}

/// Whether a line could not be written.
pub fn standard_error_has_failed() -> bool {
    HAS_FAILED.load(Relaxed)
}
