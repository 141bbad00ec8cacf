//! Every operation at the memory limit: it succeeds, or ends with [`Error::OutOfMemory`] and has changed nothing.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Columns, Database, Error, Order, Result, Row, Statistics, Table};

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item", index(name = "by_kind", columns(kind)), index(name = "by_code", columns(code), unique))]
struct Item {
    #[row(key)]
    id: u32,
    kind: u32,
    code: u64,
    hits: u64,
    text: String,
}

#[derive(Clone, Debug, Columns)]
#[columns(of = Item)]
struct Hits {
    hits: u64,
}

#[derive(Clone, Debug, Columns)]
#[columns(of = Item)]
struct Indexed {
    kind: u32,
    code: u64,
}

/// A table beside it, to be dropped.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "other", index(name = "by_text", columns(text)))]
struct Other {
    #[row(key)]
    id: u32,
    text: String,
}

/// What is in the table, by the primary key.
type Model = BTreeMap<u32, Item>;

fn item(id: u32, text_len: usize) -> Item {
    Item { id, kind: id % 7, code: u64::from(id) << 20, hits: 0, text: "x".repeat(text_len) }
}

/// Whether the operation took place.
fn has_happened<R>(outcome: &Result<R>) -> bool {
    match outcome {
        Ok(_) => true,
        Err(Error::OutOfMemory(_)) => false,
        Err(error) => panic!("neither done nor out of memory: {error}"),
    }
}

struct Full {
    db: Database,
    items: Table<Item>,
    model: Model,
    next_id: u32,
    /// How often which kind of operation succeeded, and how often it did not.
    counts: BTreeMap<&'static str, (u32, u32)>,
}

impl Full {
    /// A database in which rows of no length fit any more.
    fn new() -> Self {
        let db = Database::options()
            .epoch_interval(Duration::from_millis(1))
            .epochs_per_snapshot(2)
            .memory_limit_bytes(8 << 20)
            .in_memory()
            .unwrap();
        let items = db.create_table::<Item>().unwrap();
        let others = db.create_table::<Other>().unwrap();
        db.transact(|tx| {
            let other = |id| Other { id, text: "other".repeat(20) };
            others.insert_many(tx, &(0..500).map(other).collect::<Vec<_>>()).map(|_| ())
        })
        .unwrap();
        let mut full = Full { db, items, model: Model::new(), next_id: 0, counts: BTreeMap::new() };
        for text_len in [900, 200, 0] {
            while full.insert(text_len) {}
        }
        full.counts.clear();
        full.wait_until_snapshots_show_all();
        full
    }

    /// From now on an overwrite of any row has to keep the old version.
    fn wait_until_snapshots_show_all(&self) {
        let began = Instant::now();
        let shown = || self.db.read_stale(|snapshot| self.items.scan().rows(snapshot)).unwrap();
        while !shown().iter().eq(self.model.values()) {
            assert!(began.elapsed() < PATIENCE, "snapshots do not show the rows");
            thread::yield_now();
        }
    }

    fn note<R>(&mut self, operation: &'static str, outcome: &Result<R>) -> bool {
        let has_happened = has_happened(outcome);
        let (done, refused) = self.counts.entry(operation).or_default();
        if has_happened {
            *done += 1
        } else {
            *refused += 1
        }
        has_happened
    }

    fn insert(&mut self, text_len: usize) -> bool {
        let item = item(self.next_id, text_len);
        let outcome = self.db.transact(|tx| self.items.insert(tx, &item));
        let is_inserted = self.note("insert", &outcome);
        if is_inserted {
            self.model.insert(item.id, item);
            self.next_id += 1;
        }
        is_inserted
    }

    /// The row with the smallest key that is at least `id`.
    fn any(&self, id: u32) -> Item {
        self.model.range(id..).next().unwrap_or_else(|| self.model.iter().next().unwrap()).1.clone()
    }

    fn replace(&mut self, operation: &'static str, item: Item, is_upsert: bool) -> bool {
        let outcome = self.db.transact(|tx| match is_upsert {
            true => self.items.upsert(tx, &item),
            false => self.items.replace(tx, &item),
        });
        let has_happened = self.note(operation, &outcome);
        if has_happened {
            self.model.insert(item.id, item);
        }
        has_happened
    }

    fn update_in_place(&mut self, id: u32) -> bool {
        let outcome = self.db.transact(|tx| self.items.update(tx, id, |row: &mut Hits| row.hits += 1));
        let has_happened = self.note("update in place", &outcome);
        if has_happened {
            self.model.entry(id).and_modify(|item| item.hits += 1);
        }
        has_happened
    }

