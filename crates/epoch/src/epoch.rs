//! The number of an epoch, and the snapshot interval that it lies in.

use std::fmt;

/// The number of an epoch. Later epochs are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Epoch(u64);

impl Epoch {
    /// Later than every epoch.
    pub const MAX: Epoch = Epoch(u64::MAX);

    /// The bits of a number, in TIDs and on disk.
    pub const BITS: u32 = 44;

    /// The last epoch that there is. With ten thousand epochs a second, all the time, it comes after 55 years. The global epoch stays
    /// there, and nothing commits in it.
    pub const LAST: Epoch = Epoch((1 << Self::BITS) - 1);

    /// Returns the epoch with this number.
    #[must_use]
    #[inline]
    pub const fn new(number: u64) -> Self {
        Epoch(number)
    }

    /// Returns the number of the epoch.
    #[must_use]
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Rounds epochs down to multiples of `k`, the epochs per snapshot, without a division.
///
/// `floor(e / k)` is taken as `(e * ceil(2^63 / k)) >> 63`. With `ceil(2^63 / k) = (2^63 + d) / k`, `0 <= d < k`, the product exceeds
/// `e / k * 2^63` by `e * d / k < e`; the floor is right as long as that is less than `2^63 / k`, the distance to the next
/// multiple. `e * k < 2^63` holds for every epoch, which has 44 bits, and every `k` below 2^19.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SnapshotInterval {
    epochs: u64,
    reciprocal: u64,
}

impl SnapshotInterval {
    /// Shift of the fixed-point reciprocal.
    const SHIFT: u32 = 63;
    const EPOCHS_MAX: u64 = (1 << (Self::SHIFT - Epoch::BITS)) - 1;

    /// Intervals of `epochs` epochs, of at least one and less than 2^19.
    pub(crate) fn new(epochs: u64) -> Self {
        let epochs = epochs.clamp(1, Self::EPOCHS_MAX);
        SnapshotInterval { epochs, reciprocal: (1u64 << Self::SHIFT).div_ceil(epochs) }
    }

    /// Returns the number of epochs in an interval: `k`.
    pub(crate) fn epochs(self) -> u64 {
        self.epochs
    }

    /// Returns the first epoch of the first interval that begins at `epoch` or later.
    pub(crate) fn start_from(self, epoch: Epoch) -> Epoch {
        Epoch(epoch.0.next_multiple_of(self.epochs))
    }

    /// Returns the first epoch of the interval after the one that `epoch` lies in.
    pub(crate) fn next_start(self, epoch: Epoch) -> Epoch {
        Epoch(self.start(epoch).0 + self.epochs)
    }

    /// Returns the first epoch of the interval that `epoch` lies in.
    #[inline]
    pub(crate) fn start(self, epoch: Epoch) -> Epoch {
        debug_assert!(epoch.get().checked_mul(self.epochs).is_some_and(|product| product < 1 << Self::SHIFT));
        let product = u128::from(epoch.get()) * u128::from(self.reciprocal);
        Epoch((product >> Self::SHIFT) as u64 * self.epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_starts_at_the_multiple_below() {
        let largest = SnapshotInterval::EPOCHS_MAX;
        for epochs in (1..200).chain([1 << 10, 12_345, 1 << 18, largest - 1, largest]) {
            let interval = SnapshotInterval::new(epochs);
            let end = Epoch::LAST.get() + 1;
            let far = (end / epochs - 1) * epochs;
            for near in (0..5).map(|i| i * epochs).chain([end / 16 / epochs * epochs, far - epochs, far]) {
                for epoch in [near, near + epochs / 2, near + epochs - 1] {
                    assert_eq!(
                        interval.start(Epoch(epoch)),
                        Epoch(epoch / epochs * epochs),
                        "{epoch} by {epochs}"
                    );
                }
            }
        }
    }
}
