//! The handles to the nine tables and the two secondary indexes.

use ensilo::generic::{Database, Index, Table};
use ensilo::{Engine, Result, Row, Text};

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
    pub(crate) items: Table<Item, E>,
    pub(crate) stocks: Table<Stock, E>,
}

/// Where tables come from.
#[derive(Clone, Copy)]
enum TableSource {
    /// They are created.
    Created,
    /// They are created with a number in their names.
    CreatedWithNumber(u16),
    /// They are in the database.
    Opened,
}

impl TableSource {
    fn table<T: Row, E: Engine>(self, database: &Database<E>) -> Result<Table<T, E>> {
        match self {
            Self::Created => database.create_table(),
            Self::CreatedWithNumber(number) => {
                database.create_table_named(&format!("{}_{number}", T::schema().name()))
            }
            Self::Opened => database.open_table(),
        }
    }
}

impl<E: Engine> Tables<E> {
    /// Creates the tables, empty, in `database`.
    pub(super) fn create(database: &Database<E>) -> Result<Self> {
        Self::from(TableSource::Created, database, None)
    }

    /// Creates one of several sets of tables, with a number in their names. All sets share the items.
    pub(super) fn create_numbered(
        database: &Database<E>,
        number: u16,
        items: &Table<Item, E>,
    ) -> Result<Self> {
        Self::from(TableSource::CreatedWithNumber(number), database, Some(items))
    }

    /// Opens the tables that are in `database`.
    pub(super) fn open(database: &Database<E>) -> Result<Self> {
        Self::from(TableSource::Opened, database, None)
    }

    fn from(source: TableSource, database: &Database<E>, items: Option<&Table<Item, E>>) -> Result<Self> {
        let customers = source.table::<Customer, E>(database)?;
        let orders = source.table::<Order, E>(database)?;
        Ok(Self {
            warehouses: source.table(database)?,
            districts: source.table(database)?,
            customers_by_name: customers.index("by_name")?,
            customers,
            history: source.table(database)?,
            new_orders: source.table(database)?,
            orders_by_customer: orders.index("by_customer")?,
            orders,
            order_lines: source.table(database)?,
            items: items.map_or_else(|| source.table(database), |items| Ok(items.clone()))?,
            stocks: source.table(database)?,
        })
    }
}
