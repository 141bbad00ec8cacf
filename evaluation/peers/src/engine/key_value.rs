//! Databases that know keys and bytes: records and accounts as both, so that a store has to do three things only.

use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};

use crate::account::{ACCOUNT_BYTES, Account};
use crate::peer::{Client, Peer, Setting, Transfer, VALUE_BYTES};

/// One of the two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableName {
    /// Records of [`VALUE_BYTES`] bytes.
    Records,
    /// Accounts.
    Accounts,
}

/// An open store with two tables, keys to bytes.
pub trait Store: Sized + Sync {
    /// One thread's way to run transactions.
    type Client<'a>: StoreClient
    where
        Self: 'a;

    /// Opens an empty store in the directory `place`.
    ///
    /// # Errors
    /// A failure of the store.
    fn open(place: &Path, setting: Setting) -> Result<Self, Failure>;

    /// A client for the calling thread.
    fn client(&self) -> Self::Client<'_>;

    /// Puts rows with the keys `0..count` into an empty table, in the order of their keys; `next` makes the row of a key in the buffer.
    ///
    /// # Errors
    /// A failure of the store.
    fn load(&self, table: TableName, count: u64, next: impl Fn(u64, &mut Vec<u8>)) -> Result<(), Failure>;

    /// Shows every row.
    ///
    /// # Errors
    /// A failure of the store.
    fn for_each(&self, table: TableName, visit: impl FnMut(u64, &[u8])) -> Result<(), Failure>;
}

/// Transactions on a store, one a call; see [`Client`].
pub trait StoreClient {
    /// Reads a record.
    ///
    /// # Errors
    /// A failure of the store, or [`Failure::Broken`] if a row is missing.
    fn read(&mut self, key: u64) -> Result<(), Failure>;

    /// Overwrites a record.
    ///
    /// # Errors
    /// As [`StoreClient::read`].
    fn put(&mut self, key: u64, value: &[u8], aborts: &mut Aborts) -> Result<(), Failure>;

    /// Reads the rows of `keys` and writes what `change` makes of each; it is told the place of the key in the list.
    ///
    /// # Errors
    /// As [`StoreClient::read`].
    fn change(
        &mut self,
        table: TableName,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure>;
}

/// A store as a peer.
#[derive(Debug)]
pub struct KeyValue<S>(S);

/// A store's client as a peer's.
#[derive(Debug)]
pub struct KeyValueClient<C>(C);

impl<S: Store> From<S> for KeyValue<S> {
    fn from(store: S) -> Self {
        Self(store)
    }
}

impl<S: Store> KeyValue<S> {
    /// Opens an empty store in the directory `place`, which is empty.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        S::open(place, setting).map(Self)
    }
}

impl<S: Store> Peer for KeyValue<S> {
    type Client<'a>
        = KeyValueClient<S::Client<'a>>
    where
        S: 'a;

    fn client(&self) -> Result<Self::Client<'_>, Failure> {
        Ok(KeyValueClient(self.0.client()))
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        self.0.load(TableName::Records, count, |key, row| {
            row.resize(VALUE_BYTES, 0);
            fill(key, row);
        })
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        self.0.load(TableName::Accounts, count, |id, row| {
            row.resize(ACCOUNT_BYTES, 0);
            Account::at_first(id).put(row);
        })
    }

    fn for_each_record(&self, visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.0.for_each(TableName::Records, visit)
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        let mut broken = None;
        self.0.for_each(TableName::Accounts, |id, bytes| match Account::read(id, bytes) {
            Some(account) => visit(account),
            None => broken = Some(id),
        })?;
        broken.map_or(Ok(()), |id| Err(Failure::Broken(format!("account {id} is no account"))))
    }
}

impl<C: StoreClient> Client for KeyValueClient<C> {
    fn read(&mut self, key: u64, _aborts: &mut Aborts) -> Result<(), Failure> {
        self.0.read(key)
    }

    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], aborts: &mut Aborts) -> Result<(), Failure> {
        self.0.put(key, value, aborts)
    }

    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        self.0.change(TableName::Records, &[key], |_, value| change(value), aborts)
    }

    fn transfer(&mut self, transfer: Transfer, aborts: &mut Aborts) -> Result<(), Failure> {
        let Transfer { from, to, amount } = transfer;
        let (keys, amounts) = ([from, to], [-amount, amount]);
        let change = |at: usize, bytes: &mut [u8]| {
            // A row that is no account stays what it is, and is found after the run.
            if let Some(mut account) = Account::read(keys[at], bytes) {
                account.add(amounts[at]);
                account.put(bytes);
            }
        };
        self.0.change(TableName::Accounts, &keys, change, aborts)
    }
}
