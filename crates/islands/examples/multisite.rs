//! Transactions that read or update rows of two instances.

use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use ensilo::{Columns, Database, Error, Result, Row, Table, Transaction};
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{
    ChannelKind, Instances, IslandsOptions, LoadTime, Place, Placement, Plan, Program, RequestSource,
    Topology, run_if_instance,
};

#[derive(Debug, Parser)]
struct Arguments {
    #[arg(long, default_value_t = 2)]
    islands: usize,
    #[arg(long, default_value = "memory")]
    channel: ChannelKind,
    #[arg(long, default_value_t = 1)]
    width: usize,
    #[arg(long, default_value_t = 100)]
    multisite: u8,
    #[arg(long)]
    read: bool,
    #[arg(long, default_value_t = 3)]
    seconds: u64,
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Instances have processes of their own.
    #[arg(long)]
    processes: bool,
}

const ROWS: u32 = 100_000;

#[derive(Row)]
#[row(table = "counter")]
struct Counter {
    #[row(key)]
    id: u32,
    count: u64,
}

#[derive(Columns)]
#[columns(of = Counter)]
struct Count {
    count: u64,
}

struct Counters {
    counters: Table<Counter>,
    place: Place,
}

impl Program for Counters {
    fn open(db: &Database, place: Place) -> Result<Self> {
        if let Ok(counters) = db.open_table() {
            return Ok(Counters { counters, place });
        }
        let counters = db.create_table::<Counter>()?;
        for first in (0..ROWS).step_by(1000) {
            db.transact(|tx| {
                (first..first + 1000)
                    .try_for_each(|id| counters.insert(tx, &Counter { id, count: 0 }).map(drop))
            })?;
        }
        Ok(Counters { counters, place })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        let Some((id, [writes])) = part.split_first_chunk() else {
            return Err(Error::rollback("no part"));
        };
        let id = u32::from_le_bytes(*id);
        if *writes == 0 {
            let count = self.counters.get_columns::<Count>(tx, id)?.map_or(0, |row| row.count);
            return Ok(count.to_le_bytes().to_vec());
        }
        self.counters.update(tx, id, |row: &mut Count| row.count += 1)?;
        Ok(Vec::new())
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let (multisite, writes): (u8, bool) =
            postcard::from_bytes(description).map_err(|error| Error::rollback(error.to_string()))?;
        let Place { instance, instances } = self.place;
        let mut random = fastrand::Rng::with_seed(u64::from(of.instance) + 1);
        Ok(Box::new(move || {
            let mut part = || [&random.u32(..ROWS).to_le_bytes()[..], &[u8::from(writes)]].concat();
            let (local, remote) = (Some(part()), part());
            if random.u8(..100) < multisite && instances > 1 {
                let other = (instance + random.u16(1..instances)) % instances;
                Request { local, remote: vec![(SiteId { instance: other, worker: 0 }, remote)] }
            } else {
                Request { local, remote: Vec::new() }
            }
        }))
    }
}

fn main() -> ExitCode {
    if let Some(ended) = run_if_instance::<Counters>(Database::options) {
        return ended;
    }
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let arguments = Arguments::parse();
    let topology = Topology::of_this_machine()?;
    let plan = Plan::new(&topology, Instances::Count(arguments.islands), Placement::Group);
    let mut options = IslandsOptions::new(plan).channel(arguments.channel).workers(1);
    if let Some(directory) = &arguments.directory {
        options = options.directory(directory);
    }
    if arguments.processes {
        let program = std::env::current_exe()?;
        options = options.processes(move || Command::new(&program));
    }
    let islands = options.open::<Counters>()?;
    let time =
        LoadTime { warmup: Duration::from_millis(500), measured: Duration::from_secs(arguments.seconds) };
    let description = postcard::to_allocvec(&(arguments.multisite, !arguments.read))?;
    let report = islands.run_load(arguments.width, time, &description)?;
    println!(
        "{:.0} a second, {} retried, {} rejected; p50 {:.1} us, p99 {:.1} us",
        report.committed as f64 / arguments.seconds as f64,
        report.retried,
        report.rejected,
        report.nanos.value_at_quantile(0.5) as f64 / 1000.0,
        report.nanos.value_at_quantile(0.99) as f64 / 1000.0
    );
    Ok(())
}
