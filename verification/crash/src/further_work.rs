//! Further work on a database that was recovered, in a table of its own.

use ensilo::generic::{Database, Table};
use ensilo::{Columns, Engine, Result, Row};

use crate::random::Random;
use crate::schema::table;

/// The name of the table.
pub(crate) const TABLE: &str = "further";

/// A row that is written after a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "further", index(name = "by_text", columns(text)))]
struct Further {
    #[row(key)]
    id: u32,
    number: u64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = Further)]
struct Number {
    number: u64,
}

/// What was done, and acknowledged as stored.
#[derive(Debug)]
pub struct FurtherWork {
    rows: Vec<Further>,
}

impl FurtherWork {
    /// Does some work.
    ///
    /// # Errors
    /// Those of the database.
    pub fn run<E: Engine>(db: &Database<E>, seed: u64) -> Result<FurtherWork> {
        let mut random = Random::new(seed);
        let further = match table::<Further, E>(db)? {
            Some(further) => further,
            None => db.create_table()?,
        };
        let mut rows: Vec<Further> = db.transact(|tx| further.scan().rows(tx))?;
        let first = rows.last().map_or(0, |row| row.id + 1);
        for id in first..first + 3 {
            let row = Further { id, number: random.draw(), text: "further".repeat(random.below(9) as usize) };
            db.transact(|tx| further.insert(tx, &row).map(|_| ()))?;
            rows.push(row);
        }
        update_and_delete(db, &further, &mut rows, random.draw())?;
        Ok(FurtherWork { rows })
    }

    /// Returns whether it is all there.
    ///
    /// # Errors
    /// What is not.
    pub fn check<E: Engine>(&self, db: &Database<E>) -> Result<(), String> {
        let further = table::<Further, E>(db).map_err(|error| error.to_string())?;
        let further = further.ok_or_else(|| format!("table {TABLE} is lost"))?;
        let rows = db.transact(|tx| further.scan().rows(tx)).map_err(|error| error.to_string())?;
        if rows == self.rows { Ok(()) } else { Err(format!("rows {rows:?} instead of {:?}", self.rows)) }
    }
}

fn update_and_delete<E: Engine>(
    db: &Database<E>,
    further: &Table<Further, E>,
    rows: &mut Vec<Further>,
    number: u64,
) -> Result<()> {
    let Some(gone) = rows.pop() else { return Ok(()) };
    let Some(last) = rows.last_mut() else { return Ok(()) };
    last.number = number;
    db.transact(|tx| {
        further.update(tx, last.id, |row: &mut Number| row.number = number)?;
        further.delete(tx, gone.id).map(|_| ())
    })
}
