//! Allocations that fail although there is memory, for tests with the feature `testing`.

// Part of no protocol.
use ensilo_sync::atomic::Ordering;
use ensilo_sync::unchecked::AtomicU64;

/// Whether allocations can be made to fail.
const FAULTS: bool = cfg!(feature = "testing");

/// Chooses the allocations that fail.
#[derive(Debug)]
pub(crate) struct Faults {
    /// One of so many fails; none if 0.
    one_in: AtomicU64,
    asked: AtomicU64,
}

impl Faults {
    pub(crate) const fn none() -> Self {
        Faults { one_in: AtomicU64::new(0), asked: AtomicU64::new(0) }
    }

    /// From now on about one allocation of `one_in` fails, in an order that `seed` decides; none if `one_in` is 0.
    #[cfg(feature = "testing")]
    pub(crate) fn plant(&self, one_in: u64, seed: u64) {
        self.asked.store(seed, Ordering::Relaxed);
        self.one_in.store(one_in, Ordering::Relaxed);
    }

    /// Whether this allocation is to fail.
    #[inline]
    pub(crate) fn strikes(&self) -> bool {
        FAULTS && self.is_chosen()
    }

    fn is_chosen(&self) -> bool {
        let one_in = self.one_in.load(Ordering::Relaxed);
        if one_in == 0 {
            return false;
        }
        // The finalizer of splitmix64, over a counter.
        let mut word = self.asked.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (word ^ (word >> 31)).is_multiple_of(one_in)
    }
}
