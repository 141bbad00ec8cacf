//! SQLite: write-ahead log, a connection for each thread, prepared statements.
//!
//! Keys of at most eight bytes, which all tables have, are integers of the same order: what SQLite looks up fastest. TPC-C's two indexes
//! have small entries and are tables `WITHOUT ROWID`.
//!
//! There is one writer at a time. SQLite makes others sleep for up to a tenth of a second and try again; writers wait for a lock of the
//! program instead, as its documentation recommends where writers are many. A transaction of one statement needs no other to begin and end
//! it. `synchronous` is `FULL`, or `OFF` when unsynced.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::peer::Setting;
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, Error, OptionalExtension, ToSql, params};

use super::ordered::{
    End, ORDERED_TABLES_MAX, OrderedClient, OrderedRange, OrderedRead, OrderedStore, OrderedTable,
    OrderedWrite, ReadBody, Visit, WriteBody,
};

/// How long a connection waits for what another holds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Statements that a connection keeps prepared: five for each table, and those that begin and end transactions.
const STATEMENTS: usize = 5 * ORDERED_TABLES_MAX + 8;

/// A database of SQLite.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    setting: Setting,
    statements: Vec<Statements>,
    /// Held while a connection writes.
    writer: Mutex<()>,
}

/// A connection.
pub struct SqliteClient<'a> {
    connection: Connection,
    shared: &'a Sqlite,
}

/// The texts of the statements on a table.
#[derive(Debug)]
struct Statements {
    get: String,
    up: String,
    down: String,
    put: String,
    delete: String,
}

/// A transaction of a connection.
struct SqliteTransaction<'t> {
    connection: &'t Connection,
    statements: &'t [Statements],
}

/// A key as SQLite has it.
enum SqlKey<'k> {
    Integer(i64),
    Bytes(&'k [u8]),
}

impl fmt::Debug for SqliteClient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteClient").finish_non_exhaustive()
    }
}

impl ToSql for SqlKey<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match *self {
            Self::Integer(number) => ToSqlOutput::Owned(Value::Integer(number)),
            Self::Bytes(bytes) => ToSqlOutput::Borrowed(ValueRef::Blob(bytes)),
        })
    }
}

impl<'k> SqlKey<'k> {
    /// Short keys are filled up by zeros. The first bit of every key is 0, so that signed integers have the keys' order; the key of an
    /// item that there is not is no exception to mind.
    fn new(table: OrderedTable, key: &'k [u8]) -> Self {
        if table.short_key_bytes().is_none() {
            return Self::Bytes(key);
        }
        let mut bytes = [0; 8];
        bytes[..key.len()].copy_from_slice(key);
        Self::Integer(i64::from_be_bytes(bytes))
    }
}

impl Statements {
    fn new(table: OrderedTable) -> Self {
        let name = table.name();
        let range = format!("SELECT key, value FROM {name} WHERE key >= ?1 AND key < ?2 ORDER BY key");
        Self {
            get: format!("SELECT value FROM {name} WHERE key = ?1"),
            down: format!("{range} DESC"),
            up: range,
            put: format!("INSERT OR REPLACE INTO {name} VALUES (?1, ?2)"),
            delete: format!("DELETE FROM {name} WHERE key = ?1"),
        }
    }
}

fn failed(error: Error) -> Failure {
    // rusqlite's error is not `Sync`.
    Failure::Peer("SQLite", error.to_string().into())
}

fn create_table(table: &OrderedTable) -> String {
    let (name, is_short) = (table.name(), table.short_key_bytes().is_some());
    let (key, options) = if is_short { ("INTEGER", "STRICT") } else { ("BLOB", "STRICT, WITHOUT ROWID") };
    format!("CREATE TABLE {name} (key {key} PRIMARY KEY, value BLOB NOT NULL) {options};")
}

impl Sqlite {
    /// Opens a connection to the file.
    fn connect(&self) -> Result<Connection, Failure> {
        let connection = Connection::open(&self.path).map_err(failed)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let synchronous = match self.setting {
            Setting::NotSynced => "OFF",
            Setting::Synced => "FULL",
        };
        // Rows in the map are read without a system call and shared by all connections.
        let pragmas = format!("PRAGMA synchronous = {synchronous}; PRAGMA mmap_size = {};", 1u64 << 36);
        connection.execute_batch(&pragmas).map_err(failed)?;
        Ok(connection)
    }
}

impl OrderedStore for Sqlite {
    type Client<'a> = SqliteClient<'a>;

