//! A database that answers before its rows are in memory: those of the checkpoint are loaded block by block
//! when they are touched, and all of them in the background.
//!
//! # Source
//! ERMIA (SIGMOD 2016) §3.7: a recovery restores what leads to the data, "anti-caching can take care of loading
//! the actual data", and "background pre-loading is highly recommended". Here it is the log that is replayed
//! before the first transaction, and the directory of the checkpoint's blocks that leads to the data.
//!
//! # Why it is as if all had been loaded before
//! - L1: nobody looks for a key, or for a range, before all blocks that may hold it are loaded; statements see
//!   to that ([`access`]), one block by one thread ([`table_load`]). So a block's rows come
//!   before anybody could miss them, which is what [`Engine::derive`](ensilo_engine::Engine::derive) asks for.
//! - L2: what the log says of a key is newer than the checkpoint's record of it. So a record is put only where
//!   its key is absent, and the log has not deleted it.
//! - L3: what follows from all rows of a table waits until all are there: its indexes, writes to a table that
//!   has any, and what changes the set of them. So no entry is made twice or missed.
//! - L4: what would take the checkpoint's place waits until all tables are loaded: the next checkpoint. So
//!   until then a crash, or a closing in between, loses nothing.
//! - L5: the directory is believed where blocks say the same (`CheckpointBlocks`, B1 and B2): a damaged
//!   block is never taken for one that has no such key.
//!
//! # Damage
//! A block that is damaged, or cannot be read, is never in memory. Who touches it gets the error. Its table
//! takes no more writes, since no checkpoint could keep them apart from the loss, and no checkpoint is made.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[block-loaded]` | a block's state, Release | the state before a statement, Acquire | the rows of the block |
//! | `[table-loaded]` | [`LoadCell::end`] Release | [`LoadCell::is_over`] Acquire | all rows of the table, and the entries of its indexes |

mod access;
mod background;
mod cell;
mod needed;
mod pieces;
mod state;
mod table_blocks;
mod table_load;
mod tables;

pub(crate) use background::Loading;
pub(crate) use cell::LoadCell;
pub(crate) use pieces::Pieces;
pub(crate) use state::LoadState;
pub use state::LoadStatistics;
pub(crate) use tables::Loads;
