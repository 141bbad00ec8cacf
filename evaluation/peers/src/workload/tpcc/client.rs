//! What TPC-C needs of a database: clients with five transactions, and its rows for the check.

use ensilo_bench::driver::{Aborts, Check, Failure};
use ensilo_bench::tpcc::{
    DeliveryInput, DeliveryOutput, NewOrderInput, OrderStatusInput, PaymentInput, QueueHeads,
    StockLevelInput, Tpcc, TpccOptions,
};

use crate::engine::End;

/// A database that TPC-C runs on.
pub trait TpccPeer: Sync {
    /// One thread's way to run transactions.
    type Client<'a>: TpccClient
    where
        Self: 'a;

    /// Returns a client for the calling thread, which is that of this worker.
    ///
    /// # Errors
    /// A failure of the database.
    fn client(&self, worker: usize, options: &TpccOptions) -> Result<Self::Client<'_>, Failure>;

    /// Copies its rows into an empty database of Ensilo, while there are no clients.
    ///
    /// # Errors
    /// A failure of either database.
    fn bring_back(&self, tpcc: &Tpcc) -> Result<(), Failure>;

    /// Checks that indexes have the entries of the rows, where they are kept by the program.
    ///
    /// # Errors
    /// A failure of the database.
    fn check_indexes(&self) -> Result<Option<Check>, Failure> {
        Ok(None)
    }
}

/// The transactions of TPC-C. An attempt that is undone because of others is counted in `aborts` and made again.
pub trait TpccClient {
    /// Enters an order, or rolls it back if it has an item that there is not.
    ///
    /// # Errors
    /// A failure of the database.
    fn new_order(&mut self, input: &NewOrderInput, aborts: &mut Aborts) -> Result<End, Failure>;

    /// Books a payment.
    ///
    /// # Errors
    /// A failure of the database.
    fn payment(&mut self, input: &PaymentInput, aborts: &mut Aborts) -> Result<(), Failure>;

    /// Reads a customer's last order.
    ///
    /// # Errors
    /// A failure of the database.
    fn order_status(&mut self, input: &OrderStatusInput, aborts: &mut Aborts) -> Result<(), Failure>;

    /// Delivers the oldest new order of each district, none of which is before its head.
    ///
    /// # Errors
    /// A failure of the database.
    fn delivery(
        &mut self,
        input: &DeliveryInput,
        heads: &QueueHeads,
        aborts: &mut Aborts,
    ) -> Result<DeliveryOutput, Failure>;

    /// Counts what is low in stock.
    ///
    /// # Errors
    /// A failure of the database.
    fn stock_level(&mut self, input: &StockLevelInput, aborts: &mut Aborts) -> Result<(), Failure>;
}
