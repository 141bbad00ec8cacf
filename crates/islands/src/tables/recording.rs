//! Records the transactions of a database while they run, for the advisor.
//!
//! What is recorded of a transaction are the partition keys of the rows that it reads and writes: numbers that say which rows are at one instance
//! together, whatever their table is. As long as nothing is recorded a transaction pays one load for this.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::database::IslandDatabase;
use crate::recorded::{Line, PartitionKey, RecordedAccess};

/// How many keys of a transaction are recorded; one with more counts as one with rows at every instance.
const KEYS_MAX: usize = 1000;

/// Lines go to the file when they have so many bytes.
const WRITE_BYTES: usize = 1 << 14;

const HEADER: &str = "# Transactions over instances: the partition keys that each reads (r) and writes (w); * is at every instance.";

/// What is recorded of a database, if anything is.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    is_on: AtomicBool,
    current: Mutex<Option<Arc<Sink>>>,
}

/// The file of a recording.
#[derive(Debug)]
struct Sink {
    path: PathBuf,
    transactions_max: u64,
    written: Mutex<Written>,
}

/// What was written to the file.
#[derive(Debug)]
struct Written {
    file: File,
    /// How long the file is: up to the end of a line.
    len_bytes: u64,
    /// Lines that are not in the file yet.
    lines: String,
    transactions: u64,
    /// Whether the recording has ended: nothing is written any more.
    is_over: bool,
    /// Why it has ended, if that was an error.
    error: Option<io::Error>,
}

/// Transactions of an [`IslandDatabase`] that are being recorded, until this is [finished](Self::finish) or dropped. [`IslandDatabase::record`]
/// begins it.
#[derive(Debug)]
#[must_use = "nothing is recorded any more when it is dropped"]
pub struct Recording {
    recorder: Arc<Recorder>,
    sink: Arc<Sink>,
}

impl IslandDatabase {
    /// Records the transactions that begin from now on in a new file when they commit, `transactions_max` of them at most, until the recording is
    /// [finished](Recording::finish). `ensilo islands advise recorded FILE` says which size of islands suits them.
    ///
    /// Of each transaction the file has a line with the partition keys of its rows, such as `r 17 w 4`; see [`RecordedTransactions`]. Where a table
    /// is placed by a hash, a key is the hash of the columns that place a row, as 64 bits, so rows of several tables that are at one instance
    /// together have one key; where it is placed by ranges, a key is the first eight bytes of the row's primary key, so rows whose keys begin with the
    /// same ones count as rows at one instance together. Where rows are placed by ranges, a range between two keys is recorded as such; otherwise a range
    /// counts as rows at every instance, unless its rows are placed together. Keys of a transaction beyond a thousand count so as well. Reads of
    /// replicated rows are left out, as are transactions without other rows, and what [`read`](Self::read) and the [instances](Self::islands)
    /// themselves read.
    ///
    /// [`RecordedTransactions`]: crate::RecordedTransactions
    ///
    /// ```
    /// # use ensilo::Row;
    /// # use ensilo_islands::{Instances, IslandsOptions, Partitioning, Placement, Plan, RecordedTransactions, Topology};
    /// # #[derive(Debug, PartialEq, Row)]
    /// # #[row(table = "account")]
    /// # struct Account {
    /// #     #[row(key)]
    /// #     id: u32,
    /// #     balance: i64,
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let plan = Plan::new(&Topology::of_this_machine()?, Instances::Count(2), Placement::System);
    /// # let db = IslandsOptions::new(plan).workers(1).open_database()?;
    /// # let accounts = db.table::<Account>(Partitioning::hash())?;
    /// # let file = std::env::temp_dir().join(format!("recorded-{}", std::process::id()));
    /// let recording = db.record(&file, 100_000)?;
    /// db.transact(|tx| accounts.insert(tx, &Account { id: 1, balance: 100 }))?;
    /// assert_eq!(recording.finish()?, 1);
    /// assert_eq!(RecordedTransactions::from_file(&file)?.transactions().len(), 1);
    /// # std::fs::remove_file(&file)?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// With the name of the file, where it is there already or cannot be made; [`ErrorKind::ResourceBusy`] while another recording of this database
    /// is not finished.
    pub fn record(&self, file: impl AsRef<Path>, transactions_max: u64) -> io::Result<Recording> {
        let recorder = Arc::clone(self.recorder());
        let sink = recorder.begin(file.as_ref(), transactions_max)?;
        Ok(Recording { recorder, sink })
    }
}

