//! Which cache lines workers share, counted access by access, in programs that are built with `--cfg ensilo_count`; and where their time
//! goes, in programs that are built with `--cfg ensilo_regions` (`regions`). In every other build this crate is empty.
//!
//! In a build of the first kind the atomics of `ensilo-sync` report each access before they make it, and a `LineCounter` counts those of the threads that
//! are attached to it.
//!
//! # What is counted
//! - Accesses by worker, line and kind: loads, stores, read-modify-writes. A line that at least two workers used, one of
//!   them by writing, is *shared*.
//! - *Fetches*: each worker has a cache of its own, kept coherent as hardware does it (a line is either in one cache that may have
//!   changed it, or unchanged in several). A line that another worker changed last and still has in its cache, or that has to be taken out
//!   of other caches to be written, is fetched from another core. What is in nobody's cache comes from memory.
//!
//! A label says in which source file a line was written last, or first read: so that counts can be distinguished by what the line
//! holds without a word about it where it is used.
//!
//! # What is not seen
//! Accesses that do not go through the atomics of `ensilo-sync`: the standard library's `Arc`, `Mutex` and channels, the general-purpose
//! allocator, memory that is private until it is published, the kernel.
//!
//! # Terms
//! A line is an address divided by 64, not a value: memory that was freed and serves something else is still the same line, as it is for
//! the hardware, which has to move it just the same if another core uses it now.
#![forbid(unsafe_code)]

#[cfg(ensilo_count)]
mod cache;
#[cfg(ensilo_count)]
mod counter;
#[cfg(ensilo_regions)]
pub mod regions;
#[cfg(ensilo_count)]
mod totals;

#[cfg(ensilo_count)]
pub use cache::WORKERS_MAX;
#[cfg(ensilo_count)]
pub use counter::{Attached, LineCounter};
#[cfg(ensilo_count)]
pub use totals::{HotLine, LabelCounts, SharingCounts};
