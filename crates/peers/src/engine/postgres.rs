//! PostgreSQL over its socket: a connection for each client, every transaction one prepared statement, `SERIALIZABLE`.
//!
//! A transfer is a call of a PL/pgSQL function, which locks both accounts in the order of their numbers, so that there are no deadlocks. What a read-modify-write writes is made by the client: it is read by one statement, and
//! another one writes it if the value is still the one that was read. Unsynced, `synchronous_commit` is `off`; synced it is `on`.
//!
//! The server is its user's, configured as they like. Everything is done in a schema of its own, which must not exist before and is dropped
//! when the value goes.

use std::fmt;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use postgres::binary_copy::BinaryCopyInWriter;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::{ToSql, Type};
use postgres::{Client as Connection, Error, NoTls, Row, Statement};

use crate::account::Account;
use crate::peer::{Client, Peer, Setting, Transfer, VALUE_BYTES, missing};

/// The schema; also in the statements below.
const SCHEMA: &str = "ensilo_compare";

/// One batch is one transaction: all of it is there, or nothing.
const CREATE: &str = "\
CREATE SCHEMA ensilo_compare;
SET LOCAL search_path = ensilo_compare;
CREATE TABLE usertable (id bigint PRIMARY KEY, value bytea NOT NULL);
CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, updates bigint NOT NULL);
CREATE FUNCTION transfer(source bigint, target bigint, amount bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE locked integer;
BEGIN
    SELECT count(*) INTO locked FROM
        (SELECT FROM account WHERE id IN (source, target) ORDER BY id FOR UPDATE) AS accounts;
    IF locked <> 2 THEN RETURN false; END IF;
    UPDATE account SET balance = balance - amount, updates = updates + 1 WHERE id = source;
    UPDATE account SET balance = balance + amount, updates = updates + 1 WHERE id = target;
    RETURN true;
END $$;";

const READ: &str = "SELECT value FROM usertable WHERE id = $1";
const UPDATE: &str = "UPDATE usertable SET value = $2 WHERE id = $1";
const REPLACE: &str = "UPDATE usertable SET value = $2 WHERE id = $1 AND value = $3";
const TRANSFER: &str = "SELECT transfer($1, $2, $3)";

/// A schema of PostgreSQL.
pub struct Postgres {
    address: String,
    setting: Setting,
    /// For what is done once.
    connection: Mutex<Connection>,
}

/// A connection with its prepared statements.
pub struct PostgresClient {
    connection: Connection,
    read: Statement,
    update: Statement,
    replace: Statement,
    transfer: Statement,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("setting", &self.setting).finish_non_exhaustive()
    }
}

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient").finish_non_exhaustive()
    }
}

fn failed(error: Error) -> Failure {
    Failure::Peer("PostgreSQL", Box::new(error))
}

/// PostgreSQL's integers are signed.
fn signed(key: u64) -> i64 {
    key as i64
}

/// Whether a transaction was undone because of others, and why.
fn conflict(error: &Error) -> Option<AbortKind> {
    match error.code()? {
        code if *code == SqlState::T_R_SERIALIZATION_FAILURE => Some(AbortKind::ReadValidation),
        code if *code == SqlState::T_R_DEADLOCK_DETECTED => Some(AbortKind::LockHeld),
        _ => None,
    }
}

impl Postgres {
    /// Makes the schema `ensilo_compare` with its tables, empty, in the database at `address`, which is a connection string as libpq's
    /// `host=/run/postgresql user=postgres dbname=test` or a URL.
    ///
    /// # Errors
    /// A failure of PostgreSQL; [`Failure::Refused`] if there is such a schema already, which is then left alone.
    pub fn open(address: &str, setting: Setting) -> Result<Self, Failure> {
        let mut connection = Connection::connect(address, NoTls).map_err(failed)?;
        connection.batch_execute(CREATE).map_err(|error| match error.code() {
            Some(code) if *code == SqlState::DUPLICATE_SCHEMA => Failure::Refused(format!(
                "the PostgreSQL database has a schema {SCHEMA} already, which is left alone; drop it if nobody needs it, or give another \
                 database"
            )),
            _ => failed(error),
        })?;
        let postgres = Self { address: address.to_owned(), setting, connection: Mutex::new(connection) };
        postgres.once(|connection| prepare_session(connection, setting))?;
        Ok(postgres)
    }

    /// Uses the connection for what is done once.
    fn once<R>(&self, body: impl FnOnce(&mut Connection) -> Result<R, Error>) -> Result<R, Failure> {
        body(&mut self.connection.lock().unwrap_or_else(PoisonError::into_inner)).map_err(failed)
    }

