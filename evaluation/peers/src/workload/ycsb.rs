//! YCSB: one operation on one record a transaction, with the keys, the values and the mixes of `ensilo-bench`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ensilo::Silo;
use ensilo_bench::driver::{Aborts, Check, Failure, Interrupt, Outcome, Session, View, Workload};
use ensilo_bench::peer::{Client, Connected, Peer, VALUE_BYTES};
use ensilo_bench::random::Random;
use ensilo_bench::ycsb::{Keys, OPERATIONS, YcsbOptions, value};

// Places in `OPERATIONS`.
const READ: usize = 0;
const UPDATE: usize = 1;
const RMW: usize = 2;

/// Loaded records.
#[derive(Debug)]
pub struct Records<P> {
    peer: P,
    options: YcsbOptions,
    /// Read-modify-writes that committed since the load.
    rmws: AtomicU64,
}

/// A worker's stream of operations.
#[derive(Debug)]
pub struct RecordSession<'a, P: Peer + 'a> {
    shared: &'a Records<P>,
    connected: Connected<P::Client<'a>>,
    random: Random,
    keys: Keys,
    rmws: u64,
}

impl<P: Peer> Records<P> {
    /// Loads the records of `options` into an empty database.
    ///
    /// # Errors
    /// A failure of the database; [`Failure::Refused`] if the options ask for what is not compared: inserts, scans, transactions of
    /// several operations, values of another size.
    pub fn load(peer: P, options: YcsbOptions) -> Result<Self, Failure> {
        let is_known = |operation| [READ, UPDATE, RMW].contains(&operation);
        let is_other = |operation: usize| !is_known(operation) && options.mix.shares.percent(operation) > 0.0;
        if (0..OPERATIONS.len()).any(is_other)
            || options.operations != 1
            || options.value_bytes != VALUE_BYTES
        {
            let why = "only single reads, updates and read-modify-writes of 100 bytes are compared";
            return Err(Failure::Refused(why.to_owned()));
        }
        peer.load_records(options.records, |key, bytes| value::fill(bytes, key, 0))?;
        Ok(Self { peer, options, rmws: AtomicU64::new(0) })
    }
}

impl<P: Peer> Workload for Records<P> {
    type Engine = Silo;
    type Session<'a>
        = RecordSession<'a, P>
    where
        P: 'a;

    fn transaction_types(&self) -> &'static [&'static str] {
        &OPERATIONS
    }

    fn session(&self, worker: usize) -> RecordSession<'_, P> {
        RecordSession {
            shared: self,
            connected: Connected::new(self.peer.client()),
            random: Random::for_stream(self.options.seed, worker as u64),
            keys: Keys::new(&self.options, worker),
            rmws: 0,
        }
    }

    fn check(&self, _view: &mut View, _interrupt: &Interrupt) -> Result<Vec<Check>, Failure> {
        let (mut records, mut counted) = (0, 0u64);
        let mut whole =
            Check::new("record_contents", "every value is one that was written for its key, whole");
        self.peer.for_each_record(|key, bytes| {
            records += 1;
            let counter = value::counter(bytes);
            counted = counted.wrapping_add(counter);
            let is_whole = bytes.len() == VALUE_BYTES && value::is_whole(bytes, key);
            whole.expect(is_whole, || format!("record {key}: counter {counter}, {} bytes", bytes.len()));
        })?;
        let loaded = self.options.records;
        let mut count = Check::new("record_count", "there are as many records as were loaded");
        count.expect(records == loaded, || format!("{records} records, {loaded} loaded"));
        let mut checks = vec![count, whole];
        // Blind updates leave marks in the place of counters.
        if self.options.mix.shares.percent(UPDATE) == 0.0 {
            // Relaxed: the workers' threads have been joined.
            let committed = self.rmws.load(Relaxed);
            let mut sum =
                Check::new("counter_sum", "the counters add up to the committed read-modify-writes");
            sum.expect(counted == committed, || {
                format!("the counters add up to {counted}, {committed} committed")
            });
            checks.push(sum);
        }
        Ok(checks)
    }

    fn count_effects(&self) -> Result<Vec<u64>, Failure> {
        let mut effects = vec![0; OPERATIONS.len()];
        if self.options.mix.shares.percent(UPDATE) == 0.0 {
            self.peer.for_each_record(|_, bytes| effects[RMW] += value::counter(bytes))?;
        }
        Ok(effects)
    }
}

impl<P: Peer> Session for RecordSession<'_, P> {
    fn run_one(&mut self, _now_unix_us: i64, aborts: &mut Aborts) -> Result<Outcome, Failure> {
        let operation = self.shared.options.mix.shares.draw(&mut self.random);
        let key = self.keys.existing(&mut self.random);
        let client = self.connected.client()?;
        match operation {
            UPDATE => {
                let mut bytes = [0; VALUE_BYTES];
                value::fill(&mut bytes, key, self.random.next_u64() | value::BLIND);
                client.update(key, &bytes, aborts)?;
            }
            RMW => {
                client.read_modify_write(key, |bytes| count_up(bytes, key), aborts)?;
                self.rmws += 1;
            }
            _ => client.read(key, aborts)?,
        }
        Ok(Outcome {
            transaction: operation,
            committed: true,
            epoch: 0,
            effects: u16::from(operation == RMW),
        })
    }

    fn finish(self) {
        // Relaxed: read after the thread has been joined.
        self.shared.rmws.fetch_add(self.rmws, Relaxed);
    }
}

#[inline]
fn count_up(bytes: &mut [u8], key: u64) {
    let counter = value::counter(bytes).wrapping_add(1);
    value::fill(bytes, key, counter);
}
