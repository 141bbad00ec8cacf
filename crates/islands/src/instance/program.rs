//! What the parts of transactions do at an instance.

use ensilo::{Database, Error, Result, Snapshot, Transaction};
use serde::{Deserialize, Serialize};

use super::load::RequestSource;
use crate::commit::SiteId;

/// Which one of the instances.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstanceNumber {
    /// From 0 on.
    pub instance: u16,
    /// How many instances there are.
    pub instances: u16,
}

/// What an application runs at each of its instances. Each instance has one, over the part of the rows that lies there.
pub trait Program: Send + Sync + Sized + 'static {
    /// Opens the tables of an instance, or makes them, with the rows that they begin with. It is called once when the instance is opened, before any
    /// part is carried out, and changes no rows that were there before: parts that were prepared before a crash rely on them.
    ///
    /// # Errors
    /// Those of the database, which keep the instance from being opened.
    fn open(db: &Database, number: InstanceNumber) -> Result<Self>;

    /// Carries out a part of a transaction, and returns what the transaction gets of it. What the bytes mean is up to the application.
    ///
    /// It may be called several times, where something is in the way; what an earlier call has done is undone. After a crash a part that was
    /// prepared is carried out once more, with the same rows before it. It must do the same again: what it takes from
    /// elsewhere, such as the time or random numbers, has to stand in `part`.
    ///
    /// # Errors
    /// Those of statements are passed on. Any other one, such as [`Error::rollback`](ensilo::Error::rollback), undoes the whole transaction.
    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>>;

    /// Carries out the part of the instance at which the transaction has begun. That is done when all others are prepared: `replies` are what they
    /// have returned, in the order in which they came. By default the part is [carried out](Self::execute) like any other. It may be called several
    /// times, and need not do the same each time.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    fn conclude(
        &self,
        tx: &mut Transaction<'_>,
        part: &[u8],
        replies: &[(SiteId, Vec<u8>)],
    ) -> Result<Vec<u8>> {
        let _ = replies;
        self.execute(tx, part)
    }

    /// Reads at a consistent point of all instances, for [`Islands::read_point`](crate::Islands::read_point). What the bytes mean is up to the
    /// application.
    ///
    /// # Errors
    /// Those of statements are passed on, as any other. By default there is nothing to read.
    fn read(&self, snapshot: &mut Snapshot<'_>, part: &[u8]) -> Result<Vec<u8>> {
        let _ = (snapshot, part);
        Err(Error::rollback("the program reads nothing at a point of all instances"))
    }

    /// Does what is no part of a transaction, for [`Islands::administer`](crate::Islands::administer), such as creating a table. What the bytes mean
    /// is up to the application.
    ///
    /// # Errors
    /// Any; by default there is nothing to do.
    fn administer(&self, request: &[u8]) -> Result<Vec<u8>> {
        let _ = request;
        Err(Error::rollback("the program has nothing to do outside of transactions"))
    }

    /// Returns the transactions that a worker makes itself, for a [measurement](crate::Islands::run_load). What `description` means is up to the
    /// application.
    ///
    /// # Errors
    /// By default there are none.
    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let _ = (of, description);
        Err(Error::rollback("the program makes no transactions itself"))
    }
}
