//! Memory for records and nodes: per-worker heaps of size classes on huge pages.
//!
//! # Source
//! Silo (SOSP 2013) §5.1: a custom allocator for nodes and records over 2 MiB superpages, one pool per worker.
//!
//! # Terms
//! - [`Pool`]: the memory of one database: its chunks, its limit, its heaps.
//! - [`Heap`]: what one worker allocates from. Memory freed by another worker goes back to the heap it came from.
//! - [`AccountId`]: on whose behalf memory is held (a table, an index, the engine itself).

mod account;
mod error;
mod pool;
mod std_heap;

pub use account::{AccountId, Usage};
pub use error::OutOfMemory;
pub use pool::Pool;
pub use std_heap::Heap;
