//! What is of ERMIA's engine alone: its level without the safety net.

use ensilo::ermia::{Ermia, Isolation, SnapshotIsolation};
use ensilo::variants::Failpoint;

use super::every_engine::unique_builds::the_old_row_changes_between_read_and_entry;
use crate::failpoints;

/// Snapshot isolation, with a closure at its named places.
#[derive(Copy, Clone, Debug)]
struct Hooked;

impl Isolation for Hooked {
    type Dependencies = <SnapshotIsolation as Isolation>::Dependencies;
    const SERIALIZABLE: bool = false;

    fn reached(place: Failpoint) {
        failpoints::call(place);
    }
}

#[test]
fn a_row_that_changes_while_an_index_is_built_has_one_entry_under_snapshot_isolation() {
    the_old_row_changes_between_read_and_entry::<Ermia<Hooked>>();
}
