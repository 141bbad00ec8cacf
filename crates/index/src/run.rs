//! Whether the inserts into a border node come in ascending order.
//!
//! Half full nodes are what random inserts leave behind on a split, and what ascending inserts do not need: the half that was
//! left behind never fills up. Ascending inserts at the right end of a layer are seen by their place. In the middle, as
//! with order ids that grow within each district, a node remembers them: each insert that lands right behind the last
//! one makes a run longer, and a node that splits during a run splits at the run's end.
//!
//! # Layout
//! One byte of the node's first line: the slot of the last insert in the high nibble, the length of the run, at most
//! 15, in the low one.

use crate::permuter::Permuter;

/// The last inserts into a node.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) struct Run(u8);

/// As many inserts in ascending order are no accident.
const LENGTH_MIN: u8 = 3;

impl Run {
    /// No insert yet.
    pub(crate) const NONE: Run = Run(0);

    pub(crate) fn from_byte(byte: u8) -> Self {
        Run(byte)
    }

    pub(crate) fn to_byte(self) -> u8 {
        self.0
    }

    /// Returns a run of which the last insert took `slot`.
    fn new(slot: usize, length: u8) -> Self {
        Run((slot as u8) << 4 | length.min(15))
    }

    fn length(self) -> u8 {
        self.0 & 15
    }

    /// Returns whether an insert at `position` lands right behind the last one.
    fn goes_on_at(self, position: usize, permuter: Permuter) -> bool {
        self.length() > 0 && position > 0 && permuter.slot(position - 1) == usize::from(self.0 >> 4)
    }

    /// Returns whether an insert at `position` belongs to inserts in ascending order.
    pub(crate) fn is_ascending_at(self, position: usize, permuter: Permuter) -> bool {
        self.length() >= LENGTH_MIN && self.goes_on_at(position, permuter)
    }

    /// After an insert into `slot` at `position` of the permutation as it was before.
    pub(crate) fn after_insert(self, position: usize, slot: usize, permuter: Permuter) -> Self {
        let length = if self.goes_on_at(position, permuter) { self.length() } else { 0 };
        Run::new(slot, length + 1)
    }

    /// For a node that an ascending insert has just begun, with the insert in `slot`.
    pub(crate) fn carried_to(self, slot: usize) -> Self {
        Run::new(slot, self.length())
    }
}
