//! What single transactions do to the rows.

use std::time::Duration;

use ensilo::{Silo, Text, Timestamp};

use super::super::asset_eval::AssetEvalInput;
use super::super::broker_volume::BrokerVolumeInput;
use super::super::calendar::trading_time;
use super::super::cash::cash_name;
use super::super::customer_position::{CustomerName, CustomerPositionInput};
use super::super::data_maintenance::{DataMaintenanceInput, MAINTAINED};
use super::super::exchange::{Submitted, Tick};
use super::super::fees::value;
use super::super::input::{Inputs, TradeChoice};
use super::super::kind::{TradeKind, canceled, completed, pending, submitted};
use super::super::loaded::Tpce;
use super::super::market_feed::MarketFeedInput;
use super::super::market_watch::{MarketWatchInput, Watched};
use super::super::names;
use super::super::options::{ASSET_EVAL, TRADE_ORDER, TRADE_RESULT, TpceOptions};
use super::super::schema::Money;
use super::super::security_detail::SecurityDetailInput;
use super::super::trade_cleanup;
use super::super::trade_lookup::TradeLookupInput;
use super::super::trade_order::{RolledBack, SecurityName, TradeOrderInput};
use super::super::trade_result::TradeResultInput;
use super::super::trade_status::TradeStatusInput;
use super::super::trade_update::TradeUpdateInput;
use super::{loaded, reduced, small};
use crate::driver::{Aborts, Session, Workload};
use crate::random::Random;
use crate::tests::{assert_hold, check};

const NOW: Timestamp = Timestamp::from_micros(1_700_000_000_000_000);
/// A number that no loaded trade has.
const NEW: u64 = 1_000_000;

fn with_inputs<R>(tpce: &Tpce<Silo>, seed: u64, draw: impl FnOnce(&mut Inputs<'_>) -> R) -> R {
    let mut random = Random::new(seed);
    let Tpce { population, options, .. } = tpce;
    draw(&mut Inputs { population, options, random: &mut random, now: NOW })
}

/// An order of this kind that is not rolled back.
fn order(tpce: &Tpce<Silo>, number: u64, kind: TradeKind) -> TradeOrderInput {
    let drawn = with_inputs(tpce, number, |inputs| TradeOrderInput::draw(inputs, number));
    TradeOrderInput { kind, is_margin: false, is_rolled_back: false, ..drawn }
}

fn enter(tpce: &Tpce<Silo>, order: &TradeOrderInput) -> Submitted {
    tpce.database.transact(|tx| order.run(&tpce.tables, tx)).unwrap()
}

#[test]
fn an_order_at_the_market_is_submitted_and_its_result_settles_it() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let tables = &tpce.tables;
    let input = order(&tpce, NEW, TradeKind::MarketBuy);
    let (before, summary_before) = tpce
        .database
        .transact(|tx| {
            let account = tables.accounts.get(tx, input.account)?.unwrap();
            let symbol = tpce.population.symbol(input.security);
            let summary = tables.holding_summaries.get(tx, (input.account, symbol))?;
            Ok((account, summary.map_or(0, |row| row.hs_qty)))
        })
        .unwrap();
    let sent = enter(&tpce, &input);
    assert_eq!((sent.trade, sent.kind, sent.quantity), (NEW, TradeKind::MarketBuy, input.quantity));
    let trade = tpce.database.transact(|tx| tables.trades.get(tx, NEW)).unwrap().unwrap();
    assert_eq!((trade.t_st_id, trade.t_trade_price, trade.t_ca_id), (submitted(), None, input.account));
    let price = Money::from_int(25);
    let result = TradeResultInput { trade: NEW, price, now: NOW };
    let output = tpce.database.transact(|tx| result.run(tables, tx)).unwrap();
    tpce.database
        .transact(|tx| {
            let trade = tables.trades.get(tx, NEW)?.unwrap();
            assert_eq!((trade.t_st_id, trade.t_trade_price), (completed(), Some(price)));
            let settlement = tables.settlements.get(tx, NEW)?.unwrap();
            let cash = tables.cash_transactions.get(tx, NEW)?.unwrap();
            assert_eq!((settlement.se_amt, cash.ct_amt), (output.amount, output.amount));
            let paid = value(input.quantity, price) + trade.t_chrg + trade.t_comm;
            let withheld = if before.ca_tax_st == 1 { trade.t_tax } else { Money::default() };
            assert_eq!(output.amount, -paid - withheld);
            let account = tables.accounts.get(tx, input.account)?.unwrap();
            assert_eq!((account.ca_bal, output.balance), (before.ca_bal + output.amount, account.ca_bal));
            let summary = tables.holding_summaries.get(tx, (input.account, trade.t_s_symb))?;
            assert_eq!(summary.map_or(0, |row| row.hs_qty), summary_before + input.quantity);
            let security = tables.securities.get(tx, trade.t_s_symb)?.unwrap();
            assert_eq!(cash.ct_name, cash_name("Market-Buy", input.quantity, security.s_name.as_str()));
            Ok(())
        })
        .unwrap();
    assert_hold(&check(&tpce));
}

