//! One call of `ensilo bench`, as data.

use std::time::Duration;

/// What a single run does; [`arguments`](Self::arguments) says it to the program.
#[derive(Debug, Clone, PartialEq)]
pub struct BenchCommand {
    /// What is run.
    pub workload: Workload,
    /// Which system runs it, by the name that the report shows.
    pub system: &'static str,
    /// What lies on disk.
    pub storage: Storage,
    /// Threads that run transactions.
    pub workers: usize,
    /// Seconds before the measured time.
    pub warmup: f64,
    /// Seconds measured.
    pub seconds: f64,
    /// Further options, as they are written.
    pub options: Vec<String>,
}

/// A workload with the parameters that say how large it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// TPC-C.
    Tpcc {
        /// Warehouses.
        warehouses: usize,
        /// Shares of the transaction types.
        mix: &'static str,
    },
    /// TPC-C-hybrid, with its paper's mix.
    TpccHybrid {
        /// Warehouses.
        warehouses: usize,
        /// Percent of the suppliers that a CH-Q2* covers.
        supplier_percent: u32,
    },
    /// Reads and updates of TPC-C's stocks.
    Stock {
        /// Warehouses.
        warehouses: usize,
        /// Rows that a transaction reads.
        reads: u32,
        /// Percent of them that it updates.
        write_percent: f64,
    },
    /// TPC-E, or TPC-E-hybrid, with its paper's mix.
    Tpce {
        /// Customers.
        customers: u32,
        /// Days whose trades are loaded.
        days: u32,
        /// For TPC-E-hybrid, the percent of the customers whose accounts an AssetEval looks at.
        asset_eval_percent: Option<u32>,
    },
    /// A workload on several instances, which have the workers together.
    Islands {
        /// What `ensilo bench` calls it.
        name: &'static str,
        /// Instances.
        islands: usize,
    },
    /// Counters that all workers count up, each under a lock.
    Counters {
        /// How many: `core`, `socket` or `one`, as `ensilo bench` calls it.
        counters: &'static str,
    },
    /// Messages between two processes.
    Channel {
        /// The kind of channel.
        kind: &'static str,
    },
    /// YCSB with records of 100 bytes, keys chosen uniformly, one operation a transaction.
    Ycsb {
        /// Records loaded.
        records: u64,
        /// Shares of the operations.
        mix: &'static str,
    },
}

/// What is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    /// Nothing.
    Memory,
    /// The log; no checkpoint is made.
    Log,
    /// The log, in a file system that lies in memory.
    LogInTmpfs,
    /// The log and checkpoints.
    LogAndCheckpoints,
    /// The log and checkpoints; at the end the program is killed and the database recovered.
    Crash,
}

/// The file system in memory of Linux.
const TMPFS: &str = "/dev/shm";
/// The system that is meant when none is named.
pub(crate) const PRODUCT: &str = "ensilo";

impl BenchCommand {
    /// The standard mix of TPC-C in memory, a warehouse for each worker, run by the product.
    pub fn tpcc(workers: usize, warmup: f64, seconds: f64) -> Self {
        let workload = Workload::Tpcc { warehouses: workers, mix: "45/43/4/4/4" };
        Self::new(workload, workers, warmup, seconds)
    }

    /// TPC-C-hybrid in memory, a warehouse for each worker, run by the product.
    pub fn tpcc_hybrid(supplier_percent: u32, workers: usize, warmup: f64, seconds: f64) -> Self {
        let workload = Workload::TpccHybrid { warehouses: workers, supplier_percent };
        Self::new(workload, workers, warmup, seconds)
    }

    /// Reads and updates of stocks in memory, those of a warehouse for each worker, run by the product.
    pub fn stock(reads: u32, write_percent: f64, workers: usize, warmup: f64, seconds: f64) -> Self {
        let workload = Workload::Stock { warehouses: workers, reads, write_percent };
        Self::new(workload, workers, warmup, seconds)
    }

    /// TPC-E in memory, with so many customers and days of trades, run by the product.
    pub fn tpce((customers, days): (u32, u32), workers: usize, warmup: f64, seconds: f64) -> Self {
        let workload = Workload::Tpce { customers, days, asset_eval_percent: None };
        Self::new(workload, workers, warmup, seconds)
    }

