//! The handles to the nine tables and the two secondary indexes.

use ensilo::{Database, Index, Result, Table, Text};

use super::schema::{Customer, District, History, Item, NewOrder, Order, OrderLine, Stock, Warehouse};

/// Columns of the index of customers by name: warehouse, district, last name, first name.
pub(super) type CustomerName = (u16, u8, Text<16>, Text<16>);
/// Columns of the index of orders by customer: warehouse, district, customer.
pub(super) type OrderCustomer = (u16, u8, u16);

/// Handles to everything that transactions touch.
#[derive(Debug, Clone)]
pub(super) struct Tables {
    pub(super) warehouses: Table<Warehouse>,
    pub(super) districts: Table<District>,
    pub(super) customers: Table<Customer>,
    pub(super) customers_by_name: Index<Customer, CustomerName>,
    pub(super) history: Table<History>,
    pub(super) new_orders: Table<NewOrder>,
    pub(super) orders: Table<Order>,
    pub(super) orders_by_customer: Index<Order, OrderCustomer>,
    pub(super) order_lines: Table<OrderLine>,
    pub(super) items: Table<Item>,
    pub(super) stocks: Table<Stock>,
}

impl Tables {
    /// Creates the tables, empty, in `database`.
    pub(super) fn create(database: &Database) -> Result<Self> {
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

    /// The tables that are in `database`.
    pub(super) fn open(database: &Database) -> Result<Self> {
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
