//! What heaps and pools promise.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use ensilo_slab::{AccountId, Heap, Pool};

const RECORDS: AccountId = AccountId(1);
const CHUNK: u64 = 2 << 20;

fn layout(size: usize) -> Layout {
    Layout::from_size_align(size, 8).unwrap()
}

/// Allocates until the limit is reached.
fn fill(heap: &Heap, layout: Layout) -> BTreeSet<NonNull<u8>> {
    let mut blocks = BTreeSet::new();
    while let Ok(block) = heap.allocate(layout, RECORDS) {
        assert!(blocks.insert(block), "a block was handed out twice");
    }
    blocks
}

fn free_all(heap: &Heap, layout: Layout, blocks: impl IntoIterator<Item = NonNull<u8>>) {
    for block in blocks {
        // SAFETY: the tests free each block once, with the layout and account that it was allocated for.
        unsafe { heap.free(block, layout, RECORDS) };
    }
}

/// Blocks that go to another thread together with the right to free them.
struct Parcel(Vec<NonNull<u8>>);

// SAFETY: the receiver becomes the only user of the blocks, and heaps of the same pool may free them.
unsafe impl Send for Parcel {}

#[test]
fn a_row_of_124_bytes_takes_two_cache_lines() {
    assert_eq!(Heap::usable_size(layout(124)), 128);
    let heap = Pool::new(None).heap();
    for _ in 0..1000 {
        let block = heap.allocate(layout(124), RECORDS).unwrap();
        assert!(block.addr().get().is_multiple_of(64), "header and short row share a line");
    }
}

#[test]
fn nodes_sit_on_cache_lines_without_waste() {
    let node = Layout::from_size_align(320, 64).unwrap();
    assert_eq!(Heap::usable_size(node), 320);
    let pool = Pool::new(Some(CHUNK));
    let blocks = fill(&pool.heap(), node);
    assert!(blocks.iter().all(|block| block.addr().get().is_multiple_of(64)));
    assert!(blocks.len() as u64 * 320 > CHUNK - (16 << 10));
}

#[test]
fn the_limit_holds_and_freed_memory_can_be_had_again() {
    let pool = Pool::new(Some(3 * CHUNK));
    let heap = pool.heap();
    let blocks = fill(&heap, layout(100));
    assert!(pool.usage().mapped_bytes <= 3 * CHUNK);
    let refused = heap.allocate(layout(100), RECORDS).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "out of memory: 112 bytes asked for, 6291456 of at most 6291456 bytes in use"
    );
    assert_eq!(pool.usage().of(RECORDS), blocks.len() as u64 * 112);
    free_all(&heap, layout(100), blocks.iter().copied());
    assert_eq!(pool.usage().live_bytes, 0);
    assert_eq!(fill(&heap, layout(100)), blocks);
}

#[test]
fn at_the_limit_larger_free_blocks_are_cut_up() {
    let pool = Pool::new(Some(CHUNK));
    let heap = pool.heap();
    let large = fill(&heap, layout(1000));
    let count = large.len();
    free_all(&heap, layout(1000), large);
    let small = fill(&heap, layout(100));
    assert!(small.len() >= 9 * count, "nine blocks of 112 bytes fit into one of 1024, {}", small.len());
}

#[test]
fn at_the_limit_small_free_blocks_side_by_side_become_large_ones() {
    let pool = Pool::new(Some(4 * CHUNK));
    let heap = pool.heap();
    let small: Vec<_> = fill(&heap, layout(320)).into_iter().collect();
    // One in thirty stays, all over the chunks: none is free as a whole.
    let freed = || small.iter().enumerate().filter(|(place, _)| place % 30 != 0).map(|(_, &block)| block);
    free_all(&heap, layout(320), freed());
    assert_eq!(heap.trim(&|| false), 0);
    let large = fill(&heap, layout(2300));
    let possible = small.len() / 30 * ((29 * 320 - 256) / 2304);
    assert!(large.len() >= possible / 10 * 9, "{} of {possible}", large.len());
    // Nothing is lost: what is left over serves small blocks, and all of it in the end.
    let again = fill(&heap, layout(16));
    let bytes = large.len() * 2304 + again.len() * 16 + small.len() / 30 * 320;
    assert!(bytes >= small.len() * 320 / 100 * 99, "{bytes} of {}", small.len() * 320);
    free_all(&heap, layout(2300), large);
    free_all(&heap, layout(16), again);
    free_all(&heap, layout(320), small.iter().copied().step_by(30));
    assert_eq!(pool.usage().live_bytes, 0);
    assert!(heap.trim(&|| false) > 3 * CHUNK);
}