    /// The same with AssetEval over so many percent of the customers: TPC-E-hybrid.
    ///
    /// # Panics
    /// If this is not TPC-E.
    pub fn asset_eval(mut self, percent: u32) -> Self {
        let Workload::Tpce { asset_eval_percent, .. } = &mut self.workload else {
            panic!("only TPC-E has accounts")
        };
        *asset_eval_percent = Some(percent);
        self
    }

    /// A workload on so many instances in memory, which have all of these workers together.
    pub fn islands(
        name: &'static str,
        islands: usize,
        workers: usize,
        (warmup, seconds): (f64, f64),
    ) -> Self {
        Self::new(Workload::Islands { name, islands }, workers, warmup, seconds)
    }

    /// Counters that all of these workers count up.
    pub fn counters(counters: &'static str, workers: usize, (warmup, seconds): (f64, f64)) -> Self {
        Self::new(Workload::Counters { counters }, workers, warmup, seconds)
    }

    /// Messages through this kind of channel, for half of the time with the other end asleep.
    pub fn channel(kind: &'static str, seconds: f64) -> Self {
        Self::new(Workload::Channel { kind }, 2, 0.0, seconds / 2.0)
    }

    /// A mix of YCSB in memory, run by the product.
    pub fn ycsb(records: u64, mix: &'static str, workers: usize, warmup: f64, seconds: f64) -> Self {
        Self::new(Workload::Ycsb { records, mix }, workers, warmup, seconds)
    }

    fn new(workload: Workload, workers: usize, warmup: f64, seconds: f64) -> Self {
        Self {
            workload,
            system: PRODUCT,
            storage: Storage::Memory,
            workers,
            warmup,
            seconds,
            options: Vec::new(),
        }
    }

    /// The same, run by another system.
    pub fn system(mut self, system: &'static str) -> Self {
        self.system = system;
        self
    }

    /// The same with this on disk.
    pub fn storage(mut self, storage: Storage) -> Self {
        self.storage = storage;
        self
    }

    /// The same with a further option that has no value.
    pub fn flag(mut self, name: &str) -> Self {
        self.options.push(name.to_owned());
        self
    }

    /// The same with a further option.
    pub fn option(mut self, name: &str, value: impl ToString) -> Self {
        self.options.extend([name.to_owned(), value.to_string()]);
        self
    }

    /// TPC-C with another number of warehouses and mix.
    ///
    /// # Panics
    /// If this is not TPC-C.
    pub fn warehouses(mut self, number: usize, shares: &'static str) -> Self {
        let Workload::Tpcc { warehouses, mix } = &mut self.workload else {
            panic!("only TPC-C has warehouses")
        };
        (*warehouses, *mix) = (number, shares);
        self
    }

    /// What stands after the program's name on the command line, with the seed of its random numbers.
    pub fn arguments(&self, seed: usize) -> Vec<String> {
        let mut arguments = self.workload.arguments();
        match self.workload {
            Workload::Islands { islands, .. } => self.add_small(&mut arguments, Some(self.workers / islands)),
            Workload::Counters { .. } => self.add_small(&mut arguments, Some(self.workers)),
            Workload::Channel { .. } => self.add_small(&mut arguments, None),
            _ => self.add_all(&mut arguments, seed),
        }
        arguments
    }

    /// Adds what the commands know that have neither systems nor seeds.
    fn add_small(&self, arguments: &mut Vec<String>, workers: Option<usize>) {
        arguments.extend(self.options.iter().cloned());
        if let Some(workers) = workers {
            let warmup = self.warmup.to_string();
            arguments.extend(["--workers", &workers.to_string(), "--warmup", &warmup].map(str::to_owned));
        }
        arguments.extend(["--seconds", &self.seconds.to_string(), "--format", "json"].map(str::to_owned));
    }

    fn add_all(&self, arguments: &mut Vec<String>, seed: usize) {
        arguments.extend(self.system_arguments());
        arguments.extend(self.storage.arguments().iter().map(|&part| part.to_owned()));
        arguments.extend(self.options.iter().cloned());
        let numbers = [
            ("--workers", self.workers.to_string()),
            ("--warmup", self.warmup.to_string()),
            ("--seconds", self.seconds.to_string()),
            ("--seed", seed.to_string()),
        ];
        arguments.extend(numbers.into_iter().flat_map(|(name, value)| [name.to_owned(), value]));
        arguments.extend(["--format", "json", "--quiet"].map(str::to_owned));
    }

