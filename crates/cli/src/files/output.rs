//! Where commands write, and what becomes of their errors.

use std::fmt;
use std::io::{BufWriter, StdoutLock, Write};
use std::process::ExitCode;
use std::sync::Arc;

use ensilo::disk::{Disk, RealDisk};

/// The exit code of a command that failed, or found damage.
const FAILED: u8 = 1;

/// The disk of the machine.
pub(super) fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// Standard output.
pub(super) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(super) fn new() -> Self {
        Output(BufWriter::new(std::io::stdout().lock()))
    }

    /// Writes a line. Ends the program when nobody reads any more (`| head`).
    pub(super) fn line(&mut self, line: fmt::Arguments<'_>) {
        if writeln!(self.0, "{line}").is_err() {
            std::process::exit(0);
        }
    }
}

/// Says on standard error why a command failed.
pub(super) fn failed(error: impl fmt::Display) -> ExitCode {
    eprintln!("error: {error}");
    ExitCode::from(FAILED)
}

/// The exit code of a command that has told of damage itself.
pub(super) fn damaged() -> ExitCode {
    ExitCode::from(FAILED)
}
