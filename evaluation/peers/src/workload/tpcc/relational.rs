//! TPC-C on PostgreSQL, as its user would write it: tables with columns, and a PL/pgSQL function for each transaction.
//!
//! Every transaction is one call of a prepared statement, `SERIALIZABLE`. Rows are loaded by `COPY`; for the check they are brought back.

mod client;
mod lines;
mod rows;
mod values;

use ensilo_bench::driver::Failure;
use ensilo_bench::peer::Setting;
use ensilo_bench::tpcc::{Tpcc, TpccOptions};

pub use self::client::RelationalClient;
use super::client::TpccPeer;
use super::copies::LoadedRows;
use crate::engine::Schema;

const DEFINITION: &str =
    concat!(include_str!("relational/tables.sql"), include_str!("relational/functions.sql"));

/// The tables of TPC-C in a schema of PostgreSQL.
#[derive(Debug)]
pub struct RelationalTpcc(Schema);

impl RelationalTpcc {
    /// Makes the schema `ensilo_compare` in the database at `address`, as [`Postgres::open`](crate::engine::Postgres::open) does, and puts
    /// `rows` there.
    ///
    /// # Errors
    /// A failure of PostgreSQL; [`Failure::Refused`] if there is such a schema already, which is then left alone.
    pub fn load(address: &str, setting: Setting, rows: &LoadedRows) -> Result<Self, Failure> {
        let schema = Schema::create(address, setting, DEFINITION)?;
        rows::load(&schema, rows)?;
        Ok(Self(schema))
    }

    /// The rows that are there now, while there are no clients.
    ///
    /// # Errors
    /// A failure of PostgreSQL, or [`Failure::Broken`] if it has what is none of Ensilo's values.
    pub fn rows(&self) -> Result<LoadedRows, Failure> {
        rows::bring_back(&self.0)
    }
}

impl TpccPeer for RelationalTpcc {
    type Client<'a> = RelationalClient;

    fn client(&self, _worker: usize, _options: &TpccOptions) -> Result<RelationalClient, Failure> {
        RelationalClient::connect(&self.0)
    }

    fn bring_back(&self, tpcc: &Tpcc) -> Result<(), Failure> {
        tpcc.insert_rows(&self.rows()?)
    }
}
