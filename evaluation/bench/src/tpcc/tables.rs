//! The handles to the nine tables and the two secondary indexes.

use ensilo::{Database, Engine, Index, Result, Row, Table, Text};

use super::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse};

/// Columns of the index of customers by name: warehouse, district, last name, first name.
pub(super) type CustomerName = (u16, u8, Text<16>, Text<16>);
/// Columns of the index of orders by customer: warehouse, district, customer.
pub(super) type OrderCustomer = (u16, u8, u16);

/// Handles to everything that transactions touch.
#[derive(Debug)]
pub struct Tables<E: Engine> {
    pub(super) warehouses: Table<Warehouse, E>,
    pub(super) districts: Table<District, E>,
    pub(super) customers: Table<Customer, E>,
    pub(super) customers_by_name: Index<Customer, CustomerName, E>,
    pub(super) history: Table<History, E>,
    pub(super) new_orders: Table<NewOrder, E>,
    pub(super) orders: Table<Order, E>,
    pub(super) orders_by_customer: Index<Order, OrderCustomer, E>,
    pub(super) order_lines: Table<OrderLine, E>,
    pub(super) items: Table<Item, E>,
    pub(super) stocks: Table<Stock, E>,
}

impl<E: Engine> Tables<E> {
    /// Creates the tables, empty, in `database`.
    pub(super) fn create(database: &Database<E>) -> Result<Self> {
        let customers = database.create_table::<Customer>()?;
        let orders = database.create_table::<Order>()?;
        Ok(Self {
            warehouses: database.create_table()?,
            districts: database.create_table()?,
            customers_by_name: customers.index("by_name")?,
            customers,
            history: database.create_table()?,
            new_orders: database.create_table()?,
            orders_by_customer: orders.index("by_customer")?,
            orders,
            order_lines: database.create_table()?,
            items: database.create_table()?,
            stocks: database.create_table()?,
        })
    }

    /// Creates one of several sets of tables, with a number in their names. The items are all sets'.
    pub(super) fn create_numbered(
        database: &Database<E>,
        number: u16,
        items: &Table<Item, E>,
    ) -> Result<Self> {
        let customers = create::<Customer, E>(database, number)?;
        let orders = create::<Order, E>(database, number)?;
        Ok(Self {
            warehouses: create(database, number)?,
            districts: create(database, number)?,
            customers_by_name: customers.index("by_name")?,
            customers,
            history: create(database, number)?,
            new_orders: create(database, number)?,
            orders_by_customer: orders.index("by_customer")?,
            orders,
            order_lines: create(database, number)?,
            items: items.clone(),
            stocks: create(database, number)?,
        })
    }

    /// The tables that are in `database`.
    pub(super) fn open(database: &Database<E>) -> Result<Self> {
        let customers = database.open_table::<Customer>()?;
        let orders = database.open_table::<Order>()?;
        Ok(Self {
            warehouses: database.open_table()?,
            districts: database.open_table()?,
            customers_by_name: customers.index("by_name")?,
            customers,
            history: database.open_table()?,
            new_orders: database.open_table()?,
            orders_by_customer: orders.index("by_customer")?,
            orders,
            order_lines: database.open_table()?,
            items: database.open_table()?,
            stocks: database.open_table()?,
        })
    }
}

fn create<T: Row, E: Engine>(database: &Database<E>, number: u16) -> Result<Table<T, E>> {
    database.create_table_named(&format!("{}_{number}", T::schema().name()))
}
