//! Statistics as JSON.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use ensilo::generic::Database;
use ensilo::{Engine, Row};

#[derive(Debug, Row)]
#[row(table = "city", index(name = "by_people", columns(people)))]
struct City {
    #[row(key)]
    id: u32,
    people: u64,
}

fn check<E: Engine>(name: &str) {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&directory);
    let db: Database<E> = ensilo::Database::options().open_as(directory).unwrap();
    let cities = db.create_table::<City>().unwrap();
    db.transact(|tx| cities.insert(tx, &City { id: 1, people: 5 })).unwrap();
    let statistics = db.statistics().unwrap();
    let json = serde_json::to_value(&statistics).unwrap();
    let city = &json["tables"][0];
    assert_eq!(
        (&city["name"], &city["records"], &city["indexes"][0]["state"]),
        (&"city".into(), &1.into(), &"ready".into())
    );
    assert_eq!(json["commits"], statistics.commits);
    assert_eq!(json["aborts"].as_object().unwrap().len(), statistics.aborts.len());
    assert_eq!(json["aborts"]["read validation"], 0);
    let durability = statistics.durability.unwrap();
    assert_eq!(json["durability"]["log_sync_time"], durability.log_sync_time.as_secs_f64());
    assert_eq!(json["durability"]["recovery"]["duration"], durability.recovery.duration.as_secs_f64());
    assert!(json["durability"]["degraded"].is_null() && json["memory"]["limit_bytes"].is_null());
}

#[test]
fn statistics_are_json_over_each_engine() {
    use ensilo::two_phase_locking::{TwoPhaseLocking, WaitDie};
    check::<ensilo::Silo>("serialized-silo");
    check::<ensilo::ermia::Ermia>("serialized-ermia");
    check::<TwoPhaseLocking<WaitDie>>("serialized-2pl");
}
