//! Random allocations and frees over several heaps, beside a map of what must be live.
#![cfg(not(any(loom, shuttle)))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::NonNull;

use ensilo_slab::{AccountId, Heap, Pool};
use proptest::collection::vec;
use proptest::prelude::*;

const LIMIT: u64 = 8 << 20;

#[derive(Debug, Clone)]
enum Step {
    Allocate { heap: usize, size: usize, align_bits: u32, account: u32 },
    Free { heap: usize, nth: usize },
    Replace { heap: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let size = prop_oneof![4 => 0..600usize, 2 => 600..5000usize, 1 => 5000..50_000usize];
    prop_oneof![
        6 => (0..3usize, size, 0..8u32, 0..80u32)
            .prop_map(|(heap, size, align_bits, account)| Step::Allocate { heap, size, align_bits, account }),
        5 => (0..3usize, any::<usize>()).prop_map(|(heap, nth)| Step::Free { heap, nth }),
        1 => (0..3usize).prop_map(|heap| Step::Replace { heap }),
    ]
}

struct Live {
    block: NonNull<u8>,
    layout: Layout,
    account: AccountId,
    mark: u8,
}

impl Live {
    fn bytes(&self) -> &[u8] {
        // SAFETY: the model holds only live blocks, and filled each over its whole size.
        unsafe { NonNull::slice_from_raw_parts(self.block, Heap::usable_size(self.layout)).as_ref() }
    }
}

fn allocate(
    heap: &Heap,
    layout: Layout,
    account: AccountId,
    mark: u8,
    live: &mut BTreeMap<usize, Live>,
) -> bool {
    let Ok(block) = heap.allocate(layout, account) else { return false };
    let (start, size) = (block.addr().get(), Heap::usable_size(layout));
    assert!(size >= layout.size() && start.is_multiple_of(layout.align().max(16)));
    let before = live.range(..start + size).next_back();
    assert!(before.is_none_or(|(at, other)| at + other.bytes().len() <= start), "blocks overlap");
    // SAFETY: the block was just allocated with this usable size.
    unsafe { block.write_bytes(mark, size) };
    live.insert(start, Live { block, layout, account, mark });
    true
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn live_blocks_never_overlap_and_keep_their_bytes(steps in vec(step(), 1..400)) {
        let pool = Pool::new(Some(LIMIT));
        let mut heaps = [pool.heap(), pool.heap(), pool.heap()];
        let mut live = BTreeMap::new();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Allocate { heap, size, align_bits, account } => {
                    let layout = Layout::from_size_align(size, 1 << align_bits).unwrap();
                    let _ = allocate(&heaps[heap], layout, AccountId(account), number as u8, &mut live);
                }
                Step::Free { heap, nth } if !live.is_empty() => {
                    let start = *live.keys().nth(nth % live.len()).unwrap();
                    let gone = live.remove(&start).unwrap();
                    prop_assert!(gone.bytes().iter().all(|&byte| byte == gone.mark));
                    // SAFETY: the block was live and has just left the model.
                    unsafe { heaps[heap].free(gone.block, gone.layout, gone.account) };
                }
                Step::Free { .. } => {}
                Step::Replace { heap } => heaps[heap] = pool.heap(),
            }
        }
        let mut by_account = BTreeMap::new();
        for (_, block) in live {
            prop_assert!(block.bytes().iter().all(|&byte| byte == block.mark));
            *by_account.entry(block.account).or_insert(0) += block.bytes().len() as u64;
        }
        let usage = pool.usage();
        prop_assert_eq!(usage.by_account, by_account.into_iter().collect::<Vec<_>>());
        prop_assert!(usage.mapped_bytes <= LIMIT);
    }
}
