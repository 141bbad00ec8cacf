//! Some work on a database that was recovered, in a table of its own.

use ensilo::{Columns, Database, Engine, Result, Row, Table};

use crate::random::Random;
use crate::state::table;

/// The name of the table.
pub(crate) const TABLE: &str = "after";

/// A row that is written after a recovery.
#[derive(Clone, Debug, PartialEq, Eq, Row)]
#[row(table = "after", index(name = "by_text", columns(text)))]
struct After {
    #[row(key)]
    id: u32,
    number: u64,
    text: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Columns)]
#[columns(of = After)]
struct Number {
    number: u64,
}

/// What was done, and acknowledged as stored.
#[derive(Debug)]
pub struct Work {
    rows: Vec<After>,
}

/// Does some work.
///
/// # Errors
/// Those of the database.
pub fn work<E: Engine>(db: &Database<E>, seed: u64) -> Result<Work> {
    let mut random = Random::new(seed);
    let after = match table::<After, E>(db)? {
        Some(after) => after,
        None => db.create_table()?,
    };
    let mut rows: Vec<After> = db.transact(|tx| after.scan().rows(tx))?;
    let first = rows.last().map_or(0, |row| row.id + 1);
    for id in first..first + 3 {
        let row = After { id, number: random.draw(), text: "after".repeat(random.below(9) as usize) };
        db.transact(|tx| after.insert(tx, &row).map(|_| ()))?;
        rows.push(row);
    }
    update_and_delete(db, &after, &mut rows, random.draw())?;
    Ok(Work { rows })
}

fn update_and_delete<E: Engine>(
    db: &Database<E>,
    after: &Table<After, E>,
    rows: &mut Vec<After>,
    number: u64,
) -> Result<()> {
    let Some(gone) = rows.pop() else { return Ok(()) };
    let Some(last) = rows.last_mut() else { return Ok(()) };
    last.number = number;
    db.transact(|tx| {
        after.update(tx, last.id, |row: &mut Number| row.number = number)?;
        after.delete(tx, gone.id).map(|_| ())
    })
}

impl Work {
    /// Whether it is all there.
    ///
    /// # Errors
    /// What is not.
    pub fn check<E: Engine>(&self, db: &Database<E>) -> Result<(), String> {
        let after = table::<After, E>(db).map_err(|error| error.to_string())?;
        let after = after.ok_or_else(|| format!("table {TABLE} is lost"))?;
        let rows = db.transact(|tx| after.scan().rows(tx)).map_err(|error| error.to_string())?;
        if rows == self.rows { Ok(()) } else { Err(format!("rows {rows:?} instead of {:?}", self.rows)) }
    }
}
