//! What an engine counts of rows that have left memory.

/// Rows that are on the disk instead of in memory, in an engine that [evicts](crate::Engine::EVICTS) some.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct ColdCounters {
    /// Rows that are there now.
    pub rows: u64,
    /// Their bytes.
    pub row_bytes: u64,
    /// The bytes of the files that they are in.
    pub file_bytes: u64,
    /// Rows that have left memory so far.
    pub evicted: u64,
    /// Rows that were read back so far.
    pub loaded: u64,
}
