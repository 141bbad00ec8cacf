//! SQLite: write-ahead log, a connection for each thread, prepared statements, integer keys.
//!
//! There is one writer at a time. SQLite makes others sleep for up to a tenth of a second and try again; writers wait for a lock of the
//! program instead, as its documentation recommends where writers are many. `synchronous` is `FULL`, or `OFF` when unsynced.

use std::fmt;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ensilo_bench::driver::{Aborts, Failure};
use rusqlite::{Connection, Error, OptionalExtension, params};

use crate::account::Account;
use crate::peer::{Client, Peer, Setting, Transfer, VALUE_BYTES, missing};

/// How long a connection waits for what another holds.
const PATIENCE: Duration = Duration::from_secs(60);

const SCHEMA: &str = "\
PRAGMA journal_mode = WAL;
CREATE TABLE usertable (id INTEGER PRIMARY KEY, value BLOB NOT NULL) STRICT;
CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL, updates INTEGER NOT NULL) STRICT;";

const SELECT: &str = "SELECT value FROM usertable WHERE id = ?1";
const UPDATE: &str = "UPDATE usertable SET value = ?2 WHERE id = ?1";
const BALANCE: &str = "SELECT balance FROM account WHERE id = ?1";
const TRANSFER: &str = "UPDATE account SET balance = ?2, updates = updates + 1 WHERE id = ?1";

/// A database of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    setting: Setting,
    /// Held while a connection writes.
    writer: Mutex<()>,
}

/// A connection.
pub struct SqliteClient<'a> {
    connection: Connection,
    writer: &'a Mutex<()>,
}

impl fmt::Debug for SqliteClient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteClient").finish_non_exhaustive()
    }
}

pub(super) fn failed(error: Error) -> Failure {
    // rusqlite's error is not `Sync`.
    Failure::Peer("SQLite", error.to_string().into())
}

/// SQLite's integers are signed.
fn signed(key: u64) -> i64 {
    key as i64
}

/// Opens a connection to the file.
pub(super) fn connect(path: &Path, setting: Setting) -> Result<Connection, Failure> {
    let connection = Connection::open(path).map_err(failed)?;
    connection.busy_timeout(PATIENCE).map_err(failed)?;
    let synchronous = match setting {
        Setting::NotSynced => "OFF",
        Setting::Synced => "FULL",
    };
    // Rows in the map are read without a system call and shared by all connections.
    let pragmas = format!("PRAGMA synchronous = {synchronous}; PRAGMA mmap_size = {};", 1u64 << 36);
    connection.execute_batch(&pragmas).map_err(failed)?;
    Ok(connection)
}

/// Executes a statement without parameters that is asked for often.
pub(super) fn execute(connection: &Connection, statement: &str) -> Result<(), Failure> {
    let executed = connection.prepare_cached(statement).and_then(|mut prepared| prepared.execute(()));
    executed.map(|_| ()).map_err(failed)
}

impl Sqlite {
    /// Opens an empty database in the directory `place`, which is empty.
    ///
    /// # Errors
    /// A failure of SQLite.
    pub fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let sqlite = Self { path: place.join("sqlite"), setting, writer: Mutex::new(()) };
        sqlite.connect()?.execute_batch(SCHEMA).map_err(failed)?;
        Ok(sqlite)
    }

    fn connect(&self) -> Result<Connection, Failure> {
        connect(&self.path, self.setting)
    }

    /// One large transaction.
    fn load(
        &self,
        statement: &str,
        mut insert: impl FnMut(&mut rusqlite::CachedStatement<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        let transaction = connection.transaction().map_err(failed)?;
        insert(&mut transaction.prepare_cached(statement).map_err(failed)?).map_err(failed)?;
        transaction.commit().map_err(failed)
    }
}

impl Peer for Sqlite {
    type Client<'a> = SqliteClient<'a>;

