//! TPC-C divided by warehouse among several databases: what its transactions do in one of them.
//!
//! Items are in each. A transaction begins in the database of its warehouse. Lines of an order whose stocks are elsewhere are sold there, and
//! a payment by a customer of elsewhere is credited there; the rest of the transaction goes on with what that has returned.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

use ensilo::generic::Transaction;
use ensilo::{Database, Error, Result, Silo};
use serde::{Deserialize, Serialize};

use super::arrangement::Whole;
use super::consistency::{self, HistorySums};
use super::delivery::QueueHeads;
use super::load;
use super::new_order::{LineInput, missing};
use super::options::{LINES_MAX, Scale, TpccOptions};
use super::payment::PaymentInput;
use super::sale::{Sold, SoldElsewhere, sell_to_elsewhere};
use super::stock_level::StockLevelScratch;
use super::tables::Tables;
use super::terminal::Entered;

/// The warehouses of one of several databases.
#[derive(Debug)]
pub struct TpccShare {
    tables: Whole<Silo>,
    /// Of those that look at stocks, while nobody does.
    scratch: Mutex<Vec<StockLevelScratch>>,
}

/// What a transaction does in the database of another warehouse.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ElsewherePart {
    /// Takes the quantities of these lines from their stocks.
    Sell {
        /// The warehouse and the district of the order.
        home: (u16, u8),
        /// The places of the lines in the order, and the lines.
        lines: Vec<(usize, LineInput)>,
    },
    /// Credits a payment to its customer.
    Credit(PaymentInput),
}

/// What comes back of an [`ElsewherePart`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum ElsewhereAnswer {
    /// What the order gets to know of the stocks, by the places of their lines.
    Sold(Vec<(usize, Sold)>),
    /// The customer's number.
    Credited(u16),
}

/// What was paid, as the histories of one or more databases say.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaymentSums(HistorySums);

/// The lines of an order that were sold elsewhere.
struct SoldLines([Option<Sold>; LINES_MAX]);

impl SoldElsewhere for SoldLines {
    fn has_any(&self) -> bool {
        self.0.iter().any(Option::is_some)
    }

    fn of_line(&self, at: usize) -> Option<Sold> {
        self.0[at]
    }
}

impl Entered {
    /// Returns what the transaction does in other databases, by their numbers, where `holder` says which database has a warehouse.
    pub fn elsewhere(&self, holder: impl Fn(u16) -> u64) -> BTreeMap<u64, ElsewherePart> {
        let mut parts = BTreeMap::new();
        match self {
            Entered::NewOrder(input) => {
                let own = holder(input.warehouse);
                for (at, line) in input.lines().iter().enumerate() {
                    let of_line = holder(line.supply_warehouse);
                    if of_line == own {
                        continue;
                    }
                    let home = (input.warehouse, input.district);
                    let part =
                        parts.entry(of_line).or_insert(ElsewherePart::Sell { home, lines: Vec::new() });
                    if let ElsewherePart::Sell { lines, .. } = part {
                        lines.push((at, *line));
                    }
                }
            }
            Entered::Payment(input) => {
                let of_customer = holder(input.customer_warehouse);
                if of_customer != holder(input.warehouse) {
                    parts.insert(of_customer, ElsewherePart::Credit(input.clone()));
                }
            }
            Entered::OrderStatus(_) | Entered::Delivery(_) | Entered::StockLevel(_) => {}
        }
        parts
    }
}

