//! The five transactions on keys and bytes.
//!
//! They do what those of `ensilo-bench` do, statement by statement, on what its terminals enter. There the statements are Ensilo's own
//! (found rows, several look-ups at once, columns in place), for which other databases have nothing.

use std::hint::black_box;
use std::ops::ControlFlow;

use ensilo::{Columns, KeyedRow, RowId, Text, Timestamp};
use ensilo_bench::driver::Failure;
use ensilo_bench::tpcc::{
    Customer, CustomerChoice, DISTRICTS, DeliveryInput, DeliveryOutput, District, History, Item, LINES_MAX,
    Money, NewOrder, NewOrderInput, Order, OrderLine, OrderStatusInput, PaymentInput, QueueHeads, Rate,
    Stock, StockCounts, StockLevelInput, StockLevelScratch, Warehouse,
};

use super::rows::{Rows, broken};
use crate::engine::{End, OrderedRead, OrderedWrite};

/// Columns that a transaction reads or changes.
macro_rules! columns {
    ($($name:ident of $row:ident { $($column:ident: $type:ty),+ $(,)? })+) => {
        $(
            #[derive(Columns)]
            #[columns(of = $row)]
            #[allow(dead_code, reason = "some are what a terminal would show; nobody looks at it here")]
            struct $name {
                $($column: $type),+
            }
        )+
    };
}

columns! {
    WarehouseTax of Warehouse { w_tax: Rate }
    WarehousePaid of Warehouse { w_name: Text<10>, w_ytd: Money }
    DistrictOrders of District { d_tax: Rate, d_next_o_id: u32 }
    DistrictPaid of District { d_name: Text<10>, d_ytd: Money }
    NextOrder of District { d_next_o_id: u32 }
    CustomerTerms of Customer { c_last: Text<16>, c_credit: Text<2>, c_discount: Rate }
    CustomerPaid of Customer {
        c_credit: Text<2>,
        c_balance: Money,
        c_ytd_payment: Money,
        c_payment_cnt: u32,
        c_data: Text<500>,
    }
    CustomerShown of Customer { c_first: Text<16>, c_middle: Text<2>, c_last: Text<16>, c_balance: Money }
    Received of Customer { c_balance: Money, c_delivery_cnt: u32 }
    ItemSold of Item { i_name: Text<24>, i_price: Money, i_data: Text<50> }
    Quantity of Stock { s_quantity: i16 }
    OrderShown of Order { o_id: u32, o_entry_d: Timestamp, o_carrier_id: Option<u8> }
    Carried of Order { o_c_id: u16, o_carrier_id: Option<u8> }
    LineShown of OrderLine {
        ol_supply_w_id: u16,
        ol_i_id: u32,
        ol_quantity: u8,
        ol_amount: Money,
        ol_delivery_d: Option<Timestamp>,
    }
    Delivered of OrderLine { ol_amount: Money, ol_delivery_d: Option<Timestamp> }
    LineItem of OrderLine { ol_i_id: u32 }
}

/// What a sale reads of a stock and changes in it.
struct StockSold {
    counts: StockCounts,
    dist_info: Text<24>,
}

macro_rules! stock_of_district {
    ($($district:literal $columns:ident $dist:ident),+) => {
        columns! { $($columns of Stock { $dist: Text<24>, s_data: Text<50> })+ }

        /// Reads a stock with the text of `district`.
        fn read_stock<X: OrderedRead + ?Sized>(
            rows: &mut Rows<'_, X>,
            key: (u16, u32),
            district: u8,
        ) -> Result<StockSold, Failure> {
            let dist_info = match district {
                $($district => black_box(rows.get::<Stock, $columns>(&key)?).$dist,)+
                _ => unreachable!("a warehouse has ten districts"),
            };
            Ok(StockSold { counts: rows.last::<Stock, StockCounts>(&key)?, dist_info })
        }
    };
}