#[test]
fn memory_freed_elsewhere_comes_back() {
    let pool = Pool::new(Some(2 * CHUNK));
    let (heap, other) = (pool.heap(), pool.heap());
    let blocks = fill(&heap, layout(200));
    free_all(&other, layout(200), blocks.iter().copied());
    assert_eq!(pool.usage().live_bytes, 0, "accounts are right although another heap freed");
    assert_eq!(fill(&heap, layout(200)), blocks);
    free_all(&heap, layout(200), blocks);
}

#[test]
fn a_parked_heap_is_handed_out_again() {
    let pool = Pool::new(None);
    let first = pool.heap();
    let block = first.allocate(layout(64), RECORDS).unwrap();
    free_all(&first, layout(64), [block]);
    drop(first);
    let second = thread::spawn(move || pool.heap()).join().unwrap();
    assert_eq!(second.allocate(layout(64), RECORDS).unwrap(), block);
    assert_eq!(second.pool().mapped_bytes(), CHUNK);
}

#[test]
fn at_the_limit_parked_heaps_give_their_memory() {
    let pool = Pool::new(Some(CHUNK));
    let (first, second) = (pool.heap(), pool.heap());
    let mut blocks = fill(&first, layout(64));
    assert!(second.allocate(layout(64), RECORDS).is_err(), "the only chunk belongs to the first heap");
    let block = blocks.pop_first().unwrap();
    free_all(&first, layout(64), blocks);
    drop(first);
    let borrowed = fill(&second, layout(64));
    assert!(borrowed.len() > 1000 && !borrowed.contains(&block));
    free_all(&second, layout(64), borrowed.iter().copied());
    assert_eq!(fill(&second, layout(64)), borrowed, "and get it back");
}

#[test]
fn at_the_limit_parked_heaps_give_what_they_have_free_as_a_whole() {
    let pool = Pool::new(Some(8 * CHUNK));
    let survivor = pool.heap();
    let (small, large) = (layout(64), layout(2048));
    let kept = survivor.allocate(large, RECORDS).unwrap();
    let departed = pool.heap();
    let blocks = fill(&departed, small);
    free_all(&survivor, small, blocks.iter().copied());
    drop(departed);
    // No free block is large enough by itself.
    let again = fill(&survivor, large);
    assert!(again.len() >= blocks.len() * 64 / 2048 / 2, "{} blocks after {}", again.len(), blocks.len());
    free_all(&survivor, large, again.into_iter().chain([kept]));
}

#[test]
fn large_blocks_count_towards_the_limit() {
    let pool = Pool::new(Some(1 << 20));
    let heap = pool.heap();
    let large = Layout::from_size_align(600_000, 8192).unwrap();
    let block = heap.allocate(large, RECORDS).unwrap();
    assert!(block.addr().get().is_multiple_of(8192));
    assert!(heap.allocate(large, RECORDS).is_err());
    assert_eq!(pool.usage().of(RECORDS), Heap::usable_size(large) as u64);
    free_all(&pool.heap(), large, [block]);
    assert_eq!((pool.usage().live_bytes, pool.mapped_bytes()), (0, 0));
    heap.allocate(large, RECORDS).unwrap();
}

#[test]
fn a_small_database_takes_one_chunk() {
    let pool = Pool::new(None);
    let heap = pool.heap();
    for size in (16..=2048).step_by(16) {
        heap.allocate(layout(size), RECORDS).unwrap();
    }
    assert_eq!(pool.mapped_bytes(), CHUNK);
}

