//! Recorded transactions: what a program did with the rows of its tables, again with rows of the microbenchmark's size.
//!
//! Each partition key of the file is a row; they are divided among instances in their order, so that each has as many as the others, or one more. A
//! transaction begins at the instance of its first key. A worker makes those that begin at its instance, one after the other and again from the first
//! one; where none begin, all of the file. An access to rows everywhere is one to a row at each instance, which one takes turns. What a transaction has
//! beyond a thousand keys is one such access. Of a range the ends are accessed, and a row at each instance in between, however many there are.
//!
//! # What is checked
//! The first write of a transaction adds to its row what makes all of its writes together count one. So the rows add up to the transactions that
//! write: exactly to what has committed, where all of the file write, or none.

use std::collections::BTreeMap;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ensilo::{Columns, Database, Error, Result, Row, Table, Transaction};
use ensilo_bench::driver::RunOptions;
use ensilo_islands::advisor::Spread;
use ensilo_islands::commit::{Request, SiteId};
use ensilo_islands::{
    InstanceNumber, PartitionKey, Program, RecordedAccess, RecordedError, RecordedTransactions, RequestSource,
};
use serde::{Deserialize, Serialize};

use crate::parts::{from_bytes, local, open_or_create, request, to_bytes};
use crate::run::{Ask, Workload};
use crate::shares::{holder, share};

/// Bytes of a row beside its key and its sum: a row has 250, as in the microbenchmark.
const FILLER_BYTES: usize = 234;

/// How many keys of a line are replayed as such: as many as a program records. More would not fit into the message to an instance.
const KEYS_MAX: usize = 1000;

/// How many rows a transaction inserts while the instance is loaded.
const ROWS_AT_ONCE: u64 = 1000;

#[derive(Row)]
#[row(table = "recorded")]
struct RecordedRow {
    #[row(key)]
    id: u64,
    sum: i64,
    filler: [u8; FILLER_BYTES],
}

#[derive(Columns)]
#[columns(of = RecordedRow)]
struct Sum {
    sum: i64,
}

/// What a part does.
#[derive(Serialize, Deserialize)]
enum Part {
    /// Inserts the rows from one to another.
    Load(u64, u64),
    /// Reads rows, or adds to them.
    Accesses(Vec<(u64, Option<i64>)>),
    /// Reads the file, so that no time that is measured goes to that.
    Read(ScriptFile),
    Sum,
}

/// Which of the recorded transactions are made.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Replay {
    /// All of them.
    All,
    /// All of them, with all rows at the instance where they begin.
    Local,
    /// Those that have rows at several instances, where there are any.
    Multisite,
    /// The same, with all rows at the instance where they begin.
    MultisiteMadeLocal,
}

impl Replay {
    /// Returns whether all rows of a transaction are at the instance where it begins.
    fn is_local(self) -> bool {
        matches!(self, Replay::Local | Replay::MultisiteMadeLocal)
    }

    /// Returns whether those alone are made that have rows at several instances.
    fn is_of_multisite(self) -> bool {
        matches!(self, Replay::Multisite | Replay::MultisiteMadeLocal)
    }
}

/// Recorded transactions, and the file that the instances read them from.
#[derive(Clone, Debug)]
pub struct RecordedOptions {
    file: PathBuf,
    script: Arc<Script>,
    replay: Replay,
}

impl RecordedOptions {
    /// Reads the transactions of a file, whose form [`RecordedTransactions`] describes.
    ///
    /// # Errors
    /// [`RecordedError`].
    pub fn from_file(file: &Path) -> std::result::Result<Self, RecordedError> {
        let script = Arc::new(Script::new(&RecordedTransactions::from_file(file)?));
        Ok(RecordedOptions { file: file.to_owned(), script, replay: Replay::All })
    }

    /// Returns how many transactions there are.
    #[must_use]
    pub fn transactions(&self) -> usize {
        self.script.transactions.len()
    }

    /// Returns how many partition keys they have.
    #[must_use]
    pub fn keys(&self) -> u64 {
        self.script.rows
    }

    fn script_file(&self) -> ScriptFile {
        ScriptFile {
            path: self.file.as_os_str().as_bytes().to_vec(),
            transactions: self.script.transactions.len() as u64,
            rows: self.script.rows,
        }
    }
}

/// The transactions of a file, with rows instead of keys.
#[derive(Debug, PartialEq)]
struct Script {
    rows: u64,
    transactions: Vec<Vec<Access>>,
}

