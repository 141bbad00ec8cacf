//! What was counted.

use std::collections::BTreeMap;

/// What was counted of all workers together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SharingCounts {
    /// Transactions that ended.
    pub transactions: u64,
    /// By the source file that wrote a line last, or read it first if nobody wrote it.
    pub by_file: BTreeMap<&'static str, LabelCounts>,
    /// Lines that several workers write and that go from core to core more than once in a thousand transactions, the most written first.
    pub hot_lines: Vec<HotLine>,
}

/// Accesses to lines of one label. All are sums over all workers and transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LabelCounts {
    /// Loads.
    pub loads: u64,
    /// Stores.
    pub stores: u64,
    /// Atomic read-modify-writes.
    pub read_modify_writes: u64,
    /// Lines that transactions wrote and another worker used too; each counts once a transaction.
    pub shared_lines_written: u64,
    /// Stores and read-modify-writes of such lines.
    pub shared_writes: u64,
    /// Read-modify-writes of such lines.
    pub shared_read_modify_writes: u64,
    /// Loads from lines that another worker wrote.
    pub foreign_loads: u64,
    /// Lines fetched from another core to be read.
    pub fetched_to_load: u64,
    /// Lines fetched from other cores, or taken away from them, to be written.
    pub fetched_to_write: u64,
    /// Lines that were in no cache, or in others unchanged.
    pub from_memory: u64,
}

/// A line that several workers write, and often fetch from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotLine {
    /// Where it was written last.
    pub file: &'static str,
    /// Workers that wrote it.
    pub writers: usize,
    /// Transactions that wrote it.
    pub writing_transactions: u64,
    /// Times that it was fetched from another core.
    pub fetched: u64,
}

impl LabelCounts {
    /// Adds `other`.
    pub fn add(&mut self, other: &Self) {
        self.loads += other.loads;
        self.stores += other.stores;
        self.read_modify_writes += other.read_modify_writes;
        self.shared_lines_written += other.shared_lines_written;
        self.shared_writes += other.shared_writes;
        self.shared_read_modify_writes += other.shared_read_modify_writes;
        self.foreign_loads += other.foreign_loads;
        self.fetched_to_load += other.fetched_to_load;
        self.fetched_to_write += other.fetched_to_write;
        self.from_memory += other.from_memory;
    }
}
