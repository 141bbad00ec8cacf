//! The engines that Silo's paper compares Silo with, under Ensilo's tables: [`KeyValue`] and [`PartitionedStore`].
//!
//! Both keep records in the same index as Silo and lack guarantees that Silo gives; each says which. Neither has snapshots or a log.
//!
//! # Source
//! Silo (SOSP 2013) §5.2 (Key-Value) and §5.4 (Partitioned-Store).
//!
//! # Memory
//! What was overwritten or deleted is retired to the epochs, and freed when no transaction can reach it. A store that was dropped keeps its
//! records and nodes until the engine goes, and what a session has free stays with it at the memory limit: comparisons need neither.

mod engine;
mod handle;
mod key_value;
mod partitioned;
mod record;
mod store;
mod transaction;
mod version;

pub use engine::{BaselineEngine, BaselineSession};
pub use handle::BaselineHandle;
pub use key_value::SingleKeys;
pub use partitioned::Partitions;
pub use record::Record;
pub use store::{Store, Stores};
pub use transaction::BaselineTransaction;

/// Gets and puts of single keys.
pub type KeyValue = BaselineEngine<SingleKeys>;

/// Partitions that transactions have to themselves.
pub type PartitionedStore = BaselineEngine<Partitions>;
