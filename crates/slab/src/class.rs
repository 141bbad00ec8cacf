//! Which class a layout falls into.
//!
//! Sizes go in steps of 16 bytes up to 256, then in eight steps per power of two up to 32 KiB. A size that is a multiple of
//! an alignment rounds up to a class size that is one too: where classes are `s` apart and the alignment is `a`, both powers of two, either
//! `s` divides `a`, then the size is itself a class size; or `a` divides `s`, hence the next class size.

use std::alloc::Layout;

/// Every block is aligned to at least this.
pub(crate) const ALIGN_MIN: usize = 16;

/// Blocks in classes are aligned to at most this.
pub(crate) const ALIGN_MAX: usize = 4096;

/// The largest class. Under a model checker there is none: all blocks are large.
pub(crate) const SIZE_MAX: usize = if cfg!(any(loom, shuttle)) { 0 } else { 32 << 10 };

/// How many classes there are.
pub(crate) const CLASSES: usize = 72;

/// Up to here classes are 16 bytes apart.
const FINE_MAX: usize = 256;

/// How many classes of 16-byte steps there are.
const FINE_CLASSES: usize = FINE_MAX / ALIGN_MIN;

/// A size class: its place in the heap's table and the size of its blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) index: usize,
    pub(crate) size: usize,
}

impl Class {
    /// Returns the class of a layout; `None` if it is too large for one.
    #[inline]
    pub(crate) const fn of(layout: Layout) -> Option<Class> {
        let size = aligned_size(layout);
        if size > SIZE_MAX || layout.align() > ALIGN_MAX {
            None
        } else if size <= FINE_MAX {
            Some(Class { index: size / ALIGN_MIN - 1, size })
        } else {
            let shift = (size - 1).ilog2() - 3;
            let steps = (size + (1 << shift) - 1) >> shift;
            // Steps are 9 to 16 here: eight classes for each shift from 5 on.
            let index = FINE_CLASSES + (shift as usize - 5) * 8 + (steps - 9);
            Some(Class { index, size: steps << shift })
        }
    }

    /// Returns the class at an index, which must be below `CLASSES`.
    pub(crate) const fn at(index: usize) -> Class {
        if index < FINE_CLASSES {
            Class { index, size: (index + 1) * ALIGN_MIN }
        } else {
            let coarse = index - FINE_CLASSES;
            Class { index, size: (9 + coarse % 8) << (5 + coarse / 8) }
        }
    }

    /// Returns what every block of the class is aligned to.
    pub(crate) const fn align(self) -> usize {
        let natural = 1 << self.size.trailing_zeros();
        if natural < ALIGN_MAX { natural } else { ALIGN_MAX }
    }

    /// Returns whether any block of `larger` has room for an aligned block of this class.
    pub(crate) const fn fits_into(self, larger: Class) -> bool {
        larger.size >= self.size + self.align().saturating_sub(larger.align())
    }
}

/// Returns the size of a layout rounded up to its alignment, and to 16 bytes.
#[inline]
pub(crate) const fn aligned_size(layout: Layout) -> usize {
    let align = if layout.align() > ALIGN_MIN { layout.align() } else { ALIGN_MIN };
    let size = if layout.size() > 0 { layout.size() } else { 1 };
    // No overflow: a layout's size, rounded up to its alignment, is at most `isize::MAX`; to 16 bytes, at most 15 more.
    (size + (align - 1)) & !(align - 1)
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    fn class(size: usize, align: usize) -> Class {
        Class::of(Layout::from_size_align(size, align).unwrap()).unwrap()
    }

    #[test]
    fn every_size_falls_into_the_smallest_class_that_holds_it() {
        for size in 1..=SIZE_MAX {
            let class = class(size, 8);
            assert!(class.size >= size && class.index < CLASSES);
            assert_eq!(class, Class::at(class.index));
            assert!(class.index == 0 || Class::at(class.index - 1).size < size, "{size}");
        }
        assert_eq!(class(SIZE_MAX, 8).index, CLASSES - 1);
        assert_eq!(Class::of(Layout::from_size_align(SIZE_MAX + 1, 8).unwrap()), None);
        assert_eq!(Class::of(Layout::from_size_align(8, 2 * ALIGN_MAX).unwrap()), None);
    }

    #[test]
    fn classes_are_at_most_an_eighth_apart() {
        for index in 8..CLASSES {
            let (before, size) = (Class::at(index - 1).size, Class::at(index).size);
            assert!(before < size && (size - before) * 8 <= before, "{before} {size}");
        }
    }

    #[test]
    fn a_class_is_aligned_as_the_layout_asks() {
        for align in (0..=12).map(|bits| 1 << bits) {
            for size in (0..=SIZE_MAX - align).step_by(7) {
                let class = class(size, align);
                assert!(class.align() >= align && class.size >= size, "{size} at {align}");
            }
        }
    }

    #[test]
    fn records_and_nodes_fill_their_class() {
        assert_eq!(class(124, 8), Class { index: 7, size: 128 });
        assert_eq!(class(320, 64).size, 320);
        assert_eq!(class(0, 1).size, ALIGN_MIN);
    }
}
