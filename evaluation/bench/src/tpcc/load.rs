//! The initial database: all rows of clause 4.3.3.1, made and inserted by several threads.
//!
//! The work is cut into tasks of some ten thousand rows. Each task has random numbers of its own, so that a seed makes the same
//! database however many threads load it. No two tasks touch the same row, so that nothing has to be locked where transactions are not
//! isolated by themselves.

use std::ops::RangeInclusive;

use ensilo::generic::{Database, Transaction};
use ensilo::{Decimal, Engine, Error, Result, Text, Timestamp};

use super::arrangement::Arrangement;
use super::options::{DISTRICTS, Scale, TpccOptions};
use super::random::{LAST_NAMES, NuRand, Strings};
use super::schema::{
    Customer, District, History, Item, Money, NewOrder, Order, OrderLine, Rate, Stock, Warehouse,
};
use crate::database;
use crate::driver::{Division, Failure, Interrupt, Reporter, View, parallel};
use crate::random::Random;

/// Rows that one transaction of the loader inserts, give or take an order's lines.
const BATCH_ROWS: u32 = 500;
/// Items or stocks of one task.
const TASK_ROWS: u32 = 10_000;
/// What a loaded customer has paid, and owes: clause 4.3.3.1.
pub(super) const FIRST_PAYMENT: Money = Money::from_int(10);