stock_of_district!(
    1 Stock01 s_dist_01, 2 Stock02 s_dist_02, 3 Stock03 s_dist_03, 4 Stock04 s_dist_04, 5 Stock05 s_dist_05,
    6 Stock06 s_dist_06, 7 Stock07 s_dist_07, 8 Stock08 s_dist_08, 9 Stock09 s_dist_09, 10 Stock10 s_dist_10
);

/// New-order (clause 2.4.2.2). It is rolled back if its last line is of an item that there is not.
pub(super) fn new_order<X: OrderedWrite + ?Sized>(
    input: &NewOrderInput,
    rows: &mut Rows<'_, X>,
) -> Result<End, Failure> {
    let district_key = (input.warehouse, input.district);
    let warehouse: WarehouseTax = rows.get::<Warehouse, _>(&input.warehouse)?;
    let customer: CustomerTerms =
        rows.get::<Customer, _>(&(input.warehouse, input.district, input.customer))?;
    let number = rows.update::<District, DistrictOrders, _>(&district_key, |district| {
        black_box((&warehouse.w_tax, &customer.c_discount, &district.d_tax));
        district.d_next_o_id += 1;
        district.d_next_o_id - 1
    })?;
    let (order, new) = input.order(number);
    rows.insert(&order.key(), &order)?;
    rows.insert(&new.key(), &new)?;
    for (at, line) in input.lines().iter().enumerate() {
        let Some(item) = rows.find::<Item, ItemSold>(&line.item)? else { return Ok(End::RollBack) };
        let stock_key = (line.supply_warehouse, line.item);
        let stock = read_stock(rows, stock_key, input.district)?;
        rows.rewrite::<Stock, _>(&stock_key, &stock.counts.after_sale(line, input.warehouse))?;
        let row = input.line(at, number, item.i_price, stock.dist_info);
        rows.insert(&row.key(), &row)?;
    }
    Ok(End::Commit)
}

/// Payment (clause 2.5.2.2); `history` is the key of its row there.
pub(super) fn payment<X: OrderedWrite + ?Sized>(
    input: &PaymentInput,
    history: RowId,
    rows: &mut Rows<'_, X>,
) -> Result<End, Failure> {
    let warehouse = rows.update::<Warehouse, WarehousePaid, _>(&input.warehouse, |warehouse| {
        warehouse.w_ytd += input.amount;
        warehouse.w_name
    })?;
    let district_key = (input.warehouse, input.district);
    let district = rows.update::<District, DistrictPaid, _>(&district_key, |district| {
        district.d_ytd += input.amount;
        district.d_name
    })?;
    let number = customer_number(&input.customer, input.customer_warehouse, input.customer_district, rows)?;
    let customer_key = (input.customer_warehouse, input.customer_district, number);
    rows.update::<Customer, CustomerPaid, _>(&customer_key, |customer| {
        customer.c_balance -= input.amount;
        customer.c_ytd_payment += input.amount;
        customer.c_payment_cnt = customer.c_payment_cnt.wrapping_add(1);
        if customer.c_credit == "BC" {
            customer.c_data = input.noted(number, &customer.c_data);
        }
    })?;
    rows.insert::<History>(&history, &input.history(number, &warehouse, &district))?;
    Ok(End::Commit)
}

/// Order-status (clause 2.6.2.2).
pub(super) fn order_status<X: OrderedRead + ?Sized>(
    input: &OrderStatusInput,
    rows: &mut Rows<'_, X>,
) -> Result<(), Failure> {
    let number = customer_number(&input.customer, input.warehouse, input.district, rows)?;
    let customer_key = (input.warehouse, input.district, number);
    black_box(rows.get::<Customer, CustomerShown>(&customer_key)?);
    let mut last_order = None;
    rows.scan_index::<Order>(&customer_key, true, |order| {
        last_order = Some(order);
        ControlFlow::Break(())
    })?;
    let Some(order) = last_order else { return Ok(()) };
    black_box(rows.get::<Order, OrderShown>(&order)?);
    rows.scan::<OrderLine, LineShown>(&order, &order, |_, line| {
        black_box(&line);
        ControlFlow::Continue(())
    })
}

