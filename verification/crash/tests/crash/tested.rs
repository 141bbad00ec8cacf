//! The engine that is tested, which is that of the module above.

use std::sync::Arc;

use ensilo::generic;
use ensilo_crash::engines;
use ensilo_crash::explore::{Acknowledged, Oracle};
use ensilo_crash::setup::Setup;
use ensilo_test_disk::SimulatedDisk;

pub(super) use super::Engine;

pub(super) type Database = generic::Database<Engine>;
pub(super) type Table<T> = generic::Table<T, Engine>;

/// How many of so many samples this engine gets.
pub(super) fn share(count: u64) -> u64 {
    engines::share::<Engine>(count)
}

/// Opens what is left, which has to hold what is expected of it.
///
/// # Errors
/// What is wrong.
pub(super) fn recover<O: Oracle<Engine>>(
    setup: &Setup,
    disk: SimulatedDisk,
    oracle: &O,
    acknowledged: &Acknowledged,
) -> Result<O::Seen, String> {
    let db: Database = setup.open(Arc::new(disk)).map_err(|error| format!("not opened: {error}"))?;
    oracle.check(&db, acknowledged)
}
