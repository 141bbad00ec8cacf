//! Point look-ups.

use ensilo_epoch::Guard;

use crate::Masstree;
use crate::border::Probe;
use crate::descend::Position;
use crate::stamp::NodeStamp;

/// What a look-up found.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// The key's value.
    Found(u64),
    /// The key is missing, and stays so as long as this stamp is current.
    Missing(NodeStamp),
}

impl Masstree {
    /// Looks a key up. Writes no shared memory; starts to load the cache line that the value, taken as an address,
    /// points to.
    #[must_use]
    #[inline]
    pub fn get(&self, key: &[u8], guard: &Guard<'_>) -> Lookup {
        self.descend_to_read(key, guard).lookup()
    }
}

impl Position<'_, '_> {
    #[inline]
    pub(crate) fn lookup(&self) -> Lookup {
        match self.probe {
            Some(Probe::Value(value)) => Lookup::Found(value),
            _ => Lookup::Missing(NodeStamp::new(self.border, self.version)),
        }
    }
}
