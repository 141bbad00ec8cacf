//! The random values of TPC-C: skewed numbers, last names and strings.
//!
//! # Source
//! TPC-C revision 5.11, clauses 2.1.6 (NURand), 4.3.2 (strings and last names) and 4.3.3.

use crate::random::Random;

/// Clause 4.3.2.3: a last name is three of these, one for each decimal digit of a number below 1000.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

const LETTERS_AND_DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Last names that clause 4.3.2.3 can make.
pub(super) const LAST_NAMES: u64 = 1_000;

/// The constants of clause 2.1.6 that make hot customers and items differ from run to run.
#[derive(Debug, Clone, Copy)]
pub(super) struct NuRand {
    last_name: u64,
    customer: u64,
    item: u64,
}

impl NuRand {
    /// The constants for loading and those for running that follow from a seed.
    pub(super) fn of_seed(seed: u64) -> (Self, Self) {
        let mut random = Random::new(seed);
        let for_load = Self::for_load(&mut random);
        (for_load, Self::for_run(&for_load, &mut random))
    }

    /// Constants for loading.
    fn for_load(random: &mut Random) -> Self {
        Self { last_name: random.below(256), customer: random.below(1_024), item: random.below(8_192) }
    }

    /// Constants for running against what was loaded with `load`: clause 2.1.6.1 bounds how far the last names'
    /// constants may lie apart.
    fn for_run(load: &Self, random: &mut Random) -> Self {
        let mut run = Self::for_load(random);
        while !may_follow(load.last_name, run.last_name) {
            run.last_name = random.below(256);
        }
        run
    }

    /// The number of a last name, below `names`.
    #[inline]
    pub(super) fn last_name(&self, names: u64, random: &mut Random) -> u64 {
        skewed(255, self.last_name, 0, names - 1, random)
    }

    /// A customer's number, `1..=customers`.
    #[inline]
    pub(super) fn customer(&self, customers: u16, random: &mut Random) -> u16 {
        skewed(1_023, self.customer, 1, u64::from(customers), random) as u16
    }

    /// An item's number, `1..=items`.
    #[inline]
    pub(super) fn item(&self, items: u32, random: &mut Random) -> u32 {
        skewed(8_191, self.item, 1, u64::from(items), random) as u32
    }
}

fn may_follow(load: u64, run: u64) -> bool {
    let apart = load.abs_diff(run);
    (65..=119).contains(&apart) && apart != 96 && apart != 112
}

/// Clause 2.1.6: `NURand(a, low, high)` with the constant `c`.
#[inline]
fn skewed(a: u64, c: u64, low: u64, high: u64, random: &mut Random) -> u64 {
    let bits = random.between(0, a) | random.between(low, high);
    (bits + c) % (high - low + 1) + low
}

/// A buffer in which the strings of rows are made.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    buffer: String,
}

impl Strings {
    /// A random a-string of `low..=high` characters.
    pub(crate) fn letters(&mut self, low: u64, high: u64, random: &mut Random) -> &str {
        let len = random.between(low, high) as usize;
        self.fill(len, random, |byte| LETTERS_AND_DIGITS[(usize::from(byte) * 62) >> 8])
    }

    /// A random n-string of `len` digits.
    pub(crate) fn digits(&mut self, len: usize, random: &mut Random) -> &str {
        self.fill(len, random, |byte| b'0' + ((u16::from(byte) * 10) >> 8) as u8)
    }

    /// Clause 4.3.2.7: four random digits and five ones.
    pub(super) fn zip(&mut self, random: &mut Random) -> &str {
        self.digits(4, random);
        self.buffer.push_str("11111");
        &self.buffer
    }

    /// Clause 4.3.3.1: a random a-string that has `ORIGINAL` at a random place in 10 of 100 cases.
    pub(super) fn original(&mut self, low: u64, high: u64, random: &mut Random) -> &str {
        self.letters(low, high, random);
        if random.percent(10) {
            let at = random.below((self.buffer.len() - ORIGINAL.len()) as u64 + 1) as usize;
            self.buffer.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
        }
        &self.buffer
    }

    /// Clause 4.3.2.3: the last name with this number below 1000.
    pub(super) fn last_name(&mut self, number: u64) -> &str {
        self.buffer.clear();
        for digit in [number / 100, number / 10 % 10, number % 10] {
            self.buffer.push_str(SYLLABLES[digit as usize]);
        }
        &self.buffer
    }

    fn fill(&mut self, len: usize, random: &mut Random, character: impl Fn(u8) -> u8) -> &str {
        self.buffer.clear();
        while self.buffer.len() < len {
            let bytes = random.next_u64().to_le_bytes();
            let left = len - self.buffer.len();
            self.buffer.extend(bytes.iter().take(left).map(|&byte| char::from(character(byte))));
        }
        &self.buffer
    }
}

/// The word that marks an item or a stock as of the original brand.
pub(super) const ORIGINAL: &str = "ORIGINAL";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skewed_numbers_stay_in_range_and_are_skewed() {
        let mut random = Random::new(1);
        let constants = NuRand::for_load(&mut random);
        let mut seen = vec![0u32; 3_001];
        for _ in 0..300_000 {
            seen[usize::from(constants.customer(3_000, &mut random))] += 1;
        }
        assert_eq!(seen[0], 0);
        assert!(
            seen.iter().max() > Some(&400),
            "the hottest of 3000 is drawn much more often than 100 times"
        );
        assert!((0..10_000).all(|_| (1..=50).contains(&constants.item(50, &mut random))));
        assert!((0..10_000).all(|_| constants.last_name(3, &mut random) < 3));
    }

    #[test]
    fn the_constants_of_a_run_keep_their_distance_from_those_of_the_load() {
        let mut random = Random::new(2);
        for _ in 0..1_000 {
            let load = NuRand::for_load(&mut random);
            let apart = NuRand::for_run(&load, &mut random).last_name.abs_diff(load.last_name);
            assert!((65..=119).contains(&apart) && apart != 96 && apart != 112, "{apart}");
        }
    }

    #[test]
    fn last_names_are_made_of_syllables() {
        let mut strings = Strings::default();
        assert_eq!(strings.last_name(371), "PRICALLYOUGHT");
        assert_eq!(strings.last_name(40), "BARPRESBAR");
        assert_eq!(strings.last_name(999), "EINGEINGEING");
        assert!((0..LAST_NAMES).all(|number| strings.last_name(number).len() <= 16));
    }

    #[test]
    fn strings_have_their_lengths_and_characters() {
        let (mut strings, mut random) = (Strings::default(), Random::new(3));
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..1_000 {
            let text = strings.letters(14, 24, &mut random);
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            lengths.insert(text.len());
        }
        assert!(lengths.into_iter().eq(14..=24));
        assert!(strings.digits(16, &mut random).bytes().all(|byte| byte.is_ascii_digit()));
        let zip = strings.zip(&mut random);
        assert!(zip.len() == 9 && zip.ends_with("11111"), "{zip}");
    }

    #[test]
    fn one_in_ten_is_original() {
        let (mut strings, mut random) = (Strings::default(), Random::new(4));
        let count = (0..10_000).filter(|_| strings.original(26, 50, &mut random).contains(ORIGINAL)).count();
        assert!((900..1_100).contains(&count), "{count}");
    }
}
