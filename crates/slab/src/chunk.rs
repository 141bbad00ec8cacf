//! Two megabytes of address space on one huge page.
//!
//! A chunk starts on a multiple of its size, so that its start, and with it its owner, is found from the address of any block in it.
//! It belongs to one heap, or is shared: then heaps own pieces of 64 KiB of it, so that a heap with few blocks takes little.
//!
//! # Layout
//! ```text
//! chunk:         0                4096                                2 MiB
//!                | header zone    | blocks ...                        |
//! shared chunk:  | header zone    | rest of piece 0 | piece 1 | ... | piece 31 |
//! header zone:   header (one line): the extent that is the whole chunk; without an owner where the chunk is shared
//!                table (eight lines, of shared chunks): the extents that are its pieces
//! ```
//! The header does not sit at the start: all starts fall into the same set of every cache that is indexed by low address bits, and
//! freeing into many chunks would thrash that one set. Bits of the chunk's number choose one of 64 lines instead.

use std::cell::Cell;
use std::ptr::{self, NonNull};

use ensilo_sync::LINE_BYTES;
use ensilo_sync::atomic::Ordering;
// A count is part of no protocol.
use std::sync::atomic::AtomicUsize;

use crate::class::ALIGN_MAX;
use crate::shared::HeapShared;

/// Size and alignment of a chunk: one huge page.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// What the header's possible places take at the start of a chunk.
const HEADER_ZONE_BYTES: usize = 64 * LINE_BYTES;

/// The smallest page of any machine.
const PAGE_BYTES: usize = 4 << 10;

/// A piece of a shared chunk: as large as the largest span.
pub(crate) const PIECE_BYTES: usize = 64 << 10;

/// How many pieces a shared chunk has.
pub(crate) const PIECES: usize = CHUNK_BYTES / PIECE_BYTES;

/// The lines of the table of a shared chunk.
const TABLE_LINES: usize = PIECES * size_of::<Extent>() / LINE_BYTES;

const _: () = assert!(size_of::<Extent>() <= LINE_BYTES && HEADER_ZONE_BYTES.is_multiple_of(ALIGN_MAX));
const _: () = assert!(LINE_BYTES.is_multiple_of(size_of::<Extent>()) && 32_usize.is_multiple_of(TABLE_LINES));

/// A part of a chunk that one heap owns: the whole chunk, or a piece of it. What it says lies in the header zone of the chunk.
#[derive(Debug)]
pub(crate) struct Extent {
    /// Written before any block of the extent is handed out, and not before all have come back.
    owner: Cell<*const HeapShared>,
    /// Bytes of the blocks that were ever cut from the extent.
    cut_bytes: AtomicUsize,
}

impl Extent {
    #[allow(clippy::declare_interior_mutable_const, reason = "what every entry of a new table begins with")]
    const UNOWNED: Extent = Extent { owner: Cell::new(ptr::null()), cut_bytes: AtomicUsize::new(0) };

    /// Counts blocks of so many bytes that were cut from the extent. Called by its owner.
    pub(crate) fn add_cut(&self, bytes: usize) {
        // Relaxed, here and below: a count, which its owner compares with blocks that all have come back to it.
        self.cut_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns bytes of the blocks that were ever cut from the extent. Called by its owner.
    pub(crate) fn cut_bytes(&self) -> usize {
        self.cut_bytes.load(Ordering::Relaxed)
    }
}

/// A mapped chunk. Dropping it unmaps it.
#[derive(Debug)]
pub(crate) struct Chunk {
    start: NonNull<u8>,
}

// SAFETY: a chunk is a range of addresses that its holder alone may unmap, on any thread.
unsafe impl Send for Chunk {}

impl Chunk {
    /// Maps a chunk that has no owner yet; `None` if the system refuses.
    pub(crate) fn map() -> Option<Chunk> {
        map_aligned().map(|start| Chunk { start })
    }

