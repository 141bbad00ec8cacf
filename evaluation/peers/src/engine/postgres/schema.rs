//! A schema of our own on somebody's server: made, filled, read and dropped, and the connections of its clients.
//!
//! It must not exist before, and is dropped when the value goes.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use ensilo_bench::peer::Setting;
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client as Connection, Error, NoTls, Row};

/// Its name.
const SCHEMA: &str = "ensilo_compare";

/// The schema `ensilo_compare` of a server.
pub(crate) struct Schema {
    address: String,
    setting: Setting,
    /// For what is done once.
    connection: Mutex<Connection>,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("setting", &self.setting).finish_non_exhaustive()
    }
}

impl Schema {
    /// Makes the schema in the database at `address`, which is a connection string as libpq's or a URL, and in it what the statements of
    /// `definition` make: all of it, or nothing.
    ///
    /// # Errors
    /// A failure of PostgreSQL; [`Failure::Refused`] if there is such a schema already, which is then left alone.
    pub(crate) fn create(address: &str, setting: Setting, definition: &str) -> Result<Self, Failure> {
        let mut connection = Connection::connect(address, NoTls).map_err(failed)?;
        // One batch is one transaction.
        let batch = format!("CREATE SCHEMA {SCHEMA}; SET LOCAL search_path = {SCHEMA}; {definition}");
        connection.batch_execute(&batch).map_err(|error| match error.code() {
            Some(code) if *code == SqlState::DUPLICATE_SCHEMA => Failure::Refused(format!(
                "the PostgreSQL database has a schema {SCHEMA} already, which is left alone; drop it if nobody needs it, or give another \
                 database"
            )),
            _ => failed(error),
        })?;
        let schema = Self { address: address.to_owned(), setting, connection: Mutex::new(connection) };
        schema.once(|connection| prepare_session(connection, setting).map_err(failed))?;
        Ok(schema)
    }

    /// A connection for a client, in the schema and at the setting.
    pub(crate) fn connect(&self) -> Result<Connection, Error> {
        let mut connection = Connection::connect(&self.address, NoTls)?;
        prepare_session(&mut connection, self.setting)?;
        Ok(connection)
    }

    /// Copies rows into these columns of an empty table, which is vacuumed and analyzed afterwards as after every bulk load.
    pub(crate) fn copy(
        &self,
        table: &str,
        columns: &str,
        write: impl FnOnce(&mut BinaryCopyInWriter<'_>) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.once(|connection| {
            let select = format!("SELECT {columns} FROM {table}");
            let statement = connection.prepare(&select).map_err(failed)?;
            let types: Vec<Type> = statement.columns().iter().map(|column| column.type_().clone()).collect();
            let copy = format!("COPY {table} ({columns}) FROM STDIN (FORMAT binary)");
            let mut writer = BinaryCopyInWriter::new(connection.copy_in(&copy).map_err(failed)?, &types);
            write(&mut writer)?;
            writer.finish().map_err(failed)?;
            connection.batch_execute(&format!("VACUUM ANALYZE {table}")).map_err(failed)
        })
    }

    /// Shows these columns of every row of a table.
    pub(crate) fn for_each(
        &self,
        table: &str,
        columns: &str,
        mut visit: impl FnMut(&Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        self.once(|connection| {
            let select = format!("SELECT {columns} FROM {table}");
            let mut rows = connection.query_raw(&select, std::iter::empty::<&dyn ToSql>()).map_err(failed)?;
            while let Some(row) = rows.next().map_err(failed)? {
                visit(&row)?;
            }
            Ok(())
        })
    }

    /// Uses the connection for what is done once.
    fn once<R>(&self, body: impl FnOnce(&mut Connection) -> Result<R, Failure>) -> Result<R, Failure> {
        body(&mut self.connection.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Schema {
    /// Drops the schema. If the server has gone there is nobody to tell.
    fn drop(&mut self) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = connection.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"));
    }
}

/// Sets the options of a connection.
fn prepare_session(connection: &mut Connection, setting: Setting) -> Result<(), Error> {
    let synchronous_commit = match setting {
        Setting::NotSynced => "off",
        Setting::Synced => "on",
    };
    connection.batch_execute(&format!(
        "SET search_path = {SCHEMA};
         SET default_transaction_isolation = serializable;
         SET synchronous_commit = {synchronous_commit};"
    ))
}

/// That PostgreSQL failed.
pub(crate) fn failed(error: Error) -> Failure {
    Failure::Peer("PostgreSQL", Box::new(error))
}

/// Runs a transaction of one statement until no other one is in its way.
pub(crate) fn retry<R>(aborts: &mut Aborts, mut run: impl FnMut() -> Result<R, Error>) -> Result<R, Failure> {
    loop {
        match run() {
            Ok(result) => return Ok(result),
            Err(error) => aborts.count(conflict(&error).ok_or_else(|| failed(error))?),
        }
    }
}

/// Whether a transaction was undone because of others, and why.
fn conflict(error: &Error) -> Option<AbortKind> {
    match error.code()? {
        code if *code == SqlState::T_R_SERIALIZATION_FAILURE => Some(AbortKind::ReadValidation),
        code if *code == SqlState::T_R_DEADLOCK_DETECTED => Some(AbortKind::LockHeld),
        _ => None,
    }
}
