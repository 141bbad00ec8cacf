//! TPC-C, the standard workload of order entry, after its specification's revision 5.11.
//!
//! Implemented whole but for what concerns terminals: no think time, no screens. A worker stands for the terminals of its
//! warehouses. Deviations from the specification, each said where it is: a stock-level's district is drawn, not a
//! terminal's own (`stock_level`); condition 3.3.2.11 counts deliveries since the load (`consistency`).

mod arrangement;
mod consistency;
mod customer;
mod delivery;
mod effects;
mod input;
mod load;
mod loaded;
mod new_order;
mod options;
mod order_status;
mod payment;
mod random;
mod rows;
mod sale;
mod schema;
mod session;
mod share;
mod stock_level;
mod tables;
mod terminal;
#[cfg(test)]
mod tests;
mod wire;
mod workload;

pub use arrangement::{Arrangement, FastIds, LockedPartitions, Split, Whole};
pub use delivery::{DeliveryInput, DeliveryOutput, QueueHeads};
pub use input::CustomerChoice;
pub(crate) use load::new_stock;
pub use loaded::{Tpcc, TpccOf};
pub(crate) use new_order::missing;
pub use new_order::{LineInput, NewOrderInput};
pub use options::{
    DEFAULT_MIX, DISTRICTS, LINES_MAX, ReadOnly, Scale, TRANSACTION_TYPES, TpccOptions, WarehouseChoice,
    parse_mix,
};
pub use order_status::OrderStatusInput;
pub use payment::PaymentInput;
pub(crate) use random::Strings;
pub use rows::{RowSource, RowTarget};
pub use sale::{Sold, StockCounts};
pub use schema::{
    Customer, District, History, Item, Money, NewOrder, Order, OrderLine, Rate, Stock, Warehouse,
};
pub use session::TpccSession;
pub use share::{ElsewhereAnswer, ElsewherePart, PaymentSums, TpccShare};
pub use stock_level::{StockLevelInput, StockLevelScratch};
pub use tables::Tables;
pub use terminal::{Entered, Terminal};