impl TpccShare {
    /// Opens the tables of a database, or makes them.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open_or_create(database: &Database) -> Result<Self> {
        let tables = match Tables::open(database) {
            Err(Error::UnknownTable(_)) => Tables::create(database)?,
            tables => tables?,
        };
        Ok(Self { tables: Whole([tables]), scratch: Mutex::new(Vec::new()) })
    }

    /// Returns the numbers of the tasks that fill a database, which has the warehouses for which `has` says so.
    pub fn load_tasks(options: &TpccOptions, has: impl Fn(u16) -> bool) -> Vec<u64> {
        load::tasks_of(options, has)
    }

    /// Carries out one of the tasks that fill the database. However many databases there are, they make the same rows together, but for the items,
    /// which each has.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn load(&self, tx: &mut Transaction<'_, Silo>, options: &TpccOptions, task: u64) -> Result<()> {
        load::load_task(tx, &self.tables, options, task)
    }

    /// Runs a transaction of a warehouse of this database, for which that was done [elsewhere](Entered::elsewhere) which is to be done there.
    ///
    /// # Errors
    /// Those of the transaction; an order of an unused item is rolled back.
    pub fn run(
        &self,
        tx: &mut Transaction<'_, Silo>,
        entered: &Entered,
        scale: Scale,
        elsewhere: impl Iterator<Item = ElsewhereAnswer>,
    ) -> Result<()> {
        let (mut sold, mut credited) = (SoldLines([const { None }; LINES_MAX]), None);
        for answer in elsewhere {
            match answer {
                ElsewhereAnswer::Sold(lines) => {
                    for (at, line) in lines {
                        *sold.0.get_mut(at).ok_or_else(missing)? = Some(line);
                    }
                }
                ElsewhereAnswer::Credited(number) => credited = Some(number),
            }
        }
        match entered {
            Entered::NewOrder(input) => {
                black_box(input.run_with(&self.tables, tx, &sold)?);
            }
            Entered::Payment(input) => {
                black_box(input.run(&self.tables, tx, &mut Vec::new(), credited)?);
            }
            Entered::OrderStatus(input) => {
                black_box(input.run(&self.tables, tx, &mut Vec::new())?);
            }
            Entered::Delivery(input) => {
                // What deliveries have taken is known when they have committed, which nobody says here.
                let heads = QueueHeads::new(input.warehouse);
                black_box(input.run(&self.tables, tx, &heads)?);
            }
            Entered::StockLevel(input) => {
                let mut scratch = self.take_scratch(scale);
                black_box(input.run(&self.tables, tx, &mut scratch)?);
                self.scratch.lock().unwrap_or_else(PoisonError::into_inner).push(scratch);
            }
        }
        Ok(())
    }

    /// Does what a transaction of another database does in this one.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn run_elsewhere(
        &self,
        tx: &mut Transaction<'_, Silo>,
        part: &ElsewherePart,
    ) -> Result<ElsewhereAnswer> {
        match part {
            ElsewherePart::Sell { home, lines } => {
                let of_lines: Vec<LineInput> = lines.iter().map(|(_, line)| *line).collect();
                let sold = sell_to_elsewhere(&self.tables, tx, *home, &of_lines)?;
                let places = lines.iter().map(|(at, _)| *at);
                Ok(ElsewhereAnswer::Sold(places.zip(sold).collect()))
            }
            ElsewherePart::Credit(input) => input.credit(&self.tables, tx).map(ElsewhereAnswer::Credited),
        }
    }

    /// Returns what was paid, as the history of this database says.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn payments(&self, tx: &mut Transaction<'_, Silo>, options: &TpccOptions) -> Result<PaymentSums> {
        HistorySums::collect(&self.tables, options, tx).map(PaymentSums)
    }

    /// Holds the twelve consistency conditions of the specification against a warehouse of this database, where `payments` are those of all. Returns
    /// what is wrong.
    ///
    /// # Errors
    /// Those of the transaction.
    pub fn check(
        &self,
        tx: &mut Transaction<'_, Silo>,
        (warehouse, scale): (u16, Scale),
        payments: &PaymentSums,
    ) -> Result<Vec<String>> {
        let checks = consistency::check_warehouse(&self.tables, scale, tx, warehouse, &payments.0)?;
        let describe = |check: crate::driver::Check| {
            check.examples.into_iter().map(move |example| format!("{}: {example}", check.name))
        };
        Ok(checks.into_iter().flat_map(describe).collect())
    }

    fn take_scratch(&self, scale: Scale) -> StockLevelScratch {
        let kept = self.scratch.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut scratch = kept.unwrap_or_else(|| StockLevelScratch::new(scale.items));
        scratch.clear();
        scratch
    }
}

impl PaymentSums {
    /// Adds those of another database.
    pub fn add(&mut self, other: &PaymentSums) {
        self.0.add_all(&other.0);
    }
}
