//! New-order: enters an order of 5 to 15 lines (clause 2.4).

use std::hint::black_box;

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Error, Result, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::input::Inputs;
use super::options::LINES_MAX;
use super::sale::{FoundStock, NothingElsewhere, SoldElsewhere, is_original, sell_one};
use super::schema::{Customer, District, Item, Money, NewOrder, Order, OrderLine, Rate, Warehouse};
use super::tables::Tables;
use super::wire;

/// An item number that is never used: clause 2.4.1.5 rolls back 1 of 100 orders by it.
const UNUSED_ITEM: u32 = u32::MAX;

/// What the terminal enters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewOrderInput {
    /// The warehouse.
    pub warehouse: u16,
    /// The district.
    pub district: u8,
    /// The customer.
    pub customer: u16,
    /// When it is entered.
    #[serde(with = "wire::micros")]
    pub entered: Timestamp,
    lines: [LineInput; LINES_MAX],
    line_count: usize,
    /// The order's number, where it comes from outside of the transaction.
    number: u32,
}

/// A line of an order as it is entered.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub struct LineInput {
    /// The item, maybe one that there is not.
    pub item: u32,
    /// The warehouse that supplies it.
    pub supply_warehouse: u16,
    /// How many.
    pub quantity: u8,
}

/// What the terminal shows.
#[allow(dead_code, reason = "what a terminal would show; nobody looks at it here")]
pub(super) struct NewOrderOutput {
    order: u32,
    customer_last: Text<16>,
    customer_credit: Text<2>,
    discount: Rate,
    warehouse_tax: Rate,
    district_tax: Rate,
    total: Money,
}

#[derive(Columns)]
#[columns(of = Warehouse)]
struct WarehouseTax {
    w_tax: Rate,
}

#[derive(Columns)]
#[columns(of = District)]
struct DistrictOrders {
    d_tax: Rate,
    d_next_o_id: u32,
}

#[derive(Columns)]
#[columns(of = District)]
struct DistrictTax {
    d_tax: Rate,
}

#[derive(Columns)]
#[columns(of = District)]
pub(super) struct NextOrder {
    pub(super) d_next_o_id: u32,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerTerms {
    c_last: Text<16>,
    c_credit: Text<2>,
    c_discount: Rate,
}

#[derive(Columns)]
#[columns(of = Item)]
struct ItemSold {
    i_name: Text<24>,
    i_price: Money,
    i_data: Text<50>,
}

/// The stocks of an order's lines.
type FoundStocks<'h, 't, E> = [Option<FoundStock<'h, 't, E>>; LINES_MAX];

/// The error by which an order with an unused item is rolled back.
#[derive(Debug)]
pub(super) struct UnusedItem;

impl std::fmt::Display for UnusedItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("item number is not valid")
    }
}

impl std::error::Error for UnusedItem {}

impl NewOrderInput {
    /// Draws an order for a customer of `warehouse` (clause 2.4.1).
    pub(super) fn draw(inputs: &mut Inputs<'_>, warehouse: u16, entered: Timestamp) -> Self {
        let district = inputs.district();
        let customer = inputs.customer();
        let line_count = inputs.random.between(5, LINES_MAX as u64) as usize;
        let is_rolled_back = inputs.random.percent(1);
        let mut lines = [LineInput::default(); LINES_MAX];
        for line in &mut lines[..line_count] {
            let is_remote = inputs.is_remote_item();
            *line = LineInput {
                item: inputs.item(),
                supply_warehouse: if is_remote { inputs.other_warehouse(warehouse) } else { warehouse },
                quantity: inputs.random.between(1, 10) as u8,
            };
        }
        if is_rolled_back {
            lines[line_count - 1].item = UNUSED_ITEM;
        }
        Self { warehouse, district, customer, entered, lines, line_count, number: 0 }
    }

    /// The lines.
    pub fn lines(&self) -> &[LineInput] {
        &self.lines[..self.line_count]
    }

    fn is_all_local(&self) -> bool {
        self.lines().iter().all(|line| line.supply_warehouse == self.warehouse)
    }

