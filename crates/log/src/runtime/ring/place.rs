//! Places: consecutive units, within one epoch or across its end.

use ensilo_epoch::Epoch;

/// How many segments there are at a time.
pub(super) const SEGMENTS: u64 = if cfg!(all(loom, test)) { 2 } else { 96 };

/// Bytes of a unit.
pub const UNIT_BYTES: usize = if cfg!(all(loom, test)) { 24 } else { 64 };

const SEQUENCE_BITS: u32 = if cfg!(all(loom, test)) { 2 } else { 17 };

/// Units of an epoch, with the first one, which is never used.
pub const UNITS_PER_EPOCH: u64 = 1 << SEQUENCE_BITS;

/// The bits of a TID below its sequence.
const STATUS_BITS: u32 = 3;
const _: () = assert!(cfg!(all(loom, test)) || SEQUENCE_BITS + STATUS_BITS + Epoch::BITS == u64::BITS);

/// Bytes of a record before its payload.
pub(super) const HEADER_BYTES: usize = 16;

/// The most bytes of a log entry in the ring.
pub const RECORD_BYTES_MAX: usize = if cfg!(all(loom, test)) { UNIT_BYTES } else { 64 << 10 };

/// Consecutive units of the ring, taken from the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the logger takes nothing that lies behind a place that was not filled"]
pub struct Place {
    /// The number of the first unit, among all units of all epochs.
    first: u64,
    units: u64,
}

/// A place, or the part of one that lies in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) epoch: Epoch,
    /// The first unit, within the segment.
    pub(super) unit: u64,
    pub(super) units: u64,
}

impl Place {
    /// Returns how many units a log entry takes. One that is larger than [`RECORD_BYTES_MAX`] is logged aside,
    /// and takes one.
    #[must_use]
    #[inline]
    pub const fn units_for(payload_bytes: usize) -> u64 {
        if payload_bytes > RECORD_BYTES_MAX {
            return 1;
        }
        (HEADER_BYTES + payload_bytes).div_ceil(UNIT_BYTES) as u64
    }

    /// Returns the place of so many units that begins where this TID says.
    #[inline]
    pub const fn new(tid: u64, units: u64) -> Place {
        Place { first: tid >> STATUS_BITS, units }
    }

    /// Returns whether all of the place lies in this epoch. Then a transaction of this epoch is logged there, and
    /// otherwise the place is [skipped](super::Ring::skip).
    #[must_use]
    #[inline]
    pub const fn lies_in(self, epoch: Epoch) -> bool {
        let first_of_epoch = first_of(epoch.get());
        first_of_epoch <= self.first && self.first + self.units <= first_of_epoch - 1 + UNITS_PER_EPOCH
    }

    /// Returns the place as one part.
    #[inline]
    pub(super) fn whole(self) -> Part {
        let epoch = Epoch::new(self.first >> SEQUENCE_BITS);
        assert!(self.lies_in(epoch), "a log entry that ends in another epoch");
        Part { epoch, unit: self.first & (UNITS_PER_EPOCH - 1), units: self.units }
    }

    /// Returns the parts of the place, without units that are never used.
    pub(super) fn parts(self) -> impl Iterator<Item = Part> {
        let end = self.first + self.units;
        let epochs = self.first >> SEQUENCE_BITS..=(end - 1) >> SEQUENCE_BITS;
        epochs.filter_map(move |epoch| {
            let from = self.first.max(first_of(epoch));
            let to = end.min((epoch + 1) << SEQUENCE_BITS);
            let part = Part {
                epoch: Epoch::new(epoch),
                unit: from & (UNITS_PER_EPOCH - 1),
                units: to.saturating_sub(from),
            };
            (part.units > 0).then_some(part)
        })
    }
}

impl Part {
    /// Returns the number of the first unit among all units of all epochs.
    pub(super) fn first(self) -> u64 {
        self.epoch.get() << SEQUENCE_BITS | self.unit
    }

    /// Returns how many bytes fit behind the header.
    pub(super) fn content_bytes(self) -> usize {
        self.units as usize * UNIT_BYTES - HEADER_BYTES
    }
}

/// Returns the number of the first unit of an epoch that is used.
const fn first_of(epoch: u64) -> u64 {
    epoch << SEQUENCE_BITS | 1
}
