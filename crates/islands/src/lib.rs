//! Several instances as one database, placed by the machine's topology: *islands* are instances whose cores are close to each other.
//!
//! - [`Topology`] and [`Plan`]: the cores of a machine, and where instances and their workers go on it.
//! - [`IslandDatabase`]: typed tables over instances in [processes](IslandsOptions::processes) of their own, or in threads of this one. A table is
//!   [partitioned](Partitioning) or replicated, and transactions are closures, wherever their rows are. It is the way to begin with.
//! - [`Islands`]: the instances themselves. A [`Program`] says what the parts of transactions do at an instance; what a part is, and which instance
//!   has which rows, is up to it. It is for whoever wants the work to go to the rows: one message for all that a transaction does at an instance.
//! - [`commit`]: two-phase commit, by which a transaction with parts at several instances happens at all of them or at none.
//! - [`connect`]: the channels by which instances talk to each other; [`Latencies`]: how long messages take between the cores of this machine.
//! - [`advisor`]: which size of islands suits a machine and a workload, for example one that [was recorded](IslandDatabase::record).
//!
//! The number of instances, and of workers in each, stays the same for a database that is stored. [`Redistribution`] copies typed tables to another
//! number of them, with the database closed; a [`Program`] reads its rows from one database and writes them to another one itself.
//!
//! # Example
//! A program of its own; [`IslandDatabase`] has one with typed tables.
//!
//! ```
//! use ensilo::{Database, Error, Result, Row, Table, Transaction};
//! use ensilo_islands::commit::{Outcome, Request, SiteId};
//! use ensilo_islands::{Instances, Islands, IslandsOptions, InstanceNumber, Placement, Plan, Program, Topology};
//!
//! #[derive(Row)]
//! #[row(table = "account")]
//! struct Account {
//!     #[row(key)]
//!     id: u32,
//!     balance: i64,
//! }
//!
//! /// Ten accounts at each instance; a part changes one of them.
//! struct Bank(Table<Account>);
//!
//! impl Program for Bank {
//!     fn open(db: &Database, _: InstanceNumber) -> Result<Self> {
//!         if let Ok(accounts) = db.open_table() {
//!             return Ok(Bank(accounts));
//!         }
//!         let accounts = db.create_table()?;
//!         db.transact(|tx| (0..10).try_for_each(|id| accounts.upsert(tx, &Account { id, balance: 100 })))?;
//!         Ok(Bank(accounts))
//!     }
//!
//!     fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
//!         let [id, amount] = *part else { return Err(Error::rollback("no part")) };
//!         let Some(mut account) = self.0.get(tx, u32::from(id))? else { return Err(Error::rollback("no account")) };
//!         account.balance += i64::from(amount.cast_signed());
//!         if account.balance < 0 {
//!             return Err(Error::rollback("not enough money"));
//!         }
//!         self.0.replace(tx, &account)?;
//!         Ok(account.balance.to_le_bytes().to_vec())
//!     }
//! }
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let plan = Plan::new(&Topology::of_this_machine()?, Instances::Count(2), Placement::System);
//! let islands: Islands<Bank> = IslandsOptions::new(plan).workers(1).open()?;
//! // From an account of the first instance to one of the second one.
//! let transfer = |amount: i8| Request::new(
//!     Some(vec![3, (-amount).cast_unsigned()]),
//!     vec![(SiteId { instance: 1, worker: 0 }, vec![7, amount.cast_unsigned()])],
//! );
//! assert!(matches!(islands.transact(0, &transfer(60)), Outcome::Committed { .. }));
//! let Outcome::Aborted(refusal) = islands.transact(0, &transfer(60)) else { panic!("there are 40 left") };
//! assert!(refusal.to_string().contains("not enough money"));
//! # Ok(()) }
//! ```
//!
//! # Source
//! D. Porobic et al., "Characterization of the Impact of Hardware Islands on OLTP" (VLDB Journal): §4 on why the place matters, §5 on islands.

#[cfg(not(target_os = "linux"))]
compile_error!("islands run on Linux only: they need its topology, affinity and shared memory");

#[cfg(not(loom))]
pub mod advisor;
mod affinity;
mod binding;
mod channel;
#[cfg(not(loom))]
pub mod commit;
#[cfg(not(loom))]
mod instance;
#[cfg(not(loom))]
mod islands;
#[cfg(not(loom))]
mod latencies;
mod placement;
#[cfg(not(loom))]
mod recorded;
#[cfg(not(loom))]
mod round_trips;
mod signal;
#[cfg(not(loom))]
mod tables;
mod topology;

pub use binding::{BindError, bind_this_thread};
#[cfg(not(loom))]
pub use channel::connect;
pub use channel::{Channel, ChannelError, ChannelKind, MESSAGE_BYTES_MAX};
#[cfg(not(loom))]
pub use instance::{
    InstanceError, InstanceNumber, LoadReport, LoadTime, Program, RequestSource, StoredInstance,
    stored_instance,
};
#[cfg(not(loom))]
pub use islands::{
    CommitUnit, Islands, IslandsBackup, IslandsOptions, OpenTransaction, PointReader, end_instance_processes,
    instance_by_place, run_if_instance,
};
#[cfg(not(loom))]
pub use latencies::{ClassLatency, Closeness, Latencies, LatencyError, PairClass};
pub use placement::{InstancePlace, Instances, Placement, Plan};
#[cfg(not(loom))]
pub use recorded::{PartitionKey, RecordedAccess, RecordedError, RecordedTransactions};
#[cfg(not(loom))]
pub use round_trips::{RoundTrips, answer_all, measure_round_trips};
#[cfg(not(loom))]
pub use tables::{
    IslandDatabase, IslandError, IslandIndex, IslandRead, IslandReader, IslandScan, IslandTable,
    IslandTransaction, Partitioning, Recording, Redistributed, RedistributedTable, Redistribution,
    RedistributionError, RedistributionProgress, Repartitioning, TableProgram,
};
pub use topology::{Core, CpuId, NodeId, Regular, Topology, TopologyError};
