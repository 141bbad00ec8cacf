//! Parts of which engines over Masstree are made: what a transaction holds for itself.

mod end_keys;
mod lookups;
mod node_set;
mod pointer_map;
mod set_buffer;

pub use end_keys::end_keys;
pub use lookups::Lookups;
pub use node_set::NodeSet;
pub use pointer_map::{PointerMap, spread};
pub use set_buffer::{HeldMemory, KEPT_BYTES, LEN_MAX, SetBuffer, refused};
