//! What can be done at the memory limit, over Silo's engine alone: over ERMIA's a row can be deleted there, and not overwritten, since the new
//! version takes memory that there is no reserve for. What of these tests holds there all the same is still to be told apart.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Columns, Error, Options, RowId};

use super::every_engine::at_the_limit::{Full, Item, item};
use super::opened::{Database, Table};
use crate::Event;

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

impl Full {
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

/// A database of 16 MiB that is full, with the ids of its rows, none of which is so young that an overwrite needs no copy.
fn full(options: Options) -> (Database, Table<Event>, Vec<RowId>) {
    let db = options
        .epoch_interval(Duration::from_millis(1))
        .epochs_per_snapshot(2)
        .memory_limit_bytes(16 << 20)
        .in_memory_with()
        .unwrap();
    let events = db.create_table::<Event>().unwrap();
    let mut ids = Vec::new();
    let error = loop {
        match db.transact(|tx| events.insert(tx, &event(1))) {
            Ok(id) => ids.push(id),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::OutOfMemory(_)), "{error}");
    while db.read_stale(|snapshot| events.scan().count(snapshot)).unwrap() < ids.len() {
        thread::yield_now();
    }
    (db, events, ids)
}

fn event(kind: u8) -> Event {
    Event { kind, text: "x".repeat(1000) }
}

/// Inserts once more, as soon as the memory of deleted rows has come back.
fn insert_again(db: &Database, events: &Table<Event>) {
    let began = Instant::now();
    while db.transact(|tx| events.insert(tx, &event(2))).is_err() {
        assert!(began.elapsed() < Duration::from_secs(60), "the memory of deleted rows does not come back");
        thread::yield_now();
    }
}

#[test]
fn at_the_limit_rows_are_read_and_deleted_and_others_inserted_again() {
    let (db, events, ids) = full(Options::default());
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), ids.len());
    // What needs memory says so, and changes nothing.
    let grown = db
        .transact(|tx| events.update(tx, ids[0], |event: &mut Event| event.text.push_str(&"y".repeat(5000))));
    assert!(matches!(grown, Err(Error::OutOfMemory(_))), "{grown:?}");
    assert!(db.transact(|tx| events.insert(tx, &event(2))).is_err());
    assert_eq!(db.transact(|tx| events.get(tx, ids[0])).unwrap(), Some(event(1)));
    // One by one, in one large transaction, and rolled back.
    let (one_by_one, rest) = ids.split_at(500);
    for id in one_by_one {
        assert!(db.transact(|tx| events.delete(tx, id)).unwrap());
    }
    let rolled_back = db.transact(|tx| {
        rest.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))?;
        Err::<(), _>(Error::rollback("on second thoughts"))
    });
    assert!(matches!(rolled_back, Err(Error::User(_))), "{rolled_back:?}");
    db.transact(|tx| rest.iter().try_for_each(|id| events.delete(tx, id).map(|_| ()))).unwrap();
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 0);
    for _ in 0..1000 {
        insert_again(&db, &events);
    }
    assert_eq!(db.transact(|tx| events.scan().count(tx)).unwrap(), 1000);
}

#[test]
fn at_the_limit_rows_are_deleted_under_a_snapshot_that_still_shows_them() {
    let (db, events, ids) = full(Options::default());
    let (opened, is_open) = std::sync::mpsc::channel();
    let (end, ended) = std::sync::mpsc::channel::<()>();
    thread::scope(|scope| {
        let (db, events) = (&db, &events);
        let count = ids.len();
        scope.spawn(move || {
            db.read_stale(|snapshot| {
                opened.send(()).unwrap();
                // Until the sender is dropped.
                let _ = ended.recv();
                let mut seen = 0;
                events.scan().for_each(snapshot, |_, seen_event| {
                    assert_eq!(seen_event, event(1));
                    seen += 1;
                })?;
                assert_eq!(seen, count, "the snapshot shows what was there when it began");
                Ok(())
            })
            .unwrap();
        });
        is_open.recv().unwrap();
        for id in &ids {
            assert!(db.transact(|tx| events.delete(tx, id)).unwrap());
        }
        drop(end);
    });
    insert_again(&db, &events);
}
