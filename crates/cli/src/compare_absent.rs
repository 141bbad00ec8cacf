//! `ensilo compare` in a program without the other databases.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use ensilo_figures::latency::{LatencyOptions, OtherDatabases};

use crate::output::{USAGE, complain};

const HOW: &str = "\
This program was built without the other databases. One that has them is built, in some minutes, with
  cargo build --release --features peers
(RocksDB too: `--features rocksdb`; longer still, it needs a C++ compiler and libclang), and `ensilo compare --help` then shows what it does.";

/// Ensilo beside SQLite, LMDB, redb, fjall, RocksDB and PostgreSQL, on the same work; this program was built
/// without them
#[derive(Debug, Args)]
#[command(after_help = HOW)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _ignored: Vec<OsString>,
}

/// Says how to get the other program.
pub(crate) fn run(_arguments: &Arguments) -> ExitCode {
    complain(format_args!("error: {HOW}"));
    ExitCode::from(USAGE)
}

/// Returns the databases beside Ensilo for `ensilo figures run latency`: none.
pub(crate) fn others(_options: &LatencyOptions) -> Option<Box<dyn OtherDatabases>> {
    None
}
