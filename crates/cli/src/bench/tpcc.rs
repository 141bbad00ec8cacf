//! `ensilo bench tpcc`.

use clap::{Args, ValueEnum, value_parser};
use ensilo_bench::mix::{Mix, MixError, Share};
use ensilo_bench::tpcc::{ReadOnly, Scale, TpccOptions, WarehouseChoice, parse_mix};

use super::common::Common;

const EXAMPLES: &str = "\
Examples:
  ensilo bench tpcc
      All cores, a warehouse for each, ten seconds, on a durable database that is removed at the end.
  ensilo bench tpcc --crash
      The same, but killed at the end while its workers are at work, and recovered.
  ensilo bench tpcc --memory
      In memory only.
  ensilo bench tpcc --workers 2 --warehouses 2 --seconds 30 --runs 3 --format json > result.json
      Three runs of half a minute; the report is one JSON object.
  ensilo bench tpcc --mix 100/0/0/0/0
      New-orders alone.
  ensilo bench tpcc --memory --system partitioned-store --mix 100/0/0/0/0 --remote-item-percent 5
      Silo's figure 8: a partitioned store, where more and more orders touch several partitions.
  ensilo bench tpcc --memory --system partitioned-store --warehouses 4 --partitions 1 --workers 8 --mix 100/0/0/0/0
      Silo's figure 9: four warehouses in one partition.
  ensilo bench tpcc --mix new-order=50,payment=50 --warehouse-choice 80-20
      Two types, with contention on the first fifth of the warehouses.

After each run, and after a recovery, the twelve consistency conditions of the specification's clause 3.3.2 are
checked. If one does not hold, or a crash loses a transaction that was acknowledged as stored, the exit code is 1.
After Ctrl-C the report is on what there was, and the exit code is 130; after SIGTERM 143.
Workers do not wait for the disk: each goes on and notes when what it has committed is stored.";

/// Order entry: nine tables, five transaction types, twelve consistency conditions (TPC-C 5.11)
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Percent of new-order/payment/order-status/delivery/stock-level, or by name like
    /// new-order=50,payment=50
    #[arg(long, value_name = "SHARES", default_value = "45/43/4/4/4", value_parser = mix)]
    mix: Mix,

    /// Sets of tables that the warehouses share, with a lock each for partitioned-store; only for it and
    /// split [default: one for each warehouse]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    partitions: Option<u16>,

    #[command(flatten)]
    order_entry: OrderEntry,

    #[command(flatten)]
    pub(super) common: Common,
}

/// What every workload with TPC-C's transactions has.
#[derive(Debug, Args)]
pub(super) struct OrderEntry {
    /// Warehouses [default: one for each worker]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    warehouses: Option<u16>,

    /// How order-status and stock-level run: against a snapshot about a second old, or as ordinary
    /// transactions [default: snapshot, where the system has them]
    #[arg(long, value_enum)]
    read_only: Option<ReadOnlyArgument>,

    /// Percent of an order's items that come from another warehouse
    #[arg(long, value_name = "P", default_value = "1", value_parser = share)]
    remote_item_percent: Share,

    /// Each transaction's warehouse: one of the worker's own, any, or by 80 of 100 one of the first fifth
    #[arg(long, value_enum, default_value_t = ChoiceArgument::Home)]
    warehouse_choice: ChoiceArgument,

    /// Items, hence stocks of a warehouse; the specification's number unless a small test is wanted
    #[arg(long, value_name = "N", default_value_t = Scale::SPECIFICATION.items,
          value_parser = value_parser!(u32).range(1..=10_000_000), hide_short_help = true)]
    items: u32,

    /// Customers of a district, and its orders at first; the specification's number unless a small test is
    /// wanted
    #[arg(long, value_name = "N", default_value_t = Scale::SPECIFICATION.customers,
          value_parser = value_parser!(u16).range(1..=60_000), hide_short_help = true)]
    customers: u16,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ReadOnlyArgument {
    Snapshot,
    Ordinary,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ChoiceArgument {
    Home,
    Uniform,
    #[value(name = "80-20")]
    EightyTwenty,
}

fn mix(text: &str) -> Result<Mix, MixError> {
    parse_mix(text)
}

pub(super) fn share(text: &str) -> Result<Share, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    Share::of_percent(percent).ok_or_else(|| "not in 0..=100".to_owned())
}

impl Arguments {
    /// Why these options do not go together, if so.
    pub(super) fn refusal(&self) -> Option<String> {
        let system = self.common.system();
        let is_idle = self.partitions.is_some() && !system.is_split();
        is_idle.then(|| format!("{} has no --partitions", system.name()))
    }

    pub(super) fn options(&self) -> TpccOptions {
        TpccOptions {
            partitions: self.partitions,
            mix: self.mix.clone(),
            ..self.order_entry.options(&self.common)
        }
    }
}

impl OrderEntry {
    pub(super) fn options(&self, common: &Common) -> TpccOptions {
        let defaults = TpccOptions::new(common.workers());
        TpccOptions {
            warehouses: self.warehouses.unwrap_or(defaults.warehouses),
            remote_items: self.remote_item_percent,
            scale: Scale { items: self.items, customers: self.customers },
            read_only: match self.read_only {
                Some(ReadOnlyArgument::Snapshot) => ReadOnly::Snapshot,
                Some(ReadOnlyArgument::Ordinary) => ReadOnly::Ordinary,
                None if common.system().has_snapshots() => ReadOnly::Snapshot,
                None => ReadOnly::Ordinary,
            },
            warehouse_choice: match self.warehouse_choice {
                ChoiceArgument::Home => WarehouseChoice::Home,
                ChoiceArgument::Uniform => WarehouseChoice::Uniform,
                ChoiceArgument::EightyTwenty => WarehouseChoice::EightyTwenty,
            },
            seed: common.seed,
            ..defaults
        }
    }
}
