//! The key codec: encoded keys have the order of the values, come back as they were, and none is a prefix of another.
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::cmp::Reverse;

use common::{check, check_column, encoded, wide};
use ensilo_row::{Decimal, Key, KeyBuf, KeyPrefix, RowId, Text, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;

/// Numbers near each other, near zero and near the ends are as likely as any.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        0..4u64,
        Just(u64::MAX),
        Just(1 << 63),
        Just((1 << 63) - 1),
        any::<u8>().prop_map(u64::from)
    ]
}

/// Bytes with many of those that are escaped, and with common prefixes.
fn bytes(len_max: usize) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(2), Just(0xff), Just(b'a'), any::<u8>()];
    vec(byte, 0..=len_max)
}

fn text(len_max: usize) -> impl Strategy<Value = String> {
    bytes(len_max).prop_map(|bytes| bytes.into_iter().filter(u8::is_ascii).map(char::from).collect())
}

proptest! {
    #[test]
    fn numbers_keep_their_order(left in number(), right in number()) {
        check_column(left as u8, right as u8, Ord::cmp);
        check_column(left as u16, right as u16, Ord::cmp);
        check_column(left as u32, right as u32, Ord::cmp);
        check_column(left, right, Ord::cmp);
        check_column(left as i8, right as i8, Ord::cmp);
        check_column(left as i16, right as i16, Ord::cmp);
        check_column(left as i32, right as i32, Ord::cmp);
        check_column(left as i64, right as i64, Ord::cmp);
        check_column(left % 2 == 0, right % 2 == 0, Ord::cmp);
        check_column(RowId(left), RowId(right), Ord::cmp);
        check_column(Decimal::<2>::from_scaled(left as i64), Decimal::from_scaled(right as i64), Ord::cmp);
        check_column(Timestamp::from_micros(left as i64), Timestamp::from_micros(right as i64), Ord::cmp);
    }

    #[test]
    fn wide_numbers_keep_their_order(left in wide(), right in wide()) {
        check_column(left, right, Ord::cmp);
        check_column(left.cast_signed(), right.cast_signed(), Ord::cmp);
        check(&(left, Reverse(left.cast_signed())), &(right, Reverse(right.cast_signed())),
            left.cmp(&right).then(right.cast_signed().cmp(&left.cast_signed())));
    }

    #[test]
    fn floats_keep_the_total_order(left in any::<u64>(), right in any::<u64>()) {
        let near = [0.0f64.to_bits(), (-0.0f64).to_bits(), f64::INFINITY.to_bits(), f64::NAN.to_bits(), 1, right ^ 1];
        for right in near.into_iter().chain([right]) {
            check_column(f64::from_bits(left), f64::from_bits(right), f64::total_cmp);
            check_column(f64::from_bits(right), f64::from_bits(left), f64::total_cmp);
            let (left, right) = ((left >> 32) as u32, (right >> 32) as u32);
            check_column(f32::from_bits(left), f32::from_bits(right), f32::total_cmp);
        }
    }

    #[test]
    fn bytes_keep_their_order(left in bytes(20), right in bytes(20), tail in bytes(4)) {
        check_column(left.clone(), right.clone(), Ord::cmp);
        let extended = [&left[..], &tail[..]].concat();
        check_column(left.clone(), extended, Ord::cmp);
        let fixed = |bytes: &[u8]| { let mut fixed = [0u8; 11]; for (to, from) in fixed.iter_mut().zip(bytes) { *to = *from; } fixed };
        check_column(fixed(&left), fixed(&right), Ord::cmp);
    }

    #[test]
    fn text_keeps_its_order(left in text(24), right in text(24), other in any::<String>()) {
        check_column(left.clone(), right.clone(), Ord::cmp);
        check_column(left.clone(), other, Ord::cmp);
        let (left, right) = (Text::<24>::new(&left).unwrap(), Text::<24>::new(&right).unwrap());
        check_column(left, right, Ord::cmp);
    }

    #[test]
    fn tuples_keep_their_order(left in any::<[u8; 8]>(), right in any::<[u8; 8]>(), same in 0..8usize) {
        let mut right = right;
        right[..same].copy_from_slice(&left[..same]);
        let words = |b: [u8; 8]| (u16::from(b[0]), b[1], u32::from(b[2]), b[3]);
        check(&words(left), &words(right), words(left).cmp(&words(right)));
        let two_words = |b: [u8; 8]| (b[0], Reverse(i32::from(b[1])), u64::from(b[2]), b[3] as i8);
        check(&two_words(left), &two_words(right), two_words(left).cmp(&two_words(right)));
        let eight = |b: [u8; 8]| (b[0], i64::from(b[1]), vec![b[2]; 2], Some(b[3]), Reverse(vec![b[4]]), b[5], [b[6]], b[7]);
        check(&eight(left), &eight(right), eight(left).cmp(&eight(right)));
    }

    #[test]
    fn a_prefix_encodes_as_the_front_of_the_key(a in any::<u16>(), b in bytes(60), c in any::<i64>()) {
        type Whole = (u16, Vec<u8>, i64);
        let whole = encoded(&(a, b.clone(), c));
        let mut prefix = KeyBuf::new();
        KeyPrefix::<Whole>::append_prefix(&(), &mut prefix);
        prop_assert!(prefix.is_empty());
        KeyPrefix::<Whole>::append_prefix(&(a, b.clone()), &mut prefix);
        prop_assert!(whole.starts_with(prefix.as_bytes()));
        prop_assert!(prefix.as_bytes() < &whole[..]);
        prop_assert!(prefix.make_prefix_end());
        prop_assert!(prefix.as_bytes() > &whole[..]);
    }

    #[test]
    fn the_end_of_a_prefix_is_the_least_string_above_it(bytes in bytes(60), tail in bytes(4)) {
        let mut end = KeyBuf::new();
        end.set(&bytes);
        if end.make_prefix_end() {
            prop_assert!(end.as_bytes() > &[&bytes[..], &tail[..]].concat()[..]);
            let mut below = end.as_bytes().to_vec();
            *below.last_mut().unwrap() -= 1;
            prop_assert!(bytes.starts_with(&below), "no string lies between the last with the prefix and the end");
        } else {
            prop_assert!(bytes.iter().all(|byte| *byte == 0xff));
        }
    }

    #[test]
    fn decoding_accepts_only_what_encoding_makes(bytes in bytes(24)) {
        fn check<K: Key>(bytes: &[u8]) {
            if let Ok(key) = K::decode(bytes) {
                assert_eq!(encoded(&key), bytes);
            }
        }
        check::<bool>(&bytes);
        check::<u64>(&bytes);
        check::<f64>(&bytes);
        check::<Vec<u8>>(&bytes);
        check::<String>(&bytes);
        check::<Text<9>>(&bytes);
        check::<[u8; 3]>(&bytes);
        check::<Option<i16>>(&bytes);
        check::<Reverse<Option<String>>>(&bytes);
        check::<(u16, Reverse<Vec<u8>>, Option<bool>, Text<300>)>(&bytes);
        check::<RowId>(&bytes);
        check::<(u8, i128)>(&bytes);
    }

    #[test]
    fn a_key_buffer_is_a_vector_of_bytes(parts in vec((bytes(30), any::<bool>()), 0..40)) {
        let (mut buf, mut model) = (KeyBuf::new(), Vec::new());
        for (part, clear) in parts {
            if clear && model.len() > 40 {
                buf.clear();
                model.clear();
            }
            if let (Some(array), true) = (part.first_chunk::<8>(), clear) {
                buf.append_array(*array);
                model.extend_from_slice(array);
            } else {
                buf.append(&part);
                model.extend_from_slice(&part);
            }
            prop_assert_eq!(buf.as_bytes(), &model[..]);
            prop_assert_eq!(buf.len(), model.len());
        }
        let copy = buf.clone();
        prop_assert_eq!(&copy, &buf);
        prop_assert_eq!(buf.check_len().is_ok(), model.len() <= ensilo_row::KEY_LEN_MAX);
    }
}

#[test]
fn long_keys_spill_and_come_back() {
    let long = (7u8, "é".repeat(100), Reverse(vec![0u8; 100]));
    assert_eq!(<(u8, String, Reverse<Vec<u8>>)>::decode(&encoded(&long)), Ok(long));
    let mut buf = KeyBuf::new();
    vec![9u8; ensilo_row::KEY_LEN_MAX].encode(&mut buf);
    assert!(buf.check_len().is_err());
    1u8.encode(&mut buf);
    assert_eq!(buf.as_bytes(), [1]);
}

#[test]
fn words_become_the_key_they_hold() {
    let mut row = ensilo_row::RowBuf::new();
    for len in 0..70 {
        let bytes: Vec<u8> = (0..len).collect();
        row.set_bytes(&bytes);
        let mut buf = KeyBuf::new();
        buf.set_words(&row);
        assert_eq!(buf.as_bytes(), bytes);
    }
}
