//! Types of a program as columns: stored as what they stand for, in rows and in keys.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::cmp::Reverse;
use std::fmt::Debug;
use std::marker::PhantomData;

use ensilo_derive::{ColumnValue, Columns, Row};
use ensilo_row::{
    ColumnType, ColumnValue as _, Columns as _, Decimal, Key, KeyBuf, KeyedRow, Malformed, Row, RowBuf,
    RowId, Text, Timestamp,
};
use proptest::prelude::*;

#[derive(Clone, Debug, PartialEq, ColumnValue)]
#[column(crate = "ensilo_row")]
struct Wrapped<T>(T);

#[derive(Clone, Copy, Debug, PartialEq, ColumnValue)]
#[column(crate = "ensilo_row")]
struct Named<const N: usize> {
    name: Text<N>,
}

#[derive(Clone, Debug, PartialEq, ColumnValue)]
#[column(crate = "ensilo_row")]
struct Id<T>(PhantomData<T>, u64);

#[derive(Clone, Debug, PartialEq, ColumnValue)]
#[column(crate = "ensilo_row")]
struct Note(String);

#[derive(Clone, Debug, PartialEq, ColumnValue)]
#[column(crate = "ensilo_row")]
struct MaybeNote(Option<Note>);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ColumnValue)]
#[column(crate = "ensilo_row")]
enum State {
    Open,
    Paid = 7,
    Sent,
    Gone = 255,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ColumnValue)]
#[column(crate = "ensilo_row")]
#[repr(i16)]
enum Level {
    Low = -300,
    Middle = 0,
    High = 300,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ColumnValue)]
#[column(crate = "ensilo_row")]
#[repr(u64)]
enum Far {
    Last = u64::MAX,
}

fn key_of(key: &impl Key) -> Vec<u8> {
    let mut bytes = KeyBuf::new();
    key.encode(&mut bytes);
    bytes.as_bytes().to_vec()
}

/// A column alone, nullable, descending and in a tuple is what the stored type is.
fn check_key<T: ensilo_row::ColumnValue + Debug, S: ensilo_row::ColumnValue>(value: &T, stored: &S) {
    check_column(value, stored);
    check_encoding(&Some(value.clone()), &Some(stored.clone()));
    check_encoding(&Reverse(Some(value.clone())), &Reverse(Some(stored.clone())));
}

/// The same of one that is nullable already.
fn check_column<T: ensilo_row::ColumnValue + Debug, S: ensilo_row::ColumnValue>(value: &T, stored: &S) {
    assert_eq!((T::TYPE, T::NULLABLE, T::KEY_LEN), (S::TYPE, S::NULLABLE, S::KEY_LEN));
    assert_eq!(T::KEY_IS_WORD, S::KEY_IS_WORD);
    check_encoding(value, stored);
    check_encoding(&Reverse(value.clone()), &Reverse(stored.clone()));
    check_encoding(&(3u8, value.clone(), 4u16), &(3u8, stored.clone(), 4u16));
    check_encoding(&(Reverse(value.clone()), 5u64), &(Reverse(stored.clone()), 5u64));
}

fn check_encoding<T: Key, S: Key>(value: &T, stored: &S) {
    let bytes = key_of(value);
    assert_eq!((T::PARTS, T::FIXED_LEN), (S::PARTS, S::FIXED_LEN));
    assert_eq!(bytes, key_of(stored));
    assert_eq!(key_of(&T::decode(&bytes).unwrap()), bytes);
}

#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "t", crate = "ensilo_row", index(name = "i", columns(state desc, note)), index(name = "j", columns(maybe_state)))]
struct OfProgram {
    #[row(key)]
    id: Id<Far>,
    #[row(key, desc)]
    level: Level,
    state: State,
    maybe_state: Option<State>,
    name: Named<9>,
    note: Note,
    maybe_note: MaybeNote,
    number: Wrapped<i32>,
}

/// The same columns as what they are stored as.
#[derive(Clone, Debug, PartialEq, Row)]
#[row(table = "t", crate = "ensilo_row", index(name = "i", columns(state desc, note)), index(name = "j", columns(maybe_state)))]
struct Stored {
    #[row(key)]
    id: u64,
    #[row(key, desc)]
    level: i16,
    state: u8,
    maybe_state: Option<u8>,
    name: Text<9>,
    note: String,
    maybe_note: Option<String>,
    number: i32,
}

#[derive(Debug, PartialEq, Columns)]
#[columns(of = OfProgram, crate = "ensilo_row")]
struct Part {
    maybe_state: Option<State>,
    number: Wrapped<i32>,
    level: Level,
}

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![Just(Level::Low), Just(Level::Middle), Just(Level::High)]
}

fn state() -> impl Strategy<Value = State> {
    prop_oneof![Just(State::Open), Just(State::Paid), Just(State::Sent), Just(State::Gone)]
}

