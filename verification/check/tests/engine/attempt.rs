//! One attempt at a random transaction, which remembers what it saw and what it wrote.
//!
//! # Layout
//! Word 0 of a row is the stamp of its writer, the last word the sum of all others: a torn row is noticed.

use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow, Range, RangeBounds};
use std::sync::Arc;

use ensilo_check::{Key, TableId, Transaction};
use ensilo_txn::{Abort, Direction, Read, RowRef, Write};

use super::driver::{Claim, Log};
use super::plan::Mix;
use super::random::Random;

const ROW_WORDS_MAX: usize = 24;

/// A row as it was read.
#[derive(Copy, Clone, Debug)]
struct Sight {
    stamp: u64,
    is_whole: bool,
}

impl Sight {
    fn of(row: RowRef<'_>) -> Sight {
        let last = row.len_words().saturating_sub(1);
        let sum = (0..last).fold(0, |sum: u64, index| sum.wrapping_add(row.word(index)));
        Sight { stamp: row.word(0), is_whole: last > 0 && sum == row.word(last) }
    }
}

/// A key of a store, by number.
type Place = (usize, usize);

/// What a transaction saw of keys that it had not written.
#[derive(Default)]
pub(crate) struct Seen {
    /// A row, with its stamp if it was read; or none.
    observed: Vec<(Place, Option<Option<u64>>)>,
    /// What was wrong already.
    mismatches: Vec<String>,
}

impl Seen {
    /// Compares what was seen with the transaction's record. The record's word on what was absent is replaced by what
    /// the transaction was told, for the checker to judge.
    pub(crate) fn settle(self, transaction: &mut Transaction, keys: &[Box<[u8]>], log: &mut Log) {
        log.mismatches.extend(self.mismatches);
        for ((store, number), row) in self.observed {
            let key = Key::new(TableId(store as u32 + 1), &keys[number]);
            let read = transaction.reads.iter_mut().find(|read| read.key == key);
            match (read, row) {
                (Some(read), row) => {
                    read.absent = row.is_none();
                    if let Some(Some(stamp)) = row {
                        log.claims.push(Claim { stamp, version: read.version });
                    }
                }
                (None, Some(_)) => {
                    log.mismatches.push(format!("{:?} read {key}, its record does not", transaction.id));
                }
                (None, None) => {
                    let is_recorded = transaction.missing.contains(&key)
                        || transaction.ranges.iter().any(|range| {
                            range.table == key.table
                                && (range.low.clone(), range.high.clone()).contains(&key.bytes)
                        });
                    if !is_recorded {
                        log.mismatches
                            .push(format!("{:?} missed {key}, its record does not", transaction.id));
                    }
                }
            }
        }
    }
}

/// A transaction at work.
pub(crate) struct Attempt<'r, T: Read> {
    transaction: T,
    stamp: u64,
    stores: &'r [Arc<T::Store>],
    keys: &'r [Box<[u8]>],
    /// The numbers of the keys that it uses.
    in_use: Range<usize>,
    pub(crate) random: &'r mut Random,
    /// What it has written: whether there is a row.
    own: BTreeMap<Place, bool>,
    seen: Seen,
}

