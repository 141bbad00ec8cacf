//! A customer with accounts, permissions, taxes, watch list and trades.

use ensilo::Text;

use super::fixed::{EXCHANGE_ADDRESSES, address};
use super::{BrokerSums, Plan, trades};
use crate::random::Random;
use crate::tpce::fees::{NATIONAL_TAXRATES, TAXRATES, taxrate_id};
use crate::tpce::kind;
use crate::tpce::names::Person;
use crate::tpce::population::Stream;
use crate::tpce::schema::{
    AccountPermission, Customer, CustomerAccount, CustomerTaxrate, Money, WatchItem, WatchList,
};
use crate::tpce::tables::Rows;

/// Streams of companies count from 1, those of customers from here.
const FIRST_STREAM: u64 = 1 << 32;

/// Makes all rows of a customer, and adds what their trades were worth to the brokers.
pub(super) fn make(plan: Plan<'_>, customer: u32, rows: &mut Rows, brokers: &mut BrokerSums) {
    let mut random = plan.population.random(Stream::Load, FIRST_STREAM + u64::from(customer));
    make_customer(plan, customer, &mut random, rows);
    let rates = [
        random.below(u64::from(NATIONAL_TAXRATES)) as u32,
        random.between(u64::from(NATIONAL_TAXRATES), u64::from(TAXRATES) - 1) as u32,
    ];
    for rate in rates {
        rows.customer_taxrates.push(CustomerTaxrate { cx_c_id: customer, cx_tx_id: taxrate_id(rate) });
    }
    make_watch_list(plan, customer, &mut random, rows);
    for (at, account) in (1..).zip(plan.population.accounts(customer)) {
        make_account(plan, customer, account, at, rows);
    }
    trades::make(plan, customer, rates, &mut random, rows, brokers);
}

fn make_customer(plan: Plan<'_>, customer: u32, random: &mut Random, rows: &mut Rows) {
    let person = Person::of(u64::from(customer));
    let address_number = EXCHANGE_ADDRESSES + plan.population.companies + customer;
    rows.addresses.push(address(address_number, random));
    let area = |random: &mut Random| Text::truncated(&random.between(200, 999).to_string());
    let local = |random: &mut Random| Text::truncated(&random.between(1_000_000, 9_999_999).to_string());
    let country = Text::truncated("011");
    let email = |host| Text::truncated(&format!("{}{customer}@{host}.example", person.last));
    rows.customers.push(Customer {
        c_id: customer,
        c_tax_id: person.tax_id,
        c_st_id: kind::active(),
        c_l_name: person.last,
        c_f_name: person.first,
        c_m_name: random.percent(80).then(|| Text::truncated("M")),
        c_gndr: random.percent(98).then(|| Text::truncated(if random.percent(49) { "M" } else { "F" })),
        c_tier: plan.population.tier(customer),
        c_dob: 12_000 - random.between(18 * 365, 90 * 365) as i32,
        c_ad_id: address_number,
        c_ctry_1: country,
        c_area_1: area(random),
        c_local_1: local(random),
        c_ext_1: random.percent(25).then(|| Text::truncated("1234")),
        c_ctry_2: country,
        c_area_2: area(random),
        c_local_2: local(random),
        c_ext_2: random.percent(15).then(|| Text::truncated("2345")),
        c_ctry_3: country,
        c_area_3: area(random),
        c_local_3: local(random),
        c_ext_3: random.percent(5).then(|| Text::truncated("3456")),
        c_email_1: email("mail"),
        c_email_2: email("post"),
    });
}

/// Clause 2.6: 50 to 150 securities, each once; all of them where there are fewer.
fn make_watch_list(plan: Plan<'_>, customer: u32, random: &mut Random, rows: &mut Rows) {
    rows.watch_lists.push(WatchList { wl_id: customer, wl_c_id: customer });
    let securities = plan.population.securities;
    let count = (random.between(50, 150) as u32).min(securities);
    let first = random.below(u64::from(securities)) as u32;
    let step = random.between(1, u64::from(securities / count)) as u32;
    for at in 0..count {
        let symbol = plan.population.symbol((first + at * step) % securities);
        rows.watch_items.push(WatchItem { wi_wl_id: customer, wi_s_symb: symbol });
    }
}

fn make_account(plan: Plan<'_>, customer: u32, account: u32, at: u32, rows: &mut Rows) {
    let known = plan.population.account(account);
    rows.accounts.push(CustomerAccount {
        ca_id: account,
        ca_b_id: known.broker,
        ca_c_id: customer,
        ca_name: Text::truncated(&format!("{} account {at}", Person::of(u64::from(customer)).full_name())),
        ca_tax_st: known.tax_status,
        ca_bal: Money::from_scaled(known.opening_cents),
    });
    for at in 0..known.permitted {
        let person = known.person(at);
        rows.account_permissions.push(AccountPermission {
            ap_ca_id: account,
            ap_tax_id: person.tax_id,
            ap_acl: Text::truncated(["0000", "0001", "0011"][at as usize]),
            ap_l_name: person.last,
            ap_f_name: person.first,
        });
    }
}
