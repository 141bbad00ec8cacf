//! What single transactions do to the rows.

use ensilo::{Text, Timestamp};

use super::super::arrangement::Arrangement;
use super::super::delivery::{DeliveryInput, QueueHeads};
use super::super::input::{CustomerChoice, Inputs};
use super::super::loaded::Tpcc;
use super::super::new_order::NewOrderInput;
use super::super::order_status::OrderStatusInput;
use super::super::payment::PaymentInput;
use super::super::random::{NuRand, Strings};
use super::super::schema::{Customer, Money};
use super::super::stock_level::{StockLevelInput, StockLevelScratch};
use super::{loaded, small};
use crate::random::Random;

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);

fn with_inputs<R>(tpcc: &Tpcc, draw: impl FnOnce(&mut Inputs<'_>) -> R) -> R {
    let (mut random, mut strings) = (Random::new(1), Strings::default());
    let options = &tpcc.options;
    draw(&mut Inputs {
        random: &mut random,
        strings: &mut strings,
        nu_rand: &NuRand::of_seed(options.seed).1,
        scale: options.scale,
        warehouses: options.warehouses,
        remote_items: options.remote_items,
        remote_customers: options.remote_customers,
    })
}

#[test]
fn a_new_order_takes_from_stocks_and_enters_lines() {
    let tpcc = loaded(small(1, 1));
    let (tables, arrangement) = (tpcc.tables.of(1), &tpcc.tables);
    let input = with_inputs(&tpcc, |inputs| NewOrderInput::draw(inputs, 1, NOW));
    let stocks_before = tpcc.database.transact(|tx| tables.stocks.scan().rows(tx)).unwrap();
    tpcc.database.transact(|tx| input.run(arrangement, tx)).unwrap();
    tpcc.database
        .transact(|tx| {
            let mut last_orders = Vec::new();
            for district in 1..=10 {
                let order = tables.orders.prefix((1, district)).reverse().first(tx)?;
                last_orders.extend(order.filter(|(key, _)| key.2 == 31).map(|(_, order)| order));
            }
            assert_eq!(last_orders.len(), 1, "one district has a new order");
            let order = &last_orders[0];
            let key = (1, order.o_d_id, order.o_id);
            assert!(order.o_all_local && order.o_carrier_id.is_none() && order.o_entry_d == NOW);
            assert!(tables.new_orders.contains(tx, key)?);
            let district = tables.districts.get(tx, (1, order.o_d_id))?.unwrap();
            assert_eq!(district.d_next_o_id, 32);
            let lines = tables.order_lines.prefix(key).rows(tx)?;
            assert_eq!(lines.len(), usize::from(order.o_ol_cnt));
            for line in &lines {
                let price = tables.items.get(tx, line.ol_i_id)?.unwrap().i_price;
                let expected = Money::from_scaled(price.scaled() * i64::from(line.ol_quantity));
                assert_eq!((line.ol_amount, line.ol_delivery_d), (expected, None));
                let stock = tables.stocks.get(tx, (1, line.ol_i_id))?.unwrap();
                let texts = [
                    stock.s_dist_01,
                    stock.s_dist_02,
                    stock.s_dist_03,
                    stock.s_dist_04,
                    stock.s_dist_05,
                    stock.s_dist_06,
                    stock.s_dist_07,
                    stock.s_dist_08,
                    stock.s_dist_09,
                    stock.s_dist_10,
                ];
                assert_eq!(line.ol_dist_info, texts[usize::from(order.o_d_id) - 1]);
            }
            let ordered: u32 = lines.iter().map(|line| u32::from(line.ol_quantity)).sum();
            let stocks = tables.stocks.scan().rows(tx)?;
            assert_eq!(stocks.iter().map(|stock| stock.s_ytd).sum::<u32>(), ordered);
            assert_eq!(stocks.iter().map(|stock| stock.s_order_cnt).sum::<u32>(), lines.len() as u32);
            assert_eq!(stocks.iter().map(|stock| stock.s_remote_cnt).sum::<u32>(), 0);
            for (before, after) in stocks_before.iter().zip(&stocks) {
                let taken = i32::from(before.s_quantity) - i32::from(after.s_quantity);
                assert_eq!(
                    (taken - after.s_ytd as i32).rem_euclid(91),
                    0,
                    "less what was sold, filled up by 91"
                );
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn remote_lines_count_in_the_remote_stock() {
    let tpcc = loaded(small(2, 1));
    let (tables, arrangement) = (tpcc.tables.of(1), &tpcc.tables);
    let inputs: Vec<_> =
        with_inputs(&tpcc, |inputs| (0..200).map(|_| NewOrderInput::draw(inputs, 1, NOW)).collect());
    for input in &inputs {
        // One in a hundred is rolled back.
        let _ = tpcc.database.transact(|tx| input.run(arrangement, tx));
    }
    tpcc.database
        .transact(|tx| {
            let remote = |warehouse, stocks: &[super::super::schema::Stock]| -> u32 {
                let of_warehouse = stocks.iter().filter(|stock| stock.s_w_id == warehouse);
                of_warehouse.map(|stock| stock.s_remote_cnt).sum()
            };
            let stocks = tables.stocks.scan().rows(tx)?;
            let lines = tables.order_lines.scan().rows(tx)?;
            let remote_lines = lines.iter().filter(|line| line.ol_supply_w_id != line.ol_w_id).count() as u32;
            assert_eq!((remote(1, &stocks), remote(2, &stocks)), (0, remote_lines));
            assert!(remote_lines > 0);
            let orders = tables.orders.scan().rows(tx)?;
            assert!(orders.iter().any(|order| !order.o_all_local));
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_payment_by_name_is_the_middle_namesakes() {
    let tpcc = loaded(small(1, 1));
    let (tables, arrangement) = (tpcc.tables.of(1), &tpcc.tables);
    let name = Text::truncated("ENSILO");
    tpcc.database
        .transact(|tx| {
            // Four namesakes: by first name they are 9, 2, 7 and 5, of which the second is in the middle.
            for (customer, first) in [(2, "Bert"), (5, "Dora"), (7, "Cleo"), (9, "Abel")] {
                tables.customers.update(tx, (1, 1, customer), |row: &mut Customer| {
                    row.c_last = name;
                    row.c_first = Text::truncated(first);
                    row.c_credit = Text::truncated("BC");
                })?;
            }
            Ok(())
        })
        .unwrap();
    let amount = Money::from_int(100);
    let payment = PaymentInput::of((1, 1), (1, 1), CustomerChoice::LastName(name), amount, NOW);
    tpcc.database.transact(|tx| payment.run(arrangement, tx, &mut Vec::new(), None).map(|_| ())).unwrap();
    tpcc.database
        .transact(|tx| {
            let customer = tables.customers.get(tx, (1, 1, 2))?.unwrap();
            assert_eq!(customer.c_balance, Money::from_int(-110));
            assert_eq!(customer.c_ytd_payment, Money::from_int(110));
            assert_eq!(customer.c_payment_cnt, 2);
            assert!(customer.c_data.as_str().starts_with("2 1 1 1 1 100.00|"), "{}", customer.c_data);
            let district = tables.districts.get(tx, (1, 1))?.unwrap();
            let warehouse = tables.warehouses.get(tx, 1)?.unwrap();
            assert_eq!(district.d_ytd, Money::from_int(30 * 10 + 100));
            assert_eq!(warehouse.w_ytd, Money::from_int(300 * 10 + 100));
            let history = tables.history.scan().rows(tx)?;
            let paid = history.iter().find(|row| row.h_amount == amount).unwrap();
            assert_eq!((paid.h_c_id, paid.h_date), (2, NOW));
            assert_eq!(paid.h_data, format!("{}    {}", warehouse.w_name, district.d_name).as_str());
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_delivery_takes_the_oldest_order_of_each_district() {
    let tpcc = loaded(small(1, 1));
    let (tables, arrangement) = (tpcc.tables.of(1), &tpcc.tables);
    let input = with_inputs(&tpcc, |inputs| DeliveryInput::draw(inputs, 1, NOW));
    let mut heads = QueueHeads::new(1);
    for expected in 22..=30 {
        let delivered = tpcc.database.transact(|tx| input.run(arrangement, tx, &heads)).unwrap();
        assert_eq!(delivered, [Some(expected); 10]);
        if expected % 2 == 0 {
            heads.note(&input, &delivered);
        }
    }
    assert_eq!(tpcc.database.transact(|tx| input.run(arrangement, tx, &heads)).unwrap(), [None; 10]);
    tpcc.database
        .transact(|tx| {
            let order = tables.orders.get(tx, (1, 3, 25))?.unwrap();
            assert!(order.o_carrier_id.is_some());
            let lines = tables.order_lines.prefix((1, 3, 25)).rows(tx)?;
            assert!(lines.iter().all(|line| line.ol_delivery_d == Some(NOW)));
            let sum = lines.iter().fold(Money::default(), |sum, line| sum + line.ol_amount);
            let customer = tables.customers.get(tx, (1, 3, order.o_c_id))?.unwrap();
            assert_eq!((customer.c_delivery_cnt, customer.c_balance), (1, sum - Money::from_int(10)));
            assert_eq!(tables.new_orders.scan().count(tx)?, 0);
            Ok(())
        })
        .unwrap();
}

#[test]
fn read_only_transactions_run_on_both_kinds() {
    let tpcc = loaded(small(1, 1));
    let arrangement = &tpcc.tables;
    let (status, level) =
        with_inputs(&tpcc, |inputs| (OrderStatusInput::draw(inputs, 1), StockLevelInput::draw(inputs, 1)));
    let (mut numbers, mut scratch) = (Vec::new(), StockLevelScratch::new(200));
    tpcc.database.transact(|tx| status.run(arrangement, tx, &mut numbers).map(|_| ())).unwrap();
    tpcc.database.read_stale(|tx| status.run(arrangement, tx, &mut numbers).map(|_| ())).unwrap();
    let ordinary = tpcc.database.transact(|tx| level.run(arrangement, tx, &mut scratch)).unwrap();
    let snapshot = tpcc.database.read_stale(|tx| level.run(arrangement, tx, &mut scratch)).unwrap();
    assert_eq!(ordinary, snapshot);
}