    /// Makes the heap with this shared part the owner of the whole chunk, and returns the range for blocks. No block is handed out.
    pub(crate) fn give(&self, owner: NonNull<HeapShared>) -> (NonNull<u8>, usize) {
        let extent = Extent { owner: Cell::new(owner.as_ptr()), cut_bytes: AtomicUsize::new(0) };
        // SAFETY: the header's place lies in the header zone of the chunk, which nobody uses before it has an owner.
        unsafe { header_of(self.start).write(extent) };
        // SAFETY: the zone lies inside the chunk.
        (unsafe { self.start.add(HEADER_ZONE_BYTES) }, Self::USABLE_BYTES)
    }

    /// Makes it a shared chunk. Its pieces have no owners yet. No block is handed out.
    pub(crate) fn share(&self) {
        // SAFETY: header and table lie in the header zone of the chunk, at different places, and nobody uses them.
        unsafe {
            header_of(self.start).write(Extent::UNOWNED);
            for piece in 0..PIECES {
                table_of(self.start).add(piece).write(Extent::UNOWNED);
            }
        }
    }

    /// Makes the heap with this shared part the owner of a piece of a shared chunk, and returns the range for blocks.
    ///
    /// # Safety
    /// The chunk [is shared](Chunk::share), and the piece has no blocks.
    pub(crate) unsafe fn give_piece(&self, piece: usize, owner: NonNull<HeapShared>) -> (NonNull<u8>, usize) {
        debug_assert!(piece < PIECES);
        // SAFETY: `share` wrote the table. Nobody reads the entry of a piece without blocks.
        unsafe {
            table_of(self.start)
                .add(piece)
                .write(Extent { owner: Cell::new(owner.as_ptr()), cut_bytes: AtomicUsize::new(0) });
        }
        let skipped = if piece == 0 { HEADER_ZONE_BYTES } else { 0 };
        // SAFETY: inside the chunk.
        (unsafe { self.start.add(piece * PIECE_BYTES + skipped) }, PIECE_BYTES - skipped)
    }

    /// Returns the chunk's number: no other mapped chunk has the same.
    pub(crate) fn number(&self) -> usize {
        self.start.addr().get() / CHUNK_BYTES
    }

