//! What an open database has to do to be compared: load, four transactions, and show its rows afterwards. [`Ensilo`] is one.

mod account;
mod connected;
mod ensilo;

use std::fmt;
use std::str::FromStr;

use crate::driver::{Aborts, Failure};

pub use account::{ACCOUNT_BYTES, Account};
pub use connected::Connected;
pub use ensilo::{Ensilo, EnsiloClient, EnsiloOn, open_ensilo};

/// Bytes of the value of a record.
pub const VALUE_BYTES: usize = 100;

/// When a transaction is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// When it is committed. What a crash of the machine leaves of it is not said: the database is in memory, or does not sync its files.
    NotSynced,
    /// When it is on disk, synced. A database may sync several transactions at once.
    Synced,
}

impl Setting {
    /// The name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotSynced => "not synced",
            Self::Synced => "synced",
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Setting {
    type Err = String;

    /// Reads `off` or `on`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self::NotSynced),
            "on" => Ok(Self::Synced),
            _ => Err(format!("{text} is neither off nor on")),
        }
    }
}

/// An open database with one table of records, keys to [`VALUE_BYTES`] bytes, and one of accounts.
pub trait Peer: Sized + Sync {
    /// One thread's way to run transactions.
    type Client<'a>: Client
    where
        Self: 'a;

    /// A client for the calling thread.
    ///
    /// # Errors
    /// A failure of the database.
    fn client(&self) -> Result<Self::Client<'_>, Failure>;

    /// Puts the records `0..count` into the database, each with the value that `fill` makes.
    ///
    /// # Errors
    /// A failure of the database.
    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure>;

    /// Puts the accounts `0..count` into the database.
    ///
    /// # Errors
    /// A failure of the database.
    fn load_accounts(&self, count: u64) -> Result<(), Failure>;

    /// Shows every record, while there are no clients.
    ///
    /// # Errors
    /// A failure of the database.
    fn for_each_record(&self, visit: impl FnMut(u64, &[u8])) -> Result<(), Failure>;

    /// Shows every account, while there are no clients.
    ///
    /// # Errors
    /// A failure of the database.
    fn for_each_account(&self, visit: impl FnMut(Account)) -> Result<(), Failure>;
}

/// Transactions, one a call. An attempt that is undone because of others is counted in `aborts` and made again.
pub trait Client {
    /// Reads a record.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Broken`] if there is no such record.
    fn read(&mut self, key: u64, aborts: &mut Aborts) -> Result<(), Failure>;

    /// Overwrites a record's value.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], aborts: &mut Aborts) -> Result<(), Failure>;

    /// Reads a record's value and writes what `change` makes of it.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure>;

    /// Reads two accounts and writes both.
    ///
    /// # Errors
    /// As [`Client::read`].
    fn transfer(&mut self, transfer: Transfer, aborts: &mut Aborts) -> Result<(), Failure>;
}

/// Money from one account to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// The account that has less afterwards, which may be less than nothing.
    pub from: u64,
    /// The account that has more, another one.
    pub to: u64,
    /// How much.
    pub amount: i64,
}

/// That a row is missing that was loaded, as a failure.
pub fn missing(key: u64) -> Failure {
    Failure::Broken(format!("row {key} is missing"))
}
