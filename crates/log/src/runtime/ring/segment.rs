//! A segment's memory, and the records in it.

use std::fmt;
use std::ops::Range;

use ensilo_epoch::Epoch;

use super::place::{HEADER_BYTES, Part, UNIT_BYTES, UNITS_PER_EPOCH};
use crate::runtime::memory::Memory;

/// The first unit of a segment that is used.
const FIRST_UNIT: u64 = 1;

/// Memory for the records of one epoch. The system gives it as far as it is used.
pub(super) struct Segment {
    memory: Memory,
    /// Where the units begin: at a multiple of their size, so that no two places share a cache line.
    origin: usize,
}

/// The bytes before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Header {
    mark: u64,
    units: u32,
    payload_bytes: u32,
}

impl Segment {
    pub(super) fn new() -> Segment {
        let surplus = if cfg!(all(loom, test)) { 0 } else { UNIT_BYTES };
        let memory = Memory::new(UNITS_PER_EPOCH as usize * UNIT_BYTES + surplus);
        let origin = if cfg!(all(loom, test)) {
            0
        } else {
            memory.address().next_multiple_of(UNIT_BYTES) - memory.address()
        };
        Segment { memory, origin }
    }

    /// Writes a record, of which the first `payload_bytes` bytes of `content` are the payload.
    ///
    /// # Safety
    /// The part is the caller's alone, and nobody drains the segment before the caller's commit has ended.
    ///
    /// # Panics
    /// When the part is too small for the content.
    #[inline]
    pub(super) unsafe fn write(&self, part: Part, key: u64, payload_bytes: usize, content: &[u8]) {
        assert!(content.len() <= part.content_bytes(), "a log record ran over its place");
        let header = Header {
            mark: part.first() ^ key,
            units: part.units as u32,
            payload_bytes: payload_bytes as u32,
        };
        // SAFETY: the caller's promise.
        let bytes = unsafe { self.memory.slice_mut(self.bytes(part.unit, HEADER_BYTES + content.len())) };
        bytes[..HEADER_BYTES].copy_from_slice(&header.encode());
        bytes[HEADER_BYTES..].copy_from_slice(content);
    }

    /// Hands the logged transactions of the epoch to `each`, with their first unit. Returns the first unit behind
    /// the last record.
    ///
    /// # Safety
    /// All places of the epoch are filled, and nobody else writes here as long as the call lasts.
    pub(super) unsafe fn read(&self, epoch: Epoch, key: u64, mut each: impl FnMut(u64, &[u8])) -> u64 {
        let mut unit = FIRST_UNIT;
        while unit < UNITS_PER_EPOCH {
            // SAFETY: the caller's promise.
            let header = Header::decode(unsafe { self.memory.slice(self.bytes(unit, HEADER_BYTES)) });
            let part = Part { epoch, unit, units: u64::from(header.units) };
            if header.mark != part.first() ^ key {
                break;
            }
            let payload_bytes = header.payload_bytes as usize;
            assert!(
                part.units > 0 && payload_bytes <= part.content_bytes(),
                "a damaged log record in memory"
            );
            if payload_bytes > 0 {
                let range = self.bytes(unit, HEADER_BYTES + payload_bytes);
                // SAFETY: as above.
                each(unit, &unsafe { self.memory.slice(range) }[HEADER_BYTES..]);
            }
            unit += part.units;
        }
        unit
    }

    fn bytes(&self, unit: u64, len: usize) -> Range<usize> {
        let from = self.origin + unit as usize * UNIT_BYTES;
        from..from + len
    }
}

impl Header {
    fn encode(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.mark.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.units.to_le_bytes());
        bytes[12..].copy_from_slice(&self.payload_bytes.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Header {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        Header {
            mark: u64::from_le_bytes(std::array::from_fn(|byte| bytes[byte])),
            units: u32_at(8),
            payload_bytes: u32_at(12),
        }
    }
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("bytes", &self.memory.len()).finish()
    }
}
