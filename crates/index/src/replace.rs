//! Another value for a key that is there.

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::border::Probe;
use crate::key::LAYER;

impl Masstree {
    /// Maps `key` to `new` if it is mapped to `old`; says whether it did. The set of keys is the same, so no version changes.
    ///
    /// # Panics
    /// When `new` is 0.
    pub fn replace(&self, key: &[u8], old: u64, new: u64, guard: &Guard<'_>) -> bool {
        assert_ne!(new, 0, "values are not 0");
        loop {
            let position = self.descend_to_write(key, usize::MAX, guard);
            if position.probe != Probe::Value(old) {
                return false;
            }
            // Under the lock: a split that copies the slot meanwhile would leave the new value behind.
            let Some(border) = position.lock() else { continue };
            let slot = border.find(position.key).slot;
            let replaced = slot.filter(|&slot| {
                border.kind(slot) != LAYER && border.probe(position.key) == Probe::Value(old)
            });
            if let Some(slot) = replaced {
                border.set_value(slot, new);
            }
            border.unlock_unchanged();
            if replaced.is_some() {
                return true;
            }
        }
    }
}
