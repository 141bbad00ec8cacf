//! One worker's stream of transactions.

use std::hint::black_box;

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Error, Result};

use super::options::{TRANSACTION_TYPES, WriteCount};
use super::table::StockTable;
use crate::driver::{Aborts, Failure, Outcome, Session};
use crate::random::Random;
use crate::tpcc::{Stock, missing};

/// Streams of the loader's tasks count from 0, those of workers down from the last.
const LAST_STREAM: u64 = u64::MAX;
/// Rows to write that are looked up at once.
const FOUND_AT_ONCE: usize = 16;
/// The place of the only type.
const READ_UPDATE: usize = 0;
const _: () = assert!(TRANSACTION_TYPES.len() == READ_UPDATE + 1);

/// A worker: its random numbers and the rows of its transaction.
#[derive(Debug)]
pub struct StockSession<'a, E: Engine> {
    table: &'a StockTable<E>,
    random: Random,
    write_count: WriteCount,
    /// What the transaction reads; it updates the first ones.
    keys: Vec<(u16, u32)>,
    updates: u64,
}

#[derive(Columns)]
#[columns(of = Stock)]
struct Quantity {
    s_quantity: i16,
}

/// What an update changes: it counts.
#[derive(Columns)]
#[columns(of = Stock)]
pub(super) struct OrderCount {
    pub(super) s_order_cnt: u32,
}

impl<'a, E: Engine> StockSession<'a, E> {
    pub(super) fn new(table: &'a StockTable<E>, worker: usize) -> Self {
        Self {
            table,
            random: Random::for_stream(table.options.seed, LAST_STREAM - worker as u64),
            write_count: table.options.writes(),
            keys: Vec::with_capacity(usize::from(table.options.reads)),
            updates: 0,
        }
    }

    fn draw_keys(&mut self) {
        let Self { table, random, keys, .. } = self;
        let (warehouses, items) = (u64::from(table.options.warehouses), u64::from(table.options.items));
        keys.clear();
        keys.extend((0..table.options.reads).map(|_| {
            let warehouse = random.between(1, warehouses) as u16;
            (warehouse, random.between(1, items) as u32)
        }));
    }
}

impl<E: Engine> Session for StockSession<'_, E> {
    fn run_one(&mut self, _now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        self.draw_keys();
        let writes = self.write_count.draw(&mut self.random);
        let Self { table, keys, updates, .. } = self;
        let request = table.database.request().on_abort(|abort| aborts.count(abort.reason().into()));
        match request.transact_with_epoch(|tx| read_and_update(table, tx, keys, writes)) {
            Ok(((), epoch)) => {
                *updates += writes as u64;
                // At most as many as there are reads.
                let effects = writes as u16;
                Ok(Outcome { transaction: READ_UPDATE, committed: true, epoch, effects })
            }
            // Too many conflicts, each counted when it happened.
            Err(Error::Aborted(_)) => Ok(Outcome::not_committed(READ_UPDATE)),
            Err(error) => Err(error.into()),
        }
    }

    fn finish(self) {
        self.table.add_updates(self.updates);
    }
}

/// Reads all rows, and then counts in the first `writes` of them.
fn read_and_update<'t, E: Engine>(
    table: &StockTable<E>,
    tx: &mut Transaction<'t, E>,
    keys: &[(u16, u32)],
    writes: usize,
) -> Result<()> {
    table.stocks.get_columns_many::<Quantity>(tx, keys, |_, stock| {
        black_box(stock.map(|stock| stock.s_quantity));
    })?;
    for keys in keys[..writes].chunks(FOUND_AT_ONCE) {
        let mut stocks = [const { None }; FOUND_AT_ONCE];
        table.stocks.find_many(tx, keys, |at, found| stocks[at] = found)?;
        for found in &stocks[..keys.len()] {
            let found = found.as_ref().ok_or_else(missing)?;
            found.update(tx, |stock: &mut OrderCount| stock.s_order_cnt += 1)?;
        }
    }
    Ok(())
}
