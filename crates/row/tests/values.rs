//! Values by themselves: how decimals print, and the order of all values.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cmp::Ordering;

use common::{column_type, value, wide};
use ensilo_row::{ColumnType, KeyBuf, Order, RowBuf, Schema, Value};
use proptest::prelude::*;
use proptest::sample::select;

/// Numbers of units with a special place: few and many digits, trailing zeros, the ends.
fn units() -> impl Strategy<Value = i64> {
    let power = (0..19u32).prop_map(|exponent| 10i64.pow(exponent));
    let near_power = (power, -1..=1i64, any::<bool>())
        .prop_map(|(power, near, negative)| if negative { near - power } else { power + near });
    let special = select(vec![0, 1, -1, 15, -150, i64::MIN, i64::MIN + 1, i64::MAX]);
    prop_oneof![2 => special, 2 => near_power, 1 => any::<i64>()]
}

/// Scales where they matter for 64 bits, or any.
fn scale() -> impl Strategy<Value = u8> {
    prop_oneof![3 => 0..22u8, 1 => select(vec![38, 39, 63, 64, 254, 255]), 1 => any::<u8>()]
}

fn decimal() -> impl Strategy<Value = Value> {
    (units(), scale()).prop_map(|(units, scale)| Value::Decimal { units, scale })
}

/// The digits of a decimal before and after the point, of one length for all scales.
fn digits(value: &Value) -> (bool, String) {
    let Value::Decimal { units, scale } = value else { panic!("{value:?} is no decimal") };
    let digits = units.unsigned_abs().to_string() + &"0".repeat(255 - usize::from(*scale));
    (*units < 0, format!("{digits:0>280}"))
}

