//! The rows that all threads fight for, and what those who only write do with them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use ensilo::generic::{Database, Table, WriteTransaction};
use ensilo::{ColumnType, Columns, Engine, Error, Result, Row, SchemaChange};

use super::delays::{one_in, random};
use super::history::{Recorder, Recording};
use super::truncations::{Stores, Truncation};

/// So many ids: several transactions of a builder.
pub(crate) const IDS: u32 = 320;

/// So many kinds: many rows each.
const KINDS: u64 = 5;

/// A row; indexes over `value` come and go.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "thing", index(name = "by_kind", columns(kind)))]
pub(crate) struct Thing {
    #[row(key)]
    id: u32,
    /// One that [`new_value`] has made for the row, or for its partner, which has left it then.
    value: u32,
    kind: u8,
    note: String,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Thing)]
struct ValueOf {
    value: u32,
}

#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Thing)]
struct KindOf {
    kind: u8,
}

fn thing(id: u32, value: u32) -> Thing {
    let note = "*".repeat(random() as usize % 40);
    Thing { id, value, kind: (random() % KINDS) as u8, note }
}

/// A value that, almost always, no other row has or had.
fn new_value(id: u32) -> u32 {
    id + IDS * (random() as u32 % 1_000_000)
}

/// Far away in the order of the primary key, so that a builder stands between the two.
fn partner(id: u32) -> u32 {
    (id + IDS / 2) % IDS
}

/// The table, which somebody may drop and make again, truncate and change.
pub(crate) struct Things<E: Engine> {
    table: RwLock<Table<Thing, E>>,
    /// Held by those who give the table other stores.
    replacing: Mutex<()>,
}

impl<E: Engine> Things<E> {
    pub(crate) fn create(db: &Database<E>) -> Self {
        Things { table: RwLock::new(create(db)), replacing: Mutex::new(()) }
    }

    pub(crate) fn get(&self) -> Table<Thing, E> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Drops the table and makes it again. Those who have a handle go on with it meanwhile.
    pub(crate) fn drop_and_create(&self, db: &Database<E>) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        while let Err(error) = db.drop_table("thing") {
            // Its columns are being changed.
            assert!(matches!(error, Error::TableChanged(_)), "{error}");
        }
        *table = create(db);
    }

    /// Takes a handle to the table as it is now.
    pub(crate) fn open_again(&self, db: &Database<E>) {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        *table = db.open_table().unwrap();
    }

    /// Truncates the table, and inserts some rows. Returns false where an index is being built.
    pub(crate) fn truncate(
        &self,
        db: &Database<E>,
        recorder: &Recorder,
        recording: &mut Recording<'_>,
    ) -> bool {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.stores(db, recording);
        match db.truncate_table("thing") {
            Ok(()) => {}
            Err(Error::IndexNotReady(_) | Error::TableChanged(_)) => return false,
            Err(error) => panic!("{error}"),
        }
        recording.take(db);
        self.open_again(db);
        recorder.note(Truncation { before, after: self.stores(db, recording) });
        let rows: Vec<_> = (0..IDS).step_by(5).map(|id| thing(id, new_value(id))).collect();
        let things = self.get();
        check(db.transact(|tx| rows.iter().try_for_each(|row| things.upsert(tx, row))));
        true
    }

    /// Returns which stores the table has, by what is recorded of a look at each.
    fn stores(&self, db: &Database<E>, recording: &mut Recording<'_>) -> Stores {
        loop {
            recording.take(db);
            let things = self.get();
            let looked = db.transact(|tx| {
                things.get(tx, IDS)?;
                things.index::<u8>("by_kind")?.equal(KINDS as u8).count(tx)
            });
            match looked {
                Ok(0) => {}
                Err(Error::TableChanged(_)) => {
                    self.open_again(db);
                    continue;
                }
                other => panic!("{other:?} rows of no kind"),
            }
            recording.take(db);
            let look = recording.taken().last().unwrap();
            return Stores { rows: look.missing[0].table, entries: look.ranges[0].table };
        }
    }

    /// Takes what the rows say out of them, and says something else in all. Returns false where an index is being built.
    pub(crate) fn change_columns(&self, db: &Database<E>) -> bool {
        let change = SchemaChange::new().drop_column("note").add("note", ColumnType::Text, "changed");
        match db.change_table("thing", &change) {
            Ok(()) => self.open_again(db),
            Err(Error::IndexNotReady(_) | Error::TableChanged(_) | Error::UnknownTable(_)) => return false,
            Err(error) => panic!("{error}"),
        }
        true
    }
}

