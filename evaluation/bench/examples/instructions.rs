//! A fixed number of transactions by one worker, on the systems that Silo's paper compares: what they cost in instructions.
//!
//! ```sh
//! cargo build --release -p ensilo-bench --example instructions
//! valgrind --tool=callgrind --toggle-collect='*counted_transactions*' target/release/examples/instructions ycsb ensilo 20000
//! ```
//!
//! The workload is `ycsb` (Silo's variant) or `tpcc`, the system one of those that `ensilo bench --help` names. Loading is not
//! counted; epochs are long, so that little is done by the clock. Without valgrind it tells how long a transaction takes; a fourth argument
//! is then a number of records for `ycsb` (20,000 by default), so that they do not fit into a cache.

use std::time::{Duration, Instant};

use ensilo_bench::driver::{Aborts, Failure, Interrupt, Session, View, Workload};
use ensilo_bench::tpcc::{ReadOnly, Scale, TpccOptions};
use ensilo_bench::ycsb::YcsbOptions;
use ensilo_bench::{Benchmark, DatabaseOptions, System, Visitor, visit_in_memory};

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let number = |text: String| text.parse().map_err(|_| Failure::Refused(format!("{text} is no number")));
    let (workload, name) = (argument(0, "ycsb"), argument(1, "ensilo"));
    let (transactions, records) = (number(argument(2, "20000"))?, number(argument(3, "20000"))?);
    let system = System::all().find(|system| system.name() == name);
    let system = system.ok_or_else(|| Failure::Refused(format!("there is no system {name}")))?;
    let benchmark = match workload.as_str() {
        "ycsb" => Benchmark::Ycsb(YcsbOptions { records, ..YcsbOptions::new(1) }),
        "tpcc" => Benchmark::Tpcc(tpcc(system)),
        _ => return Err(Failure::Refused(format!("there is no workload {workload}"))),
    };
    let database = DatabaseOptions {
        epoch_interval: Some(Duration::from_millis(500)),
        epochs_per_snapshot: Some(2),
        ..DatabaseOptions::default()
    };
    let (committed, time) = visit_in_memory(&benchmark, system, &database, &mut Counted { transactions })?;
    let each_ns = time.as_secs_f64() * 1e9 / transactions.max(1) as f64;
    println!("{committed} of {transactions} transactions committed, {each_ns:.0} ns each");
    Ok(())
}

fn tpcc(system: System) -> TpccOptions {
    let read_only = if system.has_snapshots() { ReadOnly::Snapshot } else { ReadOnly::Ordinary };
    TpccOptions { scale: Scale { items: 1_000, customers: 60 }, read_only, ..TpccOptions::new(1) }
}

struct Counted {
    transactions: u64,
}

impl Visitor for Counted {
    type Result = (u64, Duration);

    fn visit<W: Workload>(
        &mut self,
        workload: &W,
        _: &mut View,
        _: &Interrupt,
    ) -> Result<(u64, Duration), Failure> {
        let start = Instant::now();
        counted_transactions(workload, self.transactions).map(|committed| (committed, start.elapsed()))
    }
}

/// Never inlined, so that the profiler can be limited to it.
#[inline(never)]
fn counted_transactions<W: Workload>(workload: &W, count: u64) -> Result<u64, Failure> {
    let mut session = workload.session(0);
    let mut committed = 0;
    for _ in 0..count {
        committed += u64::from(session.run_one(0, &mut Aborts::default())?.committed);
    }
    Ok(committed)
}
