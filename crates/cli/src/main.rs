//! The program `ensilo`.
//!
//! Exit codes: 0 all is well; 1 a consistency check or the database failed; 2 bad parameters.
#![forbid(unsafe_code)]

mod bench;
mod interrupt;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Rows, keys and versions live in the engine's own slabs; this serves everything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ensilo, an in-memory, serializable transactional database for multicore machines.
#[derive(Debug, Parser)]
#[command(name = "ensilo", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a standard workload and report throughput, latency and aborts.
    Bench(bench::Arguments),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Bench(arguments) => bench::run(&arguments),
    }
}