fn create<E: Engine>(db: &Database<E>) -> Table<Thing, E> {
    let mut things = db.create_table::<Thing>().unwrap();
    let rows: Vec<_> = (0..IDS).step_by(2).map(|id| thing(id, new_value(id))).collect();
    loop {
        match db.transact(|tx| things.insert_many(tx, &rows)) {
            Ok(_) => return things,
            // Its columns were changed already.
            Err(Error::TableChanged(_)) => things = db.open_table().unwrap(),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Writes and reads until `stop`, and counts the steps.
pub(crate) fn churn<E: Engine>(
    db: &Database<E>,
    things: &Things<E>,
    recorder: &Recorder,
    (stop, steps): (&AtomicBool, &AtomicU64),
) {
    let mut recording = recorder.start(db);
    while !stop.load(Ordering::Relaxed) {
        let is_current = step(db, &things.get());
        steps.fetch_add(u64::from(is_current), Ordering::Relaxed);
        if !is_current {
            things.open_again(db);
        }
        if one_in(16) {
            read_snapshot(db, &things.get());
        }
        recording.take(db);
        // So that a transaction on all rows gets through now and then.
        if one_in(16) {
            thread::sleep(Duration::from_micros(random() % 1_000));
        }
    }
}

/// Does something. Returns whether the handle is to the table as it is.
fn step<E: Engine>(db: &Database<E>, things: &Table<Thing, E>) -> bool {
    let id = random() as u32 % IDS;
    let row = thing(id, new_value(id));
    let done: Result<()> = match random() % 18 {
        0 | 1 => db.transact(|tx| things.delete(tx, id).map(|_| ())),
        2 => db.transact(|tx| things.update(tx, id, |columns: &mut KindOf| columns.kind = row.kind)),
        3..=6 => meet(db, things, id),
        7 => db.transact(|tx| {
            let Some(row) = things.get(tx, id)? else { return Ok(()) };
            let Some(found) = things.index::<u32>("by_value")?.get(tx, row.value)? else {
                return Err(Error::rollback("a row is missing in the index"));
            };
            if found.value == row.value {
                Ok(())
            } else {
                Err(Error::rollback("another value than looked for"))
            }
        }),
        8 => db.transact(|tx| {
            let found = things.index::<u8>("by_kind")?.equal(row.kind).limit(5).rows(tx)?;
            found.iter().try_for_each(|it| has_kind(it.kind, row.kind))?;
            let kind = (random() % KINDS) as u8;
            found.iter().try_for_each(|it| things.update(tx, it.id, |it: &mut KindOf| it.kind = kind))
        }),
        9 => db.transact(|tx| things.update(tx, id, |columns: &mut ValueOf| columns.value = row.value)),
        10 => db.transact(|tx| {
            let by_kind = things.index::<u8>("by_kind")?;
            let taken = by_kind.equal(row.kind).columns::<KindOf>().take_first(tx)?;
            taken.map_or(Ok(()), |(_, taken)| has_kind(taken.kind, row.kind))
        }),
        11 => db.transact(|tx| things.take(tx, id).map(drop)),
        12 => db.transact(|tx| things.insert_or_get(tx, &row).map(drop)),
        13 => db.transact(|tx| {
            things.update_or_insert(tx, &row, |columns: &mut KindOf| columns.kind = row.kind).map(drop)
        }),
        14 => db.transact(|tx| things.range(id..id + 3).delete(tx).map(drop)),
        15 => db.transact(|tx| change_by_cursor(tx, things, row.kind)),
        _ => db.transact(|tx| things.upsert(tx, &row)),
    };
    let is_current = !matches!(done, Err(Error::TableChanged(_)));
    check(done);
    is_current
}

/// A row that was found by an index has what was looked for.
fn has_kind(found: u8, wanted: u8) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(Error::rollback(format!("kind {found} is found as {wanted}"))) }
}

/// Goes through the rows of a kind, deletes some of them, and changes others: of all that it meets each is of that kind still.
fn change_by_cursor<'t, E: Engine>(
    tx: &mut impl WriteTransaction<'t, E>,
    things: &Table<Thing, E>,
    kind: u8,
) -> Result<()> {
    let by_kind = things.index::<u8>("by_kind")?;
    let mut cursor = by_kind.equal(kind).limit(20).cursor();
    while let Some((id, row)) = cursor.next(tx)? {
        has_kind(row.kind, kind)?;
        match random() % 6 {
            0 => _ = things.delete(tx, id)?,
            1 => things.update(tx, id, |columns: &mut KindOf| columns.kind = (random() % KINDS) as u8)?,
            _ => {}
        }
    }
    Ok(())
}

/// Gives a row the value that its partner has, and then makes the partner leave it. So two rows share a value for a moment only, and an
/// index that is built meets that now and then.
fn meet<E: Engine>(db: &Database<E>, things: &Table<Thing, E>, id: u32) -> Result<()> {
    let other = partner(id);
    db.transact(|tx| match things.get(tx, other)? {
        Some(partner) => things.upsert(tx, &thing(id, partner.value)),
        None => Ok(()),
    })?;
    match random() % 3 {
        0 => db.transact(|tx| things.delete(tx, other).map(|_| ())),
        1 => db.transact(|tx| things.update(tx, other, |it: &mut ValueOf| it.value = new_value(other))),
        _ => db.transact(|tx| {
            things.delete(tx, other)?;
            things.insert(tx, &thing(other, new_value(other))).map(|_| ())
        }),
    }
}

/// Every index shows the rows of the point in time of the snapshot, however many there are.
fn read_snapshot<E: Engine>(db: &Database<E>, things: &Table<Thing, E>) {
    check(db.read_stale(|tx| {
        let rows = things.scan().count(tx)?;
        let entries = things.index::<u8>("by_kind")?.scan().count(tx)?;
        if rows == entries { Ok(()) } else { Err(Error::rollback(format!("{rows} rows, {entries} entries"))) }
    }));
}

/// What others may do to a statement; everything else is a finding.
fn check(done: Result<()>) {
    match done {
        Ok(())
        | Err(
            Error::DuplicateKey(_)
            | Error::MissingRow(_)
            | Error::IndexNotReady(_)
            | Error::UnknownIndex(_)
            | Error::UnknownTable(_)
            | Error::TableChanged(_),
        ) => {}
        Err(error) => panic!("{error}"),
    }
}
