//! The maps.

mod btree_map;
mod congee;
mod ensilo;
mod masstree;
mod skip_map;
mod tree_index;

pub(crate) use btree_map::LockedBTreeMap;
pub(crate) use congee::CongeeMap;
pub(crate) use ensilo::EnsiloIndex;
pub(crate) use masstree::MasstreeMap;
pub(crate) use skip_map::SkipListMap;
pub(crate) use tree_index::TreeIndexMap;
