//! Another value for a key that is there.

use ensilo_epoch::Guard;
use ensilo_sync::region::{self, Region};

use crate::Masstree;
use crate::border::KeyContent;

impl Masstree {
    /// Maps `key` to `new` if it is mapped to `old`; says whether it did. The set of keys is the same, so no version changes.
    ///
    /// # Panics
    /// When `new` is 0.
    pub fn replace(&self, key: &[u8], old: u64, new: u64, guard: &Guard<'_>) -> bool {
        assert_ne!(new, 0, "values are not 0");
        let _index = region::enter(Region::Index);
        loop {
            let position = self.descend_to_write(key, usize::MAX, guard);
            // Under the lock: a split that copies the slot meanwhile would leave the new value behind.
            let Some(border) = position.lock() else { continue };
            let place = border.find(position.key);
            let content = border.content(position.key, place);
            let replaced = content == KeyContent::Value(old);
            if replaced && let Some(slot) = place.slot {
                border.set_value(slot, new);
            }
            border.unlock_unchanged();
            if content != KeyContent::Layer {
                return replaced;
            }
        }
    }
}
