//! The figures of the papers, measured again on this machine.
//!
//! An [`experiment`] is a description: systems, parameters, what the paper measured and what it claims. One [`runner`](Evaluation)
//! makes the single runs of all of them, each in a process of its own (`ensilo bench ... --format json`), keeps every finished one at
//! once, and draws the rest from what is kept: a table of all runs, plots with the paper's curve beside ours, a ruling for each claim,
//! and one page with all of them.
//!
//! ```text
//! experiment -> plan -> runner -> bench (a process for each run) -> store (a file for each run)
//!                         output <- store -> results -> verdict, table, drawing -> plot
//!                           summary -> page
//! ```
//!
//! [`redraw_results`] goes the same way from the tables instead of the store: `recorded -> results -> verdict, drawing -> plot`.
//!
//! [`growth`] lets records, sessions, tables and others grow, with runs of the same kind, and has a page of its own.
//!
//! The papers' experiments know `ensilo bench` by its arguments and its report only. [`latency`] is no experiment of a paper, and makes its
//! runs within the program. [`regions`] draws a figure whose runs need a build of their own. The page also takes in what [`compare`] finds.
#![forbid(unsafe_code)]

mod bench;
mod command;
pub mod compare;
mod drawing;
mod error;
pub mod experiment;
mod files;
pub mod growth;
pub mod latency;
mod measurement;
pub mod model;
mod origin;
mod outcome;
mod output;
pub mod page;
mod plan;
pub mod plot;
mod processors;
mod progress;
mod provenance;
mod recorded;
mod redraw;
pub mod regions;
mod results;
mod runner;
mod sizes;
mod store;
mod summary;
mod table;
mod verdict;

pub use bench::{Bench, Program, end_runs};
pub use command::{BenchCommand, Storage, Workload as BenchWorkload};
pub use error::FiguresError;
pub use measurement::{
    HalfSecond, Latency, Measurement, MemoryUse, OfType, Recovery, StoredLatency, TimedCheckpoint,
};
pub use origin::Origin;
pub use outcome::Outcome;
pub use output::{make_directory, write_results};
pub use plan::SingleRun;
pub use progress::{Course, in_words};
pub use redraw::{Redrawn, redraw_results};
pub use runner::{Ending, Evaluation, Workload};
pub use sizes::{Overrides, Scale, Sizes};
pub use table::command_line;
pub use verdict::Ruling;
