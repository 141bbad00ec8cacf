//! Two-phase commit between instances, simulated through losses and crashes, and checked.
//!
//! The [protocol](ensilo_islands::commit) that runs between instances runs here between a few of them, over rows that are numbers, a log
//! that loses its end with each crash, and a network that loses messages, has them come late, twice, and in any order. A seed decides
//! everything, so a run can be repeated. In the end all is well again, and the run is judged: nothing waits, every transaction
//! has happened everywhere or nowhere, and as its caller was told, and the history of all instances together is serializable.
//!
//! # Limits
//! The machine's memory, threads and channels are not simulated, nor what a real instance does with its rows.
#![forbid(unsafe_code)]

mod epochs;
mod fault;
mod judge;
mod network;
mod node;
mod scenario;
mod store;
mod world;

pub use fault::Fault;
pub use scenario::{
    all_are_tried_until_they_commit, one_waits_behind_another, reader_ends_before_the_decision,
    two_wait_for_each_other,
};
pub use world::{Failure, Tally, simulate};
