//! Loading a workload on the system that was asked for. Here alone the workloads are compiled for each of them.

use ensilo::Engine;
use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::generic::Database;
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};
use ensilo::variants::{Allocator, GlobalTid, NoGc, NoSnapshots, RowLog, Silo, Simple, TidLog};
use ensilo_baselines::KeyValue;

use crate::database::{DatabaseOptions, Directories, while_snapshot_is_open};
use crate::driver::{Failure, Interrupt, View, Workload, run};
use crate::options::{Benchmark, BenchmarkOptions, Run};
use crate::report::{CheckedRun, TimedCheckpoint};
use crate::stock::{StockOptions, StockTable};
use crate::systems::{LogRecords, System};
use crate::tpcb::{Tpcb, TpcbOptions};
use crate::tpcc::{Arrangement, FastIds, LockedPartitions, Split, TpccOf, TpccOptions, Whole};
use crate::tpcc_hybrid::{HybridOptions, TpccHybrid};
use crate::tpce::{Tpce, TpceOptions};
use crate::ycsb::{Ycsb, YcsbOptions};

/// What is done with a workload, whatever its type is.
pub trait Visitor {
    /// What comes of it.
    type Result;

    /// Does it with `workload`, which is loaded. It may show on `view` what it does.
    ///
    /// # Errors
    /// What it fails with.
    fn visit<W: Workload>(
        &mut self,
        workload: &W,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self::Result, Failure>;
}

/// Loads `benchmark` on `system` into a database in memory, without showing it, and takes `visitor` to it.
///
/// # Errors
/// [`Failure::Refused`] when the system does not run the workload; failures of the database and of the visitor.
pub fn visit_in_memory<V: Visitor>(
    benchmark: &Benchmark,
    system: System,
    database: &DatabaseOptions,
    visitor: &mut V,
) -> Result<V::Result, Failure> {
    visit(benchmark, system, database, None, visitor)
}

/// The same for a database in `directories`, which are empty. The system is one that [can be durable](System::is_product).
///
/// # Errors
/// As [`visit_in_memory`].
pub fn visit_on_disk<V: Visitor>(
    benchmark: &Benchmark,
    system: System,
    database: &DatabaseOptions,
    directories: &Directories,
    visitor: &mut V,
) -> Result<V::Result, Failure> {
    visit(benchmark, system, database, Some(directories), visitor)
}

fn visit<V: Visitor>(
    benchmark: &Benchmark,
    system: System,
    database: &DatabaseOptions,
    directories: Option<&Directories>,
    visitor: &mut V,
) -> Result<V::Result, Failure> {
    let (view, interrupt) = (&mut View::silent(), &Interrupt::new());
    let log_records = LogRecords::default();
    Loading { system, log_records, database, directories, view, interrupt, visitor }.visit(benchmark)
}

/// One run of a benchmark.
pub(crate) struct Job<'a> {
    pub(crate) options: &'a BenchmarkOptions,
    /// Where the database lies; `None` for one in memory.
    pub(crate) directories: Option<&'a Directories>,
    /// What the run is called.
    pub(crate) name: &'a str,
    pub(crate) view: &'a mut View,
    pub(crate) interrupt: &'a Interrupt,
}

impl Job<'_> {
    /// Loads, runs and checks.
    pub(crate) fn run(self, benchmark: &Benchmark) -> Result<Run, Failure> {
        let Job { options, directories, name, view, interrupt } = self;
        let BenchmarkOptions { system, log_records, ref database, .. } = *options;
        let visitor = &mut RunAndCheck { options, name };
        Loading { system, log_records, database, directories, view, interrupt, visitor }.visit(benchmark)
    }
}

struct RunAndCheck<'a> {
    options: &'a BenchmarkOptions,
    name: &'a str,
}

impl Visitor for RunAndCheck<'_> {
    type Result = Run;

    fn visit<W: Workload>(
        &mut self,
        workload: &W,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Run, Failure> {
        let BenchmarkOptions { run: run_options, holds_snapshot, times_checkpoint, .. } = self.options;
        let mut make_run = || run(workload, run_options, self.name, view, interrupt);
        let result = match workload.database().filter(|_| *holds_snapshot) {
            Some(database) => while_snapshot_is_open(database, make_run)?,
            None => make_run()?,
        };
        // If a run is stopped early, its results are still wanted and checked; a second stop has no effect here.
        let checks = if self.options.check { workload.check(view, &Interrupt::new())? } else { Vec::new() };
        let to_checkpoint = workload.database().filter(|_| *times_checkpoint);
        let timed_checkpoint = to_checkpoint.map(TimedCheckpoint::make).transpose()?;
        workload.database().map_or(Ok(()), Database::close)?;
        let run = CheckedRun { result, checks, disk: None, recovery: None, timed_checkpoint };
        Ok((workload.transaction_types(), run))
    }
}

