//! How much a step of the collection of garbage has left.

/// What a step of the collection has left. Ordered by how soon the next step should come.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remains {
    /// No garbage.
    Nothing,
    /// Garbage that somebody may still reach.
    Later,
    /// Garbage that can be freed now.
    Now,
}