    /// The warehouses that it touches, some of them several times.
    pub(super) fn warehouses(&self) -> impl Iterator<Item = u16> {
        std::iter::once(self.warehouse).chain(self.lines().iter().map(|line| line.supply_warehouse))
    }

    /// The row of the order with this number, and that it is new.
    #[inline]
    pub fn order(&self, order: u32) -> (Order, NewOrder) {
        let row = Order {
            o_w_id: self.warehouse,
            o_d_id: self.district,
            o_id: order,
            o_c_id: self.customer,
            o_entry_d: self.entered,
            o_carrier_id: None,
            o_ol_cnt: self.line_count as u8,
            o_all_local: self.is_all_local(),
        };
        (row, NewOrder { no_w_id: self.warehouse, no_d_id: self.district, no_o_id: order })
    }

    /// The row of the line at this place, from 0, of the order with this number.
    ///
    /// # Panics
    /// If there are fewer lines.
    #[inline]
    pub fn line(&self, at: usize, order: u32, price: Money, dist_info: Text<24>) -> OrderLine {
        let line = &self.lines()[at];
        OrderLine {
            ol_w_id: self.warehouse,
            ol_d_id: self.district,
            ol_o_id: order,
            ol_number: at as u8 + 1,
            ol_i_id: line.item,
            ol_supply_w_id: line.supply_warehouse,
            ol_delivery_d: None,
            ol_quantity: line.quantity,
            ol_amount: Money::from_scaled(price.scaled() * i64::from(line.quantity)),
            ol_dist_info: dist_info,
        }
    }

    /// Gives the order a number from outside of the transaction, if that is where numbers come from.
    pub(super) fn number<A: Arrangement>(&mut self, arrangement: &A) {
        if A::HAS_FAST_IDS {
            self.number = arrangement.take_order(self.warehouse, self.district);
        }
    }