/// An access to rows.
#[derive(Copy, Clone, Debug, PartialEq)]
struct Access {
    rows: Rows,
    writes: bool,
}

#[derive(Copy, Clone, Debug, PartialEq)]
enum Rows {
    One(u64),
    /// One at each instance between those that have two others.
    Between(u64, u64),
    /// One at each instance.
    Everywhere,
}

impl Access {
    /// Returns the row, if it is a certain one.
    fn row(&self) -> Option<u64> {
        match self.rows {
            Rows::One(row) => Some(row),
            Rows::Between(..) | Rows::Everywhere => None,
        }
    }
}

impl Script {
    fn new(recorded: &RecordedTransactions) -> Self {
        let ends = |access: &RecordedAccess| match access.key {
            PartitionKey::One(key) => vec![key],
            PartitionKey::Range(first, last) => vec![first, last],
            PartitionKey::Everywhere => Vec::new(),
        };
        let mut keys: Vec<u64> = recorded.transactions().iter().flatten().flat_map(ends).collect();
        keys.sort_unstable();
        keys.dedup();
        let row = |key: u64| keys.partition_point(|other| *other < key) as u64;
        let rows = |key: PartitionKey| match key {
            PartitionKey::One(key) => vec![Rows::One(row(key))],
            PartitionKey::Range(first, last) => {
                let (first, last) = (row(first), row(last));
                vec![Rows::One(first), Rows::Between(first, last), Rows::One(last)]
            }
            PartitionKey::Everywhere => vec![Rows::Everywhere],
        };
        let accesses = |access: &RecordedAccess| {
            let writes = access.writes;
            rows(access.key).into_iter().map(move |rows| Access { rows, writes })
        };
        let transaction = |all: &Vec<RecordedAccess>| {
            let (kept, beyond) = all.split_at(all.len().min(KEYS_MAX));
            let writes = beyond.iter().any(|access| access.writes);
            let everywhere = (!beyond.is_empty()).then_some(Access { rows: Rows::Everywhere, writes });
            kept.iter().flat_map(accesses).chain(everywhere).collect()
        };
        let transactions = recorded.transactions().iter().map(transaction).collect();
        Script { rows: (keys.len() as u64).max(1), transactions }
    }

    fn holder(&self, row: u64, instances: u16) -> u16 {
        holder(self.rows, row, instances.into()) as u16
    }

    /// Returns the instances that have rows of an access.
    fn instances_with(&self, rows: Rows, instances: u16) -> std::ops::Range<u16> {
        let holder = |row| self.holder(row, instances);
        match rows {
            Rows::One(row) => holder(row)..holder(row) + 1,
            Rows::Between(first, last) => holder(first) + 1..holder(last),
            Rows::Everywhere => 0..instances,
        }
    }

    /// Returns where a transaction begins.
    fn home(&self, number: usize, instances: u16) -> u16 {
        let first = self.transactions[number].iter().find_map(Access::row);
        first.map_or((number % usize::from(instances)) as u16, |row| self.holder(row, instances))
    }

