//! A set of addresses that all threads ask and change, and where nobody holds up the others for long.
//!
//! A transaction that has read a million records puts each of them here at its vote, and takes it out at its decision, while others commit.
//! So the set consists of stripes, each under a lock of its own that is held for one address at a time.
//!
//! # Memory
//! The room of a stripe doubles when it is full, and halves when three quarters of it are free, whatever else is in the set. What it has
//! beyond [`KEPT_ROOM`] counts against the memory limit.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use ensilo_slab::Pool;
use ensilo_sync::CachePadded;
use ensilo_sync::sync::Mutex;

use crate::registry::lock;
use ensilo_engine::parts::spread;

/// A model checker explores every lock: it gets one.
const STRIPE_BITS: u32 = if cfg!(any(loom, shuttle)) { 0 } else { 6 };

/// So many addresses a stripe has room for without asking.
const KEPT_ROOM: usize = 64;

/// What an address takes, about: a place is an entry and a byte, and there are twice as many places as there is room.
const ENTRY_BYTES: usize = 2 * (size_of::<(usize, u32)>() + 1);

/// A set of addresses, each of which is there as often as it was added.
pub(super) struct Addresses {
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    pool: Arc<Pool>,
}

impl Addresses {
    pub(super) fn new(pool: Arc<Pool>) -> Self {
        let stripes = (0..1 << STRIPE_BITS).map(|_| CachePadded::new(Mutex::new(Stripe::new())));
        Addresses { stripes: stripes.collect(), pool }
    }

    /// Adds an address. Returns `false`, and has changed nothing, when there is no memory.
    #[must_use]
    pub(super) fn try_add(&self, address: usize) -> bool {
        let mut stripe = lock(self.stripe(address));
        let has_room = stripe.reserve(&self.pool);
        if has_room {
            stripe.add(address);
        }
        has_room
    }

    /// Adds an address whatever the memory limit says.
    pub(super) fn add(&self, address: usize) {
        lock(self.stripe(address)).add(address);
    }

    /// Takes an address away that was added.
    pub(super) fn remove(&self, address: usize) {
        lock(self.stripe(address)).remove(address, &self.pool);
    }

    pub(super) fn contains(&self, address: usize) -> bool {
        self.count(address) > 0
    }

    /// Returns how often an address was added.
    #[cold]
    pub(super) fn count(&self, address: usize) -> u32 {
        lock(self.stripe(address)).counts.get(&address).copied().unwrap_or(0)
    }

    fn stripe(&self, address: usize) -> &Mutex<Stripe> {
        // The shift by 64 of a single stripe would overflow.
        &self.stripes[spread(address).checked_shr(u64::BITS - STRIPE_BITS).unwrap_or(0) as usize]
    }
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses").finish_non_exhaustive()
    }
}

struct Stripe {
    counts: HashMap<usize, u32, BuildHasherDefault<AddressHasher>>,
    /// For how many addresses memory is counted, or kept.
    room: usize,
}

impl Stripe {
    fn new() -> Self {
        Stripe { counts: HashMap::default(), room: KEPT_ROOM }
    }

    /// Makes room for one more.
    fn reserve(&mut self, pool: &Pool) -> bool {
        if self.counts.len() >= self.room {
            if pool.count_outside(self.room * ENTRY_BYTES).is_err() {
                return false;
            }
            self.room *= 2;
        }
        self.counts.try_reserve(1).is_ok()
    }

    fn add(&mut self, address: usize) {
        *self.counts.entry(address).or_insert(0) += 1;
    }

    fn remove(&mut self, address: usize, pool: &Pool) {
        match self.counts.get_mut(&address) {
            Some(1) => _ = self.counts.remove(&address),
            Some(count) => *count -= 1,
            None => unreachable!("what is removed was added"),
        }
        if self.room > KEPT_ROOM && self.counts.len() < self.room / 4 {
            self.room /= 2;
            self.counts.shrink_to(self.room);
            pool.forget_outside((self.room * ENTRY_BYTES) as u64);
        }
    }
}

/// Addresses need no hash that withstands an attack.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, _: &[u8]) {
        unreachable!("an address is hashed as one number");
    }

    fn write_usize(&mut self, address: usize) {
        // The upper bits are the good ones, and a map takes the lower ones.
        self.0 = spread(address).rotate_left(u64::BITS / 2);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    const COUNT: usize = 200_000;

    fn address(number: usize) -> usize {
        0x7f00_0000_0000 + number * 64
    }

    fn capacity(set: &Addresses) -> usize {
        set.stripes.iter().map(|stripe| lock(stripe).counts.capacity()).sum()
    }

    #[test]
    fn an_address_is_there_as_often_as_it_was_added() {
        let set = Addresses::new(Pool::new(None));
        assert!(set.try_add(address(1)) && set.try_add(address(1)));
        set.remove(address(1));
        assert!(set.contains(address(1)) && !set.contains(address(2)));
        set.remove(address(1));
        assert!(!set.contains(address(1)));
    }

    #[test]
    fn room_is_counted_and_goes_back_while_something_stays() {
        let pool = Pool::new(None);
        let set = Addresses::new(Arc::clone(&pool));
        for number in 0..COUNT {
            assert!(set.try_add(address(number)));
        }
        let (all, largest) = (pool.mapped_bytes() as usize, 4 * COUNT * ENTRY_BYTES);
        assert!((COUNT * ENTRY_BYTES..largest).contains(&all), "{all}");
        assert!(set.stripes.iter().all(|stripe| lock(stripe).counts.len() < (2 * COUNT) >> STRIPE_BITS));
        (10..COUNT).for_each(|number| set.remove(address(number)));
        assert!((0..10).all(|number| set.contains(address(number))));
        assert_eq!(pool.mapped_bytes(), 0);
        assert!(capacity(&set) <= (2 * KEPT_ROOM) << STRIPE_BITS, "{}", capacity(&set));
    }

    #[test]
    fn an_address_for_which_there_is_no_memory_is_not_added() {
        let pool = Pool::new(Some(1 << 20));
        let set = Addresses::new(Arc::clone(&pool));
        let refused = (0..COUNT).find(|&number| !set.try_add(address(number))).unwrap();
        assert!(!set.contains(address(refused)));
        set.add(address(refused));
        (0..=refused).for_each(|number| set.remove(address(number)));
        assert_eq!(pool.mapped_bytes(), 0);
    }
}