#[test]
fn sales_take_holdings_by_both_orders_and_go_short() {
    let tpce: Tpce<Silo> = loaded(small(1));
    for number in NEW..NEW + 60 {
        let kind = if number % 3 == 0 { TradeKind::MarketBuy } else { TradeKind::MarketSell };
        let mut input = order(&tpce, number, kind);
        let first = order(&tpce, NEW, kind);
        (input.account, input.security, input.executor, input.named) =
            (first.account, first.security, first.executor, first.named);
        input.is_lifo = number % 2 == 0;
        enter(&tpce, &input);
        let result = TradeResultInput { trade: number, price: Money::from_int(22), now: NOW };
        tpce.database.transact(|tx| result.run(&tpce.tables, tx)).unwrap();
    }
    assert_hold(&check(&tpce));
}

#[test]
fn an_order_with_a_limit_waits_until_a_feed_has_its_price() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let tables = &tpce.tables;
    let mut input = order(&tpce, NEW, TradeKind::LimitBuy);
    input.bid = Money::from_int(21);
    enter(&tpce, &input);
    let symbol = tpce.population.symbol(input.security);
    let feed = |price| {
        let ticks = [Tick { symbol, security: input.security, price: Money::from_int(price), quantity: 100 }];
        let input = MarketFeedInput { ticks: &ticks, now: NOW };
        tpce.database.transact(|tx| input.run(tables, tx)).unwrap()
    };
    assert_eq!(feed(30), []);
    let state = || {
        let trade = tpce.database.transact(|tx| tables.trades.get(tx, NEW)).unwrap().unwrap();
        let is_requested = tpce.database.transact(|tx| tables.trade_requests.contains(tx, NEW)).unwrap();
        (trade.t_st_id, is_requested)
    };
    assert_eq!(state(), (pending(), true));
    assert_eq!(feed(20).iter().map(|order| order.trade).collect::<Vec<_>>(), [NEW]);
    assert_eq!(state(), (submitted(), false));
    let last = tpce.database.transact(|tx| tables.last_trades.get(tx, symbol)).unwrap().unwrap();
    assert_eq!((last.lt_price, last.lt_vol), (Money::from_int(20), 200));
    assert_hold(&check(&tpce));
}

#[test]
fn an_order_that_is_withdrawn_leaves_nothing() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let input = TradeOrderInput { is_rolled_back: true, ..order(&tpce, NEW, TradeKind::LimitSell) };
    let error = tpce.database.transact(|tx| input.run(&tpce.tables, tx)).unwrap_err();
    assert!(error.user_error::<RolledBack>().is_some());
    assert!(!tpce.database.transact(|tx| tpce.tables.trades.contains(tx, NEW)).unwrap());
}

#[test]
fn nobody_trades_for_an_account_without_a_permission() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let mut input = order(&tpce, NEW, TradeKind::MarketBuy);
    input.executor.tax_id = Text::truncated("nobody");
    assert!(tpce.database.transact(|tx| input.run(&tpce.tables, tx)).is_err());
}

#[test]
fn a_security_is_found_by_symbol_and_by_company() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let (population, tables) = (&tpce.population, &tpce.tables);
    for (number, security) in (NEW..).zip([0, population.companies]) {
        let company = names::company(population.company_of(security));
        let mut input = order(&tpce, number, TradeKind::MarketBuy);
        input.security = security;
        input.named = SecurityName::Company(company, population.issue_of(security));
        enter(&tpce, &input);
        let trade = tpce.database.transact(|tx| tables.trades.get(tx, number)).unwrap().unwrap();
        assert_eq!(trade.t_s_symb, population.symbol(security));
    }
}

