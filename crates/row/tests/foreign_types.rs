//! Types of other crates as columns: order, round trips by keys and rows, and what is no value of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cmp::{Ordering, Reverse};
use std::fmt::Debug;

use chrono::Timelike as _;
use common::{check_column, encoded};
use ensilo_row::{
    ColumnSpec, ColumnType, ColumnValue, Key, Malformed, Order, Schema, Slot, Timestamp, Value, WordSlice,
    place,
};
use proptest::prelude::*;
use proptest::sample::select;

/// The value after it was written to a row, alone and behind others, and read again.
fn through_row<T: ColumnValue + Debug>(value: &T) -> T {
    let other = |column_type| ColumnSpec { column_type, nullable: true, in_key: false };
    let columns = [
        other(ColumnType::Bool),
        ColumnSpec { column_type: T::TYPE, nullable: T::NULLABLE, in_key: false },
        other(ColumnType::U64),
        ColumnSpec { column_type: T::TYPE, nullable: true, in_key: false },
    ];
    let mut slots = [Slot::ABSENT; 4];
    let len = place(&columns, &mut slots) as usize;
    let mut words = vec![0; len.div_ceil(8)];
    value.write(&mut words, slots[1]);
    Some(value.clone()).write(&mut words, slots[3]);
    let row = WordSlice::new(&words, len);
    assert_eq!(Option::<T>::read(&row, slots[3]), Ok(Some(T::read(&row, slots[1]).unwrap())));
    let read = T::read(&row, slots[1]).unwrap();
    assert!(read.is_same(value), "{read:?} {value:?}");
    None::<T>.write(&mut words, slots[3]);
    assert_eq!(Option::<T>::read(&WordSlice::new(&words, len), slots[3]), Ok(None));
    read
}

/// What holds for a type whose values are all kept.
fn check_pair<T: ColumnValue + Ord + Debug>(left: T, right: T)
where
    Value: From<T>,
{
    for value in [&left, &right] {
        assert_eq!(through_row(value), *value);
        assert_eq!(T::decode(&encoded(value)).as_ref(), Ok(value));
        assert_eq!(Reverse::<T>::decode(&encoded(&Reverse(value.clone()))), Ok(Reverse(value.clone())));
        check_dynamic(value);
    }
    assert_eq!(left.is_same(&right), left == right);
    check_column(left, right, Ord::cmp);
}

/// A dynamic column of the same type takes the value, and its key is the same.
fn check_dynamic<T: ColumnValue>(value: &T)
where
    Value: From<T>,
{
    let schema = Schema::builder("t").column("c", T::TYPE).key([("c", Order::Ascending)]).build().unwrap();
    let (mut key, mut values) = (ensilo_row::KeyBuf::new(), Vec::new());
    schema.encode_key(&[Value::from(value.clone())], &mut key).unwrap();
    assert_eq!(key.as_bytes(), encoded(value));
    schema.decode_key(key.as_bytes(), &mut values).unwrap();
    assert_eq!(values, [Value::from(value.clone())]);
}

/// Nanoseconds near the beginning of 1970, of seconds and of days, near the ends, and any in some ten thousand years.
fn nanoseconds() -> impl Strategy<Value = i128> {
    const DAY: i128 = 86_400_000_000_000;
    let year = 365 * DAY;
    let near = select(vec![0, DAY, -DAY, 1_000_000_000, 11_017 * DAY, -11_968 * year, 8029 * year]);
    prop_oneof![(near, -2..=2i128).prop_map(|(near, distance)| near + distance), -11_900 * year..8000 * year]
}

fn check_jiff(nanoseconds: i128, other: i128) {
    let instant = |nanoseconds| jiff::Timestamp::from_nanosecond(nanoseconds).ok();
    let (Some(left), Some(right)) = (instant(nanoseconds), instant(other)) else { return };
    check_pair(left, right);
    let [left, right] = [left, right].map(|time| jiff::tz::Offset::UTC.to_datetime(time));
    check_pair(left, right);
    check_pair(left.date(), right.date());
    check_pair(left.time(), right.time());
    assert_eq!(encoded(&left), encoded(&nanoseconds), "as if in UTC");
}

