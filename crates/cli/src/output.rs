//! Standard output: what cannot be written there is a failure of the program.

use std::fmt;
use std::io::{self, BufWriter, ErrorKind, Stdout, StdoutLock, Write};
use std::process::ExitCode;

pub(crate) use ensilo_bench::driver::complain;
use ensilo_bench::driver::standard_error_has_failed;

use crate::interrupt;

/// The exit code of a command that failed, or found damage.
pub(crate) const FAILED: u8 = 1;

/// The exit code of bad parameters.
pub(crate) const USAGE: u8 = 2;

/// The exit code where nobody reads the output to its end (`| head`), by the shells' custom for SIGPIPE.
const NOBODY_READS: u8 = 141;

/// Standard output. Ends the program where it cannot be written to, at the latest when this goes.
pub(crate) struct Output(BufWriter<StdoutLock<'static>>);

impl Output {
    pub(crate) fn new() -> Self {
        Output(BufWriter::new(io::stdout().lock()))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: fmt::Arguments<'_>) {
        writeln!(self.0, "{line}").unwrap_or_else(|error| end(&error));
    }

    /// Writes lines that are made already.
    pub(crate) fn text(&mut self, text: &str) {
        self.0.write_all(text.as_bytes()).unwrap_or_else(|error| end(&error));
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        // That of `BufWriter` keeps errors to itself.
        self.0.flush().unwrap_or_else(|error| end(&error));
    }
}

/// Standard output for those that write bytes in large pieces. It has no errors: the program ends.
pub(crate) struct OutputBytes(Stdout);

impl OutputBytes {
    pub(crate) fn new() -> Self {
        OutputBytes(io::stdout())
    }
}

impl Write for OutputBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.write(bytes).unwrap_or_else(|error| end(&error)))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().unwrap_or_else(|error| end(&error));
        Ok(())
    }
}

impl Drop for OutputBytes {
    fn drop(&mut self) {
        self.0.flush().unwrap_or_else(|error| end(&error));
    }
}

/// Writes a line to standard output. Ends the program where that cannot be done.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    Output::new().line(line);
}

/// Says on standard error why a command failed.
pub(crate) fn failed(error: impl fmt::Display) -> ExitCode {
    interrupt::wait_if_ending();
    complain(format_args!("error: {error}"));
    ExitCode::from(FAILED)
}

/// Returns the exit code of a command that ended with `code`: no success where something could not be said on
/// standard error.
pub(crate) fn code_after_all(code: ExitCode) -> ExitCode {
    if code == ExitCode::SUCCESS && standard_error_has_failed() { ExitCode::from(FAILED) } else { code }
}

/// Ends the program with what the parser of its arguments has to say: help, or what is wrong with them.
pub(crate) fn end_with(parsed: &clap::Error) -> ! {
    let code = parsed.exit_code();
    let written = parsed.print().and_then(|()| io::stdout().flush());
    match written {
        Err(error) if code == 0 => end(&error),
        _ => std::process::exit(code),
    }
}

/// Ends the program because its output cannot be written.
fn end(error: &io::Error) -> ! {
    // Without it the temporary files of a benchmark would stay.
    ensilo_bench::remove_temporary_files();
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(i32::from(NOBODY_READS));
    }
    complain(format_args!("error: cannot write to standard output: {error}"));
    std::process::exit(i32::from(FAILED))
}
