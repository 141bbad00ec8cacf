//! The tests of every engine: compiled for each of them, which is that of the module above.

mod altered_sequences;
mod auto_keys;
mod carried;
mod composite_keys;
mod row_ids;
mod sequence_crashes;
mod sequences;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ensilo::disk::Disk;
use ensilo::{Options, Result, Row, generic};
use ensilo_test_disk::SimulatedDisk;

use super::Engine;

type Database = generic::Database<Engine>;
type Table<T> = generic::Table<T, Engine>;
type Sequence<N> = generic::Sequence<N, Engine>;
type Session = generic::Session<Engine>;

/// A row whose key the table invents.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "event", index(name = "by_what", columns(what)))]
struct Event {
    what: u64,
}

/// A row whose key is a number.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "invoice")]
struct Invoice {
    #[row(key)]
    number: u64,
    customer: u32,
}

/// Options for a small database that makes checkpoints only when told.
fn options() -> Options {
    Options::default()
        .log_file_bytes(1 << 20)
        .log_buffers(4)
        .checkpoint_interval(Duration::from_secs(3600))
        .recovery_threads(2)
        .pool_threads(4)
}

fn in_memory() -> Database {
    options().in_memory_with().unwrap()
}

fn open_with(options: Options, disk: &Arc<SimulatedDisk>) -> Result<Database> {
    options.open_with(Arc::clone(disk) as Arc<dyn Disk>, Path::new("/db"))
}

fn open(disk: &Arc<SimulatedDisk>) -> Database {
    open_with(options(), disk).unwrap()
}

fn new_disk() -> Arc<SimulatedDisk> {
    Arc::new(SimulatedDisk::new())
}