    /// Returns the instances at which a transaction has rows, each once, and where it begins.
    fn instances_of(&self, number: usize, instances: u16) -> Vec<u16> {
        let mut all: Vec<u16> = Vec::new();
        for access in &self.transactions[number] {
            all.extend(self.instances_with(access.rows, instances));
        }
        all.push(self.home(number, instances));
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Returns the numbers of the transactions that the workers of an instance make.
    fn made_by(&self, InstanceNumber { instance, instances }: InstanceNumber, replay: Replay) -> Vec<usize> {
        let all = || 0..self.transactions.len();
        let is_wanted =
            |number: &usize| !replay.is_of_multisite() || self.instances_of(*number, instances).len() > 1;
        let begin_here = |number: &usize| self.home(*number, instances) == instance;
        let choices: [&dyn Fn(&usize) -> bool; 4] =
            [&|number| begin_here(number) && is_wanted(number), &is_wanted, &begin_here, &|_| true];
        let made =
            choices.iter().map(|is_made| all().filter(|number| is_made(number)).collect::<Vec<usize>>());
        made.into_iter().find(|made| !made.is_empty()).unwrap_or_default()
    }

    /// Returns how the transactions spread that the workers of all instances make, each as many.
    fn spread(&self, instances: u16, replay: Replay) -> Spread {
        let (mut distributed, mut others) = (0.0, 0.0);
        let mut parts = vec![0.0; usize::from(instances)];
        for instance in 0..instances {
            let made = self.made_by(InstanceNumber { instance, instances }, replay);
            let each = 1.0 / (made.len() as f64 * f64::from(instances));
            for number in made {
                let elsewhere = self.instances_of(number, instances);
                let elsewhere: Vec<u16> = elsewhere.into_iter().filter(|other| *other != instance).collect();
                distributed += if elsewhere.is_empty() { 0.0 } else { each };
                others += elsewhere.len() as f64 * each;
                elsewhere.iter().for_each(|other| parts[usize::from(*other)] += each);
            }
        }
        let hottest = parts.iter().copied().fold(0.0, f64::max);
        let hottest = if others > 0.0 { hottest / others } else { 1.0 / f64::from(instances) };
        Spread { distributed, others, hottest }
    }

    /// Returns the parts of a transaction by instance: which rows each reads, or adds to.
    fn parts(&self, number: usize, at: InstanceNumber, replay: Replay) -> BTreeMap<u64, Part> {
        let mut parts: BTreeMap<u64, Vec<(u64, Option<i64>)>> = BTreeMap::new();
        let accesses = &self.transactions[number];
        let writes = accesses.iter().filter(|access| access.writes && access.row().is_some()).count() as i64;
        // All of them together count one.
        let mut next = 2 - writes;
        for access in accesses {
            let Access { rows, writes } = *access;
            let Some(row) = access.row() else {
                let is_asked = |instance: &u16| !replay.is_local() || *instance == at.instance;
                for instance in self.instances_with(rows, at.instances).filter(is_asked) {
                    let row = self.own_row(number as u64, InstanceNumber { instance, ..at });
                    parts.entry(instance.into()).or_default().push((row, writes.then_some(0)));
                }
                continue;
            };
            let amount = writes.then(|| std::mem::replace(&mut next, 1));
            let (instance, row) = match replay.is_local() {
                true => (at.instance, self.own_row(row, at)),
                false => (self.holder(row, at.instances), row),
            };
            parts.entry(instance.into()).or_default().push((row, amount));
        }
        parts.into_iter().map(|(instance, accesses)| (instance, Part::Accesses(accesses))).collect()
    }

    /// Returns a row of an instance: the one of this number, round and round.
    fn own_row(&self, number: u64, InstanceNumber { instance, instances }: InstanceNumber) -> u64 {
        let own = share(self.rows, instance.into(), instances.into());
        own.start + number % (own.end - own.start).max(1)
    }

    /// Returns how many of the transactions count: those that write a row.
    fn writing(&self) -> usize {
        let writes =
            |accesses: &&Vec<Access>| accesses.iter().any(|access| access.writes && access.row().is_some());
        self.transactions.iter().filter(writes).count()
    }
}

/// A file, and how many transactions and rows it has.
#[derive(Serialize, Deserialize)]
struct ScriptFile {
    path: Vec<u8>,
    transactions: u64,
    rows: u64,
}

/// What the worker of an instance is told to make.
#[derive(Serialize, Deserialize)]
struct Description {
    file: ScriptFile,
    replay: Replay,
    workers: u16,
}

/// See the module's documentation.
#[derive(Debug)]
pub struct Recorded {
    rows: Table<RecordedRow>,
    number: InstanceNumber,
    /// What all of its workers make.
    script: OnceLock<std::result::Result<Arc<Script>, RecordedError>>,
}

impl Recorded {
    /// Returns the transactions of a file, which is read once.
    fn script(&self, file: &ScriptFile) -> Result<Arc<Script>> {
        let path = PathBuf::from(std::ffi::OsString::from_vec(file.path.clone()));
        let read = || RecordedTransactions::from_file(&path).map(|all| Arc::new(Script::new(&all)));
        let script = self.script.get_or_init(read).clone();
        let script = script.map_err(|error| Error::rollback(error.to_string()))?;
        if (script.transactions.len() as u64, script.rows) != (file.transactions, file.rows) {
            return Err(Error::rollback(format!("{} has changed meanwhile", path.display())));
        }
        Ok(script)
    }

    fn sum(&self, tx: &mut Transaction<'_>) -> Result<i64> {
        let mut sum = 0i64;
        self.rows.scan().columns::<Sum>().for_each(tx, |_, row| sum = sum.wrapping_add(row.sum))?;
        Ok(sum)
    }
}

impl Program for Recorded {
    fn open(db: &Database, number: InstanceNumber) -> Result<Self> {
        Ok(Recorded { rows: open_or_create(db)?, number, script: OnceLock::new() })
    }

