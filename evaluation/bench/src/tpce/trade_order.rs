//! Trade-order: a customer, a broker or another who is permitted orders to buy or to sell (clause 3.3.7).

use std::hint::black_box;

use ensilo::generic::{ReadTransaction, Transaction};
use ensilo::{Columns, Engine, Error, Result, Text, Timestamp};

use super::exchange::Submitted;
use super::fees::{commission, settlement, tax, value};
use super::generate::QUANTITIES as ORDER_QUANTITIES;
use super::holdings::{self, OpenLot};
use super::input::Inputs;
use super::kind::{TradeKind, pending, submitted};
use super::lots::Matching;
use super::names;
use super::prices;
use super::rows::{required, shown_columns};
use super::schema::{
    AccountPermission, Broker, Charge, Company, Customer, CustomerAccount, Money, Security, Symbol, Trade,
    TradeHistory, TradeRequest, TradeType,
};
use super::tables::Tables;
use super::taxes;
use super::worth::{self, LastPrice};

/// What is ordered.
#[derive(Debug)]
pub(super) struct TradeOrderInput {
    pub(super) number: u64,
    pub(super) account: u32,
    pub(super) executor: Executor,
    pub(super) security: u32,
    pub(super) named: SecurityName,
    pub(super) kind: TradeKind,
    pub(super) quantity: i32,
    /// The price that an order with a limit waits for.
    pub(super) bid: Money,
    pub(super) is_margin: bool,
    pub(super) is_lifo: bool,
    pub(super) is_rolled_back: bool,
    pub(super) now: Timestamp,
}

/// Who orders.
#[derive(Debug)]
pub(super) struct Executor {
    pub(super) first: Text<20>,
    pub(super) last: Text<25>,
    pub(super) tax_id: Text<20>,
}

/// How the security is named.
#[derive(Debug)]
pub(super) enum SecurityName {
    Symbol(Symbol),
    Company(Text<60>, Text<6>),
}

/// The error by which one order of 101 is rolled back.
#[derive(Debug)]
pub(super) struct RolledBack;

impl std::fmt::Display for RolledBack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order was withdrawn")
    }
}

impl std::error::Error for RolledBack {}

/// What the order would be worth if it were executed at once.
struct Estimate {
    price: Money,
    charge: Money,
    commission: Money,
    tax: Money,
}

#[derive(Columns)]
#[columns(of = CustomerAccount)]
struct Account {
    ca_name: Text<50>,
    ca_b_id: u32,
    ca_c_id: u32,
    ca_tax_st: u8,
    ca_bal: Money,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct Owner {
    c_f_name: Text<20>,
    c_l_name: Text<25>,
    c_tier: u8,
    c_tax_id: Text<20>,
}

#[derive(Columns)]
#[columns(of = AccountPermission)]
struct Permission {
    ap_acl: Text<4>,
    ap_l_name: Text<25>,
    ap_f_name: Text<20>,
}

#[derive(Columns)]
#[columns(of = Company)]
struct CompanyId {
    co_id: u32,
}

#[derive(Columns)]
#[columns(of = Security)]
struct SecurityTraded {
    s_symb: Symbol,
    s_co_id: u32,
    s_ex_id: Text<6>,
    s_name: Text<70>,
}

#[derive(Columns)]
#[columns(of = TradeType)]
struct TypeTraded {
    tt_is_mrkt: bool,
    tt_is_sell: bool,
}

#[derive(Columns)]
#[columns(of = Charge)]
struct ChargeOf {
    ch_chrg: Money,
}

shown_columns! {
    BrokerName of Broker { b_name: Text<49> }
    CompanyName of Company { co_name: Text<60> }
}

impl TradeOrderInput {
    /// Draws an order with this number (clause 6.4): of 100 ten are by another who is permitted, 40 name the company, 35 sell the latest
    /// holdings first; 16 of 100 purchases borrow the money.
    pub(super) fn draw(inputs: &mut Inputs<'_>, number: u64) -> Self {
        let account = inputs.account();
        let (population, random) = (inputs.population, &mut *inputs.random);
        let known = population.account(account);
        let is_others = known.permitted > 1 && random.percent(10);
        let person = known.person(u32::from(is_others));
        let security = known.draw_security(random);
        let kind = TradeKind::draw(random);
        let named = if random.percent(40) {
            let company = names::company(population.company_of(security));
            SecurityName::Company(company, population.issue_of(security))
        } else {
            SecurityName::Symbol(population.symbol(security))
        };
        Self {
            number,
            account,
            executor: Executor { first: person.first, last: person.last, tax_id: person.tax_id },
            security,
            named,
            kind,
            quantity: ORDER_QUANTITIES[random.below(4) as usize],
            bid: prices::any_price(random),
            is_margin: !kind.is_sell() && random.percent(16),
            is_lifo: random.percent(35),
            is_rolled_back: random.below(101) == 0,
            now: inputs.now,
        }
    }

