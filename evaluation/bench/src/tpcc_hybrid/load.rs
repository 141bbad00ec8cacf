//! The rows of the tables that CH-benCHmark adds.

use ensilo::generic::{Database, Table};
use ensilo::{Decimal, Engine, Result, Text};

use super::schema::{NATIONS, Nation, REGIONS, Region, Supplier};
use crate::database;
use crate::random::Random;
use crate::tpcc::Strings;

/// Rows that one transaction inserts.
const BATCH_ROWS: u32 = 500;
/// The load has a stream of random numbers of its own: neither one of TPC-C's loader, which count from 0, nor one of a worker.
const STREAM: u64 = 1 << 62;

/// Handles to the three tables.
#[derive(Debug)]
pub(super) struct HybridTables<E: Engine> {
    pub(super) regions: Table<Region, E>,
    pub(super) nations: Table<Nation, E>,
    pub(super) suppliers: Table<Supplier, E>,
}

impl<E: Engine> HybridTables<E> {
    /// Creates the tables in `database` and fills them.
    pub(super) fn load(database: &Database<E>, suppliers: u32, seed: u64) -> Result<Self> {
        let tables = Self {
            regions: database.create_table()?,
            nations: database.create_table()?,
            suppliers: database.create_table()?,
        };
        let rows = &mut RandomRows { random: Random::for_stream(seed, STREAM), strings: Strings::default() };
        tables.load_regions(database, rows)?;
        for first in (0..suppliers).step_by(BATCH_ROWS as usize) {
            let batch: Vec<Supplier> =
                (first..suppliers.min(first + BATCH_ROWS)).map(|supplier| rows.supplier(supplier)).collect();
            database::load_request(database).transact(|tx| {
                batch.iter().try_for_each(|row| tables.suppliers.insert(tx, row).map(|_| ()))
            })?;
        }
        Ok(tables)
    }

    /// Opens the tables that are in `database`.
    pub(super) fn open(database: &Database<E>) -> Result<Self> {
        Ok(Self {
            regions: database.open_table()?,
            nations: database.open_table()?,
            suppliers: database.open_table()?,
        })
    }

    fn load_regions(&self, database: &Database<E>, rows: &mut RandomRows) -> Result<()> {
        let regions = (0..).zip(REGIONS).map(|(key, name)| rows.region(key, name)).collect::<Vec<_>>();
        let nations = (0..)
            .zip(NATIONS)
            .map(|(key, (name, region))| rows.nation(key, name, region))
            .collect::<Vec<_>>();
        database::load_request(database).transact(|tx| {
            regions.iter().try_for_each(|row| self.regions.insert(tx, row).map(|_| ()))?;
            nations.iter().try_for_each(|row| self.nations.insert(tx, row).map(|_| ()))
        })
    }
}

/// Makes rows.
struct RandomRows {
    random: Random,
    strings: Strings,
}

impl RandomRows {
    fn region(&mut self, key: u8, name: &str) -> Region {
        Region { r_regionkey: key, r_name: Text::truncated(name), r_comment: self.letters(31, 115) }
    }

    fn nation(&mut self, key: u8, name: &str, region: u8) -> Nation {
        Nation {
            n_nationkey: key,
            n_name: Text::truncated(name),
            n_regionkey: region,
            n_comment: self.letters(31, 114),
        }
    }

    /// A supplier of any nation.
    fn supplier(&mut self, key: u32) -> Supplier {
        Supplier {
            su_suppkey: key,
            su_name: Text::truncated(&format!("Supplier#{key:09}")),
            su_address: self.letters(10, 40),
            su_nationkey: self.random.below(NATIONS.len() as u64) as u8,
            su_phone: Text::truncated(self.strings.digits(15, &mut self.random)),
            su_acctbal: Decimal::from_scaled(self.random.between(0, 1_099_998) as i64 - 99_999),
            su_comment: self.letters(25, 100),
        }
    }

    fn letters<const N: usize>(&mut self, low: u64, high: u64) -> Text<N> {
        Text::truncated(self.strings.letters(low, high, &mut self.random))
    }
}
