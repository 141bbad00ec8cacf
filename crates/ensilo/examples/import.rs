//! An import of many rows, aggregates over them, an index that is made afterwards, and a later change of what a row is: a wider
//! column and a new one, which is there at once, and gets its values afterwards.
//!
//! `cargo run --release -p ensilo --example import -- 1000000`: so many rows

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Instant;

use ensilo::{ColumnType, Columns, Database, Durability, Order, Row, SchemaChange, Table, Text, Timestamp};

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

/// A measurement of a later version, with a wider number and a quality.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "measurement", index(name = "by_quality", columns(quality)))]
struct Rated {
    #[row(key)]
    station: u16,
    #[row(key)]
    at: Timestamp,
    temperature: i64,
    quality: Text<8>,
}

#[derive(Columns)]
#[columns(of = Rated)]
struct Quality {
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

/// What has changed since the first version.
fn changes() -> [SchemaChange; 1] {
    [SchemaChange::new().widen("temperature", ColumnType::I64).add(
        "quality",
        ColumnType::FixedText { len_max: 8 },
        "good",
    )]
}

/// Looks at all rows, some thousand in each transaction, and writes down which are poor. Others may use the table meanwhile.
fn rate(db: &Database, table: &Table<Rated>) -> ensilo::Result<u64> {
    let mut last = None;
    let mut poor = 0;
    loop {
        let after = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let (looked_at, found) = db.request().durability(Durability::Visible).transact(|tx| {
            let rows = table.range(after).limit(BATCH as usize).collect(tx)?;
            let mut found = 0;
            for (key, _) in rows.iter().filter(|(_, row)| row.temperature % 7 == 0) {
                table.update(tx, *key, |row: &mut Quality| row.quality = Text::truncated("poor"))?;
                found += 1;
            }
            Ok((rows.last().map(|(key, _)| *key), found))
        })?;
        poor += found;
        if looked_at.is_none() {
            return Ok(poor);
        }
        last = looked_at;
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
    // A column in an index keeps its type.
    db.drop_index("measurement", "by_temperature")?;
    let rated = timed("another type", rows, || db.table_with_changes::<Rated>(&changes()))?;
    let poor = timed("the quality of each", rows, || rate(&db, &rated))?;
    let by_quality = rated.index::<Text<8>>("by_quality")?;
    let (count, found) = db.read(|tx| Ok((rated.scan().count(tx)?, by_quality.equal("poor").count(tx)?)))?;
    assert_eq!((count as u64, found as u64), (rows, poor));
    println!("{count} rows, {poor} of them of poor quality");
    db.close()
}