/// Fills `tables`, which are empty.
pub(super) fn load<A: Arrangement>(
    database: &Database<A::Engine>,
    tables: &A,
    options: &TpccOptions,
    nu_rand: NuRand,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<(), Failure> {
    let tasks: Vec<Task> = tasks(options.warehouses, options.scale).collect();
    let division = Division {
        workers: options.workers,
        tasks: tasks.len() as u64,
        stage: "loading",
        total: tasks.iter().map(|task| task.rows(options.scale)).sum(),
        unit: "rows",
    };
    parallel(division, view, interrupt, |task, reporter| {
        let mut transactions = ManyTransactions { database, reporter };
        Loader::new(tables, options, nu_rand, task).load(&tasks[task as usize], &mut transactions)
    })?;
    Ok(())
}

/// Returns the numbers of the tasks that fill the tables of the warehouses for which `has` says so; the items are of all.
pub(super) fn tasks_of(options: &TpccOptions, has: impl Fn(u16) -> bool) -> Vec<u64> {
    let is_own = |task: &Task| match task {
        Task::Items(_) => true,
        Task::Warehouse(warehouse) | Task::Stocks(warehouse, _) | Task::District(warehouse, _) => {
            has(*warehouse)
        }
    };
    let numbered = (0..).zip(tasks(options.warehouses, options.scale));
    numbered.filter(|(_, task)| is_own(task)).map(|(number, _)| number).collect()
}

/// Carries the task of this number out in a transaction.
pub(super) fn load_task<A: Arrangement>(
    tx: &mut Transaction<'_, A::Engine>,
    tables: &A,
    options: &TpccOptions,
    task: u64,
) -> Result<()> {
    let (for_load, _) = NuRand::of_seed(options.seed);
    let described = tasks(options.warehouses, options.scale).nth(task as usize);
    let described = described.ok_or_else(|| Error::rollback("there is no such task"))?;
    Loader::new(tables, options, for_load, task).load(&described, &mut OneTransaction(tx))
}

/// A part of the database.
#[derive(Debug)]
enum Task {
    Items(RangeInclusive<u32>),
    Warehouse(u16),
    Stocks(u16, RangeInclusive<u32>),
    District(u16, u8),
}

impl Task {
    /// Rows of the task as they are counted: a customer with their history is one, and an order with its lines.
    fn rows(&self, scale: Scale) -> u64 {
        match self {
            Self::Items(items) | Self::Stocks(_, items) => u64::from(items.end() - items.start() + 1),
            Self::Warehouse(_) => 1,
            Self::District(..) => 2 * u64::from(scale.customers) + 1,
        }
    }
}

fn tasks(warehouses: u16, scale: Scale) -> impl Iterator<Item = Task> {
    let of_warehouse = move |warehouse| {
        let stocks = ranges(scale.items, TASK_ROWS).map(move |items| Task::Stocks(warehouse, items));
        let districts = (1..=DISTRICTS).map(move |district| Task::District(warehouse, district));
        std::iter::once(Task::Warehouse(warehouse)).chain(stocks).chain(districts)
    };
    ranges(scale.items, TASK_ROWS).map(Task::Items).chain((1..=warehouses).flat_map(of_warehouse))
}

/// `1..=last` in pieces of at most `len`.
fn ranges(last: u32, len: u32) -> impl Iterator<Item = RangeInclusive<u32>> {
    (0..last.div_ceil(len)).map(move |piece| piece * len + 1..=last.min((piece + 1) * len))
}

/// In which transactions rows are inserted.
trait Transactions<E: Engine> {
    type Error: From<Error>;

    /// Calls `insert`, which inserts so many rows.
    fn run(
        &mut self,
        rows: u64,
        insert: &mut dyn FnMut(&mut Transaction<'_, E>) -> Result<()>,
    ) -> Result<(), Self::Error>;
}

/// In one for each call.
struct ManyTransactions<'a, E: Engine> {
    database: &'a Database<E>,
    reporter: &'a Reporter<'a>,
}

impl<E: Engine> Transactions<E> for ManyTransactions<'_, E> {
    type Error = Failure;

    fn run(
        &mut self,
        rows: u64,
        insert: &mut dyn FnMut(&mut Transaction<'_, E>) -> Result<()>,
    ) -> Result<(), Failure> {
        database::load_request(self.database).transact(|tx| insert(tx))?;
        self.reporter.advance(rows)?;
        Ok(())
    }
}

/// In this one.
struct OneTransaction<'a, 't, E: Engine>(&'a mut Transaction<'t, E>);

impl<E: Engine> Transactions<E> for OneTransaction<'_, '_, E> {
    type Error = Error;

    fn run(&mut self, _: u64, insert: &mut dyn FnMut(&mut Transaction<'_, E>) -> Result<()>) -> Result<()> {
        insert(self.0)
    }
}

/// What makes and inserts the rows of one task.
struct Loader<'a, A: Arrangement> {
    tables: &'a A,
    scale: Scale,
    nu_rand: NuRand,
    now: Timestamp,
    random: Random,
    strings: Strings,
}

impl<'a, A: Arrangement> Loader<'a, A> {
    fn new(tables: &'a A, options: &TpccOptions, nu_rand: NuRand, task: u64) -> Self {
        Loader {
            tables,
            scale: options.scale,
            nu_rand,
            now: Timestamp::now(),
            random: Random::for_stream(options.seed, task),
            strings: Strings::default(),
        }
    }

    fn load<T: Transactions<A::Engine>>(
        &mut self,
        task: &Task,
        transactions: &mut T,
    ) -> Result<(), T::Error> {
        match *task {
            Task::Items(ref items) => self.in_batches(transactions, items, BATCH_ROWS, Self::insert_item),
            Task::Warehouse(warehouse) => self.in_batches(transactions, &(1..=1), 1, |loader, tx, _| {
                loader.insert_warehouse(tx, warehouse)
            }),
            Task::Stocks(warehouse, ref items) => {
                self.in_batches(transactions, items, BATCH_ROWS, |loader, tx, item| {
                    loader.insert_stock(tx, warehouse, item)
                })
            }
            Task::District(warehouse, district) => self.load_district(transactions, warehouse, district),
        }
    }

    /// Calls `insert` for every number, `batch` numbers at a time.
    fn in_batches<T: Transactions<A::Engine>>(
        &mut self,
        transactions: &mut T,
        numbers: &RangeInclusive<u32>,
        batch: u32,
        mut insert: impl FnMut(&mut Self, &mut Transaction<'_, A::Engine>, u32) -> Result<()>,
    ) -> Result<(), T::Error> {
        let offset = numbers.start() - 1;
        for piece in ranges(numbers.end() - offset, batch) {
            let (first, last) = (piece.start() + offset, piece.end() + offset);
            transactions.run(u64::from(last - first + 1), &mut |tx| {
                (first..=last).try_for_each(|number| insert(self, tx, number))
            })?;
        }
        Ok(())
    }

    fn load_district<T: Transactions<A::Engine>>(
        &mut self,
        transactions: &mut T,
        warehouse: u16,
        district: u8,
    ) -> Result<(), T::Error> {
        self.in_batches(transactions, &(1..=1), 1, |loader, tx, _| {
            loader.insert_district(tx, warehouse, district)
        })?;
        let customers = u32::from(self.scale.customers);
        self.in_batches(transactions, &(1..=customers), BATCH_ROWS / 2, |loader, tx, number| {
            loader.insert_customer(tx, warehouse, district, number as u16)
        })?;
        // Clause 4.3.3.1: the customers of the orders are a random permutation of all.
        let mut permutation: Vec<u16> = (1..=self.scale.customers).collect();
        self.random.shuffle(&mut permutation);
        self.in_batches(transactions, &(1..=customers), BATCH_ROWS / 10, |loader, tx, order| {
            loader.insert_order(tx, warehouse, district, order, permutation[order as usize - 1])
        })
    }

    fn insert_item(&mut self, tx: &mut Transaction<'_, A::Engine>, item: u32) -> Result<()> {
        let row = Item {
            i_id: item,
            i_im_id: self.random.between(1, 10_000) as u32,
            i_name: self.letters(14, 24),
            i_price: self.money(100, 10_000),
            i_data: Text::truncated(self.strings.original(26, 50, &mut self.random)),
        };
        self.tables.of(1).items.insert(tx, &row).map(|_| ())
    }

    fn insert_stock(&mut self, tx: &mut Transaction<'_, A::Engine>, warehouse: u16, item: u32) -> Result<()> {
        let row = new_stock(warehouse, item, &mut self.random, &mut self.strings);
        self.tables.of(warehouse).stocks.insert(tx, &row).map(|_| ())
    }

    fn insert_warehouse(&mut self, tx: &mut Transaction<'_, A::Engine>, warehouse: u16) -> Result<()> {
        let paid = FIRST_PAYMENT.scaled() * i64::from(self.scale.customers) * i64::from(DISTRICTS);
        let row = Warehouse {
            w_id: warehouse,
            w_name: self.letters(6, 10),
            w_street_1: self.letters(10, 20),
            w_street_2: self.letters(10, 20),
            w_city: self.letters(10, 20),
            w_state: self.letters(2, 2),
            w_zip: self.zip(),
            w_tax: self.rate(2_000),
            w_ytd: Money::from_scaled(paid),
        };
        self.tables.of(warehouse).warehouses.insert(tx, &row).map(|_| ())
    }

    fn insert_district(
        &mut self,
        tx: &mut Transaction<'_, A::Engine>,
        warehouse: u16,
        district: u8,
    ) -> Result<()> {
        let paid = FIRST_PAYMENT.scaled() * i64::from(self.scale.customers);
        let row = District {
            d_w_id: warehouse,
            d_id: district,
            d_name: self.letters(6, 10),
            d_street_1: self.letters(10, 20),
            d_street_2: self.letters(10, 20),
            d_city: self.letters(10, 20),
            d_state: self.letters(2, 2),
            d_zip: self.zip(),
            d_tax: self.rate(2_000),
            d_ytd: Money::from_scaled(paid),
            d_next_o_id: u32::from(self.scale.customers) + 1,
        };
        self.tables.of(warehouse).districts.insert(tx, &row).map(|_| ())
    }

    /// A customer and the history of the one payment that was made.
    fn insert_customer(
        &mut self,
        tx: &mut Transaction<'_, A::Engine>,
        warehouse: u16,
        district: u8,
        customer: u16,
    ) -> Result<()> {
        let row = Customer {
            c_w_id: warehouse,
            c_d_id: district,
            c_id: customer,
            c_first: self.letters(8, 16),
            c_middle: Text::truncated("OE"),
            c_last: self.last_name(customer),
            c_street_1: self.letters(10, 20),
            c_street_2: self.letters(10, 20),
            c_city: self.letters(10, 20),
            c_state: self.letters(2, 2),
            c_zip: self.zip(),
            c_phone: Text::truncated(self.strings.digits(16, &mut self.random)),
            c_since: self.now,
            c_credit: Text::truncated(if self.random.percent(10) { "BC" } else { "GC" }),
            c_credit_lim: Money::from_int(50_000),
            c_discount: self.rate(5_000),
            c_balance: -FIRST_PAYMENT,
            c_ytd_payment: FIRST_PAYMENT,
            c_payment_cnt: 1,
            c_delivery_cnt: 0,
            c_data: self.letters(300, 500),
        };
        self.tables.of(warehouse).customers.insert(tx, &row)?;
        let row = History {
            h_c_id: customer,
            h_c_d_id: district,
            h_c_w_id: warehouse,
            h_d_id: district,
            h_w_id: warehouse,
            h_date: self.now,
            h_amount: FIRST_PAYMENT,
            h_data: self.letters(12, 24),
        };
        self.tables.of(warehouse).history.insert(tx, &row).map(|_| ())
    }

    /// An order with its lines; the last 900 of 3000 are new.
    fn insert_order(
        &mut self,
        tx: &mut Transaction<'_, A::Engine>,
        warehouse: u16,
        district: u8,
        order: u32,
        customer: u16,
    ) -> Result<()> {
        let delivered = order <= self.scale.delivered_orders();
        let row = Order {
            o_w_id: warehouse,
            o_d_id: district,
            o_id: order,
            o_c_id: customer,
            o_entry_d: self.now,
            o_carrier_id: delivered.then(|| self.random.between(1, 10) as u8),
            o_ol_cnt: self.random.between(5, 15) as u8,
            o_all_local: true,
        };
        self.tables.of(warehouse).orders.insert(tx, &row)?;
        for number in 1..=row.o_ol_cnt {
            self.insert_order_line(tx, &row, number, delivered)?;
        }
        if !delivered {
            let row = NewOrder { no_w_id: warehouse, no_d_id: district, no_o_id: order };
            self.tables.of(warehouse).new_orders.insert(tx, &row)?;
        }
        Ok(())
    }

    fn insert_order_line(
        &mut self,
        tx: &mut Transaction<'_, A::Engine>,
        order: &Order,
        number: u8,
        delivered: bool,
    ) -> Result<()> {
        let row = OrderLine {
            ol_w_id: order.o_w_id,
            ol_d_id: order.o_d_id,
            ol_o_id: order.o_id,
            ol_number: number,
            ol_i_id: self.random.between(1, u64::from(self.scale.items)) as u32,
            ol_supply_w_id: order.o_w_id,
            ol_delivery_d: delivered.then_some(order.o_entry_d),
            ol_quantity: 5,
            ol_amount: if delivered { Money::from_int(0) } else { self.money(1, 999_999) },
            ol_dist_info: self.letters(24, 24),
        };
        self.tables.of(order.o_w_id).order_lines.insert(tx, &row).map(|_| ())
    }

    fn letters<const N: usize>(&mut self, low: u64, high: u64) -> Text<N> {
        Text::truncated(self.strings.letters(low, high, &mut self.random))
    }

    fn zip(&mut self) -> Text<9> {
        Text::truncated(self.strings.zip(&mut self.random))
    }

    /// Clause 4.3.3.1: the first thousand customers of a district have each name once, the others a skewed choice.
    fn last_name(&mut self, customer: u16) -> Text<16> {
        let number = match u64::from(customer) - 1 {
            number if number < LAST_NAMES => number,
            _ => self.nu_rand.last_name(LAST_NAMES, &mut self.random),
        };
        Text::truncated(self.strings.last_name(number))
    }

    fn money(&mut self, low_cents: u64, high_cents: u64) -> Money {
        Decimal::from_scaled(self.random.between(low_cents, high_cents) as i64)
    }

    /// A rate from 0 to `max` hundredths of a percent.
    fn rate(&mut self, max: u64) -> Rate {
        Decimal::from_scaled(self.random.between(0, max) as i64)
    }
}

/// A stock as clause 4.3.3.1 has it loaded.
pub(crate) fn new_stock(warehouse: u16, item: u32, random: &mut Random, strings: &mut Strings) -> Stock {
    let quantity = random.between(10, 100) as i16;
    let mut dist_info = || Text::truncated(strings.letters(24, 24, random));
    Stock {
        s_w_id: warehouse,
        s_i_id: item,
        s_quantity: quantity,
        s_dist_01: dist_info(),
        s_dist_02: dist_info(),
        s_dist_03: dist_info(),
        s_dist_04: dist_info(),
        s_dist_05: dist_info(),
        s_dist_06: dist_info(),
        s_dist_07: dist_info(),
        s_dist_08: dist_info(),
        s_dist_09: dist_info(),
        s_dist_10: dist_info(),
        s_ytd: 0,
        s_order_cnt: 0,
        s_remote_cnt: 0,
        s_data: Text::truncated(strings.original(26, 50, random)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_cover_every_number_once() {
        for (last, len) in [(1, 10), (10, 10), (11, 10), (100_000, 10_000), (7, 3)] {
            let numbers: Vec<u32> = ranges(last, len).flatten().collect();
            assert!(numbers.into_iter().eq(1..=last), "{last} in pieces of {len}");
            assert!(ranges(last, len).all(|range| range.count() <= len as usize));
        }
    }

    #[test]
    fn tasks_cover_the_specifications_rows() {
        let rows: u64 = tasks(2, Scale::SPECIFICATION).map(|task| task.rows(Scale::SPECIFICATION)).sum();
        // Items; by warehouse itself, its stocks, ten districts with customers and orders.
        assert_eq!(rows, 100_000 + 2 * (1 + 100_000 + 10 * (1 + 2 * 3_000)));
    }
}
