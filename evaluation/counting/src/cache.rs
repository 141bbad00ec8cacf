//! The lines, the workers that used them, and the caches that have them.
//!
//! # Invariants
//! - L1: if `changed_by` names a worker, that worker alone has the line.
//! - L2: a worker has a line if its bit is set in `holders` and it has brought in no more than `cache_lines` others since it used it last:
//!   a cache that gives up what was not used for the longest time, but for lines that were used again meanwhile, which it counts once.

use std::collections::HashMap;

use ensilo_sync::instrumented::Access;

use crate::totals::{HotLine, LabelCounts, SharingCounts};

/// The most workers that are distinguished.
pub const WORKERS_MAX: usize = 64;

const LINE_BYTES: usize = 64;

/// Lines that are fetched more often than so many times in a thousand transactions are given one by one.
const HOT_PER_MILLE: u64 = 1;

/// What one worker did to a line.
#[derive(Debug, Clone, Default)]
struct Use {
    loads: u64,
    stores: u64,
    read_modify_writes: u64,
    /// Transactions that wrote it.
    writing_transactions: u64,
    /// The last of them.
    written_in: u64,
    /// What the worker had brought into its cache when it used the line last.
    used_at: u64,
}

impl Use {
    fn writes(&self) -> u64 {
        self.stores + self.read_modify_writes
    }
}

#[derive(Debug)]
struct CountedLine {
    /// By worker.
    uses: Vec<Use>,
    /// Where it was written last, or first read.
    file: &'static str,
    /// A bit for each worker that may have it in its cache.
    holders: u64,
    changed_by: Option<usize>,
    fetched_to_load: u64,
    fetched_to_write: u64,
    from_memory: u64,
}

/// All lines and caches.
#[derive(Debug)]
pub(crate) struct Caches {
    lines: HashMap<usize, CountedLine>,
    /// Lines that each worker has brought into its cache.
    brought_in: [u64; WORKERS_MAX],
    cache_lines: u64,
    is_counting: bool,
    /// Transactions that have ended since the start.
    transactions: u64,
    /// The number of each worker's transaction that is under way.
    current: [u64; WORKERS_MAX],
}

impl Caches {
    pub(crate) fn new(cache_lines: u64) -> Self {
        Caches {
            lines: HashMap::new(),
            brought_in: [0; WORKERS_MAX],
            cache_lines,
            is_counting: false,
            transactions: 0,
            current: [1; WORKERS_MAX],
        }
    }

    pub(crate) fn start(&mut self) {
        self.is_counting = true;
        self.transactions = 0;
        for line in self.lines.values_mut() {
            line.forget_counts();
        }
    }

    pub(crate) fn end_transaction(&mut self, worker: usize) {
        self.current[worker] += 1;
        self.transactions += u64::from(self.is_counting);
    }

    pub(crate) fn access(&mut self, worker: usize, address: usize, access: Access, file: &'static str) {
        let line = self.lines.entry(address / LINE_BYTES).or_insert_with(|| CountedLine::new(file));
        let source = line.bring_to(worker, access, &self.brought_in, self.cache_lines);
        self.brought_in[worker] += u64::from(source != LineSource::OwnCache);
        line.uses[worker].used_at = self.brought_in[worker];
        if access != Access::Load {
            line.file = file;
        }
        if self.is_counting {
            line.count(worker, self.current[worker], access, source);
        }
    }

    pub(crate) fn totals(&self) -> SharingCounts {
        let mut totals = SharingCounts { transactions: self.transactions, ..SharingCounts::default() };
        for line in self.lines.values() {
            line.add_to(totals.by_file.entry(line.file).or_default());
            totals.hot_lines.extend(line.hot(self.transactions));
        }
        totals.hot_lines.sort_by_key(|line| (std::cmp::Reverse(line.writing_transactions), line.file));
        totals
    }
}

/// Where a line came from when it was needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineSource {
    OwnCache,
    OtherCore,
    Memory,
}

impl CountedLine {
    fn new(file: &'static str) -> Self {
        CountedLine {
            uses: Vec::new(),
            file,
            holders: 0,
            changed_by: None,
            fetched_to_load: 0,
            fetched_to_write: 0,
            from_memory: 0,
        }
    }