    fn update_indexed(&mut self, id: u32) {
        let outcome = self.db.transact(|tx| {
            self.items.update(tx, id, |row: &mut Indexed| {
                (row.kind, row.code) = (row.kind + 1, row.code + 1);
            })
        });
        if self.note("update of indexed columns", &outcome) {
            self.model.entry(id).and_modify(|item| (item.kind, item.code) = (item.kind + 1, item.code + 1));
        }
    }

    fn delete(&mut self, id: u32) {
        let outcome = self.db.transact(|tx| self.items.delete(tx, id));
        assert!(self.note("delete", &outcome), "rows can be deleted at the limit");
        assert_eq!(outcome.unwrap(), self.model.remove(&id).is_some());
    }

    /// Updates of many rows, and inserts that do not fit, in one transaction: none of it takes place.
    fn many_at_once(&mut self, text_len: usize) {
        let (next_id, after): (_, Vec<_>) = (self.next_id, self.model.values().take(300).cloned().collect());
        let new: Vec<_> = (0..300).map(|more| item(next_id + more, text_len)).collect();
        let outcome = self.db.transact(|tx| {
            for row in &after {
                self.items.update(tx, row.id, |row: &mut Hits| row.hits += 1)?;
            }
            self.items.insert_many(tx, &new).map(|_| ())
        });
        if self.note("many at once", &outcome) {
            self.next_id += 300;
            for row in after {
                self.model.entry(row.id).and_modify(|item| item.hits += 1);
            }
            self.model.extend(new.into_iter().map(|item| (item.id, item)));
        }
    }

    /// Reads need no memory that is bounded: they always succeed, and show what is there by every way to it.
    fn check(&self) {
        let expected: Vec<_> = self.model.values().cloned().collect();
        let (items, db) = (&self.items, &self.db);
        assert_eq!(db.transact(|tx| items.scan().rows(tx)).unwrap(), expected);
        let by_kind = items.index::<u32>("by_kind").unwrap();
        let by_code = items.index::<u64>("by_code").unwrap();
        let mut of_kind = expected.clone();
        of_kind.sort_by_key(|item| (item.kind, item.id));
        assert_eq!(db.transact(|tx| by_kind.scan().collect(tx)).unwrap(), of_kind);
        let mut of_code = expected.clone();
        of_code.sort_by_key(|item| item.code);
        assert_eq!(db.transact(|tx| by_code.scan().collect(tx)).unwrap(), of_code);
        for item in expected.iter().step_by(97) {
            assert_eq!(db.transact(|tx| items.get(tx, item.id)).unwrap().as_ref(), Some(item));
            assert_eq!(db.transact(|tx| by_code.get(tx, &item.code)).unwrap().as_ref(), Some(item));
            let item = item.clone();
            let (table, id) = (items.clone(), item.id);
            let job = db.submit(move |tx| table.get(tx, id)).unwrap();
            assert_eq!(job.wait().unwrap(), Some(item));
        }
        let statistics = db.statistics().unwrap();
        assert!(statistics.memory.live_bytes <= statistics.memory.mapped_bytes, "{statistics:?}");
    }

    /// Waits until what was deleted or superseded is gone, while nobody but this thread's look at it uses the database.
    fn wait_until_collected(&self) {
        wait_for(&self.db, "garbage is collected", |statistics| {
            let memory = &statistics.memory;
            (memory.deleted_records, memory.versions, memory.retired_bytes) == (0, 0, 0)
        });
    }
}

