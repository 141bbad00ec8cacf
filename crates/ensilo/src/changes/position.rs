//! Where a consumer of changes stands, as a value that can be stored.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use ensilo_log::{HistoryId, LogPlace};

/// The length of a position as bytes.
const BYTES: usize = 64;

/// A position in the changes of a database: everything in front of it was given to the one who has it.
///
/// It is stored as [bytes](Self::to_bytes), with what the consumer has made of the changes, and best in the same transaction.
/// It stays good when the database is opened again, as long as each opening has
/// [`Options::change_feed`](crate::Options::change_feed). A restored backup, a repair or an opening without that option begins a new
/// history, in which older positions mean nothing, and a copy of the files does not have what the original did since:
/// [`Error::ChangesMissed`](crate::Error::ChangesMissed) says so.
///
/// Positions that were taken in one opening of a database can be compared; others are neither smaller nor larger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChangePosition {
    pub(super) history: HistoryId,
    pub(super) place: LogPlace,
}

impl ChangePosition {
    /// Returns the position as bytes.
    #[must_use]
    pub fn to_bytes(self) -> [u8; BYTES] {
        let LogPlace { tid, logger, sequence, offset, index } = self.place;
        let mut bytes = [0; BYTES];
        bytes[..16].copy_from_slice(&self.history.begun_by.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.history.seen_by.to_le_bytes());
        bytes[32..40].copy_from_slice(&tid.to_le_bytes());
        bytes[40..44].copy_from_slice(&logger.to_le_bytes());
        bytes[44..52].copy_from_slice(&sequence.to_le_bytes());
        bytes[52..60].copy_from_slice(&offset.to_le_bytes());
        bytes[60..].copy_from_slice(&index.to_le_bytes());
        bytes
    }

    /// Returns the position that [`ChangePosition::to_bytes`] has made these bytes of; `None` if they are not as many.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<ChangePosition> {
        let bytes: &[u8; BYTES] = bytes.try_into().ok()?;
        let number = |from: usize, to: usize| {
            bytes[from..to].iter().rev().fold(0_u128, |number, &byte| number << 8 | u128::from(byte))
        };
        Some(ChangePosition {
            history: HistoryId { begun_by: number(0, 16), seen_by: number(16, 32) },
            place: LogPlace {
                tid: u64::try_from(number(32, 40)).ok()?,
                logger: u32::try_from(number(40, 44)).ok()?,
                sequence: u64::try_from(number(44, 52)).ok()?,
                offset: u64::try_from(number(52, 60)).ok()?,
                index: u32::try_from(number(60, 64)).ok()?,
            },
        })
    }

    /// Returns the epoch that the next change is of, or a later one is.
    #[must_use]
    pub fn epoch(self) -> u64 {
        self.place.epoch().get()
    }
}

impl PartialOrd for ChangePosition {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self.history == other.history).then(|| self.place.cmp(&other.place))
    }
}

/// Why changes behind a position cannot be given, and from where on they can.
#[derive(Clone, Debug)]
pub struct MissedChanges(Arc<(Missed, ChangePosition)>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missed {
    /// They were, and their log files are not kept any more.
    NotKept,
    /// The position is of another history, or later than all that is stored.
    OtherHistory,
}

impl MissedChanges {
    pub(super) fn new(why: Missed, oldest: ChangePosition) -> MissedChanges {
        MissedChanges(Arc::new((why, oldest)))
    }

    /// Returns the oldest position that changes can be given from.
    #[must_use]
    pub fn oldest(&self) -> ChangePosition {
        self.0.1
    }
}

impl fmt::Display for MissedChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (why, oldest) = &*self.0;
        f.write_str(match why {
            Missed::NotKept => "the changes behind the position are not kept any more",
            Missed::OtherHistory => {
                "the position is none of this history of changes, such as one of before a restore, a repair or an opening \
                 that kept no changes"
            }
        })?;
        let epoch = oldest.epoch();
        write!(
            f,
            "; the oldest ones are of epoch {epoch}: take a new position, read all rows, and follow from there"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_come_back_from_bytes_and_are_compared_within_a_history() {
        let place = LogPlace { tid: 7 << 20, logger: 3, sequence: 9, offset: 1 << 40, index: 5 };
        let position =
            ChangePosition { history: HistoryId { begun_by: 1 << 100 | 1, seen_by: 5 << 90 }, place };
        assert_eq!(ChangePosition::from_bytes(&position.to_bytes()), Some(position));
        assert_eq!(ChangePosition::from_bytes(&position.to_bytes()[1..]), None);
        let later = ChangePosition { place: LogPlace { index: 6, ..place }, ..position };
        assert!(position < later);
        let history = HistoryId { seen_by: 2, ..position.history };
        let other = ChangePosition { history, ..later };
        assert_eq!(position.partial_cmp(&other), None);
    }
}
