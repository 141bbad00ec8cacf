//! Statistics as metrics, as a recorder of the program sees them.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

use ensilo::generic::Database;
use ensilo::{Engine, Error, ExpiryOptions, Row, Statistics, TimeUnit, Timestamp};
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};

#[derive(Debug, Row)]
#[row(table = "city", index(name = "by_people", columns(people)))]
struct City {
    #[row(key)]
    id: u32,
    people: u64,
}

/// Keeps the last value of each metric.
#[derive(Default)]
struct Kept {
    counters: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    gauges: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
    described: Mutex<Vec<String>>,
}

/// `name label=value ...`
fn text_of(key: &Key) -> String {
    let labels = key.labels().map(|label| format!(" {}={}", label.key(), label.value()));
    format!("{}{}", key.name(), labels.collect::<String>())
}

impl Kept {
    fn word(of: &Mutex<BTreeMap<String, Arc<AtomicU64>>>, key: &Key) -> Arc<AtomicU64> {
        Arc::clone(of.lock().unwrap().entry(text_of(key)).or_default())
    }

    fn counter(&self, key: &str) -> u64 {
        self.counters.lock().unwrap()[key].load(Ordering::Relaxed)
    }

    fn gauge(&self, key: &str) -> f64 {
        f64::from_bits(self.gauges.lock().unwrap()[key].load(Ordering::Relaxed))
    }
}

impl Recorder for Kept {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        self.described.lock().unwrap().push(name.as_str().to_owned());
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        panic!("no histogram is promised: {}", name.as_str());
    }

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(Kept::word(&self.counters, key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(Kept::word(&self.gauges, key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        panic!("no histogram is promised: {}", key.name());
    }
}

fn directory(name: &str) -> std::path::PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

/// What is published is what the statistics say, in a directory and in memory.
fn check<E: Engine>(name: &str) {
    let db: Database<E> = ensilo::Database::options().open_as(directory(name)).unwrap();
    let cities = db.create_table::<City>().unwrap();
    db.transact(|tx| cities.insert(tx, &City { id: 1, people: 5 })).unwrap();
    let given_up = db.transact(|tx| {
        cities.insert(tx, &City { id: 2, people: 5 })?;
        Err::<(), _>(Error::rollback("on purpose"))
    });
    assert!(given_up.is_err());
    db.checkpoint().unwrap();
    let kept = Kept::default();
    let before = db.statistics().unwrap();
    metrics::with_local_recorder(&kept, || db.publish_metrics("cities")).unwrap();
    let statistics = db.statistics().unwrap();
    let durability = statistics.durability.as_ref().unwrap();
    assert_eq!(kept.counter("ensilo_commits_total database=cities"), statistics.commits);
    assert_eq!(kept.counter("ensilo_aborts_total database=cities reason=user"), 1);
    assert_eq!(kept.counter("ensilo_checkpoints_total database=cities"), 1);
    assert!(kept.counter("ensilo_log_bytes_total database=cities") > 0);
    let logged = kept.counter("ensilo_logged_transactions_total database=cities");
    assert_eq!(logged, durability.logged_transactions);
    assert_eq!(kept.gauge("ensilo_table_rows database=cities table=city"), 1.0);
    let bytes = kept.gauge("ensilo_index_bytes database=cities table=city index=by_people");
    // What the rollback has left in the index is removed in the background.
    let index_bytes = |statistics: &Statistics| statistics.tables[0].indexes[0].memory_bytes as f64;
    assert!((index_bytes(&statistics)..=index_bytes(&before)).contains(&bytes), "{bytes}");
    assert_eq!(kept.gauge("ensilo_index_broken database=cities table=city index=by_people"), 0.0);
    assert_eq!(kept.gauge("ensilo_degraded database=cities"), 0.0);
    assert!(kept.gauge("ensilo_durable_lag_epochs database=cities") < 1000.0);
    let name_of = |key: &String| key.split(' ').next().unwrap().to_owned();
    let mut names: Vec<String> = kept.counters.lock().unwrap().keys().map(name_of).collect();
    names.extend(kept.gauges.lock().unwrap().keys().map(name_of));
    let described = kept.described.lock().unwrap().clone();
    assert!(names.iter().all(|name| described.contains(name)), "{names:?}");
    // A later call sets them again.
    db.transact(|tx| cities.insert(tx, &City { id: 2, people: 6 })).unwrap();
    metrics::with_local_recorder(&kept, || db.publish_metrics("cities")).unwrap();
    assert_eq!(kept.counter("ensilo_commits_total database=cities"), statistics.commits + 1);
    assert_eq!(kept.gauge("ensilo_table_rows database=cities table=city"), 2.0);
    db.close().unwrap();
    assert!(matches!(db.publish_metrics("cities"), Err(Error::Closed)));

    let db: Database<E> = ensilo::Database::options().in_memory_with().unwrap();
    let cities = db.create_table::<City>().unwrap();
    db.transact(|tx| cities.insert(tx, &City { id: 1, people: 5 })).unwrap();
    // For all but this thread it is too early.
    let (own, early) = (thread::current().id(), Timestamp::from_micros(0));
    let clock = move || if thread::current().id() == own { Timestamp::now() } else { early };
    let by_people = ExpiryOptions::new("people").unit(TimeUnit::Seconds).clock(clock);
    assert_eq!(db.expire_rows("city", by_people).unwrap().remove_now().unwrap(), 1);
    metrics::with_local_recorder(&kept, || db.publish_metrics("memory")).unwrap();
    assert_eq!(kept.counter("ensilo_evicted_rows_total database=memory"), 0);
    assert_eq!(kept.counter("ensilo_expired_rows_total database=memory"), 1);
    assert_eq!(kept.counter("ensilo_expiry_failures_total database=memory"), 0);
    assert!(!kept.gauges.lock().unwrap().contains_key("ensilo_durable_epoch database=memory"));
}

#[test]
fn metrics_are_what_the_statistics_say_over_each_engine() {
    use ensilo::two_phase_locking::{TwoPhaseLocking, WaitDie};
    check::<ensilo::Silo>("metrics-silo");
    check::<ensilo::ermia::Ermia>("metrics-ermia");
    check::<TwoPhaseLocking<WaitDie>>("metrics-2pl");
}
