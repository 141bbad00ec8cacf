//! Two megabytes of address space on one huge page.
//!
//! A chunk starts on a multiple of its size, so that its start, and with it its owner, is found from the address of any block in it.
//!
//! The header does not sit at the start: all starts fall into the same set of every cache that is indexed by low address bits, and
//! freeing into many chunks would thrash that one set. Bits of the chunk's number choose one of 64 lines instead.

use std::ptr::NonNull;

use crate::class::ALIGN_MAX;
use crate::local::Shared;

/// Size and alignment of a chunk: one huge page.
pub(crate) const CHUNK_BYTES: usize = 2 << 20;

/// What the header's possible places take at the start of a chunk.
const HEADER_ZONE_BYTES: usize = 64 * LINE_BYTES;

const LINE_BYTES: usize = 64;

/// The smallest page of any machine.
const PAGE_BYTES: usize = 4 << 10;

const _: () = assert!(size_of::<Header>() <= LINE_BYTES && HEADER_ZONE_BYTES.is_multiple_of(ALIGN_MAX));

/// What a chunk says about itself. Written once, before any block of the chunk is handed out.
struct Header {
    owner: NonNull<Shared>,
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

    /// Makes the heap with this shared part the owner. Called once, before any block is handed out.
    pub(crate) fn set_owner(&self, owner: NonNull<Shared>) {
        // SAFETY: the header's place lies in the header zone of the chunk, which nobody uses before it has an owner.
        unsafe { header_of(self.start).write(Header { owner }) };
    }

    /// Makes the system put memory behind every page, of a chunk that has no owner yet.
    pub(crate) fn touch(&self) {
        for offset in (0..CHUNK_BYTES).step_by(PAGE_BYTES) {
            // SAFETY: inside the chunk, which nobody uses before it has an owner. Volatile: the write is its own purpose.
            unsafe { self.start.add(offset).write_volatile(0) };
        }
    }

    /// The first byte that blocks may use, aligned to `ALIGN_MAX`.
    pub(crate) fn first(&self) -> NonNull<u8> {
        // SAFETY: the zone lies inside the chunk.
        unsafe { self.start.add(HEADER_ZONE_BYTES) }
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

/// The shared part of the heap that owns the chunk of a block.
///
/// # Safety
/// `block` lies in a mapped chunk.
#[inline]
pub(crate) unsafe fn owner_of(block: NonNull<u8>) -> NonNull<Shared> {
    let offset = block.addr().get() & (CHUNK_BYTES - 1);
    // SAFETY: the chunk starts at the last multiple of its size, which the caller says is mapped; headers are written once,
    // before the first block of the chunk is handed out.
    unsafe { header_of(block.sub(offset)).as_ref().owner }
}

/// Where the header of the chunk with this start lies.
#[inline]
fn header_of(start: NonNull<u8>) -> NonNull<Header> {
    let line = (start.addr().get() / CHUNK_BYTES) % (HEADER_ZONE_BYTES / LINE_BYTES);
    // SAFETY: a place inside the chunk.
    unsafe { start.add(line * LINE_BYTES).cast() }
}

#[cfg(target_os = "linux")]
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

#[cfg(target_os = "linux")]
unsafe fn unmap(start: NonNull<u8>) {
    // SAFETY: the caller owns the mapped chunk. A refusal would leak address space, no more.
    let _ = unsafe { rustix::mm::munmap(start.as_ptr().cast(), CHUNK_BYTES) };
}

#[cfg(not(target_os = "linux"))]
const LAYOUT: std::alloc::Layout = match std::alloc::Layout::from_size_align(CHUNK_BYTES, CHUNK_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("the size of a chunk is a power of two"),
};

#[cfg(not(target_os = "linux"))]
fn map_aligned() -> Option<NonNull<u8>> {
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(LAYOUT) })
}

#[cfg(not(target_os = "linux"))]
unsafe fn unmap(start: NonNull<u8>) {
    // SAFETY: the chunk was allocated with this layout by `map_aligned`.
    unsafe { std::alloc::dealloc(start.as_ptr(), LAYOUT) };
}