    /// Whether the product runs it, on any of its engines: the others are yardsticks.
    pub(crate) fn is_own(&self) -> bool {
        [PRODUCT, "ermia", "ermia-snapshot"].contains(&self.system)
    }

    /// The product's other engine is asked for as an engine, everything else as a system.
    fn system_arguments(&self) -> Vec<String> {
        let words: &[&str] = match self.system {
            PRODUCT => &[],
            "ermia" => &["--engine", "ermia"],
            "ermia-snapshot" => &["--engine", "ermia", "--isolation", "snapshot"],
            other => &["--system", other],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }

    /// About how long the call takes on `cores`, load and check included. From runs on two cores of 2025.
    pub fn estimate(&self, cores: usize) -> Duration {
        let threads = self.workers.min(cores).max(1) as f64;
        let (load, growth) = match self.workload {
            Workload::Tpcc { warehouses, .. } | Workload::TpccHybrid { warehouses, .. } => {
                (0.8 * warehouses as f64 / threads, 0.2)
            }
            Workload::Stock { warehouses, .. } => (0.1 * warehouses as f64 / threads, 0.0),
            Workload::Tpce { customers, days, .. } => {
                (f64::from(customers) * (1e-3 + 5e-4 * f64::from(days)) / threads, 0.2)
            }
            Workload::Islands { name: "micro", .. } => (0.3, 0.0),
            Workload::Islands { .. } => (0.6, 0.0),
            // The time with the other end asleep.
            Workload::Channel { .. } => (self.seconds, 0.0),
            Workload::Counters { .. } => (0.0, 0.0),
            Workload::Ycsb { records, .. } => (1.6e-6 * records as f64 / threads, 0.0),
        };
        let measured = (self.warmup + self.seconds) * (1.0 + growth);
        let storing = match self.storage {
            Storage::Memory => 0.0,
            Storage::Log | Storage::LogInTmpfs | Storage::LogAndCheckpoints => 1.0 + 0.5 * load,
            Storage::Crash => 2.0 + load + 0.4 * measured,
        };
        // Memory is taken from the system before the load, by default 128 MiB for each worker and second, up to a bound.
        let taking = 0.4 * (0.134 * self.workers as f64 * (self.warmup + self.seconds)).min(8.0);
        Duration::from_secs_f64(0.4 + taking + load + measured + storing)
    }
}

impl Workload {
    /// What it is called in titles.
    pub(crate) fn title(&self) -> &'static str {
        match self {
            Self::Tpcc { .. } => "TPC-C",
            Self::TpccHybrid { .. } => "TPC-C-hybrid",
            Self::Stock { .. } => "Stocks",
            Self::Tpce { asset_eval_percent: None, .. } => "TPC-E",
            Self::Tpce { asset_eval_percent: Some(_), .. } => "TPC-E-hybrid",
            Self::Islands { name: "tpcb-islands", .. } => "TPC-B on islands",
            Self::Islands { name: "tpcc-islands", .. } => "TPC-C on islands",
            Self::Islands { name: "ycsb-islands", .. } => "YCSB on islands",
            Self::Islands { .. } => "Islands",
            Self::Counters { .. } => "Counters",
            Self::Channel { .. } => "Channels",
            Self::Ycsb { .. } => "YCSB",
        }
    }

    /// The command, and what says how large the workload is.
    fn arguments(&self) -> Vec<String> {
        let (name, options): (&str, &[(&str, &dyn ToString)]) = match self {
            Self::Tpcc { warehouses, mix } => ("tpcc", &[("--warehouses", warehouses), ("--mix", mix)]),
            Self::TpccHybrid { warehouses, supplier_percent } => {
                ("tpcc-hybrid", &[("--warehouses", warehouses), ("--supplier-percent", supplier_percent)])
            }
            Self::Stock { warehouses, reads, write_percent } => (
                "stock",
                &[("--warehouses", warehouses), ("--reads", reads), ("--write-percent", write_percent)],
            ),
            Self::Tpce { customers, days, asset_eval_percent: None } => {
                ("tpce", &[("--customers", customers), ("--initial-trading-days", days)])
            }
            Self::Tpce { customers, days, asset_eval_percent: Some(percent) } => (
                "tpce-hybrid",
                &[
                    ("--customers", customers),
                    ("--initial-trading-days", days),
                    ("--asset-eval-percent", percent),
                ],
            ),
            Self::Islands { name, islands } => (name, &[("--islands", islands)]),
            Self::Counters { counters } => ("counters", &[("--counters", counters)]),
            Self::Channel { kind } => ("channels", &[("--kinds", kind)]),
            Self::Ycsb { records, mix } => ("ycsb", &[("--records", records), ("--mix", mix)]),
        };
        let options = options.iter().flat_map(|(option, value)| [(*option).to_owned(), value.to_string()]);
        let command = if let Self::Channel { .. } = self { "islands" } else { "bench" };
        [command, name].map(str::to_owned).into_iter().chain(options).collect()
    }
}

