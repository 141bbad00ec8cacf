//! Every operation at the memory limit: it succeeds, or ends with [`Error::OutOfMemory`] and has changed nothing.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Error, Options, Order, Result, Row, Statistics};

use super::{Database, Table};

/// However slow the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "item", index(name = "by_kind", columns(kind)), index(name = "by_code", columns(code), unique))]
pub(crate) struct Item {
    #[row(key)]
    pub(crate) id: u32,
    pub(crate) kind: u32,
    pub(crate) code: u64,
    pub(crate) hits: u64,
    pub(crate) text: String,
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
pub(crate) type Model = BTreeMap<u32, Item>;

pub(crate) fn item(id: u32, text_len: usize) -> Item {
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

pub(crate) struct Full {
    pub(crate) db: Database,
    pub(crate) items: Table<Item>,
    pub(crate) model: Model,
    pub(crate) next_id: u32,
    /// How often which kind of operation succeeded, and how often it did not.
    pub(crate) counts: BTreeMap<&'static str, (u32, u32)>,
}

impl Full {
    /// A database in which rows of no length fit any more.
    pub(crate) fn new() -> Self {
        let db: Database = Options::default()
            .epoch_interval(Duration::from_millis(1))
            .epochs_per_snapshot(2)
            .memory_limit_bytes(8 << 20)
            .in_memory_with()
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
    pub(crate) fn wait_until_snapshots_show_all(&self) {
        let began = Instant::now();
        let shown = || self.db.read_stale(|snapshot| self.items.scan().rows(snapshot)).unwrap();
        while !shown().iter().eq(self.model.values()) {
            assert!(began.elapsed() < PATIENCE, "snapshots do not show the rows");
            thread::yield_now();
        }
    }

    pub(crate) fn note<R>(&mut self, operation: &'static str, outcome: &Result<R>) -> bool {
        let has_happened = has_happened(outcome);
        let (done, refused) = self.counts.entry(operation).or_default();
        if has_happened {
            *done += 1
        } else {
            *refused += 1
        }
        has_happened
    }

    pub(crate) fn insert(&mut self, text_len: usize) -> bool {
        let item = item(self.next_id, text_len);
        let outcome = self.db.transact(|tx| self.items.insert(tx, &item));
        let is_inserted = self.note("insert", &outcome);
        if is_inserted {
            self.model.insert(item.id, item);
            self.next_id += 1;
        }
        is_inserted
    }

    pub(crate) fn delete(&mut self, id: u32) {
        let outcome = self.db.transact(|tx| self.items.delete(tx, id));
        assert!(self.note("delete", &outcome), "rows can be deleted at the limit");
        assert_eq!(outcome.unwrap(), self.model.remove(&id).is_some());
    }

    /// Reads need no memory that is bounded: they always succeed, and show what is there by every way to it.
    pub(crate) fn check(&self) {
        let expected: Vec<_> = self.model.values().cloned().collect();
        let (items, db) = (&self.items, &self.db);
        assert_eq!(db.transact(|tx| items.scan().rows(tx)).unwrap(), expected);
        let by_kind = items.index::<u32>("by_kind").unwrap();
        let by_code = items.index::<u64>("by_code").unwrap();
        let mut of_kind = expected.clone();
        of_kind.sort_by_key(|item| (item.kind, item.id));
        assert_eq!(db.transact(|tx| by_kind.scan().rows(tx)).unwrap(), of_kind);
        let mut of_code = expected.clone();
        of_code.sort_by_key(|item| item.code);
        assert_eq!(db.transact(|tx| by_code.scan().rows(tx)).unwrap(), of_code);
        for item in expected.iter().step_by(97) {
            assert_eq!(db.transact(|tx| items.get(tx, item.id)).unwrap().as_ref(), Some(item));
            assert_eq!(db.transact(|tx| by_code.get(tx, item.code)).unwrap().as_ref(), Some(item));
            let item = item.clone();
            let (table, id) = (items.clone(), item.id);
            let job = db.submit(move |tx| table.get(tx, id)).unwrap();
            assert_eq!(job.wait().unwrap(), Some(item));
        }
        let statistics = db.statistics().unwrap();
        assert!(statistics.memory.live_bytes <= statistics.memory.mapped_bytes, "{statistics:?}");
    }

    /// Waits until what was deleted or superseded is gone, while nobody but this thread's look at it uses the database.
    pub(crate) fn wait_until_collected(&self) {
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
