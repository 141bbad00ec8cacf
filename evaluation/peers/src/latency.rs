//! The databases beside Ensilo for `ensilo figures run latency`.

use ensilo_bench::driver::{Failure, Interrupt, View};
use ensilo_bench::peer::Setting;
use ensilo_bench::tpcc::Scale;
use ensilo_figures::compare::PeerRun;
use ensilo_figures::latency::{LatencyOptions, LatencyRun, OtherDatabases};

use crate::comparison::{CompareOptions, measure_transfers};
use crate::names::{PeerName, WorkloadName};

/// Those that need nothing but this program.
#[derive(Debug)]
pub struct LatencyPeers {
    options: CompareOptions,
}

impl LatencyPeers {
    /// Those of this program, measured as Ensilo is.
    pub fn new(latency: &LatencyOptions) -> Self {
        let peers = PeerName::at_hand(false).into_iter().filter(|&peer| peer != PeerName::Ensilo);
        Self {
            options: CompareOptions {
                peers: peers.collect(),
                workloads: vec![WorkloadName::TransferUniform],
                settings: vec![Setting::Synced],
                workers: Vec::new(),
                synced_workers: latency.clients.clone(),
                records: 1,
                accounts: latency.accounts,
                warehouses: 1,
                tpcc_scale: Scale::SPECIFICATION,
                measured: latency.measured,
                warmup: latency.warmup,
                runs: latency.runs,
                directory: None,
                postgres: None,
                seed: latency.seed,
            },
        }
    }
}

impl OtherDatabases for LatencyPeers {
    fn names(&self) -> Vec<&'static str> {
        self.options.peers.iter().map(|peer| peer.name()).collect()
    }

    fn missing(&self) -> Vec<&'static str> {
        let is_missing = |peer: &PeerName| *peer != PeerName::Ensilo && !self.options.peers.contains(peer);
        PeerName::ALL.into_iter().filter(is_missing).map(PeerName::name).collect()
    }

    fn measure(
        &self,
        name: &str,
        run: LatencyRun,
        phase: &str,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<PeerRun, Failure> {
        let peer = name.parse().map_err(Failure::Refused)?;
        measure_transfers(&self.options, peer, run, phase, view, interrupt)
    }
}
