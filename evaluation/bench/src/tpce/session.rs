//! One worker's stream of TPC-E transactions.

use std::hint::black_box;

use ensilo::{Abort, Engine, Error, Result, Timestamp};

use super::asset_eval::AssetEvalInput;
use super::broker_volume::BrokerVolumeInput;
use super::customer_position::CustomerPositionInput;
use super::data_maintenance::{DataMaintenanceInput, MAINTAINED};
use super::exchange::MarketExchange;
use super::input::Inputs;
use super::loaded::Tpce;
use super::market_feed::MarketFeedInput;
use super::market_watch::MarketWatchInput;
use super::numbers::NumbersOfWorker;
use super::options::{
    ASSET_EVAL, BROKER_VOLUME, CUSTOMER_POSITION, MARKET_FEED, MARKET_WATCH, SECURITY_DETAIL, TRADE_LOOKUP,
    TRADE_ORDER, TRADE_RESULT, TRADE_STATUS, TRADE_UPDATE,
};
use super::population::Stream;
use super::prices::price;
use super::security_detail::SecurityDetailInput;
use super::trade_lookup::TradeLookupInput;
use super::trade_order::{RolledBack, TradeOrderInput};
use super::trade_result::TradeResultInput;
use super::trade_status::TradeStatusInput;
use super::trade_update::TradeUpdateInput;
use crate::driver::{AbortKind, Aborts, Failure, Outcome, Session};
use crate::random::Random;
use crate::tpcc::ReadOnly;

/// A worker: its customers, and the market that it is.
#[derive(Debug)]
pub struct TpceSession<'a, E: Engine> {
    tpce: &'a Tpce<E>,
    random: Random,
    exchange: MarketExchange,
    trades: NumbersOfWorker<'a>,
    evaluations: NumbersOfWorker<'a>,
    maintenance: Maintenance,
}

/// When the next data-maintenance is due, and of which table. One worker alone has it.
#[derive(Debug)]
struct Maintenance {
    due_unix_us: Option<i64>,
    table: usize,
}

/// What a committed transaction waits for and has done.
struct Done {
    epoch: u64,
    effects: u16,
}

/// A transaction that read the past, which is stored, and did nothing.
const PAST_READ: Done = Done { epoch: 0, effects: 0 };

/// Runs the body of a transaction that changes something.
macro_rules! write {
    ($session:ident, $aborts:ident, $body:expr) => {{
        let request = $session.tpce.database.request();
        let request = request.on_abort(|abort| $aborts.count(abort.reason().into()));
        request.transact_with_epoch($body)
    }};
}

/// Runs the body of a transaction that only reads, as the options say.
macro_rules! read {
    ($session:ident, $aborts:ident, $input:expr) => {{
        let (input, tables) = (&$input, &$session.tpce.tables);
        match $session.tpce.options.read_only {
            ReadOnly::Snapshot => {
                let answer = $session.tpce.database.read_stale(|tx| input.run(tables, tx));
                let mut count = |abort: &Abort| $aborts.count(abort.reason().into());
                answer.inspect_err(|error| error.as_abort().into_iter().for_each(&mut count)).map(|answer| {
                    black_box(answer);
                    PAST_READ
                })
            }
            ReadOnly::Ordinary => {
                write!($session, $aborts, |tx| input.run(tables, tx)).map(|(answer, epoch)| {
                    black_box(answer);
                    Done { epoch, effects: 0 }
                })
            }
        }
    }};
}

impl<'a, E: Engine> TpceSession<'a, E> {
    pub(super) fn new(tpce: &'a Tpce<E>, worker: usize) -> Self {
        Self {
            tpce,
            random: tpce.population.random(Stream::Worker, worker as u64),
            exchange: MarketExchange::default(),
            trades: tpce.trades.of_worker(),
            evaluations: tpce.evaluations.of_worker(),
            maintenance: Maintenance { due_unix_us: (worker == 0).then_some(i64::MIN), table: 0 },
        }
    }

