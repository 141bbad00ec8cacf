//! What follows from times that were measured, and when nothing does.

use std::time::Instant;

use ensilo::{Database, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{InstanceNumber, Program, RequestSource};

use super::*;
use crate::run::Ask;

/// The multisite ones of these are fifty times as long as most local ones: what that takes is no part of what others cost.
#[test]
fn the_own_work_of_long_multisite_transactions_is_no_cost_of_other_instances() {
    let multisite = |by_width, made_local| Some(MultisiteTimes { by_width, made_local });
    let times = Times { local: 2.0, shared: 3.0, multisite: multisite([120.0, 140.0], 100.0) };
    let stored = Times {
        local: 6.0,
        shared: 5.0,
        multisite: Some(MultisiteTimes { by_width: [180.0], made_local: 130.0 }),
    };
    let parts = || Parts { others: 2.0, distributed: 1.0 };
    let costs = costs_of(&times, Some(&stored), parts(), (2, 4));
    assert_eq!((costs.local, costs.sharing, costs.part, costs.wait), (2.0, 2.0, 10.0, 20.0));
    let storing = costs.storing;
    assert_eq!((storing.at_one, storing.at_each, storing.distributed), (2.0, 4.0, 25.0));
    let alone = Times { multisite: None, ..times };
    let costs = costs_of(&alone, None, parts(), (2, 4));
    assert_eq!((costs.part, costs.wait, costs.storing), (0.0, 0.0, Storing::default()));
}

/// Transactions that take longer than they are measured.
#[derive(Debug)]
struct Slow;

const SLOW: Duration = Duration::from_millis(40);

impl Program for Slow {
    fn open(_: &Database, _: InstanceNumber) -> ensilo::Result<Self> {
        Ok(Slow)
    }

    fn execute(&self, _: &mut Transaction<'_>, _: &[u8]) -> ensilo::Result<Vec<u8>> {
        let begin = Instant::now();
        while begin.elapsed() < SLOW {
            std::thread::yield_now();
        }
        Ok(Vec::new())
    }

    fn requests(&self, _: SiteId, _: &[u8]) -> ensilo::Result<RequestSource> {
        Ok(Box::new(|| Request::new(Some(Vec::new()), Vec::new())))
    }
}

impl Workload for Slow {
    type Program = Slow;

    fn name(&self) -> &'static str {
        "slow"
    }

    fn multisite_percent(&self) -> u8 {
        0
    }

    fn with_multisite(&self, _: u8) -> Self {
        Slow
    }

    fn spread(&self, _: u16) -> Spread {
        Spread { distributed: 0.0, others: 0.0, hottest: 1.0 }
    }

    fn sites_max(&self, _: u16) -> u64 {
        u64::MAX
    }

    fn description(&self, _: u16) -> Vec<u8> {
        Vec::new()
    }

    fn memory_bytes(&self, _: &RunOptions) -> u64 {
        0
    }

    fn loads(&self, _: InstanceNumber) -> Vec<Request> {
        Vec::new()
    }

    fn check(&self, _: u16, _: u64, _: &mut Ask<'_>) -> std::result::Result<(), String> {
        Ok(())
    }
}

fn throughput_of_slow(time: Duration) -> Result<f64, RunError> {
    let options = MeasureOptions {
        topology: Topology::of_this_machine().unwrap(),
        channel: ChannelKind::Memory,
        program: None,
        width: 1,
        stored: None,
        time,
    };
    options.throughput(&Slow, Layout { instances: 1, workers: 1, width: 1 }, |_| ())
}

#[test]
fn nothing_follows_from_a_run_without_a_commit_and_a_longer_one_is_made_first() {
    let none = throughput_of_slow(SLOW / 40).unwrap_err();
    assert!(matches!(none, RunError::NoneCommitted(_)), "{none}");
    // The first run never commits; where the machine is busy, the longer one may not either.
    assert!((0..10).any(|_| throughput_of_slow(SLOW / 2).is_ok_and(|throughput| throughput > 0.0)));
}

#[test]
fn uneven_sizes_are_measured_for_all_of_their_workers() {
    let of = |workers, instances| even_workers(&Prediction { instances, workers, throughput: 1.0 });
    assert_eq!(of(8, 2), (4, 1.0));
    // Two instances with four and three workers.
    assert_eq!(of(7, 2), (3, 7.0 / 6.0));
    assert_eq!(of(3, 1), (3, 1.0));
}

fn assessment(predicted: [f64; 3], measured: Option<[f64; 3]>) -> Assessment {
    let costs = Costs { local: 1.0, sharing: 0.0, part: 0.0, wait: 0.0, storing: Storing::default() };
    let size = |throughput| Prediction { instances: 1, workers: 1, throughput };
    Assessment {
        costs,
        predictions: predicted.map(size).to_vec(),
        measured: measured.map(|measured| measured.to_vec()),
        conflicts: 0.0,
        unmeasured_cores: 0,
    }
}

#[test]
fn an_advice_is_worth_what_the_recommended_size_reaches_of_the_best_measured_one() {
    assert_eq!(assessment([1.0, 3.0, 2.0], None).verified(), None);
    let verified = |measured| assessment([1.0, 3.0, 2.0], Some(measured)).verified();
    assert_eq!(verified([10.0, 20.0, 5.0]), Some((1, 1.0)));
    assert_eq!(verified([40.0, 20.0, 5.0]), Some((0, 0.5)));
}