#[test]
fn cleanup_cancels_what_an_earlier_run_has_left() {
    let tpce: Tpce<Silo> = loaded(small(1));
    enter(&tpce, &order(&tpce, NEW, TradeKind::MarketSell));
    enter(&tpce, &order(&tpce, NEW + 1, TradeKind::StopLoss));
    assert_eq!(trade_cleanup::run(&tpce, NOW).unwrap(), 2);
    assert_eq!(trade_cleanup::run(&tpce, NOW).unwrap(), 0);
    for number in [NEW, NEW + 1] {
        let trade = tpce.database.transact(|tx| tpce.tables.trades.get(tx, number)).unwrap().unwrap();
        assert_eq!(trade.t_st_id, canceled());
    }
    assert_eq!(tpce.database.transact(|tx| tpce.tables.trade_requests.scan().count(tx)).unwrap(), 0);
    assert_hold(&check(&tpce));
}

#[test]
fn broker_volume_sums_what_waits_in_the_sector() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let tables = &tpce.tables;
    let mut input = order(&tpce, NEW, TradeKind::LimitBuy);
    input.bid = Money::from_int(21);
    enter(&tpce, &input);
    let industry = tpce.population.company_of(input.security) % names::INDUSTRIES;
    let question = |sector: u32| BrokerVolumeInput {
        brokers: (1..=tpce.population.brokers).map(names::broker).collect(),
        sector: Text::truncated(names::SECTORS[sector as usize]),
    };
    let broker = tpce.population.account(input.account).broker;
    let volume = |sector| tpce.database.transact(|tx| question(sector).run(tables, tx)).unwrap();
    let sector = names::sector_of(industry);
    assert_eq!(volume(sector), [(names::broker(broker), value(input.quantity, input.bid))]);
    assert_eq!(volume((sector + 1) % 12), []);
}

#[test]
fn customer_position_is_the_same_by_number_and_by_tax_id() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let ask = |customer| {
        let input = CustomerPositionInput { customer, history_of: Some(0) };
        tpce.database.transact(|tx| input.run(&tpce.tables, tx)).unwrap()
    };
    let by_number = ask(CustomerName::Number(7));
    assert_eq!(by_number, ask(CustomerName::TaxId(names::Person::of(7).tax_id)));
    assert_eq!(by_number.len(), tpce.population.accounts(7).len());
    assert!(by_number.is_sorted_by_key(|&(_, _, worth)| worth));
}

#[test]
fn trade_status_has_the_latest_trades_first() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let account = order(&tpce, NEW, TradeKind::MarketBuy).account;
    let input = TradeOrderInput { account, ..order(&tpce, NEW, TradeKind::MarketBuy) };
    enter(&tpce, &input);
    let status = TradeStatusInput { account };
    let trades = tpce.database.transact(|tx| status.run(&tpce.tables, tx)).unwrap();
    assert_eq!(trades[0], NEW);
    assert!(trades.len() <= 50);
}

#[test]
fn updates_change_one_column_and_change_it_back() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let tables = &tpce.tables;
    let symbol = tpce.database.transact(|tx| tables.trades.get(tx, 1)).unwrap().unwrap().t_s_symb;
    let account = tpce.database.transact(|tx| tables.trades.get(tx, 1)).unwrap().unwrap().t_ca_id;
    let (from, to) = (trading_time(0), Timestamp::from_micros(i64::MAX));
    for choice in [
        TradeChoice::Numbers(std::array::from_fn(|at| at as u64 + 1)),
        TradeChoice::OfAccount { account, from, to },
        TradeChoice::OfSecurity { symbol, from, to },
    ] {
        let rows = || {
            tpce.database
                .transact(|tx| {
                    let trades =
                        tables.trades.scan().rows(tx)?.into_iter().map(|row| row.t_exec_name.to_string());
                    let settlements = tables.settlements.scan().rows(tx)?;
                    let settlements = settlements.into_iter().map(|row| row.se_cash_type.to_string());
                    let cash = tables.cash_transactions.scan().rows(tx)?;
                    let cash = cash.into_iter().map(|row| row.ct_name.to_string());
                    Ok(trades.chain(settlements).chain(cash).collect::<Vec<String>>())
                })
                .unwrap()
        };
        let input = TradeUpdateInput { choice };
        let update = || tpce.database.transact(|tx| input.run(tables, tx)).unwrap();
        let before = rows();
        let updated = update();
        let changed = before.iter().zip(&rows()).filter(|(before, after)| before != after).count();
        assert!(updated > 0 && changed == updated, "{changed} of {updated}");
        update();
        update();
        update();
        assert_eq!(rows(), before);
    }
    assert_hold(&check(&tpce));
}

