//! One worker's stream of TPC-C transactions.

use std::hint::black_box;

use ensilo::{Abort, Error, Result, Timestamp};

use super::arrangement::Arrangement;
use super::delivery::{DeliveryInput, QueueHeads};
use super::effects::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL};
use super::input::{Homes, Inputs};
use super::new_order::{NewOrderInput, UnusedItem};
use super::options::ReadOnly;
use super::order_status::OrderStatusInput;
use super::payment::PaymentInput;
use super::random::{NuRand, Strings};
use super::stock_level::{StockLevelInput, StockLevelScratch};
use super::workload::TpccOf;
use crate::driver::{AbortKind, Aborts, Failure, Outcome, Session};
use crate::random::Random;

/// A worker: its random numbers, its warehouses and its scratch memory.
#[derive(Debug)]
pub struct TpccSession<'a, A: Arrangement> {
    tpcc: &'a TpccOf<A>,
    random: Random,
    strings: Strings,
    nu_rand: NuRand,
    homes: Homes,
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
    pub(super) fn new(tpcc: &'a TpccOf<A>, worker: usize) -> Self {
        let options = &tpcc.options;
        Self {
            tpcc,
            // Streams of the loader's tasks count from 0, those of workers down from the last.
            random: Random::for_stream(options.seed, u64::MAX - worker as u64),
            strings: Strings::default(),
            nu_rand: tpcc.nu_rand,
            homes: Homes::new(options.warehouse_choice, options.warehouses, worker, options.workers),
            numbers: Vec::new(),
            queue_heads: QueueHeads::new(options.warehouses),
            stock_level: StockLevelScratch::new(options.scale.items),
        }
    }

    fn inputs(&mut self) -> Inputs<'_> {
        Inputs {
            random: &mut self.random,
            strings: &mut self.strings,
            nu_rand: &self.nu_rand,
            scale: self.tpcc.options.scale,
            warehouses: self.tpcc.options.warehouses,
            remote_items: self.tpcc.options.remote_items,
        }
    }

    fn new_order(&mut self, warehouse: u16, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let mut input = NewOrderInput::draw(&mut self.inputs(), warehouse, now);
        let TpccOf { database, tables, .. } = self.tpcc;
        input.number(tables);
        let _locks = tables.lock(input.warehouses());
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (answer, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx))?;
        black_box(answer);
        Ok(Done { epoch, effects: 1 })
    }

    fn payment(&mut self, warehouse: u16, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let input = PaymentInput::draw(&mut self.inputs(), warehouse, now);
        let TpccOf { database, tables, .. } = self.tpcc;
        let _locks = tables.lock(input.warehouses());
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (answer, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx, &mut self.numbers))?;
        black_box(answer);
        Ok(Done { epoch, effects: 1 })
    }

    fn order_status(&mut self, warehouse: u16, aborts: &mut Aborts) -> Result<Done> {
        let input = OrderStatusInput::draw(&mut self.inputs(), warehouse);
        let TpccOf { database, tables, options, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let numbers = &mut self.numbers;
        let mut count = |abort: &Abort| aborts.count(abort.reason().into());
        match options.read_only {
            ReadOnly::Snapshot => {
                let answer = database.snapshot(|tx| input.run(tables, tx, numbers));
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

    fn delivery(&mut self, warehouse: u16, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let input = DeliveryInput::draw(&mut self.inputs(), warehouse, now);
        let TpccOf { database, tables, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let request = database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        let (delivered, epoch) =
            request.transact_with_epoch(|tx| input.run(tables, tx, &self.queue_heads))?;
        self.queue_heads.note(&input, &delivered);
        Ok(Done { epoch, effects: delivered.iter().flatten().count() as u16 })
    }

    fn stock_level(&mut self, warehouse: u16, aborts: &mut Aborts) -> Result<Done> {
        let input = StockLevelInput::draw(&mut self.inputs(), warehouse);
        let TpccOf { database, tables, options, .. } = self.tpcc;
        let _locks = tables.lock(std::iter::once(input.warehouse()));
        let scratch = &mut self.stock_level;
        let mut count = |abort: &Abort| aborts.count(abort.reason().into());
        match options.read_only {
            ReadOnly::Snapshot => {
                let answer = database.snapshot(|tx| input.run(tables, tx, scratch));
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
        let transaction = self.tpcc.options.mix.draw(&mut self.random);
        let warehouse = self.homes.draw(&mut self.random);
        let now = Timestamp::from_micros(now_unix_us);
        let result = match transaction {
            NEW_ORDER => self.new_order(warehouse, now, aborts),
            PAYMENT => self.payment(warehouse, now, aborts),
            ORDER_STATUS => self.order_status(warehouse, aborts),
            DELIVERY => self.delivery(warehouse, now, aborts),
            STOCK_LEVEL => self.stock_level(warehouse, aborts),
            _ => unreachable!("the mix has five types"),
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
