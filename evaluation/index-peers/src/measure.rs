//! All measurements, in turns: run by run, shape by shape, map by map.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

use crate::keys::{Composite, Keys, Random, Sequential};
use crate::options::{Options, Shape};
use crate::peer::Peer;
use crate::peers::{CongeeMap, EnsiloIndex, LockedBTreeMap, MasstreeMap, SkipListMap, TreeIndexMap};
use crate::work::{Bench, Work};

/// One measurement.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    pub(crate) shape: Shape,
    pub(crate) threads: u64,
    pub(crate) work: Work,
    pub(crate) map: &'static str,
    pub(crate) run: u64,
    pub(crate) operations_per_second: f64,
    /// Scans that found nothing although their first key was there: the map is wrong, and its figure means nothing.
    pub(crate) missed: u64,
}

/// Measures all that the options ask for.
pub(crate) fn measure(options: &Options) -> Vec<Row> {
    let mut rows = Vec::new();
    for run in 0..options.runs {
        for &shape in &options.shapes {
            for &threads in &options.threads {
                let mut turn = Turn { options, shape, threads, run, rows: &mut rows };
                match shape {
                    Shape::Random => turn.eight_bytes(Random),
                    Shape::Sequential => turn.eight_bytes(Sequential),
                    Shape::Composite => turn.any(Composite { keys: options.keys }),
                }
            }
        }
    }
    rows
}

/// One turn of all maps.
struct Turn<'a> {
    options: &'a Options,
    shape: Shape,
    threads: u64,
    run: u64,
    rows: &'a mut Vec<Row>,
}

impl Turn<'_> {
    fn eight_bytes<K: Keys<Key = u64>>(&mut self, keys: K) {
        self.any(keys);
        self.map::<CongeeMap, K>(keys);
    }

    fn any<K: Keys>(&mut self, keys: K) {
        self.map::<EnsiloIndex, K>(keys);
        self.map::<MasstreeMap, K>(keys);
        self.map::<TreeIndexMap<K::Key>, K>(keys);
        self.map::<SkipListMap<K::Key>, K>(keys);
        self.map::<LockedBTreeMap<K::Key>, K>(keys);
    }

    fn map<P: Peer<K::Key>, K: Keys>(&mut self, keys: K) {
        if !self.options.wants(P::NAME) {
            return;
        }
        let map = P::new();
        let bench = Bench {
            map: &map,
            keys,
            count: self.options.keys,
            threads: self.threads,
            duration: Duration::from_secs_f64(self.options.seconds),
            clock: self.options.clock,
            missed: AtomicU64::new(0),
        };
        for work in Work::ALL {
            let operations_per_second = bench.run(work);
            eprintln!(
                "run {} {} {} threads {:<20} {:<12} {:8.3} M/s",
                self.run + 1,
                self.shape,
                self.threads,
                P::NAME,
                work.name(),
                operations_per_second / 1e6
            );
            self.rows.push(Row {
                shape: self.shape,
                threads: self.threads,
                work,
                map: P::NAME,
                run: self.run,
                operations_per_second,
                missed: bench.missed.swap(0, Ordering::Relaxed),
            });
        }
    }
}
