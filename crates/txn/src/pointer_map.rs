//! A small map from addresses to positions that is emptied in constant time.
//!
//! A transaction asks at every read whether it has written the record before, and at every insert whether it has
//! stamped the node. The map is open addressing over a power of two of slots; a slot counts only if it carries the
//! current generation, so that the next transaction starts empty without touching the slots.

#[derive(Copy, Clone, Debug, Default)]
struct Slot {
    address: usize,
    generation: u32,
    position: u32,
}

/// Maps addresses to positions in a vector.
#[derive(Debug)]
pub(crate) struct PointerMap {
    slots: Vec<Slot>,
    generation: u32,
    len: usize,
}

const SLOTS_AT_START: usize = 64;

impl Default for PointerMap {
    fn default() -> Self {
        PointerMap { slots: vec![Slot::default(); SLOTS_AT_START], generation: 1, len: 0 }
    }
}

impl PointerMap {
    /// The position under `address`.
    #[inline]
    pub(crate) fn get(&self, address: usize) -> Option<u32> {
        let mask = self.slots.len() - 1;
        let mut at = hash(address) & mask;
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

    /// Puts `position` under `address`, which must not be in the map.
    #[inline]
    pub(crate) fn insert(&mut self, address: usize, position: u32) {
        debug_assert!(self.get(address).is_none());
        if (self.len + 1) * 2 > self.slots.len() {
            self.grow();
        }
        self.len += 1;
        self.place(Slot { address, generation: self.generation, position });
    }

    /// Forgets every address.
    #[inline]
    pub(crate) fn clear(&mut self) {
        if self.len == 0 {
            return;
        }
        self.len = 0;
        self.generation = self.generation.wrapping_add(1);
        if self.generation == 0 {
            self.slots.fill(Slot::default());
            self.generation = 1;
        }
    }

    #[inline]
    fn place(&mut self, new: Slot) {
        let mask = self.slots.len() - 1;
        let mut at = hash(new.address) & mask;
        while self.slots[at].generation == self.generation {
            at = (at + 1) & mask;
        }
        self.slots[at] = new;
    }

    #[cold]
    fn grow(&mut self) {
        let doubled = vec![Slot::default(); self.slots.len() * 2];
        let old = std::mem::replace(&mut self.slots, doubled);
        for slot in old {
            if slot.generation == self.generation {
                self.place(slot);
            }
        }
    }
}

/// Addresses are multiples of 16 and often of 64: the multiplication carries their middle bits up, the shift takes the top.
#[inline]
fn hash(address: usize) -> usize {
    ((address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize
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
}