    /// Runs the transaction and returns what goes to the market.
    pub(super) fn run<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'t, E>,
    ) -> Result<Submitted> {
        let account = required(tables.accounts.get_columns::<Account>(tx, self.account)?)?;
        let owner = required(tables.customers.get_columns::<Owner>(tx, account.ca_c_id)?)?;
        black_box(required(tables.brokers.get_columns::<BrokerName>(tx, account.ca_b_id)?)?);
        self.check_permission(&owner, tables, tx)?;
        let security = self.find_security(tables, tx)?;
        let estimate = self.estimate(&account, &owner, &security, tables, tx)?;
        black_box((account.ca_name, security.s_name));
        self.enter(account.ca_b_id, &security, &estimate, tables, tx)?;
        if self.is_rolled_back {
            return Err(Error::user(RolledBack));
        }
        Ok(Submitted {
            trade: self.number,
            security: self.security,
            kind: self.kind,
            quantity: self.quantity,
            bid: estimate.price,
        })
    }

    /// Frame 2: whoever is not the owner needs a permission.
    fn check_permission<'t, E: Engine>(
        &self,
        owner: &Owner,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<()> {
        let Executor { first, last, tax_id } = &self.executor;
        if owner.c_tax_id == *tax_id && owner.c_f_name == *first && owner.c_l_name == *last {
            return Ok(());
        }
        let key = (self.account, *tax_id);
        let permission = tables.account_permissions.get_columns::<Permission>(tx, key)?;
        let permission = permission
            .filter(|row| row.ap_f_name == *first && row.ap_l_name == *last && !row.ap_acl.is_empty());
        permission
            .map(|_| ())
            .ok_or_else(|| Error::rollback("nobody may trade for an account without a permission"))
    }

    /// Frame 3, first half: the security by its symbol, or by company and issue.
    fn find_security<'t, E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<SecurityTraded> {
        match &self.named {
            SecurityName::Symbol(symbol) => {
                let security = required(tables.securities.get_columns::<SecurityTraded>(tx, *symbol)?)?;
                black_box(required(tables.companies.get_columns::<CompanyName>(tx, security.s_co_id)?)?);
                Ok(security)
            }
            SecurityName::Company(name, issue) => {
                let company = tables.companies_by_name.prefix((*name,)).columns::<CompanyId>().first(tx)?;
                let issues = tables.securities_by_company.prefix((required(company)?.1.co_id, *issue));
                Ok(required(issues.columns::<SecurityTraded>().first(tx)?)?.1)
            }
        }
    }

    /// Frame 3, second half: what the order would bring and cost now.
    fn estimate<'t, E: Engine>(
        &self,
        account: &Account,
        owner: &Owner,
        security: &SecurityTraded,
        tables: &Tables<E>,
        tx: &mut impl ReadTransaction<'t, E>,
    ) -> Result<Estimate> {
        let last = required(tables.last_trades.get_columns::<LastPrice>(tx, security.s_symb)?)?;
        let kind = required(tables.trade_types.get_columns::<TypeTraded>(tx, self.kind.id())?)?;
        let price = if kind.tt_is_mrkt { last.lt_price } else { self.bid };
        let lots = holdings::lots(self.account, security.s_symb, self.is_lifo, tables, tx)?;
        let mut matching = Matching::default();
        matching.run(lots.iter().map(OpenLot::lot), self.kind.signed(self.quantity), price);
        let tax_rate = taxes::rate_of(account.ca_c_id, account.ca_tax_st, tables, tx)?;
        let tax = tax(account.ca_tax_st, matching.buy_value, matching.sell_value, tax_rate);
        let rate = taxes::commission_rate(
            owner.c_tier,
            self.kind.id(),
            security.s_ex_id,
            self.quantity,
            tables,
            tx,
        )?;
        let charge = tables.charges.get_columns::<ChargeOf>(tx, (self.kind.id(), owner.c_tier))?;
        let charge = required(charge)?.ch_chrg;
        let whole = value(self.quantity, price);
        let commission = commission(whole, rate);
        if self.is_margin {
            black_box(account.ca_bal + worth::of_holdings(self.account, tables, tx)?);
        }
        black_box(settlement(kind.tt_is_sell, whole, charge, commission, account.ca_tax_st, tax));
        Ok(Estimate { price, charge, commission, tax })
    }

    /// Frame 4: the trade is entered.
    fn enter<E: Engine>(
        &self,
        broker: u32,
        security: &SecurityTraded,
        estimate: &Estimate,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<()> {
        let status = if self.kind.is_market() { submitted() } else { pending() };
        tables.trades.insert(
            tx,
            &Trade {
                t_id: self.number,
                t_dts: self.now,
                t_st_id: status,
                t_tt_id: self.kind.id(),
                t_is_cash: !self.is_margin,
                t_s_symb: security.s_symb,
                t_qty: self.quantity,
                t_bid_price: estimate.price,
                t_ca_id: self.account,
                t_exec_name: Text::truncated(&format!("{} {}", self.executor.first, self.executor.last)),
                t_trade_price: None,
                t_chrg: estimate.charge,
                t_comm: estimate.commission,
                t_tax: Money::default(),
                t_lifo: self.is_lifo,
            },
        )?;
        black_box(estimate.tax);
        let history = TradeHistory { th_t_id: self.number, th_st_id: status, th_dts: self.now };
        tables.trade_histories.insert(tx, &history)?;
        if self.kind.is_market() {
            return Ok(());
        }
        let request = TradeRequest {
            tr_t_id: self.number,
            tr_tt_id: self.kind.id(),
            tr_s_symb: security.s_symb,
            tr_qty: self.quantity,
            tr_bid_price: estimate.price,
            tr_b_id: broker,
        };
        tables.trade_requests.insert(tx, &request).map(|_| ())
    }
}