#[test]
fn an_evaluation_enters_every_account_of_its_group() {
    let tpce = loaded(reduced(TpceOptions::hybrid(1, 10)));
    let tables = &tpce.tables;
    let input = with_inputs(&tpce, 1, |inputs| AssetEvalInput::draw(inputs, 5, 10));
    assert_eq!(input.customers, 10);
    let (accounts, total) = tpce.database.transact(|tx| input.run(tables, tx)).unwrap();
    let rows = tpce.database.transact(|tx| tables.asset_histories.scan().rows(tx)).unwrap();
    let customers = input.first_customer..input.first_customer + input.customers;
    let expected: Vec<u32> = customers.flat_map(|customer| tpce.population.accounts(customer)).collect();
    assert_eq!(rows.iter().map(|row| row.ah_ca_id).collect::<Vec<_>>(), expected);
    assert_eq!((accounts, total), (expected.len(), rows.iter().map(|row| row.ah_assets).sum()));
}

#[test]
fn maintenance_changes_every_table_in_turn() {
    let tpce: Tpce<Silo> = loaded(small(1));
    for seed in 0..3 {
        for table in 0..MAINTAINED {
            let input = with_inputs(&tpce, seed, |inputs| DataMaintenanceInput::draw(inputs, table));
            tpce.database.transact(|tx| input.run(&tpce.tables, tx)).unwrap();
        }
    }
    assert_hold(&check(&tpce));
}

#[test]
fn questions_of_all_kinds_run_on_snapshots_and_on_the_present() {
    let tpce: Tpce<Silo> = loaded(small(1));
    let tables = &tpce.tables;
    for seed in 0..40 {
        let (lookup, detail) = with_inputs(&tpce, seed, |inputs| {
            (TradeLookupInput::draw(inputs), SecurityDetailInput::draw(inputs))
        });
        tpce.database.transact(|tx| lookup.run(tables, tx)).unwrap();
        tpce.database.read_stale(|tx| lookup.run(tables, tx)).unwrap();
        let now = tpce.database.transact(|tx| detail.run(tables, tx)).unwrap();
        assert_eq!(now, tpce.database.read_stale(|tx| detail.run(tables, tx)).unwrap());
    }
    let since = super::super::calendar::market_day(3);
    for securities in [
        Watched::ByCustomer(3),
        Watched::HeldBy(order(&tpce, NEW, TradeKind::MarketBuy).account),
        Watched::OfIndustry(names::industry(5), 1..=100),
    ] {
        let input = MarketWatchInput { securities, since };
        let change = tpce.database.transact(|tx| input.run(tables, tx)).unwrap();
        assert!((-40.0..60.0).contains(&change) && change != 0.0, "{change}");
    }
}

#[test]
fn the_database_shows_the_effects_of_what_was_committed() {
    let options = TpceOptions { maintenance_interval: Duration::MAX, ..TpceOptions::hybrid(1, 10) };
    let tpce: Tpce<Silo> = loaded(TpceOptions { maintenance_interval: Duration::MAX, ..reduced(options) });
    assert_eq!(tpce.count_effects().unwrap(), [0; 12]);
    let mut expected = [0; 12];
    let mut session = tpce.session(0);
    for number in 0..300 {
        let outcome = session.run_one(NOW.micros() + number * 1_000, &mut Aborts::default()).unwrap();
        expected[outcome.transaction] += u64::from(outcome.effects);
    }
    assert!([TRADE_ORDER, TRADE_RESULT, ASSET_EVAL].iter().all(|&at| expected[at] > 0), "{expected:?}");
    assert_eq!(tpce.count_effects().unwrap(), expected);
    session.finish();
    assert_hold(&check(&tpce));
}
