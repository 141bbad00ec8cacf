//! Commands on what is in a database: its tables, their rows, and the memory and files that these take.

mod description;
mod dump;
mod input_file;
mod load;
mod migrations;
#[cfg(feature = "parquet")]
mod parquet;
mod row_format;
mod row_reader;
mod row_writer;
mod sequences;
mod stat;
mod tables;
mod timestamp_text;
mod value_text;

pub(crate) use dump::{DumpArguments, dump};
pub(crate) use load::{LoadArguments, load};
pub(crate) use stat::{StatArguments, stat};
pub(crate) use tables::{TablesArguments, tables};

/// How a command shows what it has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ShownAs {
    /// For people
    Text,
    /// One JSON object
    Json,
}
