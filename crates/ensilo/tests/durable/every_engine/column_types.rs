//! Columns of all types after a database was opened again, from the log and from a checkpoint.

use std::cmp::Reverse;

use crate::measurements::{Label, Measurement, SensorId, State, measurement};

use super::*;

/// The columns that an update overwrites in place.
#[derive(Clone, Copy, Debug, PartialEq, Columns)]
#[columns(of = Measurement)]
struct InPlace {
    date: jiff::civil::Date,
    replaced_by: Option<SensorId>,
    time: jiff::civil::Time,
}

/// Changes the rows whose numbers are in the range, in one way or another.
fn change(db: &Database, numbers: std::ops::Range<u64>) {
    let measurements = db.open_table::<Measurement>().unwrap();
    db.transact(|tx| {
        for number in numbers.clone() {
            let Measurement { sensor, at, run, .. } = measurement(number);
            let key = (sensor, Reverse(at), run);
            match number % 4 {
                0 => measurements.delete(tx, key).map(drop)?,
                1 => measurements.update(tx, key, |row: &mut InPlace| {
                    row.date = row.date.tomorrow().unwrap();
                    row.replaced_by = Some(SensorId(9));
                })?,
                2 => measurements.update(tx, key, |row: &mut Measurement| {
                    row.label = Label("changed".to_owned());
                    row.state = State::Failed;
                    row.price = Some("-0.125".parse().unwrap());
                })?,
                _ => {}
            }
        }
        Ok(())
    })
    .unwrap();
}

fn rows(db: &Database) -> Vec<Measurement> {
    let measurements = db.open_table::<Measurement>().unwrap();
    db.transact(|tx| measurements.scan().rows(tx)).unwrap()
}

#[test]
fn columns_of_all_types_are_there_again() {
    let disk = Arc::new(SimulatedDisk::new());
    let db = open(&disk);
    let measurements = db.create_table::<Measurement>().unwrap();
    let first: Vec<_> = (0..60).map(measurement).collect();
    db.transact(|tx| measurements.insert_many(tx, &first)).unwrap();
    change(&db, 0..20);
    db.checkpoint().unwrap();
    change(&db, 20..40);
    let second: Vec<_> = (60..80).map(measurement).collect();
    db.transact(|tx| measurements.insert_many(tx, &second)).unwrap();
    let before = rows(&db);
    assert_eq!(before.len(), 80 - 10);
    db.close().unwrap();
    for _ in 0..2 {
        let db = open(&disk);
        assert_eq!(rows(&db), before);
        let dynamic = db.open_dynamic_table("measurement").unwrap();
        for index in ["by_state", "by_wide", "by_id"] {
            assert!(db.transact(|tx| dynamic.check_index(tx, index)).unwrap().is_whole());
        }
        let measurements = db.open_table::<Measurement>().unwrap();
        let by_id = measurements.index::<uuid::Uuid>("by_id").unwrap();
        db.transact(|tx| {
            for row in &before {
                assert_eq!(by_id.get(tx, row.id)?.as_ref(), Some(row));
            }
            Ok(())
        })
        .unwrap();
        db.checkpoint().unwrap();
        db.close().unwrap();
    }
}