    /// Copies rows into an empty table, which is vacuumed and analyzed afterwards as after every bulk load.
    fn copy(
        &self,
        table: &str,
        types: &[Type],
        write: impl FnOnce(&mut BinaryCopyInWriter<'_>) -> Result<(), Error>,
    ) -> Result<(), Failure> {
        self.once(|connection| {
            let copy = connection.copy_in(&format!("COPY {table} FROM STDIN (FORMAT binary)"))?;
            let mut writer = BinaryCopyInWriter::new(copy, types);
            write(&mut writer)?;
            writer.finish()?;
            connection.batch_execute(&format!("VACUUM ANALYZE {table}"))
        })
    }

    /// Shows every row that `query` finds.
    fn for_each(&self, query: &str, mut visit: impl FnMut(&Row) -> Result<(), Error>) -> Result<(), Failure> {
        self.once(|connection| {
            let mut rows = connection.query_raw(query, std::iter::empty::<&dyn ToSql>())?;
            while let Some(row) = rows.next()? {
                visit(&row)?;
            }
            Ok(())
        })
    }
}

impl Drop for Postgres {
    /// Drops the schema. If the server has gone there is nobody to tell.
    fn drop(&mut self) {
        let connection = self.connection.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = connection.batch_execute(&format!("DROP SCHEMA {SCHEMA} CASCADE"));
    }
}

/// What every connection is told.
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

impl Peer for Postgres {
    type Client<'a> = PostgresClient;

    fn client(&self) -> Result<PostgresClient, Failure> {
        PostgresClient::connect(&self.address, self.setting).map_err(failed)
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        self.copy("usertable", &[Type::INT8, Type::BYTEA], |writer| {
            let mut value = [0; VALUE_BYTES];
            (0..count).try_for_each(|key| {
                fill(key, &mut value);
                writer.write(&[&signed(key), &&value[..]])
            })
        })
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        self.copy("account", &[Type::INT8, Type::INT8, Type::INT8], |writer| {
            (0..count).try_for_each(|key| writer.write(&[&signed(key), &Account::BALANCE_AT_FIRST, &0i64]))
        })
    }

    fn for_each_record(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.for_each("SELECT id, value FROM usertable", |row| {
            visit(row.try_get::<_, i64>(0)? as u64, row.try_get(1)?);
            Ok(())
        })
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        self.for_each("SELECT id, balance, updates FROM account", |row| {
            let (id, updates): (i64, i64) = (row.try_get(0)?, row.try_get(2)?);
            visit(Account { id: id as u64, balance: row.try_get(1)?, updates: updates as u64 });
            Ok(())
        })
    }
}

impl PostgresClient {
    fn connect(address: &str, setting: Setting) -> Result<Self, Error> {
        let mut connection = Connection::connect(address, NoTls)?;
        prepare_session(&mut connection, setting)?;
        let mut prepare = |statement| connection.prepare(statement);
        let (read, update) = (prepare(READ)?, prepare(UPDATE)?);
        let (replace, transfer) = (prepare(REPLACE)?, prepare(TRANSFER)?);
        Ok(Self { connection, read, update, replace, transfer })
    }
}

/// Runs a transaction of one statement until no other one is in its way.
fn retry<R>(aborts: &mut Aborts, mut run: impl FnMut() -> Result<R, Error>) -> Result<R, Failure> {
    loop {
        match run() {
            Ok(result) => return Ok(result),
            Err(error) => aborts.count(conflict(&error).ok_or_else(|| failed(error))?),
        }
    }
}

impl Client for PostgresClient {
    fn read(&mut self, key: u64, aborts: &mut Aborts) -> Result<(), Failure> {
        let row = retry(aborts, || self.connection.query_opt(&self.read, &[&signed(key)]))?;
        black_box(row.ok_or_else(|| missing(key))?.try_get::<_, &[u8]>(0).map_err(failed)?);
        Ok(())
    }

    fn update(&mut self, key: u64, value: &[u8; VALUE_BYTES], aborts: &mut Aborts) -> Result<(), Failure> {
        let value = &value[..];
        let changed = retry(aborts, || self.connection.execute(&self.update, &[&signed(key), &value]))?;
        if changed == 1 { Ok(()) } else { Err(missing(key)) }
    }

    fn read_modify_write(
        &mut self,
        key: u64,
        change: impl Fn(&mut [u8]),
        aborts: &mut Aborts,
    ) -> Result<(), Failure> {
        loop {
            let found = retry(aborts, || self.connection.query_opt(&self.read, &[&signed(key)]))?;
            let before: Vec<u8> = found.ok_or_else(|| missing(key))?.try_get(0).map_err(failed)?;
            let mut after = before.clone();
            change(&mut after);
            let values: [&(dyn ToSql + Sync); 3] = [&signed(key), &after, &before];
            if retry(aborts, || self.connection.execute(&self.replace, &values))? == 1 {
                return Ok(());
            }
            // Another client was in between.
            aborts.count(AbortKind::ReadValidation);
        }
    }

    fn transfer(&mut self, transfer: Transfer, aborts: &mut Aborts) -> Result<(), Failure> {
        let Transfer { from, to, amount } = transfer;
        let row = retry(aborts, || {
            self.connection.query_one(&self.transfer, &[&signed(from), &signed(to), &amount])
        })?;
        if row.try_get(0).map_err(failed)? { Ok(()) } else { Err(missing(from)) }
    }
}