/// Three threads in a ring: each writes its mark into the blocks that it allocates, and checks and frees its neighbour's.
#[test]
fn blocks_that_travel_between_threads_stay_whole() {
    const THREADS: usize = 3;
    const ROUNDS: usize = 200;
    let pool = Pool::new(Some(64 << 20));
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..THREADS).map(|_| std::sync::mpsc::channel()).unzip();
    thread::scope(|scope| {
        for (me, receiver) in receivers.into_iter().enumerate() {
            let (heap, next) = (pool.heap(), senders[(me + 1) % THREADS].clone());
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let size = 16 + 24 * (round % 20);
                    let blocks = (0..100).map(|_| heap.allocate(layout(size), RECORDS).unwrap());
                    let parcel = Parcel(blocks.collect());
                    for block in &parcel.0 {
                        // SAFETY: the block was just allocated with this size.
                        unsafe { block.write_bytes(me as u8 + 1, size) };
                    }
                    next.send((size, me as u8 + 1, parcel)).unwrap();
                    let (size, mark, parcel) = receiver.recv().unwrap();
                    for block in parcel.0 {
                        // SAFETY: the neighbour filled the block and sent it to this thread alone.
                        let bytes = unsafe { NonNull::slice_from_raw_parts(block, size).as_ref() };
                        assert!(bytes.iter().all(|&byte| byte == mark));
                        free_all(&heap, layout(size), [block]);
                    }
                }
            });
        }
    });
    assert_eq!(pool.usage().live_bytes, 0);
    assert!(pool.mapped_bytes() <= 4 * THREADS as u64 * CHUNK, "freed memory was used again");
}

#[test]
fn memory_taken_in_advance_is_used_first_and_counts_against_the_limit() {
    let pool = Pool::new(Some(4 * CHUNK));
    pool.prefault(3 * CHUNK - 1).unwrap();
    assert_eq!(pool.mapped_bytes(), 3 * CHUNK);
    let heap = pool.heap();
    let blocks: Vec<_> = (0..40).map(|_| heap.allocate(layout(32 << 10), RECORDS).unwrap()).collect();
    assert_eq!(pool.mapped_bytes(), 3 * CHUNK);
    free_all(&heap, layout(32 << 10), blocks);
    assert!(pool.prefault(2 * CHUNK).is_err());
    assert_eq!(pool.mapped_bytes(), 4 * CHUNK);
}

#[test]
fn blocks_of_the_general_allocator_are_counted_like_others() {
    let pool = Pool::new(None);
    let (one, other) = (pool.heap(), pool.heap());
    let blocks: Vec<_> = (0..100).map(|_| one.allocate_general(layout(100), RECORDS).unwrap()).collect();
    assert_eq!((pool.usage().of(RECORDS), pool.usage().mapped_bytes), (100 * 100, 100 * 100));
    assert_eq!(pool.mapped_bytes(), 0, "the limit does not bound them");
    for block in blocks {
        // SAFETY: each block is freed once, with the layout and account that it was allocated for; any heap of the pool may do so.
        unsafe { other.free_general(block, layout(100), RECORDS) };
    }
    assert_eq!(pool.usage().of(RECORDS), 0);
}

#[test]
fn freed_memory_is_overwritten_where_that_is_on() {
    if !ensilo_slab::POISONS {
        return;
    }
    let heap = Pool::new(None).heap();
    let block = heap.allocate(layout(256), RECORDS).unwrap();
    // SAFETY: the block was just allocated with this size.
    unsafe { block.write_bytes(1, 256) };
    free_all(&heap, layout(256), [block]);
    // SAFETY: chunks stay mapped as long as the pool, and nobody else uses the block.
    let words = unsafe { NonNull::slice_from_raw_parts(block.cast::<u64>(), 32).as_ref() };
    assert!(
        words[2..].iter().all(|&word| word == ensilo_slab::FREED_WORD),
        "but for what links it into a list"
    );
}

#[test]
fn what_is_taken_elsewhere_counts_and_has_a_share_that_heaps_cannot_take() {
    let pool = Pool::new(Some(8 * CHUNK));
    let heap = pool.heap();
    pool.count_outside(7 << 20).unwrap();
    fill(&heap, layout(32 << 10));
    assert_eq!(pool.mapped_bytes(), 15 << 20, "four chunks into the nine MiB that were left");
    assert!(pool.count_outside(2 << 20).is_err());
    pool.forget_outside(7 << 20);
    fill(&heap, layout(32 << 10));
    assert_eq!(pool.mapped_bytes(), 8 * CHUNK);
    pool.count_outside(CHUNK as usize).unwrap();
    assert!(pool.count_outside(1).is_err(), "an eighth, and no more");
    pool.forget_outside(CHUNK);
    assert_eq!(pool.mapped_bytes(), 8 * CHUNK);
}

