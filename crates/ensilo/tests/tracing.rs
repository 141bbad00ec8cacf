//! Events of the crate `tracing`, as a subscriber of the program sees them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fmt::{Debug, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ensilo::generic::{Database, Migrations};
use ensilo::{Engine, ExpiryOptions, Row, TimeUnit};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

#[derive(Debug, Row)]
#[row(table = "city")]
struct City {
    #[row(key)]
    id: u32,
}

/// Notes the events of this crate, as `LEVEL field=value ...`. Checkpoints are reported by a thread of the database, so it is that of the whole process.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl Subscriber for Noted {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "ensilo"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(event.metadata().level().to_string());
        event.record(&mut text);
        self.0.lock().unwrap().push(text.0);
        assert!(*event.metadata().level() != Level::DEBUG, "a subscriber's panic ends nothing");
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Noted {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn directory(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

#[track_caller]
fn assert_has(events: &[String], parts: &[&str]) {
    let has_all = |event: &&String| parts.iter().all(|part| event.contains(part));
    assert!(events.iter().find(has_all).is_some(), "{parts:?}: {events:#?}");
}

fn check<E: Engine>(noted: &Noted, name: &str) {
    let (path, copy) = (directory(name), directory(&format!("{name}-copy")));
    let options = || ensilo::Database::options().no_checkpoints();
    let (sender, events) = channel();
    let sender = Mutex::new(sender);
    let hook = move |event: &ensilo::Event| sender.lock().unwrap().send(event.to_string()).unwrap();
    let db: Database<E> = options().on_event(hook).open_as(&path).unwrap();
    let opened = noted.take();
    for phase in ["replayed", "catalog loaded", "indexes made"] {
        assert_has(&opened, &["DEBUG", &format!("phase=\"{phase}\"")]);
    }
    assert_has(&opened, &["INFO", "opened", name, "is_read_only=false"]);
    let cities = db.create_table::<City>().unwrap();
    db.transact(|tx| cities.insert(tx, &City { id: 1 })).unwrap();
    assert!(noted.take().is_empty(), "transactions make no events");
    let watched: Database<E> =
        options().on_slow_request(std::time::Duration::ZERO, 1, |_| ()).in_memory_with().unwrap();
    watched.request().label("hello").transact(|_| Ok(())).unwrap();
    assert_has(
        &noted.take(),
        &["WARN", "slow request", "label=\"hello\"", "attempts=1", "has_committed=true"],
    );
    db.checkpoint().unwrap();
    db.backup(&copy).unwrap();
    let made = noted.take();
    assert_has(&made, &["INFO", "checkpoint made", "checkpoint=1", "rows=2"]);
    assert_has(&made, &["INFO", "backup made", &format!("{name}-copy")]);
    // A directory stands where the manifest is written.
    let blocked = path.join("MANIFEST.new");
    std::fs::create_dir(&blocked).unwrap();
    let failed = db.checkpoint().unwrap_err().to_string();
    assert_eq!(events.recv().unwrap(), failed, "the hook is called after the subscriber");
    assert_has(&noted.take(), &["WARN", &failed]);
    std::fs::remove_dir(&blocked).unwrap();
    db.checkpoint().unwrap();
    let over = events.recv().unwrap();
    assert_has(&noted.take(), &["INFO", &over]);
    db.close().unwrap();
    assert_has(&noted.take(), &["INFO", "closed"]);
    let db: Database<E> = options().read_only(true).open_as(&copy).unwrap();
    assert_has(&noted.take(), &["INFO", "opened", "is_read_only=true"]);
    db.close().unwrap();
    noted.take();
    check_expiry::<E>(noted);
    check_migration::<E>(noted);
}

fn check_migration<E: Engine>(noted: &Noted) {
    let db: Database<E> = ensilo::Database::options().in_memory_with().unwrap();
    let migrations = || Migrations::new().drop_table("no cities", "city").drop_table("no streets", "street");
    db.create_table::<City>().unwrap();
    db.migrate(&migrations()).unwrap();
    let events = noted.take();
    assert_has(&events, &["INFO", "migration applied", "number=1", "name=\"no cities\"", "outcome=Applied"]);
    assert_has(&events, &["INFO", "number=2", "outcome=TableMissing"]);
    db.migrate(&migrations()).unwrap();
    assert!(noted.take().is_empty());
    db.close().unwrap();
    noted.take();
}

fn check_expiry<E: Engine>(noted: &Noted) {
    let (sender, events) = channel();
    let hook = move |event: &ensilo::Event| sender.send(event.to_string()).unwrap();
    let db: Database<E> = ensilo::Database::options().on_event(hook).in_memory_with().unwrap();
    db.create_table::<City>().unwrap();
    let by_id = ExpiryOptions::new("id").unit(TimeUnit::Days).check_interval(Duration::from_millis(1));
    let expiry = db.expire_rows("city", by_id).unwrap();
    db.drop_table("city").unwrap();
    let failed = events.recv().unwrap();
    assert_has(&noted.take(), &["WARN", &failed, "city", "no table"]);
    drop(expiry);
    db.close().unwrap();
    noted.take();
}

#[test]
fn what_a_database_does_is_told_over_each_engine() {
    use ensilo::two_phase_locking::{TwoPhaseLocking, WaitDie};
    let noted = Noted::default();
    tracing::subscriber::set_global_default(noted.clone()).unwrap();
    check::<ensilo::Silo>(&noted, "tracing-silo");
    check::<ensilo::ermia::Ermia>(&noted, "tracing-ermia");
    check::<TwoPhaseLocking<WaitDie>>(&noted, "tracing-2pl");
}
