//! Internal to `ensilo`, not to be used by itself: memory by per-worker heaps of size classes on huge pages.
//!
//! Each worker allocates from a [`Heap`] of its own, in a handful of instructions and without an atomic operation. Memory that
//! another worker frees goes back to the heap it came from. All heaps of a database share a [`Pool`], which bounds
//! what they take from the system and gives everything back when it goes.
//!
//! # Source
//! Silo (SOSP 2013) §5.1: a custom allocator for nodes and records over 2 MiB superpages, one pool per worker.
//!
//! # Terms
//! - **class**: blocks of one size ([`Heap::usable_size`]): 72 of them, at most 12.5 % apart above 128 bytes, up to 32 KiB.
//!   Larger blocks come from the global allocator.
//! - **chunk**: 2 MiB of address space on a 2 MiB boundary, on one huge page.
//! - **extent**: what one heap owns as a whole: a chunk, or a piece of 64 KiB of a chunk that small heaps share.
//! - **span**: a part of an extent, at most 64 KiB, that is cut into blocks of one class from front to end.
//! - **account** ([`AccountId`]): what memory is counted on: a table, an index, the engine itself.
//!
//! # Layout
//! ```text
//! chunk:  0                 4096                                                   2 MiB
//!         | header somewhere | span | span    | span | ... not yet cut             |
//! header: one cache line, at a place that depends on the chunk's address, with the owner's address; of a shared chunk also a table
//!         with the owner of each piece
//! block:  free in its heap:   next
//!         freed by another:   next | index of the class
//! ```
//! A block is aligned to the largest power of two that divides its class's size, up to 4096: nodes of 320 bytes and
//! records of 128 bytes start on a cache line.
//!
//! A pool [with room](Pool::with_room), for an owner that can free blocks when memory is short, keeps a share of the limit from its chunks.
//!
//! Blocks stay in their class as long as there is memory. When the limit leaves none, larger free blocks are cut up, and free blocks side
//! by side become a larger one.
//!
//! # Invariants
//! - **I1** A block is in one place: with a user, in one list, or in the part of a span that is not yet cut.
//! - **I2** The lists and spans of a heap are touched by its owner alone; others only push onto its remote stack.
//! - **I3** A block's class follows from the layout alone. A caller that frees states the layout that was allocated.
//! - **I4** A chunk is unmapped only when none of its blocks is in use or in a list of a heap, or when the pool
//!   goes. What other pointers here point to is freed only then.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[remote]` | push onto a remote stack, Release | the owner takes the stack, Acquire | the last accesses to the block come before its reuse; its links are whole |
//!
//! Under a model checker every block comes from the global allocator. There, in builds with debug assertions and with
//! the feature `testing`, freed memory is overwritten ([`FREED_WORD`]).

mod account;
mod chunk;
mod chunks;
mod class;
mod error;
mod faults;
mod heap;
mod large;
mod local;
mod poison;
mod pool;
mod remote;
mod room;
mod shared;

pub use account::{AccountId, Usage};
pub use error::OutOfMemory;
pub use heap::Heap;
pub use poison::{FREED_WORD, POISONS};
pub use pool::Pool;
pub use room::Fill;