    fn execute(&self, tx: &mut Transaction<'_>, part: &[u8]) -> Result<Vec<u8>> {
        match from_bytes(part)? {
            Part::Load(from, to) => {
                for id in from..to {
                    self.rows.insert(tx, &RecordedRow { id, sum: 0, filler: [0x20; FILLER_BYTES] })?;
                }
                Ok(Vec::new())
            }
            Part::Accesses(accesses) => {
                let mut read = 0i64;
                for (id, amount) in accesses {
                    match amount {
                        Some(amount) => self.rows.update(tx, id, |row: &mut Sum| row.sum += amount)?,
                        None => {
                            let row = self.rows.get_columns::<Sum>(tx, id)?;
                            read = read.wrapping_add(row.map_or(0, |row| row.sum));
                        }
                    }
                }
                Ok(to_bytes(&read))
            }
            Part::Read(file) => self.script(&file).map(|_| Vec::new()),
            Part::Sum => Ok(to_bytes(&self.sum(tx)?)),
        }
    }

    fn requests(&self, of: SiteId, description: &[u8]) -> Result<RequestSource> {
        let description: Description = from_bytes(description)?;
        let (script, number) = (self.script(&description.file)?, self.number);
        let made = script.made_by(number, description.replay);
        // The workers of an instance begin all over the file.
        let mut at = made.len() * usize::from(of.worker) / usize::from(description.workers);
        Ok(Box::new(move || {
            let parts = script.parts(made[at], number, description.replay);
            at = (at + 1) % made.len();
            request(of, parts)
        }))
    }
}

impl Workload for RecordedOptions {
    type Program = Recorded;

    fn name(&self) -> &'static str {
        "recorded"
    }

    /// All may be multisite: which ones are is a matter of where the rows are, and so of the spread.
    fn multisite_percent(&self) -> u8 {
        if self.replay.is_local() { 0 } else { 100 }
    }

    fn with_multisite(&self, percent: u8) -> Self {
        let replay = if percent == 0 { Replay::Local } else { Replay::Multisite };
        RecordedOptions { replay, ..self.clone() }
    }

    /// Those with rows at several instances may be longer than the others.
    fn multisite_made_local(&self) -> Self {
        RecordedOptions { replay: Replay::MultisiteMadeLocal, ..self.clone() }
    }

    fn spread(&self, instances: u16) -> Spread {
        match self.replay.is_local() {
            true => Spread { distributed: 0.0, others: 0.0, hottest: 1.0 / f64::from(instances) },
            false => self.script.spread(instances, self.replay),
        }
    }

    fn sites_max(&self, _instances: u16) -> u64 {
        self.script.rows
    }

    fn description(&self, workers: u16) -> Vec<u8> {
        to_bytes(&Description { file: self.script_file(), replay: self.replay, workers })
    }

    fn memory_bytes(&self, run: &RunOptions) -> u64 {
        /// Of a row, and of versions of it that snapshots may see.
        const ROW_BYTES: u64 = 3 * 320;
        run.memory_bytes(self.script.rows.saturating_mul(ROW_BYTES), 0.0)
    }

    fn loads(&self, number: InstanceNumber) -> Vec<Request> {
        let own = share(self.script.rows, number.instance.into(), number.instances.into());
        let starts = (own.start..own.end).step_by(ROWS_AT_ONCE as usize);
        let rows = starts.map(|from| Part::Load(from, own.end.min(from + ROWS_AT_ONCE)));
        rows.chain([Part::Read(self.script_file())]).map(|part| local(&part)).collect()
    }

    fn check(&self, instances: u16, committed: u64, ask: &mut Ask<'_>) -> std::result::Result<(), String> {
        let mut sum = 0i64;
        for instance in 0..instances {
            let of_instance = ask(instance, to_bytes(&Part::Sum))?;
            sum += from_bytes::<i64>(&of_instance).map_err(|error| error.to_string())?;
        }
        let writing = self.script.writing();
        let least = if writing == self.transactions() { committed } else { 0 };
        let most = if writing == 0 { 0 } else { committed };
        if u64::try_from(sum).is_ok_and(|sum| (least..=most).contains(&sum)) {
            Ok(())
        } else {
            Err(format!("the rows add up to {sum}, and not to {least} to {most} transactions that write"))
        }
    }
}

#[cfg(test)]
mod tests;
