//! Changes that are on their way to callbacks: of each row the last one alone.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::Change;
use super::subscription::Subscriber;

/// What a change takes beside its key and its row, about.
const CHANGE_BYTES: usize = 256;

/// See the module's documentation.
#[derive(Default)]
pub(super) struct CoalescedChanges {
    /// By their order.
    changes: BTreeMap<u64, ReceivedChange>,
    /// The places of the rows' changes in that order.
    rows: HashMap<(u32, Vec<u8>), u64>,
    added: u64,
    bytes: usize,
}

/// A change, and those that are called with it.
pub(super) struct ReceivedChange {
    pub(super) change: Change,
    pub(super) subscribers: Vec<Arc<Subscriber>>,
}

impl CoalescedChanges {
    /// Adds a change that comes after all others. It takes the place of an earlier one of the row, and one that empties its table of all
    /// of that.
    pub(super) fn add(&mut self, received: ReceivedChange) {
        self.added += 1;
        if received.change.empties_table() {
            self.forget_table(received.change.table());
        } else {
            let row = (received.change.store(), received.change.encoded_key().to_vec());
            if let Some(earlier) = self.rows.insert(row, self.added) {
                self.forget(earlier);
            }
        }
        self.bytes += received.bytes();
        self.changes.insert(self.added, received);
    }

    fn forget(&mut self, place: u64) {
        if let Some(earlier) = self.changes.remove(&place) {
            self.bytes -= earlier.bytes();
        }
    }

    fn forget_table(&mut self, table: &str) {
        let Self { changes, bytes, rows, .. } = self;
        changes.retain(|_, received| {
            let stays = received.change.table() != table;
            if !stays {
                *bytes -= received.bytes();
            }
            stays
        });
        rows.retain(|_, place| changes.contains_key(place));
    }

    /// Returns about how many bytes of memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the changes in their order.
    pub(super) fn into_changes(self) -> impl Iterator<Item = ReceivedChange> {
        self.changes.into_values()
    }
}

impl ReceivedChange {
    /// Returns about how many bytes of memory it takes, with the key's copy that finds it.
    fn bytes(&self) -> usize {
        let of_subscribers = self.subscribers.capacity() * size_of::<Arc<Subscriber>>();
        CHANGE_BYTES + self.change.len_bytes() + self.change.encoded_key().len() + of_subscribers
    }
}
