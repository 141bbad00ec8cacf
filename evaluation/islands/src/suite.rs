//! Ten different workloads, to find out how good the advice on the size of islands is.

use ensilo_bench::mix::Mix;
use ensilo_bench::tpcc::{Scale, parse_mix};
use ensilo_bench::ycsb::NamedMix;
use ensilo_islands::CommitUnit;
use ensilo_islands::advisor::Distances;

use crate::advise::{Assessment, MeasureOptions, Target};
use crate::micro::MicroOptions;
use crate::run::{RunError, Workload};
use crate::tpcb::TpcbOptions;
use crate::tpcc::TpccIslandsOptions;
use crate::ycsb::YcsbIslandsOptions;

/// The rows of the microbenchmark, and the records of YCSB.
const ROWS: u64 = 100_000;

/// A workload of the suite.
#[derive(Clone, Debug)]
pub struct SuiteEntry {
    /// Its name.
    pub name: &'static str,
    /// How many transactions each worker has under way.
    pub width: usize,
    /// What is stored at all instances at once; `None` in memory.
    pub stored: Option<CommitUnit>,
    workload: SuiteWorkload,
}

#[derive(Clone, Debug)]
enum SuiteWorkload {
    Micro(MicroOptions),
    Tpcb(TpcbOptions),
    Tpcc(TpccIslandsOptions),
    Ycsb(YcsbIslandsOptions),
}

/// Returns ten workloads for a machine with so many cores: reads and updates that are local, and more and more of them multisite, even and skewed;
/// TPC-B, in memory and stored; TPC-C; and YCSB.
#[must_use]
pub fn suite(cores: u16) -> Vec<SuiteEntry> {
    let in_memory = |name, workload| SuiteEntry { name, width: 1, stored: None, workload };
    let stored = SuiteEntry {
        width: 256,
        stored: Some(CommitUnit::Transaction),
        ..in_memory("tpcb-stored", tpcb(cores))
    };
    vec![
        in_memory("read-local", micro(false, 0, 0.0)),
        in_memory("read-20", micro(false, 20, 0.0)),
        in_memory("update-local", micro(true, 0, 0.0)),
        in_memory("update-5", micro(true, 5, 0.0)),
        SuiteEntry { width: 8, ..in_memory("update-50", micro(true, 50, 0.0)) },
        in_memory("update-20-skewed", micro(true, 20, 0.75)),
        in_memory("tpcb", tpcb(cores)),
        in_memory("tpcc", tpcc(cores)),
        SuiteEntry { width: 8, ..in_memory("ycsb-b-10", ycsb()) },
        stored,
    ]
}

fn micro(updates: bool, multisite_percent: u8, skew: f64) -> SuiteWorkload {
    SuiteWorkload::Micro(MicroOptions {
        rows: ROWS,
        rows_per_transaction: 10,
        updates,
        multisite_percent,
        skew,
    })
}

fn tpcb(cores: u16) -> SuiteWorkload {
    SuiteWorkload::Tpcb(TpcbOptions {
        branches: 16 * u64::from(cores),
        accounts: 1000,
        multisite_percent: 15,
    })
}

fn tpcc(cores: u16) -> SuiteWorkload {
    let scale = Scale { items: 10_000, customers: 300 };
    SuiteWorkload::Tpcc(TpccIslandsOptions {
        warehouses: cores,
        scale,
        mix: tpcc_mix(),
        multisite_percent: None,
    })
}

/// The specification's.
fn tpcc_mix() -> Mix {
    parse_mix("45/43/4/4/4").unwrap_or_else(|error| unreachable!("the shares add up to 100: {error}"))
}

fn ycsb() -> SuiteWorkload {
    let Ok(mix) = "b".parse::<NamedMix>() else { unreachable!("the mix is known") };
    SuiteWorkload::Ycsb(YcsbIslandsOptions {
        records: ROWS,
        distribution: mix.distribution,
        mix: mix.shares,
        theta: 0.99,
        operations: 4,
        scan_len_max: 100,
        multisite_percent: 10,
    })
}

impl SuiteEntry {
    /// Asks the advisor about this workload, on this machine, and runs each size of islands. Of the options the width and what is stored are those of
    /// the workload.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn assess(
        &self,
        options: &MeasureOptions,
        distances: &Distances,
        progress: impl FnMut(&str),
    ) -> Result<Assessment, RunError> {
        let options = MeasureOptions { width: self.width, stored: self.stored, ..options.clone() };
        match &self.workload {
            SuiteWorkload::Micro(workload) => assess(&options, workload, distances, progress),
            SuiteWorkload::Tpcb(workload) => assess(&options, workload, distances, progress),
            SuiteWorkload::Tpcc(workload) => assess(&options, workload, distances, progress),
            SuiteWorkload::Ycsb(workload) => assess(&options, workload, distances, progress),
        }
    }
}

fn assess<W: Workload>(
    options: &MeasureOptions,
    workload: &W,
    distances: &Distances,
    progress: impl FnMut(&str),
) -> Result<Assessment, RunError> {
    let here = Target { topology: &options.topology, distances, workload };
    options.assess(workload, here, true, progress)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_workloads_are_ten_and_have_names_of_their_own() {
        let names: BTreeSet<&str> = suite(2).iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), 10);
    }
}
