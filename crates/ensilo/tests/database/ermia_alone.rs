//! What is of ERMIA's engine alone: its level without the safety net.

use super::every_engine::unique_builds::the_old_row_changes_between_read_and_entry;
use crate::failpoints::HookedSnapshotIsolation;

#[test]
fn a_row_that_changes_while_an_index_is_built_has_one_entry_under_snapshot_isolation() {
    the_old_row_changes_between_read_and_entry::<HookedSnapshotIsolation>();
}