#[test]
fn nothing_more_can_always_be_counted() {
    let pool = Pool::new(Some(CHUNK));
    pool.count_outside(CHUNK as usize).unwrap();
    pool.count_outside(0).unwrap();
}

#[test]
fn large_blocks_and_what_is_taken_elsewhere_have_the_memory_of_chunks_that_are_free_as_a_whole() {
    const LARGE: usize = 1 << 20;
    for pool in [Pool::new(Some(4 * CHUNK)), Pool::with_room(Some(4 * CHUNK))] {
        let heap = pool.heap();
        let small = fill(&heap, layout(1000));
        let large = fill(&heap, layout(LARGE));
        free_all(&heap, layout(1000), small);
        let more = fill(&heap, layout(LARGE));
        assert!(more.len() >= 4, "{} large blocks", more.len());
        free_all(&heap, layout(LARGE), more.into_iter().chain(large));
        let small = fill(&heap, layout(1000));
        free_all(&heap, layout(1000), small);
        heap.trim(&|| false);
        pool.count_outside(7 << 20).unwrap();
    }
}

#[test]
fn chunks_leave_room_that_large_blocks_give_back_to_each_other() {
    const LARGE: usize = 40 << 10;
    let pool = Pool::with_room(Some(4 * CHUNK));
    let heap = pool.heap();
    assert_eq!(pool.fill(4 * CHUNK), None);
    fill(&heap, layout(1000));
    assert_eq!(pool.mapped_bytes(), 3 * CHUNK);
    assert_eq!(pool.take_refused(), 0, "that is a shortage of blocks");
    let mut large = fill(&heap, layout(LARGE));
    assert_eq!(pool.take_refused(), LARGE as u64);
    assert_eq!(pool.take_refused(), 0);
    for _ in 0..1000 {
        let freed = large.pop_first().unwrap();
        free_all(&heap, layout(LARGE), [freed]);
        large.insert(heap.allocate(layout(LARGE), RECORDS).unwrap());
    }
    let fill = pool.fill(4 * CHUNK).unwrap();
    assert_eq!((fill.chunk_bytes, fill.room_bytes, fill.in_the_way_bytes), (3 * CHUNK, 3 << 20, 0));
    assert_eq!(fill.large_bytes, (large.len() * LARGE) as u64);
    assert_eq!(fill.beside_bytes, fill.large_bytes);
    assert!(fill.block_bytes > 3 * CHUNK / 10 * 9 && fill.block_bytes <= 3 * CHUNK, "{fill:?}");
    assert!(pool.mapped_bytes() <= 9 << 20);
}

#[test]
fn a_pool_with_room_says_which_large_blocks_keep_a_chunk_away() {
    let pool = Pool::with_room(Some(4 * CHUNK));
    let heap = pool.heap();
    heap.allocate(layout(64), RECORDS).unwrap();
    let large = fill(&heap, layout(1 << 20));
    assert_eq!(large.len(), 7, "beside one chunk, within nine eighths");
    assert_eq!(pool.fill(4 * CHUNK).unwrap().in_the_way_bytes, 3 << 20);
    free_all(&heap, layout(1 << 20), large.into_iter().take(3));
    assert_eq!(pool.fill(4 * CHUNK), None);
}

#[test]
fn heaps_with_a_few_blocks_take_a_piece_of_a_chunk_each() {
    const HEAPS: u64 = 200;
    let pool = Pool::new(None);
    let heaps: Vec<_> = (0..HEAPS).map(|_| pool.heap()).collect();
    for heap in &heaps {
        for size in [64, 128, 320, 2000] {
            heap.allocate(layout(size), RECORDS).unwrap();
        }
    }
    let per_heap = pool.mapped_bytes() / HEAPS;
    assert!(per_heap <= 80 << 10, "{per_heap} bytes each");
}

