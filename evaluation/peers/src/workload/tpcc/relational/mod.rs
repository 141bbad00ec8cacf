//! TPC-C on PostgreSQL, as its user would write it: tables with columns, and a PL/pgSQL function for each transaction.
//!
//! Every transaction is one call of a prepared statement, `SERIALIZABLE`. Rows are loaded by `COPY`; for the check they are brought back.

mod client;
mod lines;
mod rows;
mod values;

use std::fmt;

use ensilo::{Database, Silo, Timestamp};
use ensilo_bench::driver::{AbortKind, Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::tpcc::{Entered, QueueHeads, TRANSACTION_TYPES, Terminal, Tpcc, TpccOptions};

use self::client::RelationalClient;
use super::copies::LoadedRows;
use super::effects::{Counts, Effects};
use crate::engine::{End, Schema};
use crate::peer::Setting;
use crate::workload::session::Connected;

const DEFINITION: &str = concat!(include_str!("tables.sql"), include_str!("functions.sql"));

/// A loaded TPC-C database in a schema of PostgreSQL.
#[derive(Debug)]
pub struct RelationalTpcc {
    schema: Schema,
    options: TpccOptions,
    effects: Effects,
}

/// A worker's stream of transactions.
pub struct RelationalTpccSession<'a> {
    shared: &'a RelationalTpcc,
    connected: Connected<RelationalClient>,
    terminal: Terminal,
    queue_heads: QueueHeads,
    effects: Counts,
}

impl fmt::Debug for RelationalTpccSession<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelationalTpccSession").field("effects", &self.effects).finish_non_exhaustive()
    }
}

impl RelationalTpcc {
    /// Makes the schema `ensilo_compare` in the database at `address`, as [`Postgres::open`](crate::engine::Postgres::open) does, and puts
    /// `rows` there, which were made for these options.
    ///
    /// # Errors
    /// A failure of PostgreSQL; [`Failure::Refused`] if there is such a schema already, which is then left alone.
    pub fn load(
        address: &str,
        setting: Setting,
        options: TpccOptions,
        rows: &LoadedRows,
    ) -> Result<Self, Failure> {
        let schema = Schema::create(address, setting, DEFINITION)?;
        rows::load(&schema, rows)?;
        Ok(Self { schema, options, effects: Effects::default() })
    }

    /// The rows that are there now, while there are no sessions.
    ///
    /// # Errors
    /// A failure of PostgreSQL, or [`Failure::Broken`] if it has what is none of Ensilo's values.
    pub fn rows(&self) -> Result<LoadedRows, Failure> {
        rows::bring_back(&self.schema)
    }

    /// The rows in a database of Ensilo.
    fn brought_back(&self) -> Result<Tpcc, Failure> {
        let tpcc = Tpcc::create(self.options.clone(), Database::in_memory()?)?;
        tpcc.insert_rows(&self.rows()?)?;
        Ok(tpcc)
    }
}

impl Workload for RelationalTpcc {
    type Engine = Silo;
    type Session<'a> = RelationalTpccSession<'a>;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> RelationalTpccSession<'_> {
        RelationalTpccSession {
            shared: self,
            connected: Connected::new(RelationalClient::connect(&self.schema)),
            terminal: Terminal::new(&self.options, worker),
            queue_heads: QueueHeads::new(self.options.warehouses),
            effects: [0; _],
        }
    }

    /// None: what is to be stored is when a transaction ends.
    fn database(&self) -> Option<&Database> {
        None
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        let tpcc = self.brought_back()?;
        let mut checks = tpcc.check(view, interrupt)?;
        checks.push(self.effects.check(&tpcc)?);
        Ok(checks)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.brought_back()?.count_effects()
    }
}

impl Session for RelationalTpccSession<'_> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let entered = self.terminal.enter(Timestamp::from_micros(now_unix_us));
        let (transaction, client) = (entered.transaction_type(), self.connected.client()?);
        let effects = match &entered {
            Entered::NewOrder(input) => {
                if client.new_order(input, aborts)? == End::RollBack {
                    aborts.count(AbortKind::Rollback);
                    return Ok(Outcome::not_committed(transaction));
                }
                1
            }
            Entered::Payment(input) => {
                client.payment(input, aborts)?;
                1
            }
            Entered::OrderStatus(input) => {
                client.order_status(input, aborts)?;
                0
            }
            Entered::Delivery(input) => {
                let delivered = client.delivery(input, &self.queue_heads, aborts)?;
                self.queue_heads.note(input, &delivered);
                delivered.iter().flatten().count() as u16
            }
            Entered::StockLevel(input) => {
                client.stock_level(input, aborts)?;
                0
            }
        };
        self.effects[transaction] += u64::from(effects);
        Ok(Outcome { transaction, committed: true, epoch: 0, effects })
    }

    fn finish(self) {
        self.shared.effects.add(self.effects);
    }
}
