//! Ctrl-C, and the other signals that ask a program to end: the first asks for an orderly end, the second
//! ends at once; of programs without an orderly end the first one does.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering, fence};
use std::{io, thread};

use ensilo_bench::driver::Interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::output::complain;

/// The exit code of a program that a signal ended is by the shells' custom this, plus the signal's number.
const EXIT_CODE_BASE: u8 = 128;

/// That of the signal that came first; of SIGINT until one comes.
static EXIT_CODE: AtomicU8 = AtomicU8::new(code_of(SIGINT));

/// Whether the program is about to end at once: what fails from then on is not worth a word.
static ENDS_AT_ONCE: AtomicBool = AtomicBool::new(false);

const fn code_of(signal: i32) -> u8 {
    EXIT_CODE_BASE + signal as u8
}

/// Returns the exit code of a run that was interrupted: 130 by SIGINT, 143 by SIGTERM, 129 by SIGHUP.
pub(crate) fn exit_code() -> std::process::ExitCode {
    // Acquire: [signal] the caller has seen the interrupt.
    fence(Ordering::Acquire);
    EXIT_CODE.load(Ordering::Relaxed).into()
}

/// Makes an interrupt that Ctrl-C, SIGTERM and SIGHUP raise. Before the program ends at once it does
/// `clean_up`.
pub(crate) fn on_ctrl_c(clean_up: fn()) -> Arc<Interrupt> {
    let interrupt = Arc::new(Interrupt::new());
    if let Err(error) = watch(Arc::clone(&interrupt), clean_up) {
        complain(format_args!("Ctrl-C will end the program without results: {error}"));
    }
    interrupt
}

/// Waits for the end of the program if a signal ends it at once: its exit code, and what it says, are not those of what
/// the end has made fail.
pub(crate) fn wait_if_ending() {
    // Acquire: [end] whatever fails because of the end has seen it.
    while ENDS_AT_ONCE.load(Ordering::Acquire) {
        thread::park();
    }
}

/// Has Ctrl-C, SIGTERM and SIGHUP end the program at once, after `clean_up`.
pub(crate) fn end_on_ctrl_c(clean_up: fn()) {
    let interrupt = Interrupt::new();
    interrupt.raise();
    let end = move || {
        complain(format_args!("\ninterrupted"));
        clean_up();
    };
    if let Err(error) = watch(Arc::new(interrupt), end) {
        complain(format_args!("Ctrl-C will end the program and leave its files: {error}"));
    }
}

fn watch(interrupt: Arc<Interrupt>, clean_up: impl Fn() + Send + 'static) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    let handle = signals.handle();
    let body = move || {
        for signal in signals.forever() {
            if !interrupt.is_raised() {
                EXIT_CODE.store(code_of(signal), Ordering::Relaxed);
                // Release: [signal] a thread that sees the interrupt finds the code.
                fence(Ordering::Release);
                interrupt.raise();
                complain(format_args!("\nending; press Ctrl-C again to end at once"));
            } else {
                // Release: [end] before anything fails that is cleaned up.
                ENDS_AT_ONCE.store(true, Ordering::Release);
                clean_up();
                std::process::exit(i32::from(code_of(signal)));
            }
        }
    };
    let started = thread::Builder::new().name("signals".into()).spawn(body);
    if started.is_err() {
        handle.close();
    }
    started.map(drop)
}