fn rows() -> impl Strategy<Value = (OfProgram, Stored)> {
    let texts = ("[a-z]{0,9}", any::<String>(), proptest::option::of(any::<String>()));
    (any::<u64>(), level(), state(), proptest::option::of(state()), texts, any::<i32>()).prop_map(
        |(id, level, state, maybe_state, (name, note, maybe_note), number)| {
            let name = Text::new(&name).unwrap();
            let of_program = OfProgram {
                id: Id(PhantomData, id),
                level,
                state,
                maybe_state,
                name: Named { name },
                note: Note(note.clone()),
                maybe_note: MaybeNote(maybe_note.clone().map(Note)),
                number: Wrapped(number),
            };
            let (level, state, maybe_state) =
                (level as i16, state as u8, maybe_state.map(|state| state as u8));
            (of_program, Stored { id, level, state, maybe_state, name, note, maybe_note, number })
        },
    )
}

fn encode<T: KeyedRow>(row: &T) -> (Vec<u8>, RowBuf) {
    let mut words = RowBuf::new();
    row.encode(&mut words);
    (key_of(&row.key()), words)
}

proptest! {
    #[test]
    fn a_struct_is_stored_as_its_field(number in any::<i64>(), text in any::<String>(), bits in any::<u64>()) {
        check_key(&Wrapped(number), &number);
        check_key(&Wrapped(f64::from_bits(bits)), &f64::from_bits(bits));
        check_key(&Wrapped(Decimal::<3>::from_scaled(number)), &Decimal::<3>::from_scaled(number));
        check_key(&Wrapped(Timestamp::from_micros(number)), &Timestamp::from_micros(number));
        check_key(&Wrapped(Wrapped(RowId(bits))), &RowId(bits));
        check_key(&Wrapped(bits.to_be_bytes()), &bits.to_be_bytes());
        check_key(&Note(text.clone()), &text);
        check_column(&MaybeNote(Some(Note(text.clone()))), &Some(text.clone()));
        check_column(&MaybeNote(None), &None::<String>);
        check_key(&Named { name: Text::<7>::truncated(&text) }, &Text::<7>::truncated(&text));
        check_key(&Id::<u8>(PhantomData, bits), &bits);
    }

    #[test]
    fn keys_have_the_order_of_the_numbers(left in state(), right in state(), low in level(), high in level()) {
        prop_assert_eq!(key_of(&left).cmp(&key_of(&right)), left.cmp(&right));
        prop_assert_eq!(key_of(&Reverse(left)).cmp(&key_of(&Reverse(right))), right.cmp(&left));
        prop_assert_eq!(key_of(&(low, 1u8)).cmp(&key_of(&(high, 1u8))), low.cmp(&high));
    }

    #[test]
    fn rows_have_the_bytes_of_what_their_columns_are_stored_as((row, stored) in rows(), (other, _) in rows()) {
        let (key, words) = encode(&row);
        prop_assert_eq!((&key, &words), (&encode(&stored).0, &encode(&stored).1));
        prop_assert_eq!(OfProgram::decode(&Key::decode(&key).unwrap(), &words), Ok(row.clone()));
        let part = Part::decode(&row.key(), &words);
        let Part { maybe_state, number, level } = part.unwrap();
        prop_assert_eq!((maybe_state, number, level), (row.maybe_state, row.number.clone(), row.level));
        for index in 0..2 {
            let (mut by_program, mut by_stored) = (KeyBuf::new(), KeyBuf::new());
            row.index_key(&row.key(), index, &mut by_program);
            stored.index_key(&stored.key(), index, &mut by_stored);
            prop_assert_eq!(by_program, by_stored);
        }
        prop_assert_eq!(row.keeps_key(&other.key()), row.key() == other.key());
        let mut patch = Part::patch_base(&words);
        let part = Part { maybe_state: other.maybe_state, number: other.number.clone(), level: row.level };
        part.patch(&mut patch);
        let mut patched = words.words().to_vec();
        for (index, word) in patch.as_ref() {
            patched[*index as usize] = *word;
        }
        let updated = OfProgram { maybe_state: other.maybe_state, number: other.number, ..row };
        let (_, expected) = encode(&updated);
        prop_assert_eq!(patched, expected.words());
    }

    #[test]
    fn a_number_without_a_variant_is_malformed((row, stored) in rows(), number in any::<u8>(), level in any::<i16>()) {
        let known = match number {
            0 => Ok(State::Open),
            7 => Ok(State::Paid),
            8 => Ok(State::Sent),
            255 => Ok(State::Gone),
            _ => Err(Malformed),
        };
        prop_assert_eq!(State::decode(&[number]), known);
        prop_assert_eq!(Reverse::<State>::decode(&[!number]), known.map(Reverse));
        let (_, words) = encode(&Stored { state: number, ..stored.clone() });
        prop_assert_eq!(OfProgram::decode(&row.key(), &words).map(|row| row.state), known);
        let (_, words) = encode(&Stored { maybe_state: Some(number), ..stored });
        let part = Part::decode(&row.key(), &words);
        prop_assert_eq!(part.map(|part| part.maybe_state), known.map(Some));
        let known = [-300, 0, 300].contains(&level);
        prop_assert_eq!(Level::decode(&key_of(&level)).is_ok(), known);
    }
}

#[test]
fn schemas_have_the_stored_types() {
    assert_eq!(OfProgram::schema(), Stored::schema());
    assert_eq!((State::TYPE, Level::TYPE, Far::TYPE), (ColumnType::U8, ColumnType::I16, ColumnType::U64));
    assert_eq!(key_of(&Far::Last), [0xff; 8]);
    assert_eq!(State::Paid.value_key_bits(), 7);
}
