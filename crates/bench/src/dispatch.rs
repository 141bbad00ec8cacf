//! Loading and running a workload on the system that was asked for. Here alone the workloads are compiled for each of them.

use ensilo::baseline::{Allocator, GlobalTid, KeyValue, NoGc, NoSnapshots, RowLog, Simple, TidLog};
use ensilo::{Database, Protocol, Silo};

use crate::benchmark::{Benchmark, BenchmarkOptions, Run};
use crate::database::Directories;
use crate::driver::{Failure, Interrupt, View, Workload, run};
use crate::report::CheckedRun;
use crate::systems::{LogRecords, System};
use crate::tpcc::{Arrangement, FastIds, LockedPartitions, Split, TpccOf, TpccOptions, Whole};
use crate::ycsb::{Ycsb, YcsbOptions};

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
    pub(crate) fn run(&mut self, benchmark: &Benchmark) -> Result<Run, Failure> {
        match benchmark {
            Benchmark::Tpcc(tpcc) => self.run_tpcc(tpcc),
            Benchmark::Ycsb(ycsb) => self.run_ycsb(ycsb),
        }
    }

    fn run_tpcc(&mut self, tpcc: &TpccOptions) -> Result<Run, Failure> {
        match self.options.system {
            System::Ensilo | System::Overwrites => match self.options.log_records {
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
            System::KeyValue => self.refuse(),
        }
    }

    fn run_ycsb(&mut self, ycsb: &YcsbOptions) -> Result<Run, Failure> {
        match self.options.system {
            System::Ensilo | System::Overwrites => match self.options.log_records {
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
            System::PartitionedStore | System::Split | System::FastIds => self.refuse(),
        }
    }

    fn refuse(&self) -> Result<Run, Failure> {
        Err(Failure::Refused(format!("{} does not run this workload", self.options.system.name())))
    }

    /// The database of a system that can be durable.
    fn open<P: Protocol>(&self) -> Result<Database<P>, Failure> {
        Ok(self.options.database.open(self.directories)?)
    }

    /// The database of a system that cannot.
    fn in_memory<P: Protocol>(&self) -> Result<Database<P>, Failure> {
        Ok(self.options.database.open_in_memory()?)
    }

    fn tpcc<A: Arrangement>(
        &mut self,
        options: &TpccOptions,
        database: Database<A::Protocol>,
    ) -> Result<Run, Failure> {
        let tpcc = TpccOf::<A>::load(options.clone(), database, self.view, self.interrupt)?;
        self.run_and_check(&tpcc)
    }

    fn ycsb<P: Protocol>(&mut self, options: &YcsbOptions, database: Database<P>) -> Result<Run, Failure> {
        let ycsb = Ycsb::load(options.clone(), database, self.view, self.interrupt)?;
        self.run_and_check(&ycsb)
    }

    fn run_and_check<W: Workload>(&mut self, workload: &W) -> Result<Run, Failure> {
        let result = run(workload, &self.options.run, self.name, self.view, self.interrupt)?;
        // Who stops a run early wants its results, checked; who stops it again gets no further than this.
        let checks =
            if self.options.check { workload.check(self.view, &Interrupt::new())? } else { Vec::new() };
        workload.database().map_or(Ok(()), Database::close)?;
        Ok((workload.transaction_types(), CheckedRun { result, checks, disk: None, recovery: None }))
    }
}
