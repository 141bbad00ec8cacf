//! The microbenchmark with a clock: how much of a worker's time goes to what transactions do with rows, and
//! how much to everything around that.
//!
//! What is timed is the code of each part: reads and updates of its rows, and what the engine does for them.
//! The rest of a worker's time is the commit protocol with validation, messages, and waiting for them.
//! Attempts that are repeated count with the transaction that they lead to. The clock is read twice for each
//! part, which makes transactions slower by some tens of nanoseconds for each.
//!
//! # Source
//! Islands (VLDB Journal) §6.3, §6.4 and §9, figures 13, 15 and 26, which have more components, by counters
//! of the processor.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use ensilo::{Database, Result, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};

use crate::micro::{Micro, MicroOptions};
use crate::parts::to_bytes;
use crate::run::{Ask, Workload};

/// More threads than these share places.
const PLACES: usize = 64;

/// The microbenchmark with a clock; see the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct TimedMicroOptions(pub MicroOptions);

/// What runs at its instances.
#[derive(Debug)]
pub struct TimedMicro {
    micro: Micro,
    /// Nanoseconds by thread.
    spent: [Nanos; PLACES],
}

/// In lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Nanos(AtomicU64);

thread_local! {
    static PLACE: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns the place of the calling thread.
fn place() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // Relaxed: any number will do.
    let next = || NEXT.fetch_add(1, Ordering::Relaxed) % PLACES;
    let place = PLACE.get().unwrap_or_else(next);
    PLACE.set(Some(place));
    place
}

impl TimedMicro {
    fn time<R>(&self, work: impl FnOnce() -> R) -> R {
        let begin = Instant::now();
        let done = work();
        let nanos = begin.elapsed().as_nanos() as u64;
        // Relaxed: it is read when nothing runs.
        self.spent[place()].0.fetch_add(nanos, Ordering::Relaxed);
        done
    }
}

impl Program for TimedMicro {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        let spent = std::array::from_fn(|_| Nanos::default());
        Ok(TimedMicro { micro: Micro::open(db, number)?, spent })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        self.time(|| self.micro.execute(tx, part))
    }

    /// Returns how many nanoseconds parts have taken.
    fn administer(&self, _: &[u8]) -> Result<Vec<u8>> {
        Ok(to_bytes(&self.spent.iter().map(|nanos| nanos.0.load(Ordering::Relaxed)).sum::<u64>()))
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        self.micro.requests(of, description)
    }
}

impl Workload for TimedMicroOptions {
    type Program = TimedMicro;

    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn program_name(&self) -> &'static str {
        "timed-micro"
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn multisite_percent(&self) -> u8 {
        self.0.multisite_percent()
    }

    fn with_multisite(&self, percent: u8) -> Self {
        TimedMicroOptions(self.0.with_multisite(percent))
    }

    fn spread(&self, instances: u16) -> Spread {
        self.0.spread(instances)
    }

    fn sites_max(&self, instances: u16) -> u64 {
        self.0.sites_max(instances)
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        self.0.description(workers)
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        self.0.memory_bytes(run)
    }

    fn loads(&self, number: InstanceNumber) -> Vec<Request> {
        self.0.loads(number)
    }

    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        self.0.check(instances, committed, ask)
    }
}