/// The order of two decimals, by their digits alone.
fn compare_digits(left: &Value, right: &Value) -> Ordering {
    let by_value = match (digits(left), digits(right)) {
        ((false, left), (false, right)) => left.cmp(&right),
        ((true, left), (true, right)) => right.cmp(&left),
        ((is_negative, _), _) => {
            if is_negative {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
    };
    let (Value::Decimal { scale: left, .. }, Value::Decimal { scale: right, .. }) = (left, right) else {
        panic!("no decimals")
    };
    by_value.then(left.cmp(right))
}

/// What the order of three values has to be, whichever they are.
fn check_order(values: &[Value; 3]) {
    let [a, b, c] = values;
    assert_eq!(a.total_cmp(a), Ordering::Equal, "{a:?}");
    assert_eq!(a.total_cmp(b), b.total_cmp(a).reverse(), "{a:?} {b:?}");
    assert_eq!(a == b, a.total_cmp(b) == Ordering::Equal, "{a:?} {b:?}");
    if a.total_cmp(b).is_le() && b.total_cmp(c).is_le() {
        assert!(a.total_cmp(c).is_le(), "{a:?} {b:?} {c:?}");
        let is_strict = a.total_cmp(b).is_lt() || b.total_cmp(c).is_lt();
        assert_eq!(a.total_cmp(c).is_lt(), is_strict, "{a:?} {b:?} {c:?}");
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let of_column = (column_type(), any::<bool>()).prop_flat_map(|(of, nullable)| value(of, nullable));
    prop_oneof![3 => of_column, 1 => decimal(), 1 => any::<i64>().prop_map(Value::from)]
}

/// Every way to write an integer as a value.
fn ways(number: i128) -> Vec<Value> {
    let unsigned = u128::try_from(number).ok().map(Value::from);
    let short = i64::try_from(number).ok().map(Value::from);
    let short_unsigned = u64::try_from(number).ok().map(Value::from);
    [Some(Value::from(number)), unsigned, short, short_unsigned].into_iter().flatten().collect()
}

/// What an integer column holds after it was given this value.
fn stored(value: &Value, column_type: ColumnType) -> Option<Value> {
    let schema = Schema::builder("t").column("n", column_type);
    let rows = schema.clone().build().unwrap();
    let keys = schema.key([("n", Order::Ascending)]).build().unwrap();
    let (mut row, mut key, mut values) = (RowBuf::new(), KeyBuf::new(), [Vec::new(), Vec::new()]);
    let outcome = rows.encode_row(std::slice::from_ref(value), &mut row);
    assert_eq!(keys.encode_key(std::slice::from_ref(value), &mut key), outcome);
    if let Err(error) = outcome {
        assert!(matches!(error, ensilo_row::RowError::OutOfRange { .. }), "{error}");
        return None;
    }
    rows.decode_row(&[], &row, &mut values[0]).unwrap();
    keys.decode_key(key.as_bytes(), &mut values[1]).unwrap();
    assert_eq!(values[0], values[1]);
    values[0].pop()
}

/// The encoding of a decimal in a column of this scale, in a row and in a key.
fn encoded(value: &Value, scale: u8) -> Option<(RowBuf, KeyBuf)> {
    let schema = Schema::builder("t").column("d", ColumnType::Decimal { scale });
    let rows = schema.clone().build().unwrap();
    let keys = schema.key([("d", Order::Ascending)]).build().unwrap();
    let (mut row, mut key) = (RowBuf::new(), KeyBuf::new());
    let outcomes = [
        rows.encode_row(std::slice::from_ref(value), &mut row).is_ok(),
        keys.encode_key(std::slice::from_ref(value), &mut key).is_ok(),
    ];
    assert_eq!(outcomes[0], outcomes[1]);
    outcomes[0].then_some((row, key))
}

proptest! {
    #[test]
    fn decimals_print_their_digits(value in decimal()) {
        let Value::Decimal { scale, .. } = value else { unreachable!() };
        let printed = value.to_string();
        let (is_negative, digits) = digits(&value);
        prop_assert_eq!(printed.starts_with('-'), is_negative);
        let (whole, fraction) = printed.trim_start_matches('-').split_once('.').unwrap_or((&printed, ""));
        prop_assert_eq!(fraction.len(), usize::from(scale));
        let whole = whole.trim_start_matches('-');
        prop_assert!(whole == "0" || !whole.starts_with('0') && !whole.is_empty(), "{}", &printed);
        prop_assert_eq!(format!("{:0>280}", format!("{whole}{fraction:0<255}")), digits);
    }

    #[test]
    fn decimals_are_ordered_by_their_digits(left in decimal(), right in decimal()) {
        prop_assert_eq!(left.total_cmp(&right), compare_digits(&left, &right));
    }

    #[test]
    fn decimals_have_a_total_order(a in decimal(), b in decimal(), c in decimal()) {
        check_order(&[a, b, c]);
    }

    #[test]
    fn values_have_a_total_order(a in any_value(), b in any_value(), c in any_value()) {
        check_order(&[a, b, c]);
    }

    #[test]
    fn integers_are_ordered_by_number_however_they_are_written(left in wide(), right in wide()) {
        let (left, right) = (left.cast_signed(), right.cast_signed());
        for value in ways(left) {
            for other in ways(right) {
                prop_assert_eq!(value.total_cmp(&other), left.cmp(&right), "{:?} {:?}", value, other);
            }
            let above = Value::from(left.cast_unsigned() | 1 << 127);
            prop_assert_eq!(value.total_cmp(&above), Ordering::Less);
            prop_assert_eq!(value.to_string(), left.to_string());
        }
    }

    #[test]
    fn a_column_takes_every_integer_that_it_can_hold(bits in wide()) {
        use ColumnType as T;
        let number = bits.cast_signed();
        for (column_type, low, high) in [
            (T::I8, -128, 127), (T::U16, 0, 0xffff), (T::I64, i64::MIN.into(), i64::MAX.into()), (T::U64, 0, u64::MAX.into()),
            (T::I128, i128::MIN, i128::MAX), (T::U128, 0, i128::MAX),
        ] {
            for value in ways(number) {
                let expected = (low..=high).contains(&number).then(|| value.clone());
                prop_assert_eq!(stored(&value, column_type), expected, "{}", column_type);
            }
        }
        prop_assert_eq!(stored(&Value::from(bits), T::U128), Some(Value::from(bits)));
        prop_assert_eq!(stored(&Value::from(bits), T::I128).is_some(), bits < 1 << 127);
    }

    #[test]
    fn a_column_takes_every_decimal_that_it_can_hold(value in decimal(), scale in 0..=18u8) {
        let of_scale = |units| Value::Decimal { units, scale };
        let (is_negative, digits) = digits(&value);
        let (kept, lost) = digits.split_at(280 - 255 + usize::from(scale));
        let units = kept.parse::<i128>().unwrap() * if is_negative { -1 } else { 1 };
        let fits = i64::try_from(units).ok().filter(|_| lost.bytes().all(|digit| digit == b'0'));
        prop_assert_eq!(encoded(&value, scale), fits.and_then(|units| encoded(&of_scale(units), scale)));
        prop_assert_eq!(encoded(&value, scale).is_some(), fits.is_some());
    }
}
