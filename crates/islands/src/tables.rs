//! Typed tables over several instances, behind one handle.
//!
//! Each instance runs a [`TableProgram`]. A table has its rows at the instances that its [`Partitioning`] says; the [`IslandDatabase`] sends each
//! statement to where its row is, and ends transactions by a commit at one instance, or by two-phase commit. The columns of a table over
//! instances stay as they were created: other ones are those of another table.

mod database;
mod error;
mod index;
mod partitioning;
mod program;
mod reader;
mod recording;
mod redistribution;
mod scan;
mod statement;
mod table;
mod transaction;

pub use database::IslandDatabase;
pub use error::IslandError;
pub use index::IslandIndex;
pub use partitioning::Partitioning;
pub use program::TableProgram;
pub use reader::{IslandRead, IslandReader};
pub use recording::Recording;
pub use redistribution::{
    Redistributed, RedistributedTable, Redistribution, RedistributionError, RedistributionProgress,
    Repartitioning,
};
pub use scan::IslandScan;
pub use table::IslandTable;
pub use transaction::IslandTransaction;
