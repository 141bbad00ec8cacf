//! Small engines that Silo is compared with. They are protocols like [`crate::Silo`], so that what is compared is what lies beneath
//! the tables, and nothing else; they lack guarantees that Silo gives, each says which.
//!
//! # Source
//! Silo (SOSP 2013) §5.2 (Key-Value) and §5.4 (Partitioned-Store).

mod found_keys;
mod key_value;
mod partitioned;

pub use key_value::{KeyValue, KeyValueContext, KeyValueTransaction};
pub use partitioned::{PartitionContext, PartitionTransaction, Partitioned};