fn check_chrono(nanoseconds: i128, other: i128) {
    let [left, right] = [nanoseconds, other].map(|nanoseconds| {
        let (seconds, rest) = (nanoseconds.div_euclid(1_000_000_000), nanoseconds.rem_euclid(1_000_000_000));
        chrono::DateTime::from_timestamp(seconds as i64, rest as u32).unwrap()
    });
    check_pair(left, right);
    let [left, right] = [left, right].map(|time| time.naive_utc());
    check_pair(left, right);
    check_pair(left.date(), right.date());
    check_pair(left.time(), right.time());
    assert_eq!(encoded(&left), encoded(&nanoseconds));
}

fn check_time(nanoseconds: i128, other: i128) {
    let instant = |nanoseconds| time::UtcDateTime::from_unix_timestamp_nanos(nanoseconds).ok();
    let (Some(left), Some(right)) = (instant(nanoseconds), instant(other)) else { return };
    check_pair(left, right);
    let [left, right] = [left, right].map(time::OffsetDateTime::from);
    check_pair(left, right);
    let shifted = left.checked_to_offset(time::UtcOffset::from_hms(5, 30, 0).unwrap()).unwrap_or(left);
    assert!(shifted == left && shifted.is_same(&left));
    assert_eq!(encoded(&shifted), encoded(&left));
    assert_eq!(through_row(&shifted).offset(), time::UtcOffset::UTC);
    let [left, right] =
        [left, right].map(|instant| time::PrimitiveDateTime::new(instant.date(), instant.time()));
    check_pair(left, right);
    check_pair(left.date(), right.date());
    check_pair(left.time(), right.time());
    assert_eq!(encoded(&left), encoded(&nanoseconds));
}

/// Decimals with few and with many digits, near powers of ten, and near the ends.
fn decimal() -> impl Strategy<Value = rust_decimal::Decimal> {
    const MAX: i128 = (1 << 96) - 1;
    let near = (0..29u32, -1..=1i128).prop_map(|(exponent, near)| 10i128.pow(exponent) + near);
    let magnitude = prop_oneof![near, 0..1000i128, 0..=MAX, Just(MAX), Just(MAX - 1)];
    (magnitude, any::<bool>(), 0..=28u32).prop_map(|(magnitude, is_negative, scale)| {
        let magnitude = magnitude.min(MAX);
        rust_decimal::Decimal::from_i128_with_scale(if is_negative { -magnitude } else { magnitude }, scale)
    })
}

