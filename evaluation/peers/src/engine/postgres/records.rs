//! Records and accounts in PostgreSQL.
//!
//! A transfer is a call of a PL/pgSQL function, which locks both accounts in the order of their numbers, so that there are no deadlocks. What
//! a read-modify-write writes is made by the client: it is read by one statement, and another one writes it if the value is still the one
//! that was read.

use std::fmt;
use std::hint::black_box;

use ensilo_bench::driver::{AbortKind, Aborts, Failure};
use ensilo_bench::peer::{Account, Client, Peer, Setting, Transfer, VALUE_BYTES, missing};
use postgres::types::ToSql;
use postgres::{Client as Connection, Error, Statement};

use super::schema::{Schema, failed, retry};

const DEFINITION: &str = "\
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

/// Records and accounts in a schema of PostgreSQL.
#[derive(Debug)]
pub struct Postgres(Schema);

/// A connection with its prepared statements.
pub struct PostgresClient {
    connection: Connection,
    read: Statement,
    update: Statement,
    replace: Statement,
    transfer: Statement,
}

impl fmt::Debug for PostgresClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresClient").finish_non_exhaustive()
    }
}

/// PostgreSQL's integers are signed.
fn signed(key: u64) -> i64 {
    key as i64
}

impl Postgres {
    /// Makes the schema `ensilo_compare` with its tables, empty, in the database at `address`, which is a connection string as libpq's
    /// `host=/run/postgresql user=postgres dbname=test` or a URL.
    ///
    /// # Errors
    /// A failure of PostgreSQL; [`Failure::Refused`] if there is such a schema already, which is then left alone.
    pub fn open(address: &str, setting: Setting) -> Result<Self, Failure> {
        Schema::create(address, setting, DEFINITION).map(Self)
    }
}

impl Peer for Postgres {
    type Client<'a> = PostgresClient;

    fn client(&self) -> Result<PostgresClient, Failure> {
        self.0.connect().and_then(PostgresClient::prepare).map_err(failed)
    }

    fn load_records(&self, count: u64, fill: impl Fn(u64, &mut [u8])) -> Result<(), Failure> {
        self.0.copy("usertable", "id, value", |writer| {
            let mut value = [0; VALUE_BYTES];
            let mut keys = 0..count;
            keys.try_for_each(|key| {
                fill(key, &mut value);
                writer.write(&[&signed(key), &&value[..]])
            })
            .map_err(failed)
        })
    }

    fn load_accounts(&self, count: u64) -> Result<(), Failure> {
        self.0.copy("account", "id, balance, updates", |writer| {
            let mut keys = 0..count;
            keys.try_for_each(|key| writer.write(&[&signed(key), &Account::BALANCE_AT_FIRST, &0i64]))
                .map_err(failed)
        })
    }

    fn for_each_record(&self, mut visit: impl FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.0.for_each("usertable", "id, value", |row| {
            let id: i64 = row.try_get(0).map_err(failed)?;
            visit(id as u64, row.try_get(1).map_err(failed)?);
            Ok(())
        })
    }

    fn for_each_account(&self, mut visit: impl FnMut(Account)) -> Result<(), Failure> {
        self.0.for_each("account", "id, balance, updates", |row| {
            let column = |at| row.try_get::<_, i64>(at).map_err(failed);
            visit(Account { id: column(0)? as u64, balance: column(1)?, updates: column(2)? as u64 });
            Ok(())
        })
    }
}

impl PostgresClient {
    fn prepare(mut connection: Connection) -> Result<Self, Error> {
        let mut prepare = |statement| connection.prepare(statement);
        let (read, update) = (prepare(READ)?, prepare(UPDATE)?);
        let (replace, transfer) = (prepare(REPLACE)?, prepare(TRANSFER)?);
        Ok(Self { connection, read, update, replace, transfer })
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
