//! A connection on which the five transactions are prepared: what a terminal enters becomes parameters.

use std::fmt;
use std::hint::black_box;

use ensilo_bench::driver::{Aborts, Failure};
use ensilo_bench::tpcc::{
    CustomerChoice, DeliveryInput, DeliveryOutput, NewOrderInput, OrderStatusInput, PaymentInput, QueueHeads,
    StockLevelInput,
};
use postgres::types::ToSql;
use postgres::{Client as Connection, Error, Statement};

use super::super::client::TpccClient;
use super::lines::LineArrays;
use super::values::SqlValue;
use crate::engine::{End, Schema, failed, retry};

const NEW_ORDER: &str = "SELECT * FROM tpcc_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const PAYMENT: &str = "SELECT * FROM tpcc_payment($1, $2, $3, $4, $5, $6, $7, $8)";
const ORDER_STATUS: &str = "SELECT * FROM tpcc_order_status($1, $2, $3, $4)";
const DELIVERY: &str = "SELECT tpcc_delivery($1, $2, $3, $4)";
const STOCK_LEVEL: &str = "SELECT tpcc_stock_level($1, $2, $3)";

/// The code by which new-order is rolled back; also in the function.
const ROLLBACK: &str = "TPCRB";

/// What PostgreSQL's documentation advises for `SERIALIZABLE` (section 13.2.3): a sequential scan, which the planner prefers for tables as
/// small as the districts, locks its whole table and is in the way of every writer.
const SESSION: &str = "SET enable_seqscan = off";

/// A connection with its prepared statements.
pub struct RelationalClient {
    connection: Connection,
    new_order: Statement,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
}

impl fmt::Debug for RelationalClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RelationalClient").finish_non_exhaustive()
    }
}

type Parameters<'p> = [&'p (dyn ToSql + Sync)];

impl RelationalClient {
    pub(super) fn connect(schema: &Schema) -> Result<Self, Failure> {
        schema.connect().and_then(Self::prepare).map_err(failed)
    }

    fn prepare(mut connection: Connection) -> Result<Self, Error> {
        connection.batch_execute(SESSION)?;
        let mut prepare = |statement| connection.prepare(statement);
        let (new_order, payment) = (prepare(NEW_ORDER)?, prepare(PAYMENT)?);
        let (order_status, delivery) = (prepare(ORDER_STATUS)?, prepare(DELIVERY)?);
        let stock_level = prepare(STOCK_LEVEL)?;
        Ok(Self { connection, new_order, payment, order_status, delivery, stock_level })
    }
}

impl TpccClient for RelationalClient {
    fn new_order(&mut self, input: &NewOrderInput, aborts: &mut Aborts) -> Result<End, Failure> {
        let lines = LineArrays::of(input);
        let parameters: &Parameters<'_> = &[
            &input.warehouse.sql(),
            &input.district.sql(),
            &input.customer.sql(),
            &input.entered.sql(),
            &lines.numbers,
            &lines.supply_warehouses,
            &lines.items,
            &lines.quantities,
            &lines.turns,
        ];
        retry(aborts, || match self.connection.query_one(&self.new_order, parameters) {
            Ok(shown) => {
                black_box(shown);
                Ok(End::Commit)
            }
            Err(error) if error.code().is_some_and(|code| code.code() == ROLLBACK) => Ok(End::RollBack),
            Err(error) => Err(error),
        })
    }

    fn payment(&mut self, input: &PaymentInput, aborts: &mut Aborts) -> Result<(), Failure> {
        let (number, last_name) = chosen(&input.customer);
        let parameters: &Parameters<'_> = &[
            &input.warehouse.sql(),
            &input.district.sql(),
            &input.customer_warehouse.sql(),
            &input.customer_district.sql(),
            &number,
            &last_name,
            &input.amount.sql(),
            &input.date.sql(),
        ];
        black_box(retry(aborts, || self.connection.query_one(&self.payment, parameters))?);
        Ok(())
    }

    fn order_status(&mut self, input: &OrderStatusInput, aborts: &mut Aborts) -> Result<(), Failure> {
        let (number, last_name) = chosen(&input.customer);
        let parameters: &Parameters<'_> =
            &[&input.warehouse.sql(), &input.district.sql(), &number, &last_name];
        black_box(retry(aborts, || self.connection.query(&self.order_status, parameters))?);
        Ok(())
    }

    fn delivery(
        &mut self,
        input: &DeliveryInput,
        heads: &QueueHeads,
        aborts: &mut Aborts,
    ) -> Result<DeliveryOutput, Failure> {
        let heads = heads.of(input.warehouse).map(u32::cast_signed);
        let parameters: &Parameters<'_> =
            &[&input.warehouse.sql(), &input.carrier.sql(), &input.date.sql(), &&heads[..]];
        let row = retry(aborts, || self.connection.query_one(&self.delivery, parameters))?;
        let orders: Vec<Option<i32>> = row.try_get(0).map_err(failed)?;
        let delivered: Vec<Option<u32>> =
            orders.into_iter().map(|order| order.map(i32::cast_unsigned)).collect();
        let is_none = || Failure::Broken("a delivery was not of ten districts".to_owned());
        delivered.try_into().map_err(|_| is_none())
    }

    fn stock_level(&mut self, input: &StockLevelInput, aborts: &mut Aborts) -> Result<(), Failure> {
        let parameters: &Parameters<'_> =
            &[&input.warehouse.sql(), &input.district.sql(), &input.threshold.sql()];
        black_box(retry(aborts, || self.connection.query_one(&self.stock_level, parameters))?);
        Ok(())
    }
}

/// Number or last name; the other one is null.
fn chosen(customer: &CustomerChoice) -> (Option<i32>, Option<&str>) {
    match customer {
        CustomerChoice::Number(number) => (Some(number.sql()), None),
        CustomerChoice::LastName(last_name) => (None, Some(last_name.as_str())),
    }
}
