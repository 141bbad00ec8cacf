//! Changes that were read and not given yet, in their order and within a bound.
//!
//! # Invariants
//! - **P1** What is here are all changes that were read from behind the reader's place, up to the cut.
//! - **P2** What lies behind the cut was thrown away for want of room, and is read again.

use std::collections::BTreeMap;
use std::mem;

use ensilo_epoch::Epoch;

use super::place::LogPlace;

/// What a change takes in memory beside its key and its row, about.
const CHANGE_BYTES: usize = 160;

/// A change as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedChange {
    /// The TID of the transaction.
    pub tid: u64,
    /// The table.
    pub table: u32,
    /// The key.
    pub key: Vec<u8>,
    /// The whole row, as it is now; `None` if it is gone.
    pub row: Option<Vec<u8>>,
}

/// Changes of one epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EpochChanges {
    /// The epoch.
    pub epoch: Epoch,
    /// Its changes, by TID.
    pub changes: Vec<LoggedChange>,
    /// Whether these are the last ones of the epoch.
    pub is_end: bool,
    /// The place behind them.
    pub next: LogPlace,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Pending {
    changes: BTreeMap<LogPlace, LoggedChange>,
    bytes: usize,
    bytes_max: usize,
    cut: Option<LogPlace>,
}

impl LoggedChange {
    fn bytes(&self) -> usize {
        CHANGE_BYTES + self.key.len() + self.row.as_ref().map_or(0, Vec::len)
    }
}

impl Pending {
    pub(super) fn new(bytes_max: usize) -> Pending {
        Pending { changes: BTreeMap::new(), bytes: 0, bytes_max, cut: None }
    }

    /// Returns whether a change at this place would be kept.
    pub(super) fn takes(&self, place: LogPlace) -> bool {
        self.cut.is_none_or(|cut| place < cut)
    }

    /// Takes a change. The last ones go if there is no room, but for one.
    pub(super) fn insert(&mut self, place: LogPlace, change: LoggedChange) {
        self.bytes += change.bytes();
        // One that is read again behind an error takes its own place.
        let before = self.changes.insert(place, change);
        self.bytes -= before.as_ref().map_or(0, LoggedChange::bytes);
        while self.bytes > self.bytes_max
            && self.changes.len() > 1
            && let Some((last, change)) = self.changes.pop_last()
        {
            self.bytes -= change.bytes();
            self.cut = Some(last);
        }
    }

    /// Takes the changes of the first epoch out, if that is before `end`.
    pub(super) fn take_epoch(&mut self, end: Epoch) -> Option<EpochChanges> {
        let epoch = self.changes.first_key_value()?.0.epoch();
        if epoch >= end {
            return None;
        }
        let rest = self.changes.split_off(&LogPlace::after(epoch));
        let taken = mem::replace(&mut self.changes, rest);
        let is_end = self.cut.is_none_or(|cut| cut.epoch() > epoch);
        let last = taken.last_key_value().map(|(place, _)| place.next());
        let next = last.filter(|_| !is_end).unwrap_or(LogPlace::after(epoch));
        let changes: Vec<_> = taken.into_values().collect();
        self.bytes -= changes.iter().map(LoggedChange::bytes).sum::<usize>();
        Some(EpochChanges { epoch, changes, is_end, next })
    }

    /// Returns whether all that is left was thrown away, and has to be read again.
    pub(super) fn has_only_cut(&self) -> bool {
        self.changes.is_empty() && self.cut.is_some()
    }

    /// Forgets the cut: what lies behind it is read again.
    pub(super) fn read_again(&mut self) {
        self.cut = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(tid: u64, row_bytes: usize) -> LoggedChange {
        LoggedChange { tid, table: 17, key: vec![1], row: Some(vec![0; row_bytes]) }
    }

    fn place(epoch: u64, sequence: u64) -> LogPlace {
        let start = LogPlace::before(Epoch::new(epoch));
        LogPlace { tid: start.tid + (sequence << 3), ..start }
    }

    #[test]
    fn epochs_come_in_order_and_the_last_changes_go_where_there_is_no_room() {
        let mut pending = Pending::new(4 * (CHANGE_BYTES + 101));
        for (epoch, sequence) in [(7, 2), (6, 1), (7, 1), (8, 1), (7, 4), (7, 3)] {
            let place = place(epoch, sequence);
            if pending.takes(place) {
                pending.insert(place, change(place.tid, 100));
            }
        }
        assert!(pending.take_epoch(Epoch::new(6)).is_none());
        let sixth = pending.take_epoch(Epoch::new(9)).unwrap();
        assert_eq!((sixth.epoch, sixth.changes.len(), sixth.is_end), (Epoch::new(6), 1, true));
        assert_eq!(sixth.next, LogPlace::before(Epoch::new(7)));
        let seventh = pending.take_epoch(Epoch::new(9)).unwrap();
        assert!(!seventh.is_end && pending.has_only_cut());
        let tids: Vec<_> = seventh.changes.iter().map(|change| change.tid).collect();
        assert_eq!(tids, [place(7, 1).tid, place(7, 2).tid, place(7, 3).tid]);
        assert!(place(7, 3) < seventh.next && seventh.next <= place(7, 4));
    }

    #[test]
    fn a_change_that_is_larger_than_all_room_is_kept_alone() {
        let mut pending = Pending::new(10);
        pending.insert(place(3, 1), change(1, 100));
        pending.insert(place(3, 2), change(2, 100));
        let first = pending.take_epoch(Epoch::MAX).unwrap();
        assert_eq!((first.changes.len(), first.is_end), (1, false));
        assert!(pending.has_only_cut());
    }
}