    fn forget_counts(&mut self) {
        for one in &mut self.uses {
            *one = Use { used_at: one.used_at, written_in: one.written_in, ..Use::default() };
        }
        (self.fetched_to_load, self.fetched_to_write, self.from_memory) = (0, 0, 0);
    }

    /// Makes the line one that `worker` may access in this way, and says where it came from.
    fn bring_to(
        &mut self,
        worker: usize,
        access: Access,
        brought_in: &[u64; WORKERS_MAX],
        cache_lines: u64,
    ) -> LineSource {
        if self.uses.len() <= worker {
            self.uses.resize(worker + 1, Use::default());
        }
        self.drop_evicted(brought_in, cache_lines);
        let own = 1 << worker;
        let others = self.holders & !own;
        let is_held = self.holders & own != 0;
        if access == Access::Load {
            let source = match (is_held, self.changed_by) {
                (true, _) => LineSource::OwnCache,
                (false, Some(_)) => LineSource::OtherCore,
                (false, None) => LineSource::Memory,
            };
            if !is_held {
                self.changed_by = None;
            }
            self.holders |= own;
            return source;
        }
        self.holders = own;
        self.changed_by = Some(worker);
        if others != 0 {
            LineSource::OtherCore
        } else if is_held {
            LineSource::OwnCache
        } else {
            LineSource::Memory
        }
    }

    /// Takes the line out of the caches that have had too many others since (L2).
    fn drop_evicted(&mut self, brought_in: &[u64; WORKERS_MAX], cache_lines: u64) {
        for (worker, one) in self.uses.iter().enumerate() {
            if brought_in[worker] - one.used_at > cache_lines {
                self.holders &= !(1 << worker);
            }
        }
        self.changed_by = self.changed_by.filter(|worker| self.holders & (1 << worker) != 0);
    }

    fn count(&mut self, worker: usize, transaction: u64, access: Access, source: LineSource) {
        match (source, access) {
            (LineSource::OwnCache, _) => {}
            (LineSource::OtherCore, Access::Load) => self.fetched_to_load += 1,
            (LineSource::OtherCore, _) => self.fetched_to_write += 1,
            (LineSource::Memory, _) => self.from_memory += 1,
        }
        let one = &mut self.uses[worker];
        match access {
            Access::Load => return one.loads += 1,
            Access::Store => one.stores += 1,
            Access::ReadModifyWrite => one.read_modify_writes += 1,
        }
        if one.written_in != transaction {
            one.written_in = transaction;
            one.writing_transactions += 1;
        }
    }

    fn add_to(&self, counts: &mut LabelCounts) {
        let sum = |of: fn(&Use) -> u64| self.uses.iter().map(of).sum::<u64>();
        counts.loads += sum(|one| one.loads);
        counts.stores += sum(|one| one.stores);
        counts.read_modify_writes += sum(|one| one.read_modify_writes);
        counts.fetched_to_load += self.fetched_to_load;
        counts.fetched_to_write += self.fetched_to_write;
        counts.from_memory += self.from_memory;
        let users = self.uses.iter().filter(|one| one.loads + one.writes() > 0).count();
        if users < 2 {
            return;
        }
        counts.shared_lines_written += sum(|one| one.writing_transactions);
        counts.shared_writes += sum(Use::writes);
        counts.shared_read_modify_writes += sum(|one| one.read_modify_writes);
        let writers = self.uses.iter().filter(|one| one.writes() > 0).count();
        let is_foreign = |one: &&Use| writers > usize::from(one.writes() > 0);
        counts.foreign_loads += self.uses.iter().filter(is_foreign).map(|one| one.loads).sum::<u64>();
    }

    /// The line as one of its own, if several workers write it and it often goes from one to another.
    fn hot(&self, transactions: u64) -> Option<HotLine> {
        let writers = self.uses.iter().filter(|one| one.writes() > 0).count();
        let writing_transactions = self.uses.iter().map(|one| one.writing_transactions).sum();
        let fetched = self.fetched_to_load + self.fetched_to_write;
        let is_hot = writers > 1 && fetched * 1000 > transactions * HOT_PER_MILLE;
        is_hot.then_some(HotLine { file: self.file, writers, writing_transactions, fetched })
    }
}
