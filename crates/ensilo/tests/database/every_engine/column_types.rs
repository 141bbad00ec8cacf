//! Types of a program and of other crates in primary keys, indexes and other columns.

use std::cmp::Reverse;

use ensilo::{Columns, Value};
use rust_decimal::Decimal;
use uuid::Uuid;

use crate::measurements::{Label, Measurement, SensorId, State, measurement};

use super::{Database, Table, quick};

fn with_measurements(count: u64) -> (Database, Table<Measurement>) {
    let db = quick();
    let measurements = db.create_table::<Measurement>().unwrap();
    let rows: Vec<_> = (0..count).map(measurement).collect();
    db.transact(|tx| measurements.insert_many(tx, &rows)).unwrap();
    (db, measurements)
}

/// The columns that an update changes in place, or by moving entries of indexes.
#[derive(Clone, Debug, PartialEq, Columns)]
#[columns(of = Measurement)]
struct Changed {
    state: State,
    wide: i128,
    price: Option<Decimal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Columns)]
#[columns(of = Measurement)]
struct InPlace {
    wide: i128,
    date: jiff::civil::Date,
}

#[test]
fn rows_are_found_by_keys_of_any_type_in_their_order() {
    let (db, measurements) = with_measurements(50);
    db.transact(|tx| {
        let mut expected: Vec<_> = (0..50).map(measurement).collect();
        expected.sort_by_key(|row| (row.sensor, Reverse(row.at), row.run));
        assert_eq!(measurements.scan().rows(tx)?, expected);
        for row in &expected {
            let key = (row.sensor, Reverse(row.at), row.run);
            assert_eq!(measurements.get(tx, key)?.as_ref(), Some(row));
        }
        let sensor = expected[0].sensor;
        let of_sensor = expected.iter().filter(|row| row.sensor == sensor).count();
        assert_eq!(measurements.prefix((sensor,)).count(tx)?, of_sensor);
        Ok(())
    })
    .unwrap();
}