/// A database that is opened and loaded for a visitor.
struct Loading<'a, V> {
    system: System,
    log_records: LogRecords,
    database: &'a DatabaseOptions,
    directories: Option<&'a Directories>,
    view: &'a mut View,
    interrupt: &'a Interrupt,
    visitor: &'a mut V,
}

impl<V: Visitor> Loading<'_, V> {
    fn visit(&mut self, benchmark: &Benchmark) -> Result<V::Result, Failure> {
        match benchmark {
            Benchmark::Tpcb(tpcb) => self.visit_tpcb(tpcb),
            Benchmark::Tpcc(tpcc) => self.visit_tpcc(tpcc),
            Benchmark::TpccHybrid(hybrid) => self.visit_hybrid(hybrid),
            Benchmark::Stock(stock) => self.visit_stock(stock),
            Benchmark::Tpce(tpce) => self.visit_tpce(tpce),
            Benchmark::Ycsb(ycsb) => self.visit_ycsb(ycsb),
        }
    }

    fn visit_tpcb(&mut self, tpcb: &TpcbOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo => self.tpcb::<Silo>(tpcb),
            System::Ermia => self.tpcb::<Ermia>(tpcb),
            System::ErmiaSnapshot => self.tpcb::<Ermia<SnapshotIsolation>>(tpcb),
            System::TwoPhaseLocking => self.tpcb::<TwoPhaseLocking>(tpcb),
            System::TwoPhaseLockingNoWait => self.tpcb::<TwoPhaseLocking<NoWait>>(tpcb),
            _ => self.refuse(),
        }
    }

    fn visit_tpcc(&mut self, tpcc: &TpccOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo | System::Overwrites => match self.log_records {
                LogRecords::Patches => self.tpcc::<Whole<Silo>>(tpcc, self.open()?),
                LogRecords::Full => self.tpcc::<Whole<Silo<RowLog>>>(tpcc, self.open()?),
                LogRecords::Small => self.tpcc::<Whole<Silo<TidLog>>>(tpcc, self.open()?),
            },
            System::GlobalTid => self.tpcc::<Whole<Silo<GlobalTid>>>(tpcc, self.in_memory()?),
            System::NoSnapshots => self.tpcc::<Whole<Silo<NoSnapshots>>>(tpcc, self.in_memory()?),
            System::Simple => self.tpcc::<Whole<Silo<Simple>>>(tpcc, self.in_memory()?),
            System::Allocator => self.tpcc::<Whole<Silo<Allocator>>>(tpcc, self.in_memory()?),
            System::NoGc => self.tpcc::<Whole<Silo<NoGc>>>(tpcc, self.in_memory()?),
            System::PartitionedStore => self.tpcc::<LockedPartitions>(tpcc, self.in_memory()?),
            System::Split => self.tpcc::<Split>(tpcc, self.in_memory()?),
            System::FastIds => self.tpcc::<FastIds>(tpcc, self.in_memory()?),
            System::Ermia => self.tpcc::<Whole<Ermia>>(tpcc, self.open()?),
            System::ErmiaSnapshot => self.tpcc::<Whole<Ermia<SnapshotIsolation>>>(tpcc, self.open()?),
            System::TwoPhaseLocking => self.tpcc::<Whole<TwoPhaseLocking>>(tpcc, self.open()?),
            System::TwoPhaseLockingNoWait => self.tpcc::<Whole<TwoPhaseLocking<NoWait>>>(tpcc, self.open()?),
            System::KeyValue => self.refuse(),
        }
    }

    /// TPC-E is compiled for few engines: its transactions are many.
    fn visit_tpce(&mut self, tpce: &TpceOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo => self.tpce::<Silo>(tpce, self.open()?),
            System::Ermia => self.tpce::<Ermia>(tpce, self.open()?),
            System::ErmiaSnapshot => self.tpce::<Ermia<SnapshotIsolation>>(tpce, self.open()?),
            System::TwoPhaseLocking => self.tpce::<TwoPhaseLocking>(tpce, self.open()?),
            _ => self.refuse(),
        }
    }

    fn visit_ycsb(&mut self, ycsb: &YcsbOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo | System::Overwrites => match self.log_records {
                LogRecords::Patches => self.ycsb::<Silo>(ycsb, self.open()?),
                LogRecords::Full => self.ycsb::<Silo<RowLog>>(ycsb, self.open()?),
                LogRecords::Small => self.ycsb::<Silo<TidLog>>(ycsb, self.open()?),
            },
            System::GlobalTid => self.ycsb::<Silo<GlobalTid>>(ycsb, self.in_memory()?),
            System::NoSnapshots => self.ycsb::<Silo<NoSnapshots>>(ycsb, self.in_memory()?),
            System::Simple => self.ycsb::<Silo<Simple>>(ycsb, self.in_memory()?),
            System::Allocator => self.ycsb::<Silo<Allocator>>(ycsb, self.in_memory()?),
            System::NoGc => self.ycsb::<Silo<NoGc>>(ycsb, self.in_memory()?),
            System::KeyValue => self.ycsb::<KeyValue>(ycsb, self.in_memory()?),
            System::Ermia => self.ycsb::<Ermia>(ycsb, self.open()?),
            System::ErmiaSnapshot => self.ycsb::<Ermia<SnapshotIsolation>>(ycsb, self.open()?),
            System::TwoPhaseLocking => self.ycsb::<TwoPhaseLocking>(ycsb, self.open()?),
            System::TwoPhaseLockingNoWait => self.ycsb::<TwoPhaseLocking<NoWait>>(ycsb, self.open()?),
            System::PartitionedStore | System::Split | System::FastIds => self.refuse(),
        }
    }

    fn visit_hybrid(&mut self, hybrid: &HybridOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo => self.hybrid::<Silo>(hybrid),
            System::Ermia => self.hybrid::<Ermia>(hybrid),
            System::ErmiaSnapshot => self.hybrid::<Ermia<SnapshotIsolation>>(hybrid),
            System::TwoPhaseLocking => self.hybrid::<TwoPhaseLocking>(hybrid),
            _ => self.refuse(),
        }
    }

    fn visit_stock(&mut self, stock: &StockOptions) -> Result<V::Result, Failure> {
        match self.system {
            System::Ensilo => self.stock::<Silo>(stock),
            System::Ermia => self.stock::<Ermia>(stock),
            System::ErmiaSnapshot => self.stock::<Ermia<SnapshotIsolation>>(stock),
            System::TwoPhaseLocking => self.stock::<TwoPhaseLocking>(stock),
            System::TwoPhaseLockingNoWait => self.stock::<TwoPhaseLocking<NoWait>>(stock),
            _ => self.refuse(),
        }
    }

    fn refuse(&self) -> Result<V::Result, Failure> {
        Err(Failure::Refused(format!("{} does not run this workload", self.system.name())))
    }

    /// The database of a system that can be durable.
    fn open<E: Engine>(&self) -> Result<Database<E>, Failure> {
        Ok(self.database.open(self.directories)?)
    }

    /// The database of a system that cannot.
    fn in_memory<E: Engine>(&self) -> Result<Database<E>, Failure> {
        Ok(self.database.open_in_memory()?)
    }

    fn tpcb<E: Engine>(&mut self, options: &TpcbOptions) -> Result<V::Result, Failure> {
        let tpcb = Tpcb::<E>::load(options.clone(), self.open()?, self.view, self.interrupt)?;
        self.visitor.visit(&tpcb, self.view, self.interrupt)
    }

    fn tpcc<A: Arrangement>(
        &mut self,
        options: &TpccOptions,
        database: Database<A::Engine>,
    ) -> Result<V::Result, Failure> {
        let tpcc = TpccOf::<A>::load(options.clone(), database, self.view, self.interrupt)?;
        self.visitor.visit(&tpcc, self.view, self.interrupt)
    }

    fn hybrid<E: Engine>(&mut self, options: &HybridOptions) -> Result<V::Result, Failure> {
        let hybrid = TpccHybrid::<E>::load(options.clone(), self.open()?, self.view, self.interrupt)?;
        self.visitor.visit(&hybrid, self.view, self.interrupt)
    }

    fn stock<E: Engine>(&mut self, options: &StockOptions) -> Result<V::Result, Failure> {
        let stock = StockTable::<E>::load(options.clone(), self.open()?, self.view, self.interrupt)?;
        self.visitor.visit(&stock, self.view, self.interrupt)
    }

    fn tpce<E: Engine>(
        &mut self,
        options: &TpceOptions,
        database: Database<E>,
    ) -> Result<V::Result, Failure> {
        let tpce = Tpce::load(options.clone(), database, self.view, self.interrupt)?;
        self.visitor.visit(&tpce, self.view, self.interrupt)
    }

    fn ycsb<E: Engine>(
        &mut self,
        options: &YcsbOptions,
        database: Database<E>,
    ) -> Result<V::Result, Failure> {
        let ycsb = Ycsb::load(options.clone(), database, self.view, self.interrupt)?;
        self.visitor.visit(&ycsb, self.view, self.interrupt)
    }
}
