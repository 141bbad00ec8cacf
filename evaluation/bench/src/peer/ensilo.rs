//! Ensilo itself, with the defaults that every user gets: in memory, or in a directory and answered when stored.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use ensilo::disk::RealDisk;
use ensilo::generic::{Database, Table, Transaction};
use ensilo::{Abort, Columns, Engine, Error, Row, Silo};

use crate::driver::{Aborts, Failure};
use crate::peer::{Account, Client, Peer, Setting, Transfer, VALUE_BYTES, missing};

/// Rows that one transaction of the loader inserts.
const BATCH_ROWS: u64 = 500;

/// A database of Ensilo with its default engine.
pub type Ensilo = EnsiloOn<Silo>;

/// A database of Ensilo with this engine.
#[derive(Debug)]
pub struct EnsiloOn<E: Engine> {
    database: Database<E>,
    records: Table<RecordRow, E>,
    accounts: Table<AccountRow, E>,
}

/// It may be used by any thread, so that a client is a reference.
#[derive(Debug)]
pub struct EnsiloClient<'a, E: Engine>(&'a EnsiloOn<E>);

#[derive(Debug, Row)]
#[row(table = "usertable")]
struct RecordRow {
    #[row(key)]
    id: u64,
    value: [u8; VALUE_BYTES],
}

#[derive(Debug, Columns)]
#[columns(of = RecordRow)]
struct Value {
    value: [u8; VALUE_BYTES],
}

#[derive(Debug, Row)]
#[row(table = "account")]
struct AccountRow {
    #[row(key)]
    id: u64,
    balance: i64,
    updates: u64,
}

#[derive(Debug, Columns)]
#[columns(of = AccountRow)]
struct Balance {
    balance: i64,
    updates: u64,
}

/// Opens an empty database of Ensilo, in memory or in the directory `place`, which is empty.
///
/// # Errors
/// A failure of Ensilo.
pub fn open_ensilo<E: Engine>(place: &Path, setting: Setting) -> Result<Database<E>, Failure> {
    let options = Database::options();
    Ok(match setting {
        Setting::NotSynced => options.in_memory_with()?,
        Setting::Synced => options.open_with(Arc::new(RealDisk), place)?,
    })
}

impl<E: Engine> EnsiloOn<E> {
    /// Opens an empty database, in memory or in the directory `place`, which is empty.
    ///
    /// # Errors
    /// A failure of Ensilo.
    pub fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let database = open_ensilo(place, setting)?;
        let (records, accounts) = (database.create_table()?, database.create_table()?);
        Ok(Self { database, records, accounts })
    }

    fn load(
        &self,
        count: u64,
        insert: impl Fn(&mut Transaction<'_, E>, u64) -> ensilo::Result<()>,
    ) -> Result<(), Failure> {
        for first in (0..count).step_by(BATCH_ROWS as usize) {
            let keys = first..count.min(first + BATCH_ROWS);
            let request = self.database.request().durability(ensilo::Durability::Visible);
            request.transact(|tx| keys.clone().try_for_each(|key| insert(tx, key)))?;
        }
        self.wait_until_stored()
    }

    /// Waits until all that is committed is stored, if it ever is in this database.
    fn wait_until_stored(&self) -> Result<(), Failure> {
        if self.database.durable_epoch().is_some() {
            let epoch = self.database.statistics()?.epochs.global_epoch;
            self.database.ticket(epoch)?.wait()?;
        }
        Ok(())
    }
}

impl<E: Engine> Peer for EnsiloOn<E> {
    type Client<'a> = EnsiloClient<'a, E>;

    fn client(&self) -> Result<EnsiloClient<'_, E>, Failure> {
        Ok(EnsiloClient(self))
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        self.load(count, |tx, id| {
            let mut value = [0; VALUE_BYTES];
            fill(id, &mut value);
            self.records.insert(tx, &RecordRow { id, value }).map(|_| ())
        })
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        self.load(count, |tx, id| {
            let Account { balance, updates, .. } = Account::at_first(id);
            self.accounts.insert(tx, &AccountRow { id, balance, updates }).map(|_| ())
        })
    }

    fn for_each_record(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        let scan = |tx: &mut Transaction<'_, E>| {
            self.records.scan().columns::<Value>().for_each(tx, |id, columns| visit(id, &columns.value))
        };
        Ok(self.database.transact(scan)?)
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        let scan = |tx: &mut Transaction<'_, E>| {
            self.accounts.scan().columns::<Balance>().for_each(tx, |id, Balance { balance, updates }| {
                visit(Account { id, balance, updates });
            })
        };
        Ok(self.database.transact(scan)?)
    }
}

impl<E: Engine> EnsiloClient<'_, E> {
    /// Runs a transaction until it commits.
    #[inline]
    fn transact(
        &self,
        aborts: &mut Aborts,
        body: impl FnMut(&mut Transaction<'_, E>) -> ensilo::Result<()>,
    ) -> Result<(), Failure> {
        let request = self.0.database.request().retries(u32::MAX);
        let request = request.on_abort(|abort: &Abort| aborts.count(abort.reason().into()));
        request.transact(body).map_err(|error| match error {
            Error::MissingRow(_) => Failure::Broken(error.to_string()),
            error => error.into(),
        })
    }
}

impl<E: Engine> Client for EnsiloClient<'_, E> {
    #[inline]
    fn read(&mut self, key: u64, aborts: &mut Aborts) -> Result<(), Failure> {
        let mut is_found = false;
        self.transact(aborts, |tx| {
            is_found = black_box(self.0.records.get_columns::<Value>(tx, key)?).is_some();
            Ok(())
        })?;
        if is_found { Ok(()) } else { Err(missing(key)) }
    }

    #[inline]
    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], aborts: &mut Aborts) -> Result<(), Failure> {
        self.transact(aborts, |tx| {
            self.0.records.update(tx, key, |columns: &mut Value| columns.value = *value)
        })
    }

    #[inline]
    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        self.transact(aborts, |tx| {
            self.0.records.update(tx, key, |columns: &mut Value| change(&mut columns.value))
        })
    }

    #[inline]
    fn transfer(&mut self, transfer: Transfer, aborts: &mut Aborts) -> Result<(), Failure> {
        let Transfer { from, to, amount } = transfer;
        self.transact(aborts, |tx| {
            [(from, -amount), (to, amount)].into_iter().try_for_each(|(id, amount)| {
                self.0.accounts.update(tx, id, |columns: &mut Balance| {
                    columns.balance += amount;
                    columns.updates += 1;
                })
            })
        })
    }
}
