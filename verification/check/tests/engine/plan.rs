//! What one run does, drawn from a seed.

use std::ops::Range;
use std::time::Duration;

use ensilo_check::IsolationLevel;

use super::random::Random;

/// For so many epochs the keys of a group are used.
const EPOCHS_OF_GROUP: u64 = 5;

/// Which operations transactions consist of.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mix {
    /// A little of everything.
    Balanced,
    /// Mostly scans, and inserts and deletes of several keys in a row.
    Phantoms,
    /// Single keys that come and go: no scan notices by chance what a look at one key has to.
    Points,
}

/// One run, drawn from a seed.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) threads: usize,
    pub(crate) stores: usize,
    /// The keys that all stores use, sorted.
    pub(crate) keys: Vec<Box<[u8]>>,
    /// So many of them are used at a time, one group after the other: the others have nobody who uses them.
    pub(crate) keys_at_a_time: usize,
    pub(crate) operations_max: usize,
    pub(crate) mix: Mix,
    pub(crate) epoch_interval: Duration,
    pub(crate) epochs_per_snapshot: u64,
    /// So little that some threads find no memory, or no limit.
    pub(crate) memory_limit_bytes: Option<u64>,
    /// Whether the last store is dropped halfway.
    pub(crate) drops_a_store: bool,
    pub(crate) transactions_per_thread: usize,
    pub(crate) duration_max: Duration,
    /// One transaction in so many is prepared and decided later.
    pub(crate) prepared_one_in: Option<usize>,
    /// Before one operation in so many some epochs go by.
    pub(crate) lingers_one_in: usize,
    /// Fewer than so many.
    pub(crate) lingers_for: usize,
    /// Rows leave memory, of engines where they may.
    pub(crate) leaves_memory: bool,
    /// What the history is held to.
    pub(crate) isolation: IsolationLevel,
    /// Whether transactions of one worker are in the order in which it ran them.
    pub(crate) has_program_order: bool,
}

impl Plan {
    pub(crate) fn of_seed(seed: u64) -> Plan {
        let mut random = Random::new(seed);
        let keys = if random.one_in(8) { random.within(200..1500) } else { random.within(10..100) };
        let shape = random.within(0..4);
        let mut keys: Vec<Box<[u8]>> =
            (0..keys).map(|number| key(shape, number as u16, &mut random)).collect();
        keys.sort();
        keys.dedup();
        let threads = random.within(2..9);
        let stores = random.within(1..4);
        let is_limited = random.one_in(6);
        Plan {
            seed,
            threads,
            stores,
            keys,
            keys_at_a_time: usize::MAX,
            operations_max: random.within(2..12),
            mix: [Mix::Balanced, Mix::Balanced, Mix::Phantoms, Mix::Points][random.within(0..4)],
            epoch_interval: Duration::from_millis(random.within(1..3) as u64),
            epochs_per_snapshot: random.within(1..5) as u64,
            memory_limit_bytes: is_limited.then(|| random.within(3..threads + 3) as u64 * (2 << 20)),
            drops_a_store: stores > 1 && random.one_in(4),
            transactions_per_thread: 4000,
            duration_max: Duration::from_millis(250),
            prepared_one_in: [None, Some(10), Some(50)][random.within(0..3)],
            lingers_one_in: 2000,
            lingers_for: 12,
            leaves_memory: false,
            isolation: IsolationLevel::Serializable,
            has_program_order: true,
        }
    }

    /// Returns the numbers of the keys that are used in an epoch.
    pub(crate) fn in_use(&self, epoch: u64) -> Range<usize> {
        let count = self.keys_at_a_time.min(self.keys.len());
        let groups = self.keys.len() / count;
        let first = (epoch / EPOCHS_OF_GROUP) as usize % groups * count;
        first..first + count
    }
}

/// A key that fits one slice, several keys of one slice, long common prefixes, or any of them.
fn key(shape: usize, number: u16, random: &mut Random) -> Box<[u8]> {
    let [high, low] = number.to_be_bytes();
    let spread = low.wrapping_mul(151);
    match shape {
        0 => Box::new([0, spread, high, low]),
        1 => vec![7; 8 + usize::from(low % 12)].into_iter().chain([high, low]).collect(),
        2 => vec![b'p'; 24].into_iter().chain([spread, high, low]).collect(),
        _ => key(random.within(0..3), number, random),
    }
}
