//! TPC-C's tables in SQLite, as keys and bytes.
//!
//! Keys of at most eight bytes, which all tables have, are integers of the same order: what SQLite looks up fastest. The two indexes,
//! whose entries are small, are tables `WITHOUT ROWID`.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use ensilo_bench::driver::{Aborts, Failure};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, OptionalExtension, ToSql, params};

use super::{
    End, KeyAndRow, ORDERED_TABLES, OrderedClient, OrderedRead, OrderedStore, OrderedTable, OrderedWrite,
    Visit,
};
use crate::engine::sqlite::{connect, execute, failed};
use crate::peer::Setting;

/// Statements that a connection keeps prepared: five for each table, and those that begin and end transactions.
const STATEMENTS: usize = 5 * ORDERED_TABLES + 8;

/// A database of SQLite.
#[derive(Debug)]
pub struct SqliteTables {
    path: PathBuf,
    setting: Setting,
    statements: Vec<Statements>,
    /// Held while a connection writes.
    writer: Mutex<()>,
}

/// A connection.
pub struct SqliteTablesClient<'a> {
    connection: Connection,
    tables: &'a SqliteTables,
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
struct Running<'t> {
    connection: &'t Connection,
    statements: &'t [Statements],
}

/// A key as SQLite has it.
enum SqlKey<'k> {
    Integer(i64),
    Bytes(&'k [u8]),
}

impl fmt::Debug for SqliteTablesClient<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteTablesClient").finish_non_exhaustive()
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

fn create(table: OrderedTable) -> String {
    let (name, is_short) = (table.name(), table.short_key_bytes().is_some());
    let (key, options) = if is_short { ("INTEGER", "STRICT") } else { ("BLOB", "STRICT, WITHOUT ROWID") };
    format!("CREATE TABLE {name} (key {key} PRIMARY KEY, value BLOB NOT NULL) {options};")
}

impl OrderedStore for SqliteTables {
    type Client<'a> = SqliteTablesClient<'a>;

    fn open(place: &Path, setting: Setting) -> Result<Self, Failure> {
        let path = place.join("sqlite");
        let tables: String = OrderedTable::ALL.into_iter().map(create).collect();
        let schema = format!("PRAGMA journal_mode = WAL; {tables}");
        connect(&path, setting)?.execute_batch(&schema).map_err(failed)?;
        let statements = OrderedTable::ALL.into_iter().map(Statements::new).collect();
        Ok(Self { path, setting, statements, writer: Mutex::new(()) })
    }

    fn client(&self) -> Result<SqliteTablesClient<'_>, Failure> {
        let connection = connect(&self.path, self.setting)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        Ok(SqliteTablesClient { connection, tables: self })
    }

    fn load(&self, table: OrderedTable, rows: &[KeyAndRow]) -> Result<(), Failure> {
        let mut connection = connect(&self.path, self.setting)?;
        let transaction = connection.transaction().map_err(failed)?;
        let mut statement = transaction.prepare(&self.statements[table.number()].put).map_err(failed)?;
        for (key, row) in rows {
            statement.execute(params![SqlKey::new(table, key), row]).map_err(failed)?;
        }
        drop(statement);
        transaction.commit().map_err(failed)
    }
}

impl OrderedClient for SqliteTablesClient<'_> {
    fn write(
        &mut self,
        _aborts: &mut Aborts,
        body: &mut dyn FnMut(&mut dyn OrderedWrite) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        let _writer = self.tables.writer.lock().unwrap_or_else(PoisonError::into_inner);
        execute(&self.connection, "BEGIN IMMEDIATE")?;
        let end = body(&mut self.running());
        execute(&self.connection, if matches!(end, Ok(End::Commit)) { "COMMIT" } else { "ROLLBACK" })?;
        end
    }

    fn read(
        &mut self,
        body: &mut dyn FnMut(&mut dyn OrderedRead) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        execute(&self.connection, "BEGIN")?;
        let done = body(&mut self.running());
        execute(&self.connection, "COMMIT")?;
        done
    }
}

impl SqliteTablesClient<'_> {
    fn running(&self) -> Running<'_> {
        Running { connection: &self.connection, statements: &self.tables.statements }
    }
}

impl Running<'_> {
    fn statement(
        &self,
        table: OrderedTable,
        which: impl Fn(&Statements) -> &str,
    ) -> Result<CachedStatement<'_>, Failure> {
        self.connection.prepare_cached(which(&self.statements[table.number()])).map_err(failed)
    }
}

impl OrderedRead for Running<'_> {
    fn get(&mut self, table: OrderedTable, key: &[u8], row: &mut Vec<u8>) -> Result<bool, Failure> {
        row.clear();
        let mut statement = self.statement(table, |of| &of.get)?;
        let found = statement.query_row([SqlKey::new(table, key)], |found| {
            row.extend_from_slice(found.get_ref(0)?.as_blob()?);
            Ok(())
        });
        Ok(found.optional().map_err(failed)?.is_some())
    }

    fn scan(
        &mut self,
        table: OrderedTable,
        keys: Range<&[u8]>,
        is_reverse: bool,
        visit: Visit<'_>,
    ) -> Result<(), Failure> {
        let mut statement = self.statement(table, |of| if is_reverse { &of.down } else { &of.up })?;
        let range = [SqlKey::new(table, keys.start), SqlKey::new(table, keys.end)];
        let mut rows = statement.query(range).map_err(failed)?;
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

impl OrderedWrite for Running<'_> {
    fn put(&mut self, table: OrderedTable, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        let mut statement = self.statement(table, |of| &of.put)?;
        statement.execute(params![SqlKey::new(table, key), row]).map(|_| ()).map_err(failed)
    }

    fn delete(&mut self, table: OrderedTable, key: &[u8]) -> Result<(), Failure> {
        let mut statement = self.statement(table, |of| &of.delete)?;
        statement.execute([SqlKey::new(table, key)]).map(|_| ()).map_err(failed)
    }
}