impl Storage {
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Memory => &["--memory"],
            Self::Log => &["--no-checkpoints"],
            Self::LogInTmpfs => &["--no-checkpoints", "--log-dir", TMPFS],
            Self::LogAndCheckpoints => &[],
            Self::Crash => &["--crash"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_says_all_of_its_parameters() {
        let command = BenchCommand::tpcc(4, 0.5, 2.0)
            .warehouses(2, "100/0/0/0/0")
            .system("partitioned-store")
            .option("--remote-item-percent", 3);
        let line = command.arguments(7).join(" ");
        assert_eq!(
            line,
            "bench tpcc --warehouses 2 --mix 100/0/0/0/0 --system partitioned-store --memory --remote-item-percent 3 \
             --workers 4 --warmup 0.5 --seconds 2 --seed 7 --format json --quiet"
        );
    }

    #[test]
    fn the_other_engine_is_asked_for_as_an_engine() {
        let hybrid = BenchCommand::tpcc_hybrid(60, 2, 0.5, 1.0).system("ermia").option("--retries", 0);
        let line = hybrid.arguments(1).join(" ");
        let begin =
            "bench tpcc-hybrid --warehouses 2 --supplier-percent 60 --engine ermia --memory --retries 0 ";
        assert!(line.starts_with(begin), "{line}");
        let stock = BenchCommand::stock(1_000, 0.1, 2, 0.5, 1.0).system("ermia-snapshot");
        let line = stock.arguments(1).join(" ");
        let begin = "bench stock --warehouses 2 --reads 1000 --write-percent 0.1 --engine ermia --isolation snapshot ";
        assert!(line.starts_with(begin), "{line}");
    }

    #[test]
    fn evaluations_make_a_hybrid_of_tpce() {
        let tpce = BenchCommand::tpce((1_000, 1), 2, 0.5, 1.0);
        let begin = |command: &BenchCommand| command.arguments(1).join(" ");
        let scale = "--customers 1000 --initial-trading-days 1";
        assert!(begin(&tpce).starts_with(&format!("bench tpce {scale} --memory ")), "{tpce:?}");
        let hybrid = begin(&tpce.asset_eval(20));
        assert!(
            hybrid.starts_with(&format!("bench tpce-hybrid {scale} --asset-eval-percent 20 ")),
            "{hybrid}"
        );
    }

    #[test]
    fn instances_share_the_workers() {
        let command =
            BenchCommand::islands("micro", 2, 4, (0.5, 2.0)).flag("--update").option("--multisite", 20);
        let line = command.arguments(1).join(" ");
        assert_eq!(
            line,
            "bench micro --islands 2 --update --multisite 20 --workers 2 --warmup 0.5 --seconds 2 --format json"
        );
    }

    #[test]
    fn what_is_of_the_machine_has_commands_of_its_own() {
        let line = |command: &BenchCommand| command.arguments(1).join(" ");
        let counters = BenchCommand::counters("socket", 4, (0.5, 2.0)).option("--placement", "spread");
        let begin = "bench counters --counters socket --placement spread --workers 4 ";
        assert_eq!(line(&counters), format!("{begin}--warmup 0.5 --seconds 2 --format json"));
        let channel = BenchCommand::channel("unix", 2.0).option("--placement", "group");
        let begin = "islands channels --kinds unix --placement group ";
        assert_eq!(line(&channel), format!("{begin}--seconds 1 --format json"));
        assert!(channel.estimate(2) < BenchCommand::islands("micro", 2, 2, (0.5, 2.0)).estimate(2));
    }

    #[test]
    fn the_product_needs_no_name() {
        let line =
            BenchCommand::ycsb(10, "silor", 1, 0.0, 1.0).storage(Storage::Crash).arguments(1).join(" ");
        assert!(line.starts_with("bench ycsb --records 10 --mix silor --crash --workers 1"), "{line}");
    }
}
