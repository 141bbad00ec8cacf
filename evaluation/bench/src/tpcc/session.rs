//! One worker's stream of TPC-C transactions.

use std::hint::black_box;

use ensilo::{Abort, Error, Result, Timestamp};

use super::arrangement::Arrangement;
use super::delivery::{DeliveryInput, QueueHeads};
use super::loaded::TpccOf;
use super::new_order::{NewOrderInput, UnusedItem};
use super::options::ReadOnly;
use super::order_status::OrderStatusInput;
use super::payment::PaymentInput;
use super::stock_level::{StockLevelInput, StockLevelScratch};
use super::terminal::{Entered, Terminal};
use crate::driver::{AbortKind, Aborts, Failure, Outcome, Session};

/// A worker: its terminals and its scratch memory.
#[derive(Debug)]
pub struct TpccSession<'a, A: Arrangement> {
    tpcc: &'a TpccOf<A>,
    terminal: Terminal,
    /// Customers of one name.
    numbers: Vec<u16>,
    queue_heads: QueueHeads,
    stock_level: StockLevelScratch,
}

/// What a committed transaction waits for and has done.
struct Done {
    epoch: u64,
    effects: u16,
}

/// A transaction that read the past, which is stored, and did nothing.
const PAST_READ: Done = Done { epoch: 0, effects: 0 };

impl<'a, A: Arrangement> TpccSession<'a, A> {
    pub(crate) fn new(tpcc: &'a TpccOf<A>, worker: usize) -> Self {
        let options = &tpcc.options;
        Self {
            tpcc,
            terminal: Terminal::new(options, worker),
            numbers: Vec::new(),
            queue_heads: QueueHeads::new(options.warehouses),
            stock_level: StockLevelScratch::new(options.scale.items),
        }
    }

    fn new_order(&mut self, mut input: NewOrderInput, aborts: &mut Aborts) -> Result<Done> {
        let TpccOf { database, tables, .. } = self.tpcc;
        input.number(tables);
        let _locks = tables.lock(input.warehouses());
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (answer, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx))?;
        black_box(answer);
        Ok(Done { epoch, effects: 1 })
    }

    fn payment(&mut self, input: &PaymentInput, aborts: &mut Aborts) -> Result<Done> {
        let TpccOf { database, tables, .. } = self.tpcc;
        let _locks = tables.lock(input.warehouses());
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (answer, epoch) =
            request.transact_with_epoch(|tx| input.run(tables, tx, &mut self.numbers, None))?;
        black_box(answer);
        Ok(Done { epoch, effects: 1 })
    }

    fn order_status(&mut self, input: &OrderStatusInput, aborts: &mut Aborts) -> Result<Done> {
        let TpccOf { database, tables, options, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let numbers = &mut self.numbers;
        let mut count = |abort: &Abort| aborts.count(abort.reason().into());
        match options.read_only {
            ReadOnly::Snapshot => {
                let answer = database.read_stale(|tx| input.run(tables, tx, numbers));
                black_box(answer.inspect_err(|error| error.as_abort().into_iter().for_each(count))?);
                Ok(PAST_READ)
            }
            ReadOnly::Ordinary => {
                let request = database.request().on_abort(&mut count);
                let (answer, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx, numbers))?;
                black_box(answer);
                Ok(Done { epoch, effects: 0 })
            }
        }
    }

    fn delivery(&mut self, input: &DeliveryInput, aborts: &mut Aborts) -> Result<Done> {
        let TpccOf { database, tables, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (delivered, epoch) =
            request.transact_with_epoch(|tx| input.run(tables, tx, &self.queue_heads))?;
        self.queue_heads.note(input, &delivered);
        Ok(Done { epoch, effects: delivered.iter().flatten().count() as u16 })
    }

    fn stock_level(&mut self, input: &StockLevelInput, aborts: &mut Aborts) -> Result<Done> {
        let TpccOf { database, tables, options, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let scratch = &mut self.stock_level;
        let mut count = |abort: &Abort| aborts.count(abort.reason().into());
        match options.read_only {
            ReadOnly::Snapshot => {
                let answer = database.read_stale(|tx| input.run(tables, tx, scratch));
                black_box(answer.inspect_err(|error| error.as_abort().into_iter().for_each(count))?);
                Ok(PAST_READ)
            }
            ReadOnly::Ordinary => {
                let request = database.request().on_abort(&mut count);
                let (answer, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx, scratch))?;
                black_box(answer);
                Ok(Done { epoch, effects: 0 })
            }
        }
    }
}

impl<A: Arrangement> Session for TpccSession<'_, A> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let entered = self.terminal.enter(Timestamp::from_micros(now_unix_us));
        let transaction = entered.transaction_type();
        let result = match entered {
            Entered::NewOrder(input) => self.new_order(input, aborts),
            Entered::Payment(input) => self.payment(&input, aborts),
            Entered::OrderStatus(input) => self.order_status(&input, aborts),
            Entered::Delivery(input) => self.delivery(&input, aborts),
            Entered::StockLevel(input) => self.stock_level(&input, aborts),
        };
        match result {
            Ok(Done { epoch, effects }) => Ok(Outcome { transaction, committed: true, epoch, effects }),
            Err(error) => not_committed(error, aborts).map(|()| Outcome::not_committed(transaction)),
        }
    }

    fn finish(self) {}
}

/// What a request that did not commit means: a planned rollback or too many conflicts are no failures.
#[cold]
fn not_committed(error: Error, aborts: &mut Aborts) -> Result<(), Failure> {
    if error.user_error::<UnusedItem>().is_some() {
        aborts.count(AbortKind::Rollback);
        return Ok(());
    }
    match error {
        // Counted when it happened.
        Error::Aborted(_) => Ok(()),
        error => Err(error.into()),
    }
}