impl Recording {
    /// Returns how many transactions were recorded by now.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        lock(&self.sink.written).transactions
    }

    /// Ends the recording, and returns how many transactions the file has. It stays as it is: what has begun before and commits later is not recorded.
    ///
    /// # Errors
    /// With the name of the file, when it could not be written, as a whole or from some transaction on: what is there is as far as it goes.
    pub fn finish(self) -> io::Result<u64> {
        self.end()
    }

    fn end(&self) -> io::Result<u64> {
        self.recorder.end(&self.sink);
        self.sink.end()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // Who does not finish it does not ask.
        let _ = self.end();
    }
}

impl Recorder {
    fn begin(&self, path: &Path, transactions_max: u64) -> io::Result<Arc<Sink>> {
        let mut current = lock(&self.current);
        if let Some(other) = &*current {
            let message = format!("{} is being recorded: finish that first", other.path.display());
            return Err(io::Error::new(ErrorKind::ResourceBusy, message));
        }
        let file = File::create_new(path).map_err(|error| named(path, &error))?;
        let sink = Arc::new(Sink::new(path, file, transactions_max));
        *current = Some(Arc::clone(&sink));
        // Relaxed: transactions find the file by the lock.
        self.is_on.store(transactions_max > 0, Ordering::Relaxed);
        Ok(sink)
    }

    fn end(&self, sink: &Arc<Sink>) {
        let mut current = lock(&self.current);
        if is_same(&current, sink) {
            *current = None;
            // Relaxed: as in `begin`.
            self.is_on.store(false, Ordering::Relaxed);
        }
    }

    /// Records nothing more into a file that has no room, or cannot be written.
    fn pause(&self, sink: &Arc<Sink>) {
        let current = lock(&self.current);
        if is_same(&current, sink) {
            // Relaxed: as in `begin`.
            self.is_on.store(false, Ordering::Relaxed);
        }
    }

    /// Begins to record a transaction; `None` while nothing is recorded.
    pub(super) fn transaction(self: &Arc<Self>) -> Option<Box<Accesses>> {
        // Relaxed: a transaction that begins at the same time may be recorded or not.
        if !self.is_on.load(Ordering::Relaxed) {
            return None;
        }
        let sink = lock(&self.current).clone()?;
        let recorder = Arc::clone(self);
        Some(Box::new(Accesses { recorder, sink, all: Vec::new(), place: HashMap::new() }))
    }
}

impl Sink {
    fn new(path: &Path, file: File, transactions_max: u64) -> Self {
        let written = Written {
            file,
            len_bytes: 0,
            lines: format!("{HEADER}\n"),
            transactions: 0,
            is_over: false,
            error: None,
        };
        Sink { path: path.to_owned(), transactions_max, written: Mutex::new(written) }
    }

    /// Appends a transaction, and returns whether there is room for another one.
    fn append(&self, accesses: &[RecordedAccess]) -> bool {
        let line = format!("{}\n", Line(accesses));
        let mut written = lock(&self.written);
        if written.is_over || written.transactions >= self.transactions_max {
            return false;
        }
        written.lines += &line;
        written.transactions += 1;
        if written.lines.len() >= WRITE_BYTES {
            written.write_lines();
        }
        !written.is_over && written.transactions < self.transactions_max
    }

    /// Appends nothing any more, and returns how many transactions the file has.
    fn end(&self) -> io::Result<u64> {
        let mut written = lock(&self.written);
        written.write_lines();
        written.is_over = true;
        match written.error.take() {
            None => Ok(written.transactions),
            Some(error) => Err(named(&self.path, &error)),
        }
    }
}

impl Written {
    /// Writes the lines to the file; after an error none of them is there, and nothing more is written.
    fn write_lines(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        match self.file.write_all(lines.as_bytes()) {
            Ok(()) => self.len_bytes += lines.len() as u64,
            Err(error) => {
                // Otherwise it may end within a key. What is no file, such as a device, has no length.
                let _ = self.file.set_len(self.len_bytes);
                self.error = Some(error);
                self.is_over = true;
            }
        }
    }
}