fn wait_for(db: &Database, what: &str, holds: impl Fn(&Statistics) -> bool) {
    let began = Instant::now();
    loop {
        let statistics = db.statistics().unwrap();
        if holds(&statistics) {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{what}: {statistics:?}");
        thread::yield_now();
    }
}

/// One operation of each kind, whose rows depend on `round`.
fn operations(full: &mut Full, round: u32) {
    let id = |salt: u32| round.wrapping_mul(2_654_435_761).wrapping_add(salt) % full.next_id;
    let of = |salt| full.any(id(salt));
    let (in_place, indexed, deleted) = (of(1).id, of(2).id, of(3).id);
    let same = Item { hits: 7, ..of(4) };
    let (larger, smaller, upserted) = (of(5), of(6), of(7));
    full.update_in_place(in_place);
    full.update_indexed(indexed);
    full.replace("replace by the same size", same, false);
    let text = larger.text.clone() + &"y".repeat(2000);
    full.replace("replace by more", Item { text, ..larger }, false);
    full.replace("replace by less", Item { text: String::new(), ..smaller }, false);
    full.replace("upsert of an old row", Item { kind: 3, ..upserted }, true);
    let new = item(full.next_id, 900);
    if full.replace("upsert of a new row", new, true) {
        full.next_id += 1;
    }
    full.insert(900);
    full.many_at_once(900);
    if round.is_multiple_of(4) {
        full.delete(deleted);
    }
}

#[test]
fn every_statement_at_the_limit_succeeds_or_changes_nothing() {
    let mut full = Full::new();
    full.check();
    for round in 0..120 {
        operations(&mut full, round);
        if round % 20 == 0 {
            full.check();
        }
    }
    full.check();
    full.wait_until_snapshots_show_all();
    full.check();
    let refused = |counts: &BTreeMap<_, (u32, u32)>, operation| counts[operation].1;
    for operation in ["insert", "many at once", "replace by more", "upsert of a new row"] {
        assert!(refused(&full.counts, operation) > 0, "not at the limit: {:?}", full.counts);
    }
    // As the errors advise.
    let ids: Vec<_> = full.model.keys().copied().take(full.model.len() / 2).collect();
    ids.into_iter().for_each(|id| full.delete(id));
    full.wait_until_collected();
    full.check();
    full.counts.clear();
    for round in 0..5 {
        operations(&mut full, round);
    }
    assert!(full.counts.values().all(|&(_, refused)| refused == 0), "{:?}", full.counts);
    full.check();
    // Where few rows are left there is room for any.
    let ids: Vec<_> = full.model.keys().copied().take(full.model.len() * 15 / 16).collect();
    ids.into_iter().for_each(|id| full.delete(id));
    full.wait_until_collected();
    full.counts.clear();
    for round in 0..5 {
        operations(&mut full, round);
    }
    assert!(full.counts.values().all(|&(_, refused)| refused == 0), "{:?}", full.counts);
    full.check();
}

#[test]
fn rows_are_overwritten_in_place_at_the_limit() {
    let mut full = Full::new();
    // In a reserve for what snapshots still see, and again when they do not any more.
    for round in 0..5 {
        for id in 0..100 {
            assert!(full.update_in_place(id), "round {round}, row {id}");
        }
        full.wait_until_collected();
    }
    full.check();
}

#[test]
fn tables_and_indexes_are_made_and_dropped_at_the_limit() {
    let mut full = Full::new();
    let mut made = 0;
    for round in 0..3 {
        // An index over all rows does not fit, and leaves nothing: neither a name nor memory.
        let before = full.db.statistics().unwrap().memory.live_bytes;
        let made_index = full.db.create_index("item", "by_text", [("text", Order::Ascending)]);
        assert!(!full.note("create_index", &made_index), "the index fits");
        assert!(matches!(full.items.index::<String>("by_text"), Err(Error::UnknownIndex(_))));
        wait_for(&full.db, "what an abandoned index took", |statistics| {
            statistics.memory.retired_bytes == 0 && statistics.memory.live_bytes <= before
        });
        let table = full.db.create_table_named::<Other>("another");
        if full.note("create_table", &table) {
            made += 1;
            full.db.drop_table("another").unwrap();
        } else {
            assert!(full.db.open_table_named::<Other>("another").is_err());
        }
        full.check();
        assert!(!full.insert(900), "round {round}: the database is full");
    }
    assert_eq!(full.db.list_tables().unwrap(), ["item", "other"], "{made} were made");
    // An index goes, and its memory serves the rows; it can be made anew when there is room.
    full.db.drop_index("other", "by_text").unwrap();
    full.db.drop_table("other").unwrap();
    full.wait_until_collected();
    full.counts.clear();
    for _ in 0..20 {
        full.insert(0);
    }
    assert_eq!(full.counts["insert"], (20, 0), "a dropped table's memory serves other tables");
    full.check();
    let ids: Vec<_> = full.model.keys().copied().take(full.model.len() / 2).collect();
    ids.into_iter().for_each(|id| full.delete(id));
    full.wait_until_collected();
    full.db.create_index("item", "by_text", [("text", Order::Ascending)]).unwrap();
    let by_text = full.items.index::<String>("by_text").unwrap();
    assert_eq!(full.db.transact(|tx| by_text.scan().count(tx)).unwrap(), full.model.len());
    full.check();
}