    fn open(place: &Path, setting: Setting, tables: &[OrderedTable]) -> Result<Self, Failure> {
        let statements = tables.iter().copied().map(Statements::new).collect();
        let sqlite = Self { path: place.join("sqlite"), setting, statements, writer: Mutex::new(()) };
        let tables: String = tables.iter().map(create_table).collect();
        let schema = format!("PRAGMA journal_mode = WAL; {tables}");
        sqlite.connect()?.execute_batch(&schema).map_err(failed)?;
        Ok(sqlite)
    }

    fn client(&self) -> Result<SqliteClient<'_>, Failure> {
        Ok(SqliteClient { connection: self.connect()?, shared: self })
    }

    fn load<B: AsRef<[u8]>>(
        &self,
        table: OrderedTable,
        mut rows: impl Iterator<Item = (impl AsRef<[u8]>, B)>,
    ) -> Result<(), Failure> {
        let mut connection = self.connect()?;
        let transaction = connection.transaction().map_err(failed)?;
        let mut statement = transaction.prepare(&self.statements[table.number()].put).map_err(failed)?;
        rows.try_for_each(|(key, row)| {
            statement.execute(params![SqlKey::new(table, key.as_ref()), row.as_ref()]).map(|_| ())
        })
        .map_err(failed)?;
        drop(statement);
        transaction.commit().map_err(failed)
    }
}

impl OrderedClient for SqliteClient<'_> {
    fn write(&mut self, _aborts: &mut Aborts, body: WriteBody<'_>) -> Result<End, Failure> {
        let _writer = self.lock_out_writers();
        self.execute("BEGIN IMMEDIATE")?;
        let end = body(&mut self.transaction());
        self.execute(if matches!(end, Ok(End::Commit)) { "COMMIT" } else { "ROLLBACK" })?;
        end
    }

    fn read(&mut self, body: ReadBody<'_>) -> Result<(), Failure> {
        self.execute("BEGIN")?;
        let done = body(&mut self.transaction());
        self.execute("COMMIT")?;
        done
    }

    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        self.transaction().get(table, key, row)
    }

    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8], _: &mut Aborts) -> Result<(), Failure> {
        let _writer = self.lock_out_writers();
        self.transaction().put(table, key, row)
    }
}

impl<'a> SqliteClient<'a> {
    fn lock_out_writers(&self) -> MutexGuard<'a, ()> {
        self.shared.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn transaction(&self) -> SqliteTransaction<'_> {
        SqliteTransaction { connection: &self.connection, statements: &self.shared.statements }
    }

    /// Executes a statement without parameters.
    fn execute(&self, statement: &str) -> Result<(), Failure> {
        let executed =
            self.connection.prepare_cached(statement).and_then(|mut prepared| prepared.execute(()));
        executed.map(|_| ()).map_err(failed)
    }
}

impl SqliteTransaction<'_> {
    fn statement(
        &self,
        table: OrderedTable,
        which: impl Fn(&Statements) -> &str,
    ) -> Result<CachedStatement<'_>, Failure> {
        self.connection.prepare_cached(which(&self.statements[table.number()])).map_err(failed)
    }
}

impl OrderedRead for SqliteTransaction<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        row.clear();
        let mut statement = self.statement(table, |of| &of.get)?;
        let found = statement.query_row([SqlKey::new(table, key)], |found| {
            row.extend_from_slice(found.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional().map_err(failed)?.is_some())
    }

    fn scan(&mut self, range: OrderedRange<'_>, visit: Visit<'_>) -> Result<(), Failure> {
        let OrderedRange { table, start, end, is_reverse } = range;
        let mut statement = self.statement(table, |of| if is_reverse { &of.down } else { &of.up })?;
        let keys = [SqlKey::new(table, start), SqlKey::new(table, end)];
        let mut rows = statement.query(keys).map_err(failed)?;
        while let Some(found) = rows.next().map_err(failed)? {
            let row = found.get_ref(1).map_err(failed)?;
            let row = row.as_blob().map_err(|error| failed(error.into()))?;
            let flow = match (table.short_key_bytes(), found.get_ref(0).map_err(failed)?) {
                (Some(len), ValueRef::Integer(number)) => visit(&number.to_be_bytes()[..len], row),
                (None, ValueRef::Blob(key)) => visit(key, row),
                _ => return Err(Failure::Broken(format!("a key of {} is of another type", table.name()))),
            };
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl OrderedWrite for SqliteTransaction<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        let mut statement = self.statement(table, |of| &of.put)?;
        statement.execute(params![SqlKey::new(table, key), row]).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        let mut statement = self.statement(table, |of| &of.delete)?;
        statement.execute([SqlKey::new(table, key)]).map(|_| ()).map_err(failed)
    }
}