/// The accesses of a transaction that is being recorded.
#[derive(Debug)]
pub(super) struct Accesses {
    recorder: Arc<Recorder>,
    sink: Arc<Sink>,
    all: Vec<RecordedAccess>,
    /// Where each key is among them.
    place: HashMap<PartitionKey, usize>,
}

impl Accesses {
    pub(super) fn add(&mut self, key: PartitionKey, writes: bool) {
        match self.place.get(&key) {
            Some(at) => self.all[*at].writes |= writes,
            None if self.all.len() >= KEYS_MAX && key != PartitionKey::Everywhere => {
                self.add(PartitionKey::Everywhere, writes);
            }
            None => {
                self.place.insert(key, self.all.len());
                self.all.push(RecordedAccess { key, writes });
            }
        }
    }

    /// Writes them to the file: the transaction has committed.
    pub(super) fn commit(&self) {
        if !self.all.is_empty() && !self.sink.append(&self.all) {
            self.recorder.pause(&self.sink);
        }
    }
}

fn is_same(current: &Option<Arc<Sink>>, sink: &Arc<Sink>) -> bool {
    current.as_ref().is_some_and(|current| Arc::ptr_eq(current, sink))
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::RecordedTransactions;

    const ACCESS: RecordedAccess = RecordedAccess { key: PartitionKey::One(u64::MAX), writes: true };

    fn recording(path: &Path) -> Recording {
        let file = File::options().write(true).create(true).truncate(true).open(path).unwrap();
        Recording { recorder: Arc::default(), sink: Arc::new(Sink::new(path, file, u64::MAX)) }
    }

    /// Records until that fails, and returns the error.
    fn fill(path: &Path) -> io::Error {
        let recording = recording(path);
        let appended = (0..10_000).take_while(|_| recording.sink.append(&[ACCESS])).count();
        assert!(appended < 10_000, "{appended}");
        assert!(!recording.sink.append(&[ACCESS]), "nothing is written after an error");
        recording.finish().unwrap_err()
    }

    #[test]
    fn what_cannot_be_written_is_an_error_at_the_end() {
        let error = fill(Path::new("/dev/full"));
        assert!(error.to_string().starts_with("/dev/full: "), "{error}");
    }

    #[test]
    fn a_file_ends_with_a_whole_line_at_any_time() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("recorded");
        let recording = recording(&file);
        for transaction in 0..3_000u64 {
            assert!(
                recording
                    .sink
                    .append(&[RecordedAccess { key: PartitionKey::One(transaction), writes: false }])
            );
            let text = std::fs::read_to_string(&file).unwrap();
            assert!(text.is_empty() || text.ends_with('\n'), "{text}");
        }
        assert_eq!(recording.finish().unwrap(), 3_000);
        assert_eq!(RecordedTransactions::from_file(&file).unwrap().transactions().len(), 3_000);
    }

    /// Names the file to a process that can write only so much to it.
    const FILE_OF_LIMITED: &str = "ENSILO_RECORDING_OF_LIMITED_PROCESS";

    #[test]
    fn a_file_that_gets_no_more_room_ends_with_a_whole_line() {
        if let Some(path) = std::env::var_os(FILE_OF_LIMITED) {
            fill(Path::new(&path));
            return;
        }
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("recorded");
        // Blocks of 512 bytes, within the third write.
        let limited = "trap '' XFSZ && ulimit -f 75 && exec \"$0\" \"$@\"";
        let test = "tables::recording::tests::a_file_that_gets_no_more_room_ends_with_a_whole_line";
        let ended = Command::new("sh")
            .args(["-c", limited])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env(FILE_OF_LIMITED, &file)
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(
            text.len() >= 2 * WRITE_BYTES && text.len() < 75 * 512 && text.ends_with('\n'),
            "{}",
            text.len()
        );
        let recorded = RecordedTransactions::from_file(&file).unwrap();
        assert!(recorded.transactions().iter().all(|transaction| transaction[..] == [ACCESS]));
    }
}
