//! The program `ensilo`.
//!
//! Exit codes: 0 all is well; 1 something failed: a consistency check, the database, the writing of the
//! output, or there is damage; 2 bad parameters; 128 and the signal's number (130 SIGINT, 143 SIGTERM) it was
//! interrupted, after a report on what there was; 141 nobody read the output to its end.
#![forbid(unsafe_code)]

mod bench;
#[cfg(feature = "peers")]
mod compare;
#[cfg(not(feature = "peers"))]
#[path = "compare_absent.rs"]
mod compare;
mod contents;
mod engine;
mod figures;
mod files;
mod growth;
mod interrupt;
mod islands;
mod latency;
mod opening;
mod output;
mod seconds;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser, Subcommand};

/// Rows, keys and versions live in the engine's own slabs; this serves everything else.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ensilo, an in-memory, serializable, durable transactional database for multicore machines.
#[derive(Debug, Parser)]
#[command(name = "ensilo", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run a standard workload and report throughput, latency and aborts.
    Bench(Box<bench::Arguments>),
    /// Measure the papers' figures again and compare.
    #[command(subcommand)]
    Figures(figures::FiguresCommand),
    /// Run Ensilo and other databases under the same workloads.
    Compare(Box<compare::Arguments>),
    /// Look at a machine and at where instances of a database would go on it, and change how many there are.
    #[command(subcommand)]
    Islands(islands::IslandsCommand),
    /// The process of an instance of `bench micro` or `bench tpcb-islands`.
    #[command(hide = true)]
    Instance(bench::InstanceArguments),
    /// List the tables of a database, or show the first rows of one.
    Tables(contents::TablesArguments),
    /// Write tables as CSV or JSON lines.
    Dump(contents::DumpArguments),
    /// Load tables from CSV or JSON lines.
    Load(contents::LoadArguments),
    /// Show what the files of a database hold, and what its tables and indexes take in memory.
    Stat(contents::StatArguments),
    /// Look into the log of a database.
    #[command(subcommand)]
    Log(files::LogCommand),
    /// Look at the checkpoint of a database, or make one.
    #[command(subcommand)]
    Checkpoint(files::CheckpointCommand),
    /// Read all files of a database and report every damage; changes nothing.
    Verify(files::VerifyArguments),
    /// Give up what damage has made unreachable, so that a database can be opened again.
    Repair(files::RepairArguments),
    /// Save the rows of a damaged database that can be read into a new one, and list what is lost.
    Salvage(files::SalvageArguments),
    /// Copy a database that is not open; opening the copy is the restore.
    Backup(files::BackupArguments),
}

fn main() -> ExitCode {
    let parsed = Cli::try_parse().unwrap_or_else(|parsed| output::end_with(&parsed));
    output::code_after_all(match parsed.command {
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Figures(command) => figures::run(&command),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Islands(command) => islands::run(&command),
        Command::Instance(arguments) => bench::run_instance(&arguments),
        Command::Tables(arguments) => contents::tables(&arguments),
        Command::Dump(arguments) => contents::dump(&arguments),
        Command::Load(arguments) => contents::load(&arguments),
        Command::Stat(arguments) => contents::stat(&arguments),
        Command::Log(command) => files::log(&command),
        Command::Checkpoint(command) => files::checkpoint(&command),
        Command::Verify(arguments) => files::verify(&arguments),
        Command::Repair(arguments) => files::repair(&arguments),
        Command::Salvage(arguments) => files::salvage(&arguments),
        Command::Backup(arguments) => files::backup(&arguments),
    })
}

/// Ends the program because options do not go together.
fn refuse_usage(why: &str) -> ! {
    output::end_with(&Cli::command().error(ErrorKind::ArgumentConflict, why))
}