    fn inputs(&mut self, now: Timestamp) -> Inputs<'_> {
        let Tpce { population, options, .. } = self.tpce;
        Inputs { population, options, random: &mut self.random, now }
    }

    /// Which transaction comes next: data-maintenance when it is due, otherwise what is drawn. Where nothing was submitted there
    /// is no result either, and an order comes in its place.
    fn next_type(&mut self, now: Timestamp) -> usize {
        if self.maintenance.due_unix_us.is_some_and(|due| due <= now.micros()) {
            return self.tpce.options.data_maintenance();
        }
        match self.tpce.options.mix.draw(&mut self.random) {
            TRADE_RESULT if !self.exchange.has_submitted() => TRADE_ORDER,
            transaction => transaction,
        }
    }

    fn run(&mut self, transaction: usize, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        match transaction {
            BROKER_VOLUME => read!(self, aborts, BrokerVolumeInput::draw(&mut self.inputs(now))),
            CUSTOMER_POSITION => read!(self, aborts, CustomerPositionInput::draw(&mut self.inputs(now))),
            MARKET_FEED => self.market_feed(now, aborts),
            MARKET_WATCH => read!(self, aborts, MarketWatchInput::draw(&mut self.inputs(now))),
            SECURITY_DETAIL => read!(self, aborts, SecurityDetailInput::draw(&mut self.inputs(now))),
            TRADE_LOOKUP => read!(self, aborts, TradeLookupInput::draw(&mut self.inputs(now))),
            TRADE_ORDER => self.trade_order(now, aborts),
            TRADE_RESULT => self.trade_result(now, aborts),
            TRADE_STATUS => read!(self, aborts, TradeStatusInput::draw(&mut self.inputs(now))),
            TRADE_UPDATE => self.trade_update(now, aborts),
            ASSET_EVAL if self.tpce.options.is_hybrid() => self.asset_eval(now, aborts),
            _ => self.data_maintenance(now, aborts),
        }
    }

    fn trade_order(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let number = self.trades.take();
        let input = TradeOrderInput::draw(&mut self.inputs(now), number);
        let tables = &self.tpce.tables;
        let (order, epoch) = write!(self, aborts, |tx| input.run(tables, tx))?;
        self.exchange.send(order);
        Ok(Done { epoch, effects: 1 })
    }

    fn market_feed(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let ticker = self.exchange.ticker(now, &self.tpce.population, &mut self.random);
        let input = MarketFeedInput { ticks: &ticker.ticks, now };
        let tables = &self.tpce.tables;
        match write!(self, aborts, |tx| input.run(tables, tx)) {
            Ok((triggered, epoch)) => {
                triggered.into_iter().for_each(|order| self.exchange.submit(order));
                Ok(Done { epoch, effects: 0 })
            }
            Err(error) => {
                self.exchange.take_back_wanted(ticker);
                Err(error)
            }
        }
    }

    fn trade_result(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let Some(order) = self.exchange.next_submitted() else { return self.trade_order(now, aborts) };
        let input = TradeResultInput { trade: order.trade, price: price(order.security, now), now };
        let tables = &self.tpce.tables;
        match write!(self, aborts, |tx| input.run(tables, tx)) {
            Ok((output, epoch)) => {
                black_box((output.balance, output.amount));
                self.exchange.note_executed(&order);
                Ok(Done { epoch, effects: 1 })
            }
            Err(error) => {
                self.exchange.submit(order);
                Err(error)
            }
        }
    }

    fn trade_update(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let input = TradeUpdateInput::draw(&mut self.inputs(now));
        let tables = &self.tpce.tables;
        let (updated, epoch) = write!(self, aborts, |tx| input.run(tables, tx))?;
        black_box(updated);
        Ok(Done { epoch, effects: 0 })
    }

    /// Runs one AssetEval, and says that it reads mostly.
    fn asset_eval(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let percent = self.tpce.options.asset_eval_percent.unwrap_or(1);
        let number = self.evaluations.take();
        let input = AssetEvalInput::draw(&mut self.inputs(now), number, percent);
        let tables = &self.tpce.tables;
        let request = self.tpce.database.request().read_mostly();
        let request = request.on_abort(|abort| aborts.count(abort.reason().into()));
        let (total, epoch) = request.transact_with_epoch(|tx| input.run(tables, tx))?;
        black_box(total);
        Ok(Done { epoch, effects: 1 })
    }

    fn data_maintenance(&mut self, now: Timestamp, aborts: &mut Aborts) -> Result<Done> {
        let interval = i64::try_from(self.tpce.options.maintenance_interval.as_micros()).unwrap_or(i64::MAX);
        let table = self.maintenance.table;
        self.maintenance = Maintenance {
            due_unix_us: Some(now.micros().saturating_add(interval)),
            table: (table + 1) % MAINTAINED,
        };
        let input = DataMaintenanceInput::draw(&mut self.inputs(now), table);
        let tables = &self.tpce.tables;
        let ((), epoch) = write!(self, aborts, |tx| input.run(tables, tx))?;
        Ok(Done { epoch, effects: 0 })
    }
}

impl<E: Engine> Session for TpceSession<'_, E> {
    fn run_one(&mut self, now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let now = Timestamp::from_micros(now_unix_us);
        let transaction = self.next_type(now);
        match self.run(transaction, now, aborts) {
            Ok(Done { epoch, effects }) => Ok(Outcome { transaction, committed: true, epoch, effects }),
            Err(error) => not_committed(error, aborts).map(|()| Outcome::not_committed(transaction)),
        }
    }

    fn finish(self) {}
}

/// What a request that did not commit means: a planned rollback or too many conflicts are no failures.
#[cold]
fn not_committed(error: Error, aborts: &mut Aborts) -> Result<(), Failure> {
    if error.user_error::<RolledBack>().is_some() {
        aborts.count(AbortKind::Rollback);
        return Ok(());
    }
    match error {
        // Counted when it happened.
        Error::Aborted(_) => Ok(()),
        error => Err(error.into()),
    }
}