/// Delivery (clause 2.7.4.2).
pub(super) fn delivery<X: OrderedWrite + ?Sized>(
    input: &DeliveryInput,
    heads: &QueueHeads,
    rows: &mut Rows<'_, X>,
) -> Result<DeliveryOutput, Failure> {
    let mut delivered = DeliveryOutput::default();
    let heads = heads.of(input.warehouse);
    for ((district, &head), delivered) in (1..=DISTRICTS).zip(heads).zip(&mut delivered) {
        *delivered = deliver(input, (input.warehouse, district, head), rows)?;
    }
    Ok(delivered)
}

/// Delivers the oldest new order of a district, which is not before `head`, and returns its number.
fn deliver<X: OrderedWrite + ?Sized>(
    input: &DeliveryInput,
    head: (u16, u8, u32),
    rows: &mut Rows<'_, X>,
) -> Result<Option<u32>, Failure> {
    let mut oldest = None;
    rows.scan::<NewOrder, NewOrder>(&head, &(head.0, head.1), |key, _| {
        oldest = Some(key);
        ControlFlow::Break(())
    })?;
    let Some(key) = oldest else { return Ok(None) };
    rows.delete::<NewOrder>(&key)?;
    let customer = rows.update::<Order, Carried, _>(&key, |order| {
        order.o_carrier_id = Some(input.carrier);
        order.o_c_id
    })?;
    let mut lines = Vec::with_capacity(LINES_MAX);
    rows.scan::<OrderLine, OrderLine>(&key, &key, |key, line| {
        lines.push((key, line));
        ControlFlow::Continue(())
    })?;
    let mut sum = Money::default();
    for (key, mut line) in lines {
        sum += line.ol_amount;
        line.ol_delivery_d = Some(input.date);
        rows.insert(&key, &line)?;
    }
    rows.update::<Customer, Received, _>(&(key.0, key.1, customer), |customer| {
        customer.c_balance += sum;
        customer.c_delivery_cnt = customer.c_delivery_cnt.wrapping_add(1);
    })?;
    Ok(Some(key.2))
}

/// Stock-level (clause 2.8.2.2).
pub(super) fn stock_level<X: OrderedRead + ?Sized>(
    input: &StockLevelInput,
    scratch: &mut StockLevelScratch,
    rows: &mut Rows<'_, X>,
) -> Result<(), Failure> {
    let (warehouse, district) = (input.warehouse, input.district);
    let NextOrder { d_next_o_id } = rows.get::<District, _>(&(warehouse, district))?;
    scratch.clear();
    let first = (warehouse, district, StockLevelInput::last_orders(d_next_o_id).start);
    rows.scan::<OrderLine, LineItem>(&first, &(warehouse, district), |_, line| {
        scratch.add(warehouse, line.ol_i_id);
        ControlFlow::Continue(())
    })?;
    let mut low = 0;
    for key in scratch.keys() {
        let stock = rows.find::<Stock, Quantity>(key)?;
        low += usize::from(stock.is_some_and(|stock| stock.s_quantity < input.threshold));
    }
    black_box(low);
    Ok(())
}

/// The number of the chosen customer: of several with the same last name, ordered by first name, the one in the middle.
fn customer_number<X: OrderedRead + ?Sized>(
    choice: &CustomerChoice,
    warehouse: u16,
    district: u8,
    rows: &mut Rows<'_, X>,
) -> Result<u16, Failure> {
    let last_name = match choice {
        CustomerChoice::Number(number) => return Ok(*number),
        CustomerChoice::LastName(last_name) => *last_name,
    };
    let mut numbers = Vec::new();
    rows.scan_index::<Customer>(&(warehouse, district, last_name), false, |(_, _, number)| {
        numbers.push(number);
        ControlFlow::Continue(())
    })?;
    let middle = numbers.len().saturating_sub(1) / 2;
    numbers.get(middle).copied().ok_or_else(|| broken::<Customer>("nobody has a name that was loaded"))
}