proptest! {
    #[test]
    fn identifiers_keep_their_order(left in any::<u128>(), right in any::<u128>(), same in 0..16u32) {
        let near = left ^ right.unbounded_shr(8 * same);
        check_pair(uuid::Uuid::from_u128(left), uuid::Uuid::from_u128(near));
        prop_assert_eq!(encoded(&uuid::Uuid::from_u128(left)), left.to_be_bytes());
    }

    #[test]
    fn times_keep_their_order_and_lose_nothing(left in nanoseconds(), right in nanoseconds(), near in -2..=2i128) {
        for other in [right, left + near] {
            check_jiff(left, other);
            check_chrono(left, other);
            check_time(left, other);
        }
    }

    #[test]
    fn all_crates_store_one_day_alike(day in -4_000_000..3_000_000i32) {
        let of_chrono = chrono::NaiveDate::from_epoch_days(day).unwrap();
        prop_assert_eq!(encoded(&of_chrono), encoded(&day));
        if let Ok(date) = time::Date::from_julian_day(day + 2_440_588) {
            prop_assert_eq!(encoded(&date), encoded(&day));
        }
        let of_jiff = jiff::civil::Date::decode(&encoded(&day));
        let (year, month, of_month) = (chrono::Datelike::year(&of_chrono), chrono::Datelike::month(&of_chrono), chrono::Datelike::day(&of_chrono));
        let expected = jiff::civil::Date::new(year.try_into().unwrap_or(i16::MAX), month as i8, of_month as i8);
        prop_assert_eq!(of_jiff.ok(), expected.ok());
    }

    #[test]
    fn decimals_keep_their_order(left in decimal(), right in decimal(), scale in 0..=28u32) {
        check_pair(left, right);
        check_pair(left, -left);
        let mut rescaled = left;
        rescaled.rescale(scale);
        check_pair(left, rescaled);
        let read = through_row(&left);
        prop_assert_eq!((read.mantissa(), read.scale()), (left.normalize().mantissa(), left.normalize().scale()));
    }

    #[test]
    fn decoding_accepts_only_what_encoding_makes(bytes in any::<[u8; 16]>(), exponent in 0..60u128, digits in 0..10u128.pow(29), zeros in 0..29u32, number in any::<u64>()) {
        fn check<K: Key>(bytes: &[u8]) {
            if let Ok(key) = K::decode(bytes) {
                assert_eq!(encoded(&key), bytes);
            }
        }
        let digits = digits / 10u128.pow(zeros) * 10u128.pow(zeros);
        let near = (1u128 << 127 | exponent << 97 | digits).to_be_bytes();
        for bytes in [bytes, near, near.map(|byte| !byte)] {
            check::<rust_decimal::Decimal>(&bytes);
            check::<uuid::Uuid>(&bytes);
            check::<jiff::Timestamp>(&bytes);
            check::<jiff::civil::DateTime>(&bytes);
            check::<chrono::DateTime<chrono::Utc>>(&bytes);
            check::<chrono::NaiveDateTime>(&bytes);
            check::<time::UtcDateTime>(&bytes);
            check::<time::PrimitiveDateTime>(&bytes);
        }
        for number in [number, number % 86_400_000_000_001] {
            check::<jiff::civil::Time>(&number.to_be_bytes());
            check::<chrono::NaiveTime>(&number.to_be_bytes());
            check::<time::Time>(&number.to_be_bytes());
        }
        let day = &bytes[..4];
        check::<jiff::civil::Date>(day);
        check::<chrono::NaiveDate>(day);
        check::<time::Date>(day);
    }

    #[test]
    fn timestamps_are_made_of_times_and_times_of_timestamps(nanoseconds in nanoseconds()) {
        let micros = Timestamp::from_micros(nanoseconds.div_euclid(1000) as i64);
        if let Ok(time) = jiff::Timestamp::from_nanosecond(nanoseconds) {
            prop_assert_eq!(Timestamp::from(time), micros);
            let back = jiff::Timestamp::try_from(micros).unwrap();
            prop_assert_eq!(back.as_nanosecond(), i128::from(micros.micros()) * 1000);
        }
        if let Ok(time) = time::UtcDateTime::from_unix_timestamp_nanos(nanoseconds) {
            prop_assert_eq!(Timestamp::from(time), micros);
            prop_assert_eq!(Timestamp::from(time::OffsetDateTime::from(time)), micros);
            let back = time::OffsetDateTime::try_from(micros).unwrap();
            prop_assert_eq!(back.unix_timestamp_nanos(), i128::from(micros.micros()) * 1000);
        }
        let time = chrono::DateTime::<chrono::Utc>::decode(&encoded(&nanoseconds)).unwrap();
        prop_assert_eq!(Timestamp::from(time), micros);
        prop_assert_eq!(chrono::DateTime::try_from(micros).unwrap().timestamp_micros(), micros.micros());
    }
}

#[test]
fn the_ends_of_each_type_are_kept() {
    check_pair(jiff::Timestamp::MIN, jiff::Timestamp::MAX);
    check_pair(jiff::civil::DateTime::MIN, jiff::civil::DateTime::MAX);
    check_pair(jiff::civil::Date::MIN, jiff::civil::Date::MAX);
    check_pair(jiff::civil::Time::MIN, jiff::civil::Time::MAX);
    check_pair(chrono::DateTime::<chrono::Utc>::MIN_UTC, chrono::DateTime::<chrono::Utc>::MAX_UTC);
    check_pair(chrono::NaiveDateTime::MIN, chrono::NaiveDateTime::MAX);
    check_pair(chrono::NaiveDate::MIN, chrono::NaiveDate::MAX);
    check_pair(
        chrono::NaiveTime::MIN,
        chrono::NaiveTime::from_hms_nano_opt(23, 59, 59, 999_999_999).unwrap(),
    );
    check_pair(time::UtcDateTime::MIN, time::UtcDateTime::MAX);
    check_pair(time::PrimitiveDateTime::MIN, time::PrimitiveDateTime::MAX);
    check_pair(time::Date::MIN, time::Date::MAX);
    check_pair(time::Time::MIDNIGHT, time::Time::from_hms_nano(23, 59, 59, 999_999_999).unwrap());
    check_pair(rust_decimal::Decimal::MIN, rust_decimal::Decimal::MAX);
    check_pair(uuid::Uuid::nil(), uuid::Uuid::max());
    assert_eq!(
        Timestamp::from(chrono::DateTime::<chrono::Utc>::MIN_UTC).micros(),
        chrono::DateTime::<chrono::Utc>::MIN_UTC.timestamp_micros()
    );
}

