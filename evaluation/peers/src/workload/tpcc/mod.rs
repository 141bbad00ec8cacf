//! TPC-C on databases that know keys and bytes, and on one that knows SQL ([`RelationalTpcc`]): rows and input of `ensilo-bench`, and
//! after the run its twelve consistency conditions.
//!
//! The loader there makes the rows. For the check they are brought back into an empty database of Ensilo, where the conditions are held
//! against them.

mod copies;
mod effects;
mod own;
mod relational;
mod rows;
mod transactions;

use std::fmt;

use ensilo::{Database, RowId, Silo, Timestamp};
use ensilo_bench::driver::{AbortKind, Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::tpcc::{
    Customer, DeliveryInput, DeliveryOutput, Entered, Order, QueueHeads, StockLevelScratch,
    TRANSACTION_TYPES, Terminal, Tpcc, TpccOptions,
};

use self::copies::Kept;
use self::effects::{Counts, Effects};
use self::rows::Rows;
use super::session::Connected;
use crate::engine::{End, OrderedClient, OrderedStore, OrderedWrite};

pub use self::copies::LoadedRows;
pub use self::own::{OwnTpcc, OwnTpccSession};
pub use self::relational::{RelationalTpcc, RelationalTpccSession};

/// A loaded TPC-C database.
#[derive(Debug)]
pub struct OrderedTpcc<S> {
    store: S,
    options: TpccOptions,
    effects: Effects,
}

/// A worker's stream of transactions.
pub struct OrderedTpccSession<'a, S: OrderedStore + 'a> {
    shared: &'a OrderedTpcc<S>,
    connected: Connected<S::Client<'a>>,
    terminal: Terminal,
    queue_heads: QueueHeads,
    stock_level: StockLevelScratch,
    /// The key of the next row in the history.
    next_history: u64,
    effects: Counts,
}

/// Keys in the history that each session has for its own.
const HISTORY_KEYS: u64 = 1 << 40;

impl<S: OrderedStore> fmt::Debug for OrderedTpccSession<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OrderedTpccSession").field("effects", &self.effects).finish_non_exhaustive()
    }
}

impl<S: OrderedStore> OrderedTpcc<S> {
    /// Puts `rows`, which were made for these options, into a database whose tables are empty.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn load(store: S, options: TpccOptions, rows: &LoadedRows) -> Result<Self, Failure> {
        rows.load_into(&store)?;
        Ok(Self { store, options, effects: Effects::default() })
    }

    /// The database.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// The rows in a database of Ensilo.
    fn brought_back(&self) -> Result<Tpcc, Failure> {
        let tpcc = Tpcc::create(self.options.clone(), Database::in_memory()?)?;
        tpcc.insert_rows(&Kept(&self.store))?;
        Ok(tpcc)
    }

    /// That the entries of both indexes are those of the rows.
    fn check_indexes(&self) -> Result<Check, Failure> {
        let kept = Kept(&self.store);
        let mut check = Check::new("index_entries", "indexes have the entries of the rows, and no others");
        let indexes =
            [("customer", kept.index_entries::<Customer>()?), ("order", kept.index_entries::<Order>()?)];
        for (table, index) in indexes {
            check.expect(index.rows == index.entries && index.wrong == 0, || {
                format!("{table}: {} rows, {} entries, {} wrong", index.rows, index.entries, index.wrong)
            });
        }
        Ok(check)
    }
}

impl<S: OrderedStore> Workload for OrderedTpcc<S> {
    type Engine = Silo;
    type Session<'a>
        = OrderedTpccSession<'a, S>
    where
        S: 'a;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> OrderedTpccSession<'_, S> {
        OrderedTpccSession {
            shared: self,
            connected: Connected::new(self.store.client()),
            terminal: Terminal::new(&self.options, worker),
            queue_heads: QueueHeads::new(self.options.warehouses),
            stock_level: StockLevelScratch::new(self.options.scale.items),
            next_history: (worker as u64 + 1) * HISTORY_KEYS,
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
        checks.push(self.check_indexes()?);
        checks.push(self.effects.check(&tpcc)?);
        Ok(checks)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.brought_back()?.count_effects()
    }
}

impl<S: OrderedStore> OrderedTpccSession<'_, S> {
    /// Runs a transaction that writes.
    fn write(
        &mut self,
        aborts: &mut Aborts,
        body: impl Fn(&mut Rows<'_, dyn OrderedWrite + '_>) -> Result<End, Failure>,
    ) -> Result<End, Failure> {
        self.connected.client()?.write(aborts, &mut |transaction| body(&mut Rows::of(transaction)))
    }

    fn deliver(&mut self, input: &DeliveryInput, aborts: &mut Aborts) -> Result<DeliveryOutput, Failure> {
        let mut delivered = DeliveryOutput::default();
        let heads = &self.queue_heads;
        self.connected.client()?.write(aborts, &mut |transaction| {
            delivered = transactions::delivery(input, heads, &mut Rows::of(transaction))?;
            Ok(End::Commit)
        })?;
        self.queue_heads.note(input, &delivered);
        Ok(delivered)
    }
}

impl<S: OrderedStore> Session for OrderedTpccSession<'_, S> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let entered = self.terminal.enter(Timestamp::from_micros(now_unix_us));
        let transaction = entered.transaction_type();
        let effects = match &entered {
            Entered::NewOrder(input) => {
                if self.write(aborts, |rows| transactions::new_order(input, rows))? == End::RollBack {
                    aborts.count(AbortKind::Rollback);
                    return Ok(Outcome::not_committed(transaction));
                }
                1
            }
            Entered::Payment(input) => {
                let history = RowId(self.next_history);
                self.next_history += 1;
                self.write(aborts, |rows| transactions::payment(input, history, rows))?;
                1
            }
            Entered::OrderStatus(input) => {
                let client = self.connected.client()?;
                client
                    .read(&mut |transaction| transactions::order_status(input, &mut Rows::of(transaction)))?;
                0
            }
            Entered::Delivery(input) => self.deliver(input, aborts)?.iter().flatten().count() as u16,
            Entered::StockLevel(input) => {
                let (client, scratch) = (self.connected.client()?, &mut self.stock_level);
                client.read(&mut |transaction| {
                    transactions::stock_level(input, scratch, &mut Rows::of(transaction))
                })?;
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
