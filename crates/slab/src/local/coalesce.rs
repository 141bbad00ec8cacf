//! Making large blocks of small free ones that lie side by side, where no memory is to be had.
//!
//! Blocks stay in their class as long as there is memory. At the limit, larger free blocks are cut up, and here small ones become large
//! again: otherwise rows could not grow where half of the others were deleted, as long as one block in each extent is in use.

use std::collections::HashMap;
use std::ptr::NonNull;

use super::{FreeList, Local, SPAN_BYTES_MAX};
use crate::chunk::{CHUNK_BYTES, Extent, extent_of};
use crate::class::{ALIGN_MIN, CLASSES, Class};

/// Extents that are searched, those with the most free bytes, so that the search takes little memory.
const EXTENTS_MAX: usize = 16;

/// Of a chunk's address space, which units of [`ALIGN_MIN`] bytes are free; for one extent in it.
struct FreeUnits {
    bits: Vec<u64>,
}

/// Free memory without a gap: the addresses of its first byte and behind its last.
type Run = (usize, usize);

impl Local {
    /// Returns a block of the class, made of free blocks that lie side by side; some more go into the class's list, a span's worth at
    /// least where there are so many. `None` if nowhere enough lie together. Takes time for every free block.
    pub(crate) fn coalesce(&self, class: Class) -> Option<NonNull<u8>> {
        let extents = self.emptiest_extents();
        let runs = self.find_runs(&extents, class);
        let is_in_run = |block: NonNull<u8>| {
            let at = runs.partition_point(|&(start, _)| start <= block.addr().get());
            runs[..at].last().is_some_and(|&(_, end)| block.addr().get() < end)
        };
        // The block that each run begins with: a pointer from which the run can be reached.
        let mut starts = vec![None; runs.len()];
        for list in &self.lists {
            let removed = FreeList::new();
            let _ = list.move_blocks(&removed, is_in_run, &|| false);
            let span = list.uncut().map(|(start, _)| start).filter(|&start| is_in_run(start));
            if span.is_some() {
                list.span.left.set(0);
            }
            for block in std::iter::from_fn(|| removed.pop()).chain(span) {
                if let Ok(run) = runs.binary_search_by_key(&block.addr().get(), |&(start, _)| start) {
                    starts[run] = Some(block);
                }
            }
        }
        for (&(start, end), block) in runs.iter().zip(starts) {
            let block = block.expect("a run begins with a block");
            // SAFETY: the run is made of blocks and a span that have left their lists, all of one extent.
            unsafe { self.cut_up(block, end - start, class) };
        }
        self.lists[class.index].pop()
    }

    fn emptiest_extents(&self) -> Vec<NonNull<Extent>> {
        let mut free = HashMap::new();
        for (index, list) in self.lists.iter().enumerate() {
            let _ = list.count_free(Class::at(index).size, &mut free, &|| false);
        }
        let mut extents: Vec<_> = free.into_iter().collect();
        extents.sort_unstable_by_key(|&(extent, bytes)| (std::cmp::Reverse(bytes), extent));
        extents.into_iter().take(EXTENTS_MAX).map(|(extent, _)| extent).collect()
    }

    /// Returns runs in which blocks of the class fit, in the order of their addresses.
    fn find_runs(&self, extents: &[NonNull<Extent>], class: Class) -> Vec<Run> {
        let mut units: HashMap<_, _> = extents.iter().map(|&extent| (extent, FreeUnits::new())).collect();
        let mut note = |start: NonNull<u8>, bytes| {
            // SAFETY: a free block of this heap.
            if let Some(units) = units.get_mut(&unsafe { extent_of(start) }) {
                units.note(start, bytes);
            }
        };
        for (index, list) in self.lists.iter().enumerate() {
            let size = Class::at(index).size;
            list.free_blocks().for_each(|block| note(block, size));
            list.uncut().inspect(|&(start, left)| note(start, left));
        }
        let (mut runs, mut bytes) = (Vec::new(), 0);
        for extent in extents {
            let chunk = extent.addr().get() & !(CHUNK_BYTES - 1);
            for (start, end) in units[extent].runs().map(|(start, end)| (chunk + start, chunk + end)) {
                let usable = end.saturating_sub(start.next_multiple_of(class.align()));
                if usable >= class.size && bytes < SPAN_BYTES_MAX {
                    runs.push((start, end));
                    bytes += usable;
                }
            }
        }
        runs.sort_unstable();
        runs
    }

    /// Puts free memory into the lists: as blocks of the class, and what is left at both ends as smaller ones.
    ///
    /// # Safety
    /// The caller owns these bytes, all of one extent and aligned to [`ALIGN_MIN`], and gives them away.
    pub(super) unsafe fn cut_up(&self, start: NonNull<u8>, bytes: usize, class: Class) {
        let (mut next, mut left) = (start, bytes);
        while left > 0 {
            let fits = |class: &Class| class.size <= left && next.addr().get().is_multiple_of(class.align());
            let block = Some(class).filter(fits).unwrap_or_else(|| {
                let before_aligned = next.addr().get().next_multiple_of(class.align()) - next.addr().get();
                let room = if before_aligned > 0 { before_aligned.min(left) } else { left };
                let classes = (0..CLASSES).rev().map(Class::at);
                let mut fitting = classes.filter(fits).filter(|smaller| smaller.size <= room);
                fitting.next().expect("the smallest class fits anywhere")
            });
            // SAFETY: inside the caller's bytes; no other block has these.
            unsafe {
                self.put(next, block);
                next = next.add(block.size);
            }
            left -= block.size;
        }
    }
}

impl FreeUnits {
    fn new() -> Self {
        FreeUnits { bits: vec![0; CHUNK_BYTES / ALIGN_MIN / 64] }
    }

    fn note(&mut self, start: NonNull<u8>, bytes: usize) {
        let first = (start.addr().get() & (CHUNK_BYTES - 1)) / ALIGN_MIN;
        for unit in first..first + bytes / ALIGN_MIN {
            self.bits[unit / 64] |= 1 << (unit % 64);
        }
    }

    /// Returns the runs of free units, as offsets in the chunk.
    fn runs(&self) -> impl Iterator<Item = Run> {
        let is_free = |unit: usize| self.bits[unit / 64] >> (unit % 64) & 1 == 1;
        let mut unit = 0;
        let units = CHUNK_BYTES / ALIGN_MIN;
        std::iter::from_fn(move || {
            let start = (unit..units).find(|&unit| is_free(unit))?;
            unit = (start..units).find(|&unit| !is_free(unit)).unwrap_or(units);
            Some((start * ALIGN_MIN, unit * ALIGN_MIN))
        })
    }
}