impl<'r, T: Read> Attempt<'r, T> {
    pub(crate) fn new(
        transaction: T,
        stamp: u64,
        stores: &'r [Arc<T::Store>],
        keys: &'r [Box<[u8]>],
        in_use: Range<usize>,
        random: &'r mut Random,
    ) -> Attempt<'r, T> {
        let (own, seen) = (BTreeMap::new(), Seen::default());
        Attempt { transaction, stamp, stores, keys, in_use, random, own, seen }
    }

    pub(crate) fn into_parts(self) -> (T, Seen) {
        (self.transaction, self.seen)
    }

    /// One random operation that only reads.
    pub(crate) fn step_of_reader(&mut self) -> Result<(), Abort> {
        self.maybe_yield();
        match self.random.within(0..5) {
            0 => self.get(),
            1 => self.find_and_read(),
            2 => self.find_many(),
            3 => self.get_many(),
            _ => self.scan(),
        }
    }

    /// Lets other threads run in the middle of this transaction.
    fn maybe_yield(&mut self) {
        if self.random.one_in(6) {
            std::thread::yield_now();
        }
    }

    fn place(&mut self) -> Place {
        (self.random.within(0..self.stores.len()), self.number())
    }

    fn number(&mut self) -> usize {
        self.random.within(self.in_use.clone())
    }

    /// Notes what was found under a key: no row, a row, or a row with what was read of it.
    fn note(&mut self, place: Place, row: Option<Option<Sight>>) {
        if let Some(Some(sight)) = row
            && !sight.is_whole
        {
            self.seen.mismatches.push(format!("a torn row of {:#x} at {place:?}", sight.stamp));
        }
        match self.own.get(&place) {
            None => self.seen.observed.push((place, row.map(|sight| sight.map(|sight| sight.stamp)))),
            Some(is_row) => {
                let is_stamped = row.flatten().is_none_or(|sight| sight.stamp == self.stamp);
                if *is_row != row.is_some() || !is_stamped {
                    let own = if *is_row { "row" } else { "delete" };
                    self.seen.mismatches.push(format!("own {own} at {place:?} is seen as {row:?}"));
                }
            }
        }
    }

    fn get(&mut self) -> Result<(), Abort> {
        let place = self.place();
        let sight = self.transaction.get(&self.stores[place.0], &self.keys[place.1], Sight::of)?;
        self.note(place, sight.map(Some));
        Ok(())
    }

    fn find(&mut self, place: Place) -> Result<Option<T::Found>, Abort> {
        let found = self.transaction.find(&self.stores[place.0], &self.keys[place.1])?;
        self.note(place, found.map(|_| None));
        Ok(found)
    }

    fn find_and_read(&mut self) -> Result<(), Abort> {
        let place = self.place();
        if let Some(found) = self.find(place)? {
            self.maybe_yield();
            let sight = self.transaction.read(found, Sight::of)?;
            self.note(place, Some(Some(sight)));
        }
        Ok(())
    }

    fn get_many(&mut self) -> Result<(), Abort> {
        let (store, numbers) = self.numbers();
        let keys: Vec<&[u8]> = numbers.iter().map(|number| &*self.keys[*number]).collect();
        let limit = self.random.within(1..12);
        let mut sights = Vec::new();
        self.transaction.get_many(
            &self.stores[store],
            &keys,
            |index, row| (index, Sight::of(row)),
            |index, sight| {
                sights.push((index, sight));
                if sights.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        )?;
        let is_in_order = sights
            .iter()
            .enumerate()
            .all(|(at, &(index, sight))| index == at && sight.is_none_or(|(decoded_at, _)| decoded_at == at));
        if !is_in_order || sights.len() != limit.min(numbers.len()) {
            self.seen.mismatches.push(format!("get_many answered {sights:?} for {} keys", numbers.len()));
        }
        for (index, sight) in sights {
            self.note((store, numbers[index]), sight.map(|(_, sight)| Some(sight)));
        }
        Ok(())
    }

    /// Numbers of some keys of a store.
    fn numbers(&mut self) -> (usize, Vec<usize>) {
        let store = self.random.within(0..self.stores.len());
        (store, (0..self.random.within(1..9)).map(|_| self.number()).collect())
    }

    fn find_many(&mut self) -> Result<(), Abort> {
        let (store, numbers) = self.numbers();
        let keys: Vec<&[u8]> = numbers.iter().map(|number| &*self.keys[*number]).collect();
        let mut found = Vec::new();
        self.transaction
            .find_many(&self.stores[store], &keys, |index, handle| found.push((index, handle)))?;
        if found.iter().map(|(index, _)| *index).ne(0..numbers.len()) {
            self.seen.mismatches.push(format!("find_many answered {found:?} for {} keys", numbers.len()));
        }
        for (index, handle) in found {
            let sight = handle.map(|handle| self.transaction.read(handle, Sight::of)).transpose()?;
            self.note((store, numbers[index]), sight.map(Some));
        }
        Ok(())
    }

    fn scan(&mut self) -> Result<(), Abort> {
        let store = self.random.within(0..self.stores.len());
        let [low, high] = [self.bound(), self.bound()];
        let bounds = (low.map(|number| &*self.keys[number]), high.map(|number| &*self.keys[number]));
        let direction = if self.random.one_in(2) { Direction::Forward } else { Direction::Reverse };
        let limit = if self.random.one_in(2) { usize::MAX } else { self.random.within(1..8) };
        let mut rows: Vec<(Vec<u8>, Sight)> = Vec::new();
        let decode = |key: &[u8], row: RowRef<'_>| (key.to_vec(), Sight::of(row));
        let mut each = |row| {
            rows.push(row);
            if rows.len() == limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let store_of_rows = &self.stores[store];
        if self.random.one_in(2) {
            self.transaction.scan_to_read(store_of_rows, bounds, direction, decode, each)?;
        } else {
            self.transaction.scan(store_of_rows, bounds, direction, decode, |_, row| each(row))?;
        }
        let numbers: Vec<usize> = rows.iter().filter_map(|(key, _)| self.number_of(key)).collect();
        let is_in_order = match direction {
            Direction::Forward => numbers.is_sorted_by(|a, b| a < b),
            Direction::Reverse => numbers.is_sorted_by(|a, b| a > b),
        };
        if !is_in_order
            || numbers.len() != rows.len()
            || numbers.iter().any(|number| !(low, high).contains(number))
        {
            self.seen
                .mismatches
                .push(format!("a scan of {low:?}..{high:?} {direction:?} returned {numbers:?}"));
        }
        let sights: BTreeMap<usize, Sight> =
            numbers.iter().copied().zip(rows.iter().map(|row| row.1)).collect();
        let stopped_at = (rows.len() == limit).then(|| numbers.last().copied()).flatten();
        for number in 0..self.keys.len() {
            let is_passed = stopped_at.is_none_or(|last| match direction {
                Direction::Forward => number <= last,
                Direction::Reverse => number >= last,
            });
            if (low, high).contains(&number) && is_passed {
                self.note((store, number), sights.get(&number).copied().map(Some));
            }
        }
        Ok(())
    }

    fn number_of(&self, key: &[u8]) -> Option<usize> {
        self.keys.binary_search_by(|own| (**own).cmp(key)).ok()
    }

    fn bound(&mut self) -> Bound<usize> {
        let number = self.number();
        match self.random.within(0..3) {
            0 if self.in_use.len() == self.keys.len() => Bound::Unbounded,
            1 => Bound::Included(number),
            _ => Bound::Excluded(number),
        }
    }
}

impl<T: Write> Attempt<'_, T> {
    /// One random operation. Where stores grow, more is inserted than deleted, and the other way around.
    pub(crate) fn step(&mut self, is_growing: bool, mix: Mix) -> Result<(), Abort> {
        self.maybe_yield();
        let choice = self.random.within(0..12);
        if mix == Mix::Points {
            return self.step_at_a_point(choice);
        }
        match choice {
            0..6 if mix == Mix::Phantoms => self.scan(),
            6..9 if mix == Mix::Phantoms && is_growing => self.insert_run(),
            6..9 if mix == Mix::Phantoms => self.delete_run(),
            0..4 => self.step_of_reader(),
            4 | 5 => self.patch(),
            6 => self.put(),
            7 => self.insert_at_random(),
            8 => self.delete_at_random(),
            9 if is_growing => self.insert_run(),
            9 => self.delete_run(),
            _ if is_growing => self.insert_at_random(),
            _ => self.delete_at_random(),
        }
    }

    /// One of twelve operations on a single key.
    fn step_at_a_point(&mut self, choice: usize) -> Result<(), Abort> {
        match choice {
            0..3 => self.get(),
            3..5 => self.patch(),
            5..9 => self.insert_at_random(),
            _ => self.delete_at_random(),
        }
    }

    /// Inserts some keys in a row: nodes split, and layers come into being, under this transaction's own scans.
    fn insert_run(&mut self) -> Result<(), Abort> {
        let (store, first) = self.place();
        let last = (first + self.random.within(2..10)).min(self.in_use.end);
        (first..last).try_for_each(|number| self.insert((store, number)))
    }

    /// Deletes some keys in a row, after which nodes become empty.
    fn delete_run(&mut self) -> Result<(), Abort> {
        let (store, first) = self.place();
        let last = (first + self.random.within(2..10)).min(self.in_use.end);
        (first..last).try_for_each(|number| self.delete((store, number)))
    }

    /// Half the time it says that it is to write.
    fn find_to_write(&mut self, place: Place) -> Result<Option<T::Found>, Abort> {
        if self.random.one_in(2) {
            return self.find(place);
        }
        let found = self.transaction.find_to_write(&self.stores[place.0], &self.keys[place.1])?;
        self.note(place, found.map(|_| None));
        Ok(found)
    }

    fn row(&mut self) -> Vec<u64> {
        let words = self.random.within(2..ROW_WORDS_MAX);
        let mut row: Vec<u64> = (0..words).map(|_| self.random.next()).collect();
        row[0] = self.stamp;
        row[words - 1] = row[..words - 1].iter().fold(0, |sum, word| sum.wrapping_add(*word));
        row
    }

    fn patch(&mut self) -> Result<(), Abort> {
        let place = self.place();
        let Some(found) = self.find_to_write(place)? else { return Ok(()) };
        let mut row = Vec::new();
        self.transaction.read(found, |words| {
            row.clear();
            words.copy_to(&mut row);
        })?;
        self.maybe_yield();
        let last = row.len() - 1;
        let mut patch = vec![(0, self.stamp)];
        if last > 1 {
            patch.push((self.random.within(1..last) as u32, self.random.next()));
        }
        for (index, word) in &patch {
            row[*index as usize] = *word;
        }
        patch.push((last as u32, row[..last].iter().fold(0, |sum, word| sum.wrapping_add(*word))));
        self.transaction.patch(found, &patch)?;
        self.own.insert(place, true);
        Ok(())
    }

    fn put(&mut self) -> Result<(), Abort> {
        let place = self.place();
        let Some(found) = self.find_to_write(place)? else { return Ok(()) };
        let row = self.row();
        self.transaction.put(found, &row, row.len() * 8)?;
        self.own.insert(place, true);
        Ok(())
    }

    /// Inserts a key. Now and then its row is taken back: all that is left of it is that the key was missing.
    fn insert_at_random(&mut self) -> Result<(), Abort> {
        let place = self.place();
        self.insert(place)?;
        if self.random.one_in(4) { self.delete(place) } else { Ok(()) }
    }

    fn insert(&mut self, place: Place) -> Result<(), Abort> {
        let row = self.row();
        let (store, key) = (&self.stores[place.0], &self.keys[place.1]);
        let is_inserted = self.transaction.insert(store, key, &row, row.len() * 8)?;
        self.note(place, (!is_inserted).then_some(None));
        if is_inserted {
            self.own.insert(place, true);
        }
        Ok(())
    }

    fn delete_at_random(&mut self) -> Result<(), Abort> {
        let place = self.place();
        self.delete(place)
    }

    fn delete(&mut self, place: Place) -> Result<(), Abort> {
        let Some(found) = self.find_to_write(place)? else { return Ok(()) };
        self.transaction.delete(found)?;
        self.own.insert(place, false);
        Ok(())
    }
}
