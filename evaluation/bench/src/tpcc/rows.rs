//! The rows of a database, out and in again: how another database gets what the loader makes, and how what it made of that is checked.

use ensilo::{Database, Result, Row, Table, Transaction};

use super::loaded::Tpcc;
use super::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse};
use super::tables::Tables;
use crate::driver::Failure;

/// Rows that one transaction inserts.
const BATCH_ROWS: usize = 500;

/// A place where rows are: kept, or shown.
pub trait RowSource {
    /// Shows every row of the table of the rows `T`, in any order.
    ///
    /// # Errors
    /// A failure of the place.
    fn for_each_row<T: Row>(&self, visit: &mut dyn FnMut(T) -> Result<(), Failure>) -> Result<(), Failure>;
}

/// What is done with every row of a database.
pub trait RowTarget {
    /// Takes a row with its key. Rows come by table, and in the order of their keys.
    ///
    /// # Errors
    /// A failure of the place where rows are put.
    fn take<T: Row>(&mut self, key: &T::Key, row: &T) -> Result<(), Failure>;
}

impl Tpcc {
    /// Gives every row to `target`, while there are no sessions.
    ///
    /// # Errors
    /// A failure of the database, or of `target`.
    pub fn copy_rows(&self, target: &mut impl RowTarget) -> Result<(), Failure> {
        let Tables {
            warehouses,
            districts,
            customers,
            history,
            new_orders,
            orders,
            order_lines,
            items,
            stocks,
            ..
        } = &self.tables.0[0];
        let database = &self.database;
        copy(database, items, target)?;
        copy(database, warehouses, target)?;
        copy(database, stocks, target)?;
        copy(database, districts, target)?;
        copy(database, customers, target)?;
        copy(database, history, target)?;
        copy(database, orders, target)?;
        copy(database, order_lines, target)?;
        copy(database, new_orders, target)
    }

    /// Inserts every row of `source` into the tables, which are empty.
    ///
    /// # Errors
    /// A failure of the database, or of `source`.
    pub fn insert_rows(&self, source: &impl RowSource) -> Result<(), Failure> {
        let tables = &self.tables.0[0];
        insert::<Item>(&self.database, &tables.items, source)?;
        insert::<Warehouse>(&self.database, &tables.warehouses, source)?;
        insert::<Stock>(&self.database, &tables.stocks, source)?;
        insert::<District>(&self.database, &tables.districts, source)?;
        insert::<Customer>(&self.database, &tables.customers, source)?;
        insert::<History>(&self.database, &tables.history, source)?;
        insert::<Order>(&self.database, &tables.orders, source)?;
        insert::<OrderLine>(&self.database, &tables.order_lines, source)?;
        insert::<NewOrder>(&self.database, &tables.new_orders, source)
    }
}

fn copy<T: Row>(database: &Database, table: &Table<T>, target: &mut impl RowTarget) -> Result<(), Failure> {
    let rows = database.transact(|tx| table.scan().collect(tx))?;
    rows.iter().try_for_each(|(key, row)| target.take(key, row))
}

fn insert<T: Row>(database: &Database, table: &Table<T>, source: &impl RowSource) -> Result<(), Failure> {
    let mut batch: Vec<T> = Vec::with_capacity(BATCH_ROWS);
    let insert = |batch: &mut Vec<T>| {
        let insert_all =
            |tx: &mut Transaction<'_>| batch.iter().try_for_each(|row| table.insert(tx, row).map(|_| ()));
        let done = database.transact(insert_all);
        batch.clear();
        done
    };
    source.for_each_row(&mut |row| {
        batch.push(row);
        if batch.len() == BATCH_ROWS {
            insert(&mut batch)?;
        }
        Ok(())
    })?;
    Ok(insert(&mut batch)?)
}
