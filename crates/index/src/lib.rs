//! Masstree: an ordered index from byte strings to one machine word.