#[test]
fn what_no_time_is_stored_as_is_malformed() {
    let end_of_day = 86_400_000_000_000u64;
    assert_eq!(jiff::civil::Time::decode(&encoded(&end_of_day)), Err(Malformed));
    assert_eq!(chrono::NaiveTime::decode(&encoded(&end_of_day)), Err(Malformed));
    assert_eq!(time::Time::decode(&encoded(&end_of_day)), Err(Malformed));
    for number in [i128::MIN, i128::MAX] {
        assert_eq!(jiff::Timestamp::decode(&encoded(&number)), Err(Malformed));
        assert_eq!(chrono::DateTime::<chrono::Utc>::decode(&encoded(&number)), Err(Malformed));
        assert_eq!(time::OffsetDateTime::decode(&encoded(&number)), Err(Malformed));
        assert_eq!(time::PrimitiveDateTime::decode(&encoded(&number)), Err(Malformed));
    }
    for day in [i32::MIN, i32::MAX] {
        assert_eq!(jiff::civil::Date::decode(&encoded(&day)), Err(Malformed));
        assert_eq!(time::Date::decode(&encoded(&day)), Err(Malformed));
        let timestamp = Timestamp::from_micros(if day < 0 { i64::MIN } else { i64::MAX });
        assert!(jiff::Timestamp::try_from(timestamp).is_err());
        assert!(chrono::DateTime::try_from(timestamp).is_err());
        assert!(time::UtcDateTime::try_from(timestamp).is_err());
    }
}

#[test]
fn a_leap_second_is_the_last_nanosecond_before_it() {
    let leap = chrono::NaiveTime::from_hms_nano_opt(23, 59, 59, 1_500_000_000).unwrap();
    let last = leap.with_nanosecond(999_999_999).unwrap();
    assert_eq!((through_row(&leap), encoded(&leap)), (last, encoded(&last)));
    assert!(leap.is_same(&last) && leap != last);
    let leap = chrono::NaiveDate::from_ymd_opt(2016, 12, 31).unwrap().and_time(leap);
    let last = leap.with_nanosecond(999_999_999).unwrap();
    assert_eq!((through_row(&leap), encoded(&leap)), (last, encoded(&last)));
    assert_eq!((through_row(&leap.and_utc()), encoded(&leap.and_utc())), (last.and_utc(), encoded(&last)));
    assert_eq!(Timestamp::from(leap.and_utc()), Timestamp::from(last.and_utc()));
}

#[test]
fn equal_decimals_have_one_encoding() {
    let [short, long, zero, negative_zero] =
        ["1.5", "1.500", "0", "-0.00"].map(|text| text.parse::<rust_decimal::Decimal>().unwrap());
    assert_eq!(encoded(&short), encoded(&long));
    assert!(short.is_same(&long));
    assert_eq!(through_row(&long).to_string(), "1.5");
    assert_eq!(
        (encoded(&zero), encoded(&negative_zero)),
        (encoded(&negative_zero), (1u128 << 127).to_be_bytes().to_vec())
    );
    assert_eq!(<rust_decimal::Decimal as ColumnValue>::TYPE, ColumnType::FixedBytes { len: 16 });
    let order = encoded(&short).cmp(&encoded(&zero));
    assert_eq!(order, Ordering::Greater);
}