    /// Runs the transaction (clause 2.4.2.2).
    pub(super) fn run<'t, A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'t, A::Engine>,
    ) -> Result<NewOrderOutput> {
        self.run_with(arrangement, tx, &NothingElsewhere)
    }

    /// Does the same where stocks of some lines are elsewhere, and these have been sold.
    pub(super) fn run_with<'t, A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'t, A::Engine>,
        elsewhere: &impl SoldElsewhere,
    ) -> Result<NewOrderOutput> {
        let tables = arrangement.of(self.warehouse);
        let warehouse =
            tables.warehouses.get_columns::<WarehouseTax>(tx, self.warehouse)?.ok_or_else(missing)?;
        let customer_key = (self.warehouse, self.district, self.customer);
        let customer =
            tables.customers.get_columns::<CustomerTerms>(tx, customer_key)?.ok_or_else(missing)?;
        let district_key = (self.warehouse, self.district);
        let (district_tax, order) = if A::HAS_FAST_IDS {
            let district = tables.districts.get_columns::<DistrictTax>(tx, district_key)?;
            (district.ok_or_else(missing)?.d_tax, self.number)
        } else {
            let found = tables.districts.find_to_write(tx, district_key)?.ok_or_else(missing)?;
            let district = found.columns::<DistrictOrders>(tx)?;
            found.set(tx, NextOrder { d_next_o_id: district.d_next_o_id + 1 })?;
            (district.d_tax, district.d_next_o_id)
        };
        self.insert_order(tables, tx, order)?;
        let sum = self.sell(arrangement, tx, order, elsewhere)?;
        Ok(NewOrderOutput {
            order,
            customer_last: customer.c_last,
            customer_credit: customer.c_credit,
            discount: customer.c_discount,
            warehouse_tax: warehouse.w_tax,
            district_tax,
            total: total(sum, customer.c_discount, warehouse.w_tax + district_tax),
        })
    }

    fn insert_order<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
        order: u32,
    ) -> Result<()> {
        let (row, new) = self.order(order);
        tables.orders.insert(tx, &row)?;
        tables.new_orders.insert(tx, &new).map(|_| ())
    }

    /// Takes every line's quantity from its stock and enters the line. Returns the sum of their amounts.
    fn sell<'t, A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'t, A::Engine>,
        order: u32,
        elsewhere: &impl SoldElsewhere,
    ) -> Result<Money> {
        let tables = arrangement.of(self.warehouse);
        let prices = self.read_items(tables, tx)?;
        let stocks = self.find_stocks(arrangement, tx, elsewhere)?;
        let mut sum = Money::default();
        for (at, line) in self.lines().iter().enumerate() {
            // Clause 2.4.2.3: the order is rolled back when its last line turns out to be of an unused item.
            let Some(item) = &prices[at] else { return Err(Error::user(UnusedItem)) };
            let sold = match elsewhere.of_line(at) {
                Some(sold) => sold,
                None => {
                    let found: &FoundStock<'_, 't, A::Engine> = stocks[at].as_ref().ok_or_else(missing)?;
                    sell_one(found, line, (self.warehouse, self.district), tx)?
                }
            };
            black_box(item.is_original && sold.is_original);
            let row = self.line(at, order, item.price, sold.dist_info);
            tables.order_lines.insert(tx, &row)?;
            sum += row.ol_amount;
        }
        Ok(sum)
    }

    /// Finds the stocks of all lines; the descents of those in the home tables are interleaved.
    fn find_stocks<'h, 't, A: Arrangement>(
        &self,
        arrangement: &'h A,
        tx: &mut Transaction<'t, A::Engine>,
        elsewhere: &impl SoldElsewhere,
    ) -> Result<FoundStocks<'h, 't, A::Engine>> {
        let home = arrangement.of(self.warehouse);
        let mut stocks = [const { None }; LINES_MAX];
        if !A::IS_SPLIT && !elsewhere.has_any() {
            let keys = self.lines.map(|line| (line.supply_warehouse, line.item));
            home.stocks.find_many(tx, &keys[..self.line_count], |at, found| stocks[at] = found)?;
            return Ok(stocks);
        }
        let (mut keys, mut places, mut count) = ([(0, 0); LINES_MAX], [0; LINES_MAX], 0);
        for (at, line) in self.lines().iter().enumerate() {
            if elsewhere.of_line(at).is_some() {
                continue;
            }
            let (tables, key) = (arrangement.of(line.supply_warehouse), (line.supply_warehouse, line.item));
            if std::ptr::eq(tables, home) {
                (keys[count], places[count]) = (key, at);
                count += 1;
            } else {
                stocks[at] = tables.stocks.find_to_write(tx, key)?;
            }
        }
        home.stocks.find_many(tx, &keys[..count], |at, found| stocks[places[at]] = found)?;
        Ok(stocks)
    }

    /// Reads the items of all lines, their descents interleaved; an unused one is `None`.
    fn read_items<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<[Option<PricedItem>; LINES_MAX]> {
        let keys = self.lines.map(|line| line.item);
        let mut items = [const { None }; LINES_MAX];
        tables.items.get_columns_many::<ItemSold>(tx, &keys[..self.line_count], |at, item| {
            items[at] = item.map(|item| {
                black_box(&item.i_name);
                PricedItem { price: item.i_price, is_original: is_original(item.i_data.as_bytes()) }
            });
        })?;
        Ok(items)
    }
}

struct PricedItem {
    price: Money,
    is_original: bool,
}

/// Clause 2.4.2.2: `sum * (1 - discount) * (1 + taxes)`.
fn total(sum: Money, discount: Rate, taxes: Rate) -> Money {
    let one = Rate::from_int(1);
    sum.times(one - discount).times(one + taxes)
}

/// A row that the load has put there is not there.
#[cold]
pub(crate) fn missing() -> Error {
    Error::rollback("a row that every TPC-C database has is missing")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_takes_discount_and_taxes() {
        let rate = |scaled| Rate::from_scaled(scaled);
        assert_eq!(total(Money::from_int(100), rate(1_000), rate(2_000)), Money::from_int(108));
    }
}
