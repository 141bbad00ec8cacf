//! Internal to `ensilo`, not to be used by itself: Masstree, an ordered index from byte strings to one machine word.
//!
//! Readers write no shared memory: they read, and compare the version of the node afterwards. Writers lock the few nodes
//! that they change. Every operation reports the border nodes it relied on, with their versions, and every insert the
//! nodes it changed: what a transaction needs to see phantoms.
//!
//! # Source
//! Masstree (Mao, Kohler, Morris, EuroSys 2012): a trie of B+-trees, each over 8 bytes of the key; Silo (SOSP 2013) §4.6 for the
//! use of node versions against phantoms. Where we deviate:
//! - **Every** change to the set of keys that are reachable through a border node changes its version: inserts and
//!   removes, too, and a slot that becomes a layer. Masstree leaves the version alone when the permutation tells readers enough.
//! - Versions are one counter that cannot wrap within the life of a machine, see `version`.
//! - A node's lower bound is a field of its own; so slots can be reused freely, and ranges checked.
//! - A split takes all its locks before it changes anything: with no memory for a node the tree stays as it was.
//! - An empty layer leaves the tree in the remove that empties it.
//! - Slices that all keys of a layer share make no layers above it: the slot that leads there keeps them, see `path`.
//! - Interior nodes have 14 keys, and so four cache lines.
//!
//! # Terms
//! - **slice**, **layer**, **suffix**, **path**: see `key`.
//! - **border node**: a leaf; it holds slots for keys and layers. **interior node**: it leads to them.
//! - **stamp**: a border node and the version at which it was read.
//! - **insert**, **shrink**: the two kinds of change that a version counts.
//!
//! # Memory
//! Nodes come from `Guard::allocate` for the tree's account and go back through `Guard::retire`. A tree that is dropped leaves
//! its nodes to the pool; [`Masstree::into_drain`] gives them back before, in pieces. Only what no link leads to any more can be
//! retired, see `unlinked`.

mod border;
mod descend;
mod drain;
mod edge;
mod get;
mod insert;
mod interior;
mod key;
mod key_buffer;
mod leaf_copy;
mod locked;
mod node;
mod node_kind;
mod path;
mod permuter;
mod planted;
mod remove;
mod replace;
mod run;
mod scan;
mod search;
mod split;
mod stamp;
mod statistics;
mod suffix;
mod tree;
mod unlink;
mod unlinked;
mod verify;
mod version;

pub use drain::Drain;
pub use get::Lookup;
pub use insert::{InsertError, InsertObserver, Inserted};
#[cfg(shuttle)]
#[doc(hidden)]
pub use planted::{Fault, plant};
pub use remove::Removal;
pub use scan::{Bounds, Direction, ScanVisitor};
pub use stamp::{NodeId, NodeStamp};
pub use statistics::Statistics;
pub use tree::Masstree;
pub use version::NodeVersion;

/// The length in bytes of the longest key.
pub const KEY_LEN_MAX: usize = 4096;

/// The slots of a border node. Model checkers get small nodes, so that few keys make many of them.
pub(crate) const WIDTH: usize = if cfg!(any(loom, shuttle)) { 3 } else { 15 };

/// The keys of an interior node.
pub(crate) const INTERIOR_WIDTH: usize = if cfg!(any(loom, shuttle)) { 2 } else { 14 };

/// More than the levels that a layer can have. The highest level is split, and one put above it, when its node has no room;
/// since its last split it was given at least 7 children, each by the split of a node below: that takes
/// `7^HEIGHT_MAX` inserts, more than 64 bits can count.
pub(crate) const HEIGHT_MAX: usize = 24;
