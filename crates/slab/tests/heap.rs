//! What heaps and pools promise.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::Layout;
use std::collections::BTreeSet;
use std::ptr::NonNull;
use std::thread;

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
    assert!(blocks.len() as u64 * 320 > CHUNK - (8 << 10));
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
    let block = first.allocate(layout(64), RECORDS).unwrap();
    assert!(second.allocate(layout(64), RECORDS).is_err(), "the only chunk belongs to the first heap");
    drop(first);
    let borrowed = fill(&second, layout(64));
    assert!(borrowed.len() > 1000 && !borrowed.contains(&block));
    free_all(&second, layout(64), borrowed.iter().copied());
    assert_eq!(fill(&second, layout(64)), borrowed, "and get it back");
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
    assert_eq!((pool.usage().of(RECORDS), pool.usage().mapped_bytes), (100 * 100, 0));
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
