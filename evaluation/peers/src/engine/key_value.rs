//! Records and accounts in databases that know keys and bytes.

use std::hint::black_box;
use std::path::Path;

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::{ACCOUNT_BYTES, Account, Client, Peer, Setting, Transfer, VALUE_BYTES, missing};

use super::ordered::{End, OrderedClient, OrderedStore, OrderedTable};

/// A store as a peer.
#[derive(Debug)]
pub struct KeyValue<S>(S);

/// A store's client as a peer's.
#[derive(Debug)]
pub struct KeyValueClient<C> {
    client: C,
    /// The row that was read last.
    row: Vec<u8>,
}

impl<S: OrderedStore> From<S> for KeyValue<S> {
    fn from(store: S) -> Self {
        Self(store)
    }
}

impl<S: OrderedStore> KeyValue<S> {
    /// Opens an empty store in the directory `place`, which is empty.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        S::open(place, setting, &OrderedTable::RECORDS_AND_ACCOUNTS).map(Self)
    }

    fn for_each(
        &self,
        table: OrderedTable,
        mut visit: impl FnMut(u64, &[u8]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.0.for_each(table, |key, row| {
            let key = key.try_into().map_err(|_| Failure::Broken("a key has not 8 bytes".to_owned()))?;
            visit(u64::from_be_bytes(key), row)
        })
    }
}

impl<S: OrderedStore> Peer for KeyValue<S> {
    type Client<'a>
        = KeyValueClient<S::Client<'a>>
    where
        S: 'a;

    fn client(&self) -> Result<Self::Client<'_>, Failure> {
        Ok(KeyValueClient { client: self.0.client()?, row: Vec::new() })
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        let rows = (0..count).map(|key| {
            let mut row = [0; VALUE_BYTES];
            fill(key, &mut row);
            (key.to_be_bytes(), row)
        });
        self.0.load(OrderedTable::Records, rows)
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        let rows = (0..count).map(|id| {
            let mut row = [0; ACCOUNT_BYTES];
            Account::at_first(id).put(&mut row);
            (id.to_be_bytes(), row)
        });
        self.0.load(OrderedTable::Accounts, rows)
    }

    fn for_each_record(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.for_each(OrderedTable::Records, |key, row| {
            visit(key, row);
            Ok(())
        })
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        self.for_each(OrderedTable::Accounts, |id, row| {
            let account = Account::read(id, row);
            account.map(&mut visit).ok_or_else(|| Failure::Broken(format!("account {id} is no account")))
        })
    }
}

impl<C: OrderedClient> KeyValueClient<C> {
    /// Reads the rows of `keys` and writes what `change` makes of each, given the place of its key in the list.
    fn change(
        &mut self,
        table: OrderedTable,
        keys: &[u64],
        change: impl Fn(usize, &mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        let row = &mut self.row;
        self.client.write(aborts, &mut |transaction| {
            for (at, &key) in keys.iter().enumerate() {
                let key_bytes = key.to_be_bytes();
                if !transaction.get(table, &key_bytes, row)? {
                    return Err(missing(key));
                }
                change(at, row);
                transaction.put(table, &key_bytes, row)?;
            }
            Ok(End::Commit)
        })?;
        Ok(())
    }
}

impl<C: OrderedClient> Client for KeyValueClient<C> {
    fn read(&mut self, key: u64, _aborts: &mut Aborts) -> Result<(), Failure> {
        let is_found = self.client.get(OrderedTable::Records, &key.to_be_bytes(), &mut self.row)?;
        black_box(&self.row);
        if is_found { Ok(()) } else { Err(missing(key)) }
    }

    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], aborts: &mut Aborts) -> Result<(), Failure> {
        self.client.put(OrderedTable::Records, &key.to_be_bytes(), value, aborts)
    }

    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        self.change(OrderedTable::Records, &[key], |_, value| change(value), aborts)
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
        self.change(OrderedTable::Accounts, &keys, change, aborts)
    }
}