#[test]
fn indexes_have_the_order_of_any_type() {
    let (db, measurements) = with_measurements(50);
    let by_state = measurements.index::<(State, Reverse<Option<Decimal>>)>("by_state").unwrap();
    let by_wide = measurements.index::<(i128, jiff::civil::Date)>("by_wide").unwrap();
    let by_id = measurements.index::<Uuid>("by_id").unwrap();
    db.transact(|tx| {
        let mut expected: Vec<_> = (0..50).map(measurement).collect();
        expected.sort_by_key(|row| (row.state, Reverse(row.price), row.sensor, Reverse(row.at), row.run));
        assert_eq!(by_state.scan().rows(tx)?, expected);
        expected.sort_by_key(|row| (row.wide, row.date, row.sensor, Reverse(row.at), row.run));
        assert_eq!(by_wide.scan().rows(tx)?, expected);
        for row in &expected {
            assert_eq!(by_id.get(tx, row.id)?.as_ref(), Some(row));
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn updates_of_any_type_keep_rows_and_indexes() {
    let (db, measurements) = with_measurements(20);
    let by_state = measurements.index::<(State, Reverse<Option<Decimal>>)>("by_state").unwrap();
    let by_wide = measurements.index::<(i128, jiff::civil::Date)>("by_wide").unwrap();
    let mut expected = measurement(7);
    let key = (expected.sensor, Reverse(expected.at), expected.run);
    db.transact(|tx| {
        measurements.update(tx, key, |row: &mut Changed| {
            row.state = State::Failed;
            row.wide = i128::MIN;
            row.price = Some("0.10".parse().unwrap());
        })?;
        measurements.update(tx, key, |row: &mut InPlace| row.wide += 1)?;
        measurements.update(tx, key, |row: &mut Measurement| {
            row.label = Label("a longer label than it was".to_owned());
            row.settings.change(|settings| settings.gain = 0.5).unwrap();
        })
    })
    .unwrap();
    (expected.state, expected.wide, expected.price) =
        (State::Failed, i128::MIN + 1, Some("0.1".parse().unwrap()));
    expected.label = Label("a longer label than it was".to_owned());
    expected.settings.change(|settings| settings.gain = 0.5).unwrap();
    db.transact(|tx| {
        assert_eq!(measurements.get(tx, key)?.as_ref(), Some(&expected));
        assert_eq!(by_wide.scan().first(tx)?.map(|(_, row)| row).as_ref(), Some(&expected));
        let failed = (State::Failed, Reverse(Some("0.100".parse().unwrap())));
        assert_eq!(by_state.equal(failed).rows(tx)?, std::slice::from_ref(&expected));
        Ok(())
    })
    .unwrap();
    let dynamic = db.open_dynamic_table("measurement").unwrap();
    for index in ["by_state", "by_wide", "by_id"] {
        assert!(db.transact(|tx| dynamic.check_index(tx, index)).unwrap().is_whole());
    }
}

#[test]
fn dynamic_rows_of_any_type_are_the_same_rows() {
    let (db, measurements) = with_measurements(5);
    let dynamic = db.open_dynamic_table("measurement").unwrap();
    let expected = measurement(3);
    db.transact(|tx| {
        let row = &dynamic.scan().collect(tx)?;
        let row = row.iter().find(|row| row[3] == expected.id.into()).expect("exists");
        assert_eq!(row[0], Value::from(expected.sensor.0));
        assert_eq!(row[1], Value::from(expected.at.as_nanosecond()));
        assert_eq!(row[4], Value::from(expected.state as u8));
        assert_eq!(row[5], Value::from(expected.wide));
        let json = dynamic.schema().row_to_json(row).unwrap();
        assert!(json.contains(&format!("\"wide\":{}", expected.wide)), "{json}");
        let again = dynamic.schema().row_from_json(&json).unwrap();
        assert_eq!(&again, row);
        let key = (expected.sensor, Reverse(expected.at), expected.run);
        assert!(measurements.delete(tx, key)?);
        dynamic.insert(tx, &again)?;
        assert_eq!(measurements.get(tx, key)?.as_ref(), Some(&expected));
        Ok(())
    })
    .unwrap();
}

#[test]
fn two_types_that_are_stored_alike_see_one_column() {
    use ensilo::Row;

    /// What a measurement is stored as, and times of other crates.
    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "event", index(name = "by_day", columns(day desc)))]
    struct Event {
        #[row(key)]
        at: chrono::DateTime<chrono::Utc>,
        sensor: SensorId,
        day: chrono::NaiveDate,
        time: chrono::NaiveTime,
    }

    #[derive(Clone, Debug, PartialEq, Row)]
    #[row(table = "event", index(name = "by_day", columns(day desc)))]
    struct OfTime {
        #[row(key)]
        at: time::OffsetDateTime,
        sensor: u32,
        day: time::Date,
        time: time::Time,
    }

    let db = quick();
    let events = db.create_table::<Event>().unwrap();
    let at = chrono::DateTime::from_timestamp(-5, 123_456_789).unwrap();
    let event = Event { at, sensor: SensorId(7), day: at.date_naive(), time: at.time() };
    db.transact(|tx| events.insert(tx, &event)).unwrap();
    let of_time = db.open_table::<OfTime>().unwrap();
    let by_day = of_time.index::<Reverse<time::Date>>("by_day").unwrap();
    db.transact(|tx| {
        let at = time::OffsetDateTime::from_unix_timestamp_nanos(-4_876_543_211).unwrap();
        let same = OfTime { at, sensor: 7, day: at.date(), time: at.time() };
        assert_eq!(of_time.get(tx, at)?.as_ref(), Some(&same));
        assert_eq!(by_day.get(tx, Reverse(at.date()))?, Some(same));
        assert_eq!(events.get(tx, event.at)?.as_ref(), Some(&event));
        Ok(())
    })
    .unwrap();
}
