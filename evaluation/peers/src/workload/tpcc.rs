//! TPC-C on databases that know keys and bytes, and on one that knows SQL ([`RelationalTpcc`]): rows and input of `ensilo-bench`, and
//! after the run its twelve consistency conditions.
//!
//! The loader there makes the rows. For the check they are brought back into an empty database of Ensilo, where the conditions are held
//! against them.

mod client;
mod copies;
mod effects;
mod ordered;
mod own;
mod relational;
mod rows;
mod transactions;

use ensilo::{Database, Silo, Timestamp};
use ensilo_bench::driver::{AbortKind, Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::peer::Connected;
use ensilo_bench::tpcc::{Entered, QueueHeads, TRANSACTION_TYPES, Terminal, Tpcc, TpccOptions};

use self::effects::{Counts, Effects};
use crate::engine::End;

pub use self::client::{TpccClient, TpccPeer};
pub use self::copies::LoadedRows;
pub use self::ordered::{OrderedTpcc, OrderedTpccClient};
pub use self::own::{OwnTpcc, OwnTpccSession};
pub use self::relational::{RelationalClient, RelationalTpcc};

/// TPC-C on a loaded database.
#[derive(Debug)]
pub struct PeerTpcc<P> {
    peer: P,
    options: TpccOptions,
    effects: Effects,
}

/// A worker's stream of transactions.
#[derive(Debug)]
pub struct PeerTpccSession<'a, P: TpccPeer + 'a> {
    shared: &'a PeerTpcc<P>,
    connected: Connected<P::Client<'a>>,
    terminal: Terminal,
    queue_heads: QueueHeads,
    effects: Counts,
}

impl<P: TpccPeer> PeerTpcc<P> {
    /// The workload on a database that has the rows of these options.
    pub fn new(peer: P, options: TpccOptions) -> Self {
        Self { peer, options, effects: Effects::default() }
    }

    /// The database.
    pub fn peer(&self) -> &P {
        &self.peer
    }

    /// The rows in a database of Ensilo.
    fn brought_back(&self) -> Result<Tpcc, Failure> {
        let tpcc = Tpcc::create(self.options.clone(), Database::in_memory()?)?;
        self.peer.bring_back(&tpcc)?;
        Ok(tpcc)
    }
}

impl<P: TpccPeer> Workload for PeerTpcc<P> {
    type Engine = Silo;
    type Session<'a>
        = PeerTpccSession<'a, P>
    where
        P: 'a;

    fn transaction_types(&self) -> &'static [&'static str] {
        &TRANSACTION_TYPES
    }

    fn session(&self, worker: usize) -> PeerTpccSession<'_, P> {
        PeerTpccSession {
            shared: self,
            connected: Connected::new(self.peer.client(worker, &self.options)),
            terminal: Terminal::new(&self.options, worker),
            queue_heads: QueueHeads::new(self.options.warehouses),
            effects: [0; _],
        }
    }

    fn check(&self, view: &mut View, interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        let tpcc = self.brought_back()?;
        let mut checks = tpcc.check(view, interrupt)?;
        checks.extend(self.peer.check_indexes()?);
        checks.push(self.effects.check(&tpcc)?);
        Ok(checks)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        self.brought_back()?.count_effects()
    }
}

impl<P: TpccPeer> Session for PeerTpccSession<'_, P> {
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
            Entered::Payment(input) => client.payment(input, aborts).map(|()| 1)?,
            Entered::OrderStatus(input) => client.order_status(input, aborts).map(|()| 0)?,
            Entered::Delivery(input) => {
                let delivered = client.delivery(input, &self.queue_heads, aborts)?;
                self.queue_heads.note(input, &delivered);
                delivered.iter().flatten().count() as u16
            }
            Entered::StockLevel(input) => client.stock_level(input, aborts).map(|()| 0)?,
        };
        self.effects[transaction] += u64::from(effects);
        Ok(Outcome { transaction, committed: true, epoch: 0, effects })
    }

    fn finish(self) {
        self.shared.effects.add(self.effects);
    }
}
