//! YCSB: reads and writes of single records, in transactions of one or more.
//!
//! # Source
//! Cooper et al., "Benchmarking Cloud Serving Systems with YCSB" (SoCC 2010), and its variants in Silo (SOSP 2013) §5.2 and
//! SiloR (OSDI 2014) §6.2: keys of 8 bytes, values of 100. A transaction may hold several operations; its reads are one
//! `get_many` then. Records may lie in several tables, and have secondary indexes; transactions may be those of many sessions, or be run in
//! batches.

mod batch;
mod check;
mod clients;
mod keys;
mod options;
mod record;
mod session;
mod table;
#[cfg(test)]
mod tests;
pub mod value;
mod workload;

pub use keys::Keys;
pub(crate) use options::SCAN;
pub use options::{
    BATCH_TYPES, Distribution, INDEXES_MAX, NamedMix, NamedMixError, OPERATIONS, VALUE_BYTES_MAX,
    VALUE_BYTES_MIN, YcsbOptions,
};
pub use workload::{Ycsb, YcsbSession};
