//! Ctrl-C: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;

use ensilo_bench::driver::Interrupt;

use crate::output::complain;

/// The exit code of a program that SIGINT ended, by the shells' custom; also where SIGTERM did.
pub(crate) const EXIT_CODE: u8 = 130;

/// An interrupt that Ctrl-C raises, as SIGTERM does. Before the program ends at once it does `clean_up`.
pub(crate) fn on_ctrl_c(clean_up: fn()) -> Arc<Interrupt> {
    let interrupt = Arc::new(Interrupt::new());
    let raised = Arc::clone(&interrupt);
    let handler = move || {
        if raised.raise() {
            complain(format_args!("\nending; press Ctrl-C again to end at once"));
        } else {
            clean_up();
            std::process::exit(i32::from(EXIT_CODE));
        }
    };
    if let Err(error) = ctrlc::set_handler(handler) {
        complain(format_args!("Ctrl-C will end the program without results: {error}"));
    }
    interrupt
}
