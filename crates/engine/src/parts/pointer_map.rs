//! A map from addresses to positions that is emptied in constant time.
//!
//! A transaction asks at every read whether it has written the record before, and at every insert whether it has
//! stamped the node. The map is open addressing over a power of two of slots; a slot counts only if it carries the
//! current generation, so that the next transaction starts empty without touching the slots.

#[derive(Copy, Clone, Debug, Default)]
struct MapSlot {
    address: usize,
    generation: u32,
    position: u32,
}

/// Maps addresses to positions in a vector.
#[derive(Debug)]
pub struct PointerMap {
    slots: Vec<MapSlot>,
    generation: u32,
    len: usize,
    /// 64 less the bits of a place among the slots.
    shift: u32,
}

const SLOTS_AT_START: usize = 64;

/// A map that grew beyond this for one huge transaction gives its memory back.
const KEPT_SLOTS: usize = 1 << 14;

impl Default for PointerMap {
    fn default() -> Self {
        PointerMap::with_slots(SLOTS_AT_START)
    }
}

impl PointerMap {
    fn with_slots(count: usize) -> Self {
        debug_assert!(count.is_power_of_two());
        PointerMap {
            slots: vec![MapSlot::default(); count],
            generation: 1,
            len: 0,
            shift: u64::BITS - count.ilog2(),
        }
    }

    /// Returns the position under `address`.
    #[inline]
    #[must_use]
    pub fn get(&self, address: usize) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = self.place_of(address);
        loop {
            let slot = self.slots[at];
            if slot.generation != self.generation {
                return None;
            }
            if slot.address == address {
                return Some(slot.position);
            }
            at = (at + 1) & mask;
        }
    }

    /// Returns how many bytes more the map takes, of those beyond what it keeps, once `more` addresses are added.
    #[must_use]
    pub fn growth_bytes(&self, more: usize) -> usize {
        let needed = ((self.len + more) * 2).next_power_of_two().max(self.slots.len());
        let beyond = |slots: usize| slots.saturating_sub(KEPT_SLOTS) * size_of::<MapSlot>();
        beyond(needed) - beyond(self.slots.len())
    }

    /// Returns whether one more address makes the map grow.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        (self.len + 1) * 2 > self.slots.len()
    }

    /// Puts `position` under `address`, which must not be in the map.
    #[inline]
    pub fn insert(&mut self, address: usize, position: u32) {
        debug_assert!(self.get(address).is_none());
        if self.is_full() {
            self.grow();
        }
        self.len += 1;
        self.place(MapSlot { address, generation: self.generation, position });
    }

    /// Forgets every address.
    #[inline]
    pub fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 || self.slots.len() > KEPT_SLOTS {
            *self = PointerMap::with_slots(self.slots.len().min(KEPT_SLOTS));
        }
    }

    #[inline]
    fn place(&mut self, new: MapSlot) {
        let mask = self.slots.len() - 1;
        let mut at = self.place_of(new.address);
        while self.slots[at].generation == self.generation {
            at = (at + 1) & mask;
        }
        self.slots[at] = new;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled =
            PointerMap { generation: self.generation, ..PointerMap::with_slots(self.slots.len() * 2) };
        let old = std::mem::replace(self, PointerMap { len: self.len, ..doubled });
        for slot in old.slots {
            if slot.generation == self.generation {
                self.place(slot);
            }
        }
    }

    /// Returns where the search for an address begins: the top bits, as many as there are places.
    #[inline]
    fn place_of(&self, address: usize) -> usize {
        (spread(address) >> self.shift) as usize
    }
}

/// Returns a number with upper bits that depend on all bits of the address. Addresses are multiples of 16 and often of 64; the
/// multiplication carries all of their bits up.
#[inline]
#[must_use]
pub fn spread(address: usize) -> u64 {
    (address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_finds_what_was_put_and_forgets_all_at_once() {
        let mut map = PointerMap::default();
        for round in 0..3_u32 {
            for i in 0..1000_u32 {
                map.insert(i as usize * 64, i + round);
            }
            for i in 0..1000_u32 {
                assert_eq!(map.get(i as usize * 64), Some(i + round));
            }
            assert_eq!(map.get(7), None);
            map.clear();
            assert_eq!(map.get(64), None);
        }
    }

    /// Returns how many slots a search for an address looks at.
    fn steps(map: &PointerMap, address: usize) -> usize {
        let mask = map.slots.len() - 1;
        let mut at = map.place_of(address);
        let mut steps = 1;
        while map.slots[at].address != address {
            at = (at + 1) & mask;
            steps += 1;
        }
        steps
    }

    #[test]
    fn a_search_takes_few_steps_at_every_size() {
        // Places by 24 bits or fewer would crowd long before the last size.
        for bits in [4, 12, 16, 20, 22] {
            let mut map = PointerMap::default();
            let addresses = || (0..1_u32 << bits).map(|at| 0x7f00_0000_0000 + at as usize * 64);
            addresses().zip(0..).for_each(|(address, position)| map.insert(address, position));
            let total: usize = addresses().map(|address| steps(&map, address)).sum();
            assert!(total < 4 << bits, "{total} steps for {} addresses", 1 << bits);
        }
    }

    #[test]
    fn places_spread_over_more_than_24_bits() {
        let map = PointerMap { shift: u64::BITS - 30, ..PointerMap::default() };
        let highest = (0..1000).map(|at| map.place_of(0x7f00_0000_0000 + at * 64)).max();
        assert!(highest > Some(1 << 29), "slots beyond 2^24 begin a search too");
    }

    #[test]
    fn a_map_gives_back_what_a_huge_transaction_took() {
        let mut map = PointerMap::default();
        assert_eq!(map.growth_bytes(KEPT_SLOTS / 2), 0);
        assert_eq!(map.growth_bytes(KEPT_SLOTS), KEPT_SLOTS * size_of::<MapSlot>());
        (0..KEPT_SLOTS).for_each(|at| map.insert(at * 16, 0));
        assert_eq!((map.slots.len(), map.growth_bytes(0)), (2 * KEPT_SLOTS, 0));
        map.clear();
        assert_eq!((map.slots.capacity(), map.get(16)), (KEPT_SLOTS, None));
    }
}
