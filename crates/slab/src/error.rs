//! The error of an allocation that would pass the memory limit.

use std::error::Error;
use std::fmt;

/// An allocation was refused: it would pass the pool's limit, or the system has no more memory.
///
/// Nothing was changed. Memory that is freed later makes room again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Bytes that were asked for.
    pub asked_bytes: u64,
    /// The pool's limit in bytes; `None` when there is no limit and the system itself refused.
    pub limit_bytes: Option<u64>,
    /// Bytes that the pool held from the system at that moment.
    pub mapped_bytes: u64,
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let OutOfMemory { asked_bytes, limit_bytes, mapped_bytes } = self;
        match limit_bytes {
            Some(limit) => write!(
                f,
                "out of memory: {asked_bytes} bytes asked for, {mapped_bytes} of at most {limit} bytes in use"
            ),
            None => write!(
                f,
                "out of memory: {asked_bytes} bytes asked for, {mapped_bytes} bytes in use, the system has no more"
            ),
        }
    }
}

impl Error for OutOfMemory {}
