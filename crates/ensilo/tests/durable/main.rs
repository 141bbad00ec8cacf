//! Databases in directories: what is acknowledged as stored survives, however the process or the power ends.
//!
//! What lies in `every_engine` holds over every engine, and is compiled for each of them. A test that lies elsewhere says why.
#![allow(clippy::unwrap_used, reason = "tests")]
#![allow(clippy::duplicate_mod, reason = "tests of every engine are compiled for each of them")]

#[path = "../database/failpoints.rs"]
mod failpoints;
#[path = "../database/measurements.rs"]
mod measurements;
mod two_disks;

/// Silo's engine.
#[path = "."]
mod silo {
    pub(crate) type Engine = ensilo::Silo;
    pub(crate) type HookedEngine = crate::failpoints::HookedSilo;

    /// How often a closure that reads runs, while others change what it reads between its reads.
    pub(crate) const READ_ATTEMPTS: i64 = 3;

    /// Whether a transaction locks what it reads, so that others cannot change it meanwhile.
    pub(crate) const LOCKS: bool = false;

    mod every_engine;
    mod in_order;
    mod log_records;
    mod memory_limit;
    mod opened;
    mod prepared;
}

/// ERMIA's engine.
#[path = "."]
mod ermia {
    pub(crate) type Engine = ensilo::ermia::Ermia;
    pub(crate) type HookedEngine = crate::failpoints::HookedErmia;

    /// As the other one: it reads what was committed when it began.
    pub(crate) const READ_ATTEMPTS: i64 = 1;
    pub(crate) const LOCKS: bool = false;

    mod every_engine;
    mod opened;
}

/// Two-phase locking.
#[path = "."]
mod two_phase_locking {
    pub(crate) type Engine = ensilo::two_phase_locking::TwoPhaseLocking;
    pub(crate) type HookedEngine = crate::failpoints::HookedTwoPhaseLocking;

    /// Others are refused to change what it reads.
    pub(crate) const READ_ATTEMPTS: i64 = 1;
    pub(crate) const LOCKS: bool = true;

    mod every_engine;
    mod in_order;
    mod opened;
    mod prepared;
}

/// ERMIA's engine without the serial safety net: what its log, its checkpoints and its recovery have a part in.
#[path = "."]
mod ermia_snapshot_isolation {
    use crate::*;
    use opened::*;

    type Engine = ensilo::ermia::Ermia<ensilo::ermia::SnapshotIsolation>;

    const READ_ATTEMPTS: i64 = super::ermia::READ_ATTEMPTS;
    const LOCKS: bool = super::ermia::LOCKS;

    #[path = "every_engine/checkpoints.rs"]
    mod checkpoints;
    #[path = "every_engine/crashes.rs"]
    mod crashes;
    mod opened;
    #[path = "every_engine/reads.rs"]
    mod reads;
    #[path = "every_engine/reopening.rs"]
    mod reopening;
}

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ensilo::disk::Disk;
use ensilo::{Columns, Options, Result, Row};
use ensilo_test_disk::SimulatedDisk;

/// Waits until this holds, as it will soon.
#[track_caller]
fn until(holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A row with an index, fixed and variable columns.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "account", index(name = "by_owner", columns(owner)))]
struct Account {
    #[row(key)]
    id: u32,
    owner: u32,
    balance: i64,
    note: String,
}

/// The column that transfers change.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Account)]
struct Balance {
    balance: i64,
}

/// A row whose key the table invents.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "event")]
struct Event {
    what: String,
}

fn account(id: u32) -> Account {
    Account { id, owner: id % 7, balance: 100, note: format!("account {id}") }
}

const DIRECTORY: &str = "/db";

/// Options for a small database that makes checkpoints only when told.
fn options() -> Options {
    Options::default()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(1)
}
