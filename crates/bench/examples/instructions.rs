//! A fixed number of transactions by one worker, on systems that Silo's paper compares: what they cost in instructions.
//!
//! ```sh
//! cargo build --release -p ensilo-bench --example instructions
//! valgrind --tool=callgrind --toggle-collect='*counted_transactions*' target/release/examples/instructions ycsb ensilo 20000
//! ```
//!
//! The workload is `ycsb` or `tpcc`, the system one of those that `--help` of `ensilo bench` names and this program knows. Loading is not
//! counted; epochs are long, so that little is done by the clock.

use std::time::Duration;

use ensilo::baseline::{GlobalTid, KeyValue, NoSnapshots};
use ensilo::{Protocol, Silo};
use ensilo_bench::DatabaseOptions;
use ensilo_bench::driver::{Aborts, Failure, Interrupt, Session, View, Workload};
use ensilo_bench::tpcc::{Arrangement, LockedPartitions, ReadOnly, Scale, Split, TpccOf, TpccOptions, Whole};
use ensilo_bench::ycsb::{Ycsb, YcsbOptions};

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument =
        |at: usize, default: &'static str| arguments.get(at).map_or(default, String::as_str).to_owned();
    let count = argument(2, "20000").parse().map_err(|_| Failure::Refused("not a number".to_owned()))?;
    let committed = match (argument(0, "ycsb").as_str(), argument(1, "ensilo").as_str()) {
        ("ycsb", "ensilo") => ycsb::<Silo>(count),
        ("ycsb", "global-tid") => ycsb::<Silo<GlobalTid>>(count),
        ("ycsb", "key-value") => ycsb::<KeyValue>(count),
        ("tpcc", "ensilo") => tpcc::<Whole<Silo>>(count),
        ("tpcc", "global-tid") => tpcc::<Whole<Silo<GlobalTid>>>(count),
        ("tpcc", "no-snapshots") => tpcc::<Whole<Silo<NoSnapshots>>>(count),
        ("tpcc", "split") => tpcc::<Split>(count),
        ("tpcc", "partitioned-store") => tpcc::<LockedPartitions>(count),
        (workload, system) => Err(Failure::Refused(format!("no {workload} on {system} here"))),
    }?;
    println!("{committed} of {count} transactions committed");
    Ok(())
}

fn ycsb<P: Protocol>(count: u64) -> Result<u64, Failure> {
    let options = YcsbOptions { records: 20_000, ..YcsbOptions::new(1) };
    let database = database_options().open_in_memory::<P>()?;
    counted_transactions(&Ycsb::load(options, database, &mut View::silent(), &Interrupt::new())?, count)
}

fn tpcc<A: Arrangement>(count: u64) -> Result<u64, Failure> {
    let read_only = if A::Protocol::SNAPSHOTS { ReadOnly::Snapshot } else { ReadOnly::Ordinary };
    let scale = Scale { items: 1_000, customers: 60 };
    let options = TpccOptions { scale, read_only, ..TpccOptions::new(1) };
    let database = database_options().open_in_memory()?;
    let tpcc = TpccOf::<A>::load(options, database, &mut View::silent(), &Interrupt::new())?;
    counted_transactions(&tpcc, count)
}

fn database_options() -> DatabaseOptions {
    DatabaseOptions {
        epoch_interval: Some(Duration::from_millis(500)),
        epochs_per_snapshot: Some(2),
        ..DatabaseOptions::default()
    }
}

/// Never inlined, so that the profiler can be told to look at it alone.
#[inline(never)]
fn counted_transactions<W: Workload>(workload: &W, count: u64) -> Result<u64, Failure> {
    let mut session = workload.session(0);
    let mut committed = 0;
    for _ in 0..count {
        committed += u64::from(session.run_one(0, &mut Aborts::default())?.committed);
    }
    Ok(committed)
}
