//! TPC-C on databases that know keys and bytes.

use ensilo::RowId;
use ensilo_bench::driver::{Aborts, Check, Failure};
use ensilo_bench::tpcc::{
    Customer, DeliveryInput, DeliveryOutput, NewOrderInput, Order, OrderStatusInput, PaymentInput,
    QueueHeads, StockLevelInput, StockLevelScratch, Tpcc, TpccOptions,
};

use super::client::{TpccClient, TpccPeer};
use super::copies::{LoadedRows, StoreRows};
use super::rows::Rows;
use super::transactions;
use crate::engine::{End, OrderedClient, OrderedStore};

/// The tables of TPC-C in a store.
#[derive(Debug)]
pub struct OrderedTpcc<S>(S);

/// A client with what the transactions keep between them.
#[derive(Debug)]
pub struct OrderedTpccClient<C> {
    client: C,
    stock_level: StockLevelScratch,
    /// The key of the next row in the history.
    next_history: u64,
}

/// Keys in the history that each client has for its own.
const HISTORY_KEYS: u64 = 1 << 40;

impl<S: OrderedStore> OrderedTpcc<S> {
    /// Puts `rows` into a store with empty tables.
    ///
    /// # Errors
    /// A failure of the store.
    pub fn load(store: S, rows: &LoadedRows) -> Result<Self, Failure> {
        rows.load_into(&store)?;
        Ok(Self(store))
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.0
    }
}

impl<S: OrderedStore> TpccPeer for OrderedTpcc<S> {
    type Client<'a>
        = OrderedTpccClient<S::Client<'a>>
    where
        S: 'a;

    fn client(&self, worker: usize, options: &TpccOptions) -> Result<Self::Client<'_>, Failure> {
        Ok(OrderedTpccClient {
            client: self.0.client()?,
            stock_level: StockLevelScratch::new(options.scale.items),
            next_history: (worker as u64 + 1) * HISTORY_KEYS,
        })
    }

    fn bring_back(&self, tpcc: &Tpcc) -> Result<(), Failure> {
        tpcc.insert_rows(&StoreRows(&self.0))
    }

    fn check_indexes(&self) -> Result<Option<Check>, Failure> {
        let rows = StoreRows(&self.0);
        let mut check = Check::new("index_entries", "indexes have the entries of the rows, and no others");
        let indexes =
            [("customer", rows.index_entries::<Customer>()?), ("order", rows.index_entries::<Order>()?)];
        for (table, index) in indexes {
            check.expect(index.rows == index.entries && index.wrong == 0, || {
                format!("{table}: {} rows, {} entries, {} wrong", index.rows, index.entries, index.wrong)
            });
        }
        Ok(Some(check))
    }
}

impl<C: OrderedClient> TpccClient for OrderedTpccClient<C> {
    fn new_order(&mut self, input: &NewOrderInput, aborts: &mut Aborts) -> Result<End, Failure> {
        self.client.write(aborts, &mut |tx| transactions::new_order(input, &mut Rows::of(tx)))
    }

    fn payment(&mut self, input: &PaymentInput, aborts: &mut Aborts) -> Result<(), Failure> {
        let history = RowId(self.next_history);
        self.next_history += 1;
        self.client.write(aborts, &mut |tx| transactions::payment(input, history, &mut Rows::of(tx)))?;
        Ok(())
    }

    fn order_status(&mut self, input: &OrderStatusInput, _aborts: &mut Aborts) -> Result<(), Failure> {
        self.client.read(&mut |tx| transactions::order_status(input, &mut Rows::of(tx)))
    }

    fn delivery(
        &mut self,
        input: &DeliveryInput,
        heads: &QueueHeads,
        aborts: &mut Aborts,
    ) -> Result<DeliveryOutput, Failure> {
        let mut delivered = DeliveryOutput::default();
        self.client.write(aborts, &mut |tx| {
            delivered = transactions::delivery(input, heads, &mut Rows::of(tx))?;
            Ok(End::Commit)
        })?;
        Ok(delivered)
    }

    fn stock_level(&mut self, input: &StockLevelInput, _aborts: &mut Aborts) -> Result<(), Failure> {
        let scratch = &mut self.stock_level;
        self.client.read(&mut |tx| transactions::stock_level(input, scratch, &mut Rows::of(tx)))
    }
}
