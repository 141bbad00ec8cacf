//! An import of many rows, aggregates over them, an index that is made afterwards, and a later change of what a row is: the
//! rows are copied into a table of another type while others may use both.
//!
//! `cargo run --release -p ensilo --example import -- 1000000`: so many rows

use std::collections::BTreeMap;
use std::time::Instant;

use ensilo::{Columns, Database, Durability, Order, Row, Table, Text, Timestamp};

/// A measurement, as it was recorded at first.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "measurement")]
struct Measurement {
    #[row(key)]
    station: u16,
    #[row(key)]
    at: Timestamp,
    /// In hundredths of a degree.
    temperature: i32,
}

#[derive(Columns)]
#[columns(of = Measurement)]
struct Temperature {
    temperature: i32,
}

/// The same with a quality, and a wider number.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "measurement_2", index(name = "by_quality", columns(quality)))]
struct Rated {
    #[row(key)]
    station: u16,
    #[row(key)]
    at: Timestamp,
    temperature: i64,
    quality: Text<8>,
}

const STATIONS: u64 = 100;

/// So many rows are one transaction.
const BATCH: u64 = 5_000;

fn measurement(number: u64) -> Measurement {
    // Distinct times, and temperatures that go up and down.
    let at = Timestamp::from_micros(1_700_000_000_000_000 + (number * 1_000_000) as i64);
    let temperature = (number.wrapping_mul(2_654_435_761) % 6_000) as i32 - 2_000;
    Measurement { station: (number % STATIONS) as u16, at, temperature }
}

/// Loads the rows: none is waited for, and all are stored at the end.
fn import(db: &Database, table: &Table<Measurement>, rows: u64) -> ensilo::Result<()> {
    for first in (0..rows).step_by(BATCH as usize) {
        let batch: Vec<_> = (first..rows.min(first + BATCH)).map(measurement).collect();
        db.request()
            .durability(Durability::Visible)
            .transact(|tx| table.insert_many(tx, &batch).map(drop))?;
    }
    Ok(())
}

/// The lowest, mean and highest temperature of each station.
fn aggregates(db: &Database, table: &Table<Measurement>) -> ensilo::Result<BTreeMap<u16, (i32, f64, i32)>> {
    db.read(|tx| {
        let mut stations: BTreeMap<u16, (i32, i64, i64, i32)> = BTreeMap::new();
        table.scan().columns::<Temperature>().for_each(tx, |(station, _), row| {
            let temperature = row.temperature;
            let found = stations.entry(station).or_insert((i32::MAX, 0, 0, i32::MIN));
            found.0 = found.0.min(temperature);
            found.1 += i64::from(temperature);
            found.2 += 1;
            found.3 = found.3.max(temperature);
        })?;
        let mean = |sum: i64, count: i64| sum as f64 / count as f64;
        Ok(stations
            .into_iter()
            .map(|(at, (low, sum, count, high))| (at, (low, mean(sum, count), high)))
            .collect())
    })
}

/// Copies the rows into the table of the new type, some thousand at a time, and takes each away from the old one in the same
/// transaction: at every moment a row is in one of the two. After a crash it goes on where it was.
fn change_type(db: &Database, from: &Table<Measurement>, to: &Table<Rated>) -> ensilo::Result<u64> {
    let mut moved = 0;
    loop {
        let count = db.request().durability(Durability::Visible).transact(|tx| {
            let mut cursor = from.scan().limit(BATCH as usize).cursor();
            let mut rows = Vec::new();
            while let Some((_, Measurement { station, at, temperature })) = cursor.next(tx)? {
                let quality = Text::truncated(if temperature % 7 == 0 { "poor" } else { "good" });
                rows.push(Rated { station, at, temperature: i64::from(temperature), quality });
            }
            to.insert_many(tx, &rows)?;
            from.scan().limit(BATCH as usize).delete(tx)
        })?;
        moved += count as u64;
        if count == 0 {
            return Ok(moved);
        }
    }
}

/// Says how long it took.
fn timed<R>(what: &str, rows: u64, work: impl FnOnce() -> ensilo::Result<R>) -> ensilo::Result<R> {
    let begin = Instant::now();
    let done = work()?;
    let seconds = begin.elapsed().as_secs_f64();
    println!("{what}: {:.2} s, {:.0} thousand rows a second", seconds, rows as f64 / seconds / 1e3);
    Ok(done)
}

fn main() -> ensilo::Result<()> {
    let rows = std::env::args().nth(1).map_or(1_000_000, |text| text.parse().expect("a number"));
    let db = Database::in_memory()?;
    let table = db.table::<Measurement>()?;
    timed("import", rows, || import(&db, &table, rows))?;
    let by_station = timed("aggregates", rows, || aggregates(&db, &table))?;
    if let Some((station, (low, mean, high))) = by_station.first_key_value() {
        println!("station {station}: {low} to {high}, {mean:.1} on average");
    }
    timed("an index", rows, || {
        db.create_index("measurement", "by_temperature", [("temperature", Order::Descending)])
    })?;
    let hottest = table.index::<std::cmp::Reverse<i32>>("by_temperature")?;
    let hottest = db.read(|tx| hottest.scan().limit(3).rows(tx))?;
    assert!(hottest.is_sorted_by(|one, next| one.temperature >= next.temperature));
    let rated = db.table::<Rated>()?;
    let moved = timed("another type", rows, || change_type(&db, &table, &rated))?;
    db.drop_table(table.name())?;
    let poor = rated.index::<Text<8>>("by_quality")?;
    let (count, poor) = db.read(|tx| Ok((rated.scan().count(tx)?, poor.equal("poor").count(tx)?)))?;
    assert_eq!((moved, count as u64), (rows, rows));
    println!("{count} rows, {poor} of them of poor quality");
    db.close()
}
