use std::thread;

use ensilo_sync::CachePadded;
use ensilo_sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;
use crate::totals::{HotLine, LabelCounts};

/// Enough for every line of a test.
const CACHE_LINES: u64 = 1000;

/// Runs `transaction` for each worker in turn, `turns` times, each worker on a thread of its own.
fn in_turn(counter: &LineCounter, workers: usize, turns: usize, transaction: impl Fn(usize) + Sync) {
    for worker in (0..turns).flat_map(|_| 0..workers) {
        thread::scope(|scope| {
            scope.spawn(|| {
                let attached = counter.attach(worker);
                transaction(worker);
                attached.end_transaction();
            });
        });
    }
}

fn sum(counts: &SharingCounts) -> LabelCounts {
    counts.by_file.values().fold(LabelCounts::default(), |mut sum, of_file| {
        sum.add(of_file);
        sum
    })
}

#[test]
fn a_shared_counter_is_seen_with_its_source_file() {
    let (counter, planted) = (LineCounter::new(CACHE_LINES), CachePadded::new(AtomicU64::new(0)));
    counter.start();
    in_turn(&counter, 4, 10, |_| {
        planted.fetch_add(1, Relaxed);
        planted.fetch_add(1, Relaxed);
    });
    let counts = counter.totals();
    assert_eq!(counts.transactions, 40);
    assert_eq!(counts.by_file.keys().collect::<Vec<_>>(), [&file!()]);
    let sum = sum(&counts);
    assert_eq!((sum.shared_lines_written, sum.shared_writes, sum.shared_read_modify_writes), (40, 80, 80));
    // All but the first had to fetch the line, once each.
    assert_eq!((sum.fetched_to_write, sum.from_memory), (39, 1));
    assert_eq!(
        counts.hot_lines,
        [HotLine { file: file!(), writers: 4, writing_transactions: 40, fetched: 39 }]
    );
}

#[test]
fn what_only_one_thread_uses_is_not_shared() {
    let (counter, words) =
        (LineCounter::new(CACHE_LINES), [const { CachePadded::new(AtomicU64::new(0)) }; 4]);
    counter.start();
    in_turn(&counter, 4, 10, |worker| {
        words[worker].fetch_add(1, Relaxed);
        words[worker].store(words[worker].load(Relaxed), Relaxed);
    });
    let counts = counter.totals();
    let sum = sum(&counts);
    assert_eq!((sum.loads, sum.stores, sum.read_modify_writes), (40, 40, 40));
    assert_eq!((sum.shared_lines_written, sum.shared_writes, sum.foreign_loads), (0, 0, 0));
    assert_eq!((sum.fetched_to_load, sum.fetched_to_write, sum.from_memory), (0, 0, 4));
    assert_eq!(counts.hot_lines, []);
}

#[test]
fn words_on_one_line_are_shared_though_each_has_one_owner() {
    let (counter, line) = (LineCounter::new(CACHE_LINES), CachePadded::new([const { AtomicU64::new(0) }; 4]));
    counter.start();
    in_turn(&counter, 4, 10, |worker| line[worker].store(1, Relaxed));
    let sum = sum(&counter.totals());
    assert_eq!((sum.shared_lines_written, sum.shared_read_modify_writes, sum.fetched_to_write), (40, 0, 39));
}

#[test]
fn a_line_that_all_read_is_fetched_only_after_it_was_written() {
    let (counter, word) = (LineCounter::new(CACHE_LINES), CachePadded::new(AtomicU64::new(0)));
    in_turn(&counter, 4, 1, |_| _ = word.load(Relaxed));
    counter.start();
    in_turn(&counter, 4, 10, |_| _ = word.load(Relaxed));
    let read_only = sum(&counter.totals());
    assert_eq!((read_only.loads, read_only.foreign_loads, read_only.fetched_to_load), (40, 0, 0));
    assert_eq!(read_only.from_memory, 0);
    in_turn(&counter, 1, 1, |_| word.store(1, Relaxed));
    in_turn(&counter, 4, 10, |_| _ = word.load(Relaxed));
    let written = sum(&counter.totals());
    // The writer still has it, the second reader fetches it, and then it is unchanged in several caches.
    assert_eq!((written.fetched_to_write, written.fetched_to_load, written.from_memory), (1, 1, 2));
    // The loads of the three that did not write it.
    assert_eq!(written.foreign_loads, 60);
}

#[test]
fn a_line_leaves_a_cache_that_has_had_too_many_others() {
    let (counter, words) = (LineCounter::new(10), [const { CachePadded::new(AtomicU64::new(0)) }; 30]);
    let write_all = |first: usize, count: usize| {
        in_turn(&counter, 1, 1, |_| {
            words[first..first + count].iter().for_each(|word| word.store(1, Relaxed))
        });
    };
    let (read_first, from) = (
        |worker| in_turn(&counter, worker, 1, |_| _ = words[0].load(Relaxed)),
        |counts: &LabelCounts| (counts.fetched_to_load, counts.from_memory),
    );
    counter.start();
    write_all(0, 10);
    read_first(2);
    assert_eq!(from(&sum(&counter.totals())), (1, 10), "the writer still has the line");
    write_all(0, 30);
    counter.start();
    read_first(2);
    assert_eq!(from(&sum(&counter.totals())), (0, 2), "both have to get it from memory");
}

#[test]
fn threads_that_are_not_attached_are_not_counted() {
    let (counter, word) = (LineCounter::new(CACHE_LINES), AtomicU64::new(0));
    counter.start();
    word.store(1, Relaxed);
    drop(counter.attach(0));
    word.store(2, Relaxed);
    assert_eq!(counter.totals(), SharingCounts::default());
}