#[test]
fn heaps_that_begin_at_once_take_no_more_chunks_than_one_after_another() {
    const HEAPS: usize = 64;
    // One round may hide that two heaps look for a piece at once.
    for round in 0..50 {
        let pool = Pool::new(None);
        let heaps: Vec<_> = (0..HEAPS).map(|_| pool.heap()).collect();
        let all_begin = Barrier::new(HEAPS);
        thread::scope(|scope| {
            for heap in heaps {
                let all_begin = &all_begin;
                scope.spawn(move || {
                    all_begin.wait();
                    heap.allocate(layout(100), RECORDS).unwrap();
                });
            }
        });
        assert_eq!(pool.mapped_bytes(), 2 * CHUNK, "round {round}");
    }
}

#[test]
fn a_trimmed_heap_gives_the_pool_what_it_has_whole_and_that_the_system() {
    let pool = Pool::new(None);
    let (heap, other) = (pool.heap(), pool.heap());
    let take =
        |count: usize| (0..count).map(|_| heap.allocate(layout(1000), RECORDS).unwrap()).collect::<Vec<_>>();
    let kept = take(10);
    let blocks = take(40_000);
    let full = pool.usage().mapped_bytes;
    // Some are freed by the owner, some by another heap.
    free_all(&heap, layout(1000), blocks[..20_000].iter().copied());
    free_all(&other, layout(1000), blocks[20_000..].iter().copied());
    assert!(pool.is_sparse());
    assert!(heap.trim(&|| false) > full - 3 * CHUNK);
    assert!(!pool.is_sparse());
    assert_eq!(pool.usage().mapped_bytes, full, "chunks stay with the pool at first");
    assert_eq!(pool.return_unused(Duration::from_secs(3600)), 0);
    assert!(pool.return_unused(Duration::ZERO) > full - 6 * CHUNK);
    assert!(pool.mapped_bytes() < 6 * CHUNK, "a reserve stays");
    // Blocks of the extents that stayed are whole, and the heap goes on.
    let again: BTreeSet<_> = take(10_000).into_iter().collect();
    assert!(kept.iter().all(|block| !again.contains(block)) && again.len() == 10_000);
}

#[test]
fn a_trim_that_is_interrupted_leaves_everything_in_its_place() {
    const BLOCKS: usize = 20_000;
    for looks in 0..60_u32 {
        let pool = Pool::new(None);
        let heap = pool.heap();
        let blocks: BTreeSet<_> = (0..BLOCKS).map(|_| heap.allocate(layout(200), RECORDS).unwrap()).collect();
        let full = pool.usage().mapped_bytes;
        free_all(&heap, layout(200), blocks.iter().copied());
        let left = Cell::new(looks);
        let is_trimmed = heap.trim(&|| left.replace(left.get().saturating_sub(1)) == 0) > 0;
        assert!(!is_trimmed || looks > 0);
        let again: BTreeSet<_> = (0..BLOCKS).map(|_| heap.allocate(layout(200), RECORDS).unwrap()).collect();
        assert_eq!(again.len(), BLOCKS, "a block was handed out twice");
        assert!(is_trimmed || again == blocks);
        assert_eq!(pool.mapped_bytes(), full, "what was given back is used again");
    }
}

#[test]
fn memory_given_back_by_one_heap_serves_another_at_the_limit() {
    let pool = Pool::new(Some(4 * CHUNK));
    let (first, second) = (pool.heap(), pool.heap());
    let blocks = fill(&first, layout(1000));
    assert!(second.allocate(layout(128), RECORDS).is_err());
    free_all(&first, layout(1000), blocks);
    first.trim(&|| false);
    assert!(fill(&second, layout(128)).len() as u64 * 128 > 3 * CHUNK);
}

