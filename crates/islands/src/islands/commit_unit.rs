//! What is stored at all instances at once, or at none.

use std::fmt;
use std::str::FromStr;

/// What is stored at all instances at once, or at none.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommitUnit {
    /// A transaction: each instance stores its part before it votes, and the coordinator its decision before anybody hears of it. An instance that
    /// dies and comes back finds the transactions that it had a part in, and the others go on meanwhile.
    #[default]
    Transaction,
    /// An epoch of some milliseconds, with all transactions that have happened at any instance in it: votes and decisions wait for no disk, and
    /// locks are held for no longer than in memory. It is for instances that are stored, where many transactions have parts at several.
    ///
    /// In exchange every answer waits until all instances have stored the epoch. If one of them dies all end, and are opened anew, without what was
    /// not answered by then. An epoch ends when each worker has carried out the part that it is at, however long that takes; so a program must not
    /// wait in a part for a request of its own that is to be stored. No checkpoint is made when the instances are closed.
    Epoch,
}

impl CommitUnit {
    /// Returns all units.
    #[must_use]
    pub const fn all() -> [CommitUnit; 2] {
        [CommitUnit::Transaction, CommitUnit::Epoch]
    }

    /// Returns its name: `transaction` or `epoch`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CommitUnit::Transaction => "transaction",
            CommitUnit::Epoch => "epoch",
        }
    }
}

impl fmt::Display for CommitUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a [name](CommitUnit::name).
impl FromStr for CommitUnit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = CommitUnit::all().into_iter().find(|unit| unit.name() == text);
        named.ok_or_else(|| format!("{text:?} is none of transaction, epoch"))
    }
}