    fn client(&self) -> Result<SqliteClient<'_>, Failure> {
        Ok(SqliteClient { connection: self.connect()?, writer: &self.writer })
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        self.load("INSERT INTO usertable VALUES (?1, ?2)", |statement| {
            let mut value = [0; VALUE_BYTES];
            (0..count).try_for_each(|key| {
                fill(key, &mut value);
                statement.execute(params![signed(key), &value[..]]).map(|_| ())
            })
        })
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        self.load("INSERT INTO account VALUES (?1, ?2, 0)", |statement| {
            (0..count)
                .try_for_each(|key| statement.execute((signed(key), Account::BALANCE_AT_FIRST)).map(|_| ()))
        })
    }

    fn for_each_record(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        let connection = self.connect()?;
        let mut statement = connection.prepare("SELECT id, value FROM usertable").map_err(failed)?;
        let mut rows = statement.query(()).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let value: Vec<u8> = row.get(1).map_err(failed)?;
            visit(row.get::<_, i64>(0).map_err(failed)? as u64, &value);
        }
        Ok(())
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        let connection = self.connect()?;
        let mut statement = connection.prepare("SELECT id, balance, updates FROM account").map_err(failed)?;
        let account = |row: &rusqlite::Row<'_>| {
            let (id, updates): (i64, i64) = (row.get(0)?, row.get(2)?);
            Ok(Account { id: id as u64, balance: row.get(1)?, updates: updates as u64 })
        };
        for found in statement.query_map((), account).map_err(failed)? {
            visit(found.map_err(failed)?);
        }
        Ok(())
    }
}

impl SqliteClient<'_> {
    /// A transaction that writes, from the start.
    fn write(&mut self, body: impl FnOnce(&Connection) -> Result<(), Failure>) -> Result<(), Failure> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        let done = body(&self.connection);
        execute(&self.connection, if done.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
        done
    }
}

/// The first column of the row with this key.
fn select<T: rusqlite::types::FromSql>(
    connection: &Connection,
    statement: &str,
    key: u64,
) -> Result<T, Failure> {
    let mut statement = connection.prepare_cached(statement).map_err(failed)?;
    let found = statement.query_row((signed(key),), |row| row.get(0)).optional().map_err(failed)?;
    found.ok_or_else(|| missing(key))
}

fn update(connection: &Connection, key: u64, value: &[u8]) -> Result<(), Failure> {
    let mut statement = connection.prepare_cached(UPDATE).map_err(failed)?;
    let changed = statement.execute(params![signed(key), value]).map_err(failed)?;
    if changed == 1 { Ok(()) } else { Err(missing(key)) }
}

fn change_balance(connection: &Connection, key: u64, amount: i64) -> Result<(), Failure> {
    let balance: i64 = select(connection, BALANCE, key)?;
    let mut statement = connection.prepare_cached(TRANSFER).map_err(failed)?;
    statement.execute((signed(key), balance + amount)).map(|_| ()).map_err(failed)
}

impl Client for SqliteClient<'_> {
    fn read(&mut self, key: u64, _aborts: &mut Aborts) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(SELECT).map_err(failed)?;
        let read = statement.query_row((signed(key),), |row| {
            black_box(row.get_ref(0)?.as_blob()?);
            Ok(())
        });
        read.optional().map_err(failed)?.ok_or_else(|| missing(key))
    }

    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], _aborts: &mut Aborts) -> Result<(), Failure> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        update(&self.connection, key, value)
    }

    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        _aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        self.write(|connection| {
            let mut value: Vec<u8> = select(connection, SELECT, key)?;
            change(&mut value);
            update(connection, key, &value)
        })
    }

    fn transfer(&mut self, transfer: Transfer, _aborts: &mut Aborts) -> Result<(), Failure> {
        let Transfer { from, to, amount } = transfer;
        self.write(|connection| {
            change_balance(connection, from, -amount)?;
            change_balance(connection, to, amount)
        })
    }
}
