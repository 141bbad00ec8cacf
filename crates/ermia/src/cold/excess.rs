//! How much should leave memory, by the size of the rows.

use ensilo_slab::Fill;

/// The sizes of rows: those in blocks of chunks, and large ones.
pub(super) const SIZES: usize = 2;
pub(super) const SMALL: usize = 0;
pub(super) const LARGE: usize = 1;

/// Which rows leave memory where no transaction has begun.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Leavers {
    All = SMALL as isize,
    Large = LARGE as isize,
}

/// How many bytes of rows of one size should leave memory, and how many should be about to.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Excess {
    pub(super) leaving_bytes: u64,
    pub(super) cooling_bytes: u64,
}

impl Excess {
    /// Everything should leave.
    pub(super) const ALL: [Excess; SIZES] =
        [Excess { leaving_bytes: u64::MAX, cooling_bytes: u64::MAX }; SIZES];

    /// Returns what should leave memory, of small rows and of large ones, when it is so full.
    pub(super) fn of(fill: &Fill) -> [Excess; SIZES] {
        let small = Self::beyond(fill.block_bytes, fill.chunk_bytes);
        let large = Self::beyond(fill.beside_bytes, fill.room_bytes);
        [small, large.at_most(fill.large_bytes)]
    }

    /// So much less should be in use that there is room for what comes until rows have left.
    fn beyond(used: u64, all: u64) -> Excess {
        if used <= all / 4 * 3 {
            return Excess::default();
        }
        Excess { leaving_bytes: used.saturating_sub(all / 16 * 13), cooling_bytes: all / 16 }
    }

    fn at_most(self, bytes: u64) -> Excess {
        Excess { leaving_bytes: self.leaving_bytes.min(bytes), cooling_bytes: self.cooling_bytes.min(bytes) }
    }

    pub(super) fn at_least(self, bytes: u64) -> Excess {
        Excess { leaving_bytes: self.leaving_bytes.max(bytes), cooling_bytes: self.cooling_bytes.max(bytes) }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    const FILL: Fill = Fill {
        chunk_bytes: 160,
        block_bytes: 100,
        room_bytes: 160,
        beside_bytes: 100,
        large_bytes: 50,
        in_the_way_bytes: 0,
    };

    fn leaving(fill: Fill) -> [u64; SIZES] {
        Excess::of(&fill).map(|excess| excess.leaving_bytes)
    }

    #[test]
    fn rows_of_each_size_leave_for_their_own() {
        assert_eq!(leaving(FILL), [0, 0]);
        assert_eq!(leaving(Fill { block_bytes: 150, ..FILL }), [20, 0]);
        assert_eq!(leaving(Fill { beside_bytes: 150, ..FILL }), [0, 20]);
        assert_eq!(
            leaving(Fill { beside_bytes: 150, large_bytes: 5, ..FILL }),
            [0, 5],
            "no more than there are"
        );
    }
}
