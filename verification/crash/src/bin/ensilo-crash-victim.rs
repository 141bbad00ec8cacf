//! A process to be killed: see [`ensilo_crash::victim`].
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    ensilo_crash::victim::main()
}