    /// Makes the system put memory behind every page, of a chunk that has no owner yet.
    pub(crate) fn touch(&self) {
        for offset in (0..CHUNK_BYTES).step_by(PAGE_BYTES) {
            // SAFETY: inside the chunk, which nobody uses before it has an owner. Volatile: the write is its own purpose.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    /// Bytes that blocks may use.
    pub(crate) const USABLE_BYTES: usize = CHUNK_BYTES - HEADER_ZONE_BYTES;
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: the chunk was mapped by `map_aligned`, and whoever drops it knows that nobody uses it any more.
        unsafe { unmap(self.start) };
    }
}

/// Returns the shared part of the heap that owns a block.
///
/// # Safety
/// `block` lies in a mapped chunk, and has not come back to its owner.
#[inline]
pub(crate) unsafe fn owner_of(block: NonNull<u8>) -> *const HeapShared {
    // SAFETY: the caller's promise.
    unsafe { extent_of(block).as_ref() }.owner.get()
}

/// Returns the extent that a block lies in.
///
/// # Safety
/// `block` lies in a mapped chunk, in an extent with an owner.
#[inline]
pub(crate) unsafe fn extent_of(block: NonNull<u8>) -> NonNull<Extent> {
    let offset = block.addr().get() & (CHUNK_BYTES - 1);
    // SAFETY: the chunk starts at the last multiple of its size, which the caller says is mapped. Header and table are written before
    // the first block of the extent is handed out, and not again before the last one has come back.
    unsafe {
        let start = block.sub(offset);
        let whole = header_of(start);
        if whole.as_ref().owner.get().is_null() { table_of(start).add(offset / PIECE_BYTES) } else { whole }
    }
}

/// Returns the number of the chunk that an extent describes a part of, and which piece of it that is; `None` for the
/// whole.
pub(crate) fn place_of(extent: NonNull<Extent>) -> (usize, Option<usize>) {
    let offset = extent.addr().get() & (CHUNK_BYTES - 1);
    // SAFETY: extents lie in their chunk.
    let start = unsafe { extent.cast::<u8>().sub(offset) };
    let number = start.addr().get() / CHUNK_BYTES;
    if extent == header_of(start) {
        return (number, None);
    }
    let piece = (extent.addr().get() - table_of(start).addr().get()) / size_of::<Extent>();
    (number, Some(piece))
}

/// Bytes that the blocks of an extent may use.
pub(crate) fn extent_bytes(extent: NonNull<Extent>) -> usize {
    match place_of(extent).1 {
        None => Chunk::USABLE_BYTES,
        Some(0) => PIECE_BYTES - HEADER_ZONE_BYTES,
        Some(_) => PIECE_BYTES,
    }
}

/// Returns which line of its header zone is the header of the chunk with this start.
#[inline]
fn header_line(start: NonNull<u8>) -> usize {
    (start.addr().get() / CHUNK_BYTES) % (HEADER_ZONE_BYTES / LINE_BYTES)
}

/// Returns where the header of the chunk with this start lies.
#[inline]
fn header_of(start: NonNull<u8>) -> NonNull<Extent> {
    // SAFETY: a place inside the chunk.
    unsafe { start.add(header_line(start) * LINE_BYTES).cast() }
}

/// Returns where the table of the shared chunk with this start lies: in the half of the zone where the header is not.
#[inline]
fn table_of(start: NonNull<u8>) -> NonNull<Extent> {
    let line = (header_line(start) + 32) % 64;
    // SAFETY: a place inside the chunk.
    unsafe { start.add((line - line % TABLE_LINES) * LINE_BYTES).cast() }
}

#[cfg(all(target_os = "linux", not(ensilo_portable)))]
fn map_aligned() -> Option<NonNull<u8>> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

    let read_write = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address that the kernel chooses touches nobody's memory.
    let raw = unsafe { mmap_anonymous(std::ptr::null_mut(), 2 * CHUNK_BYTES, read_write, MapFlags::PRIVATE) }
        .ok()?;
    let before = raw.addr().wrapping_neg() & (CHUNK_BYTES - 1);
    let start = NonNull::new(raw.cast::<u8>().wrapping_add(before))?;
    // SAFETY: both ranges are parts of the mapping made above that nobody uses, `before` and `CHUNK_BYTES - before` bytes long;
    // page-aligned as mappings and chunks are. Refusals leave address space unused, no more.
    unsafe {
        if before > 0 {
            let _ = munmap(raw, before);
        }
        if before < CHUNK_BYTES {
            let _ = munmap(start.as_ptr().add(CHUNK_BYTES).cast(), CHUNK_BYTES - before);
        }
        // Without huge pages it works as well, if slower.
        let _ = madvise(start.as_ptr().cast(), CHUNK_BYTES, Advice::LinuxHugepage);
    }
    Some(start)
}

#[cfg(all(target_os = "linux", not(ensilo_portable)))]
unsafe fn unmap(start: NonNull<u8>) {
    // SAFETY: the caller owns the mapped chunk. A refusal would leak address space, no more.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), CHUNK_BYTES) };
}

#[cfg(not(all(target_os = "linux", not(ensilo_portable))))]
const LAYOUT: std::alloc::Layout = match std::alloc::Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("the size of a chunk is a power of two"),
};

#[cfg(not(all(target_os = "linux", not(ensilo_portable))))]
fn map_aligned() -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(LAYOUT) })
}

#[cfg(not(all(target_os = "linux", not(ensilo_portable))))]
unsafe fn unmap(start: NonNull<u8>) {
    // SAFETY: the chunk was allocated with this layout by `map_aligned`.
    unsafe { std::alloc::dealloc(start.as_ptr(), LAYOUT) };
}