#[test]
fn at_the_limit_a_heap_takes_what_others_lend_and_the_rest_goes_back() {
    let pool = Pool::new(Some(4 * CHUNK));
    let (first, second) = (pool.heap(), pool.heap());
    // Every second block is free: no chunk is free as a whole.
    let blocks = fill(&first, layout(1000));
    free_all(&first, layout(1000), blocks.iter().copied().step_by(2));
    let free_bytes = blocks.len() as u64 / 2 * 1024;
    assert!(first.trim(&|| false) < CHUNK);
    assert!(pool.take_shortage() && !pool.take_shortage());
    assert!(fill(&second, layout(128)).len() as u64 * 128 < CHUNK);
    assert!(pool.take_shortage() && !pool.take_shortage());
    first.lend(&|| false);
    let borrowed = fill(&second, layout(128));
    assert!(borrowed.len() as u64 * 128 > free_bytes / 10 * 9, "{} of {free_bytes}", borrowed.len() * 128);
    // All come back to the first heap, which then has whole chunks.
    free_all(&second, layout(128), borrowed);
    free_all(&second, layout(1000), blocks.into_iter().skip(1).step_by(2));
    pool.return_lent();
    assert!(first.trim(&|| false) >= 2 * CHUNK);
}

/// Where blocks of many sizes are taken, freed by either of two heaps and trimmed in random order, what is written into them stays.
fn blocks_stay_whole_below(chunks: u64) {
    let pool = Pool::new(Some(chunks * CHUNK));
    let heaps = [pool.heap(), pool.heap()];
    let mut live: Vec<(NonNull<u8>, usize, u8)> = Vec::new();
    let mut state = 1_u64;
    let mut below = move |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    for step in 0..60_000 {
        let heap = &heaps[below(2)];
        // Grows for a while, and shrinks for a while.
        let grows = step / 5000 % 2 == 0;
        if below(10) < if grows { 8 } else { 2 } {
            let size = [16, 40, 128, 320, 1000, 5000][below(6)];
            if let Ok(block) = heap.allocate(layout(size), RECORDS) {
                let mark = below(256) as u8;
                // SAFETY: the block is ours, with so many bytes.
                unsafe { block.write_bytes(mark, size) };
                live.push((block, size, mark));
            }
        } else if !live.is_empty() {
            let (block, size, mark) = live.swap_remove(below(live.len()));
            // SAFETY: the block is ours, and was written.
            let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
            assert!(bytes.iter().all(|&byte| byte == mark));
            free_all(heap, layout(size), [block]);
        }
        if below(500) == 0 {
            heap.trim(&|| false);
        }
        if below(2000) == 0 {
            pool.return_unused(Duration::ZERO);
        }
        if below(1000) == 0 {
            heap.lend(&|| false);
        }
        if below(1500) == 0 {
            pool.return_lent();
        }
    }
    for (block, size, mark) in live {
        // SAFETY: as above.
        let bytes = unsafe { std::slice::from_raw_parts(block.as_ptr(), size) };
        assert!(bytes.iter().all(|&byte| byte == mark));
        free_all(&heaps[0], layout(size), [block]);
    }
    pool.return_lent();
    heaps.iter().for_each(|heap| _ = heap.trim(&|| false));
    pool.return_unused(Duration::ZERO);
    assert!(pool.mapped_bytes() <= 3 * CHUNK && pool.usage().live_bytes == 0, "{:?}", pool.usage());
    let all = fill(&pool.heap(), layout(1000)).len() as u64 * 1024;
    assert!(all > chunks * CHUNK / 10 * 9, "{all} bytes of {chunks} chunks are left");
}

#[test]
fn blocks_in_use_stay_whole_however_heaps_are_trimmed() {
    blocks_stay_whole_below(16);
}

/// Where blocks are cut up and put together.
#[test]
fn at_the_limit_small_blocks_side_by_side_that_were_lent_become_large_ones() {
    let pool = Pool::new(Some(CHUNK));
    let (short, idle) = (pool.heap(), pool.heap());
    let mut blocks = fill(&idle, layout(64)).into_iter();
    let kept: Vec<_> = blocks.by_ref().take(1000).collect();
    free_all(&idle, layout(64), blocks);
    assert!(short.allocate(layout(2048), RECORDS).is_err());
    assert!(pool.take_shortage());
    idle.lend(&|| false);
    assert!(fill(&short, layout(2048)).len() > 900);
    free_all(&idle, layout(64), kept);
}

#[test]
fn blocks_in_use_stay_whole_at_the_limit() {
    blocks_stay_whole_below(1);
    blocks_stay_whole_below(2);
}
