//! The index of Ensilo beside the ordered maps of other crates: the same work, in one run, in turns.
//!
//! Every map gets the keys in the type that suits it: numbers where it compares keys itself, bytes where it takes bytes.
//! All of them use mimalloc, except ours, which has slabs of its own. Guards are held for a batch of operations wherever
//! the map's interface has guards.

mod keys;
mod measure;
mod options;
mod peer;
mod peers;
mod report;
mod work;

use std::process::ExitCode;

use clap::Parser;

use crate::options::Options;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = Options::parse();
    let rows = measure::measure(&options);
    match report::report(&rows, &options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the results could not be written: {error}");
            ExitCode::FAILURE
        }
    }
}
