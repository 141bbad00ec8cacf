//! Damaged files: the opening is refused with an error that names the file, or what is served is exactly right.

mod diverged;
mod misplaced;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use ensilo::Options;
use ensilo_crash::environment::is_long;
use ensilo_crash::explore::{Acknowledged, Oracle};
use ensilo_crash::progress;
use ensilo_crash::random::Random;
use ensilo_crash::serial::{self, History, Plan, WORKER};
use ensilo_crash::setup::{DIRECTORY, Setup};
use ensilo_disk::Disk;
use ensilo_log::{BLOCK_HEADER_BYTES, FILE_HEADER_BYTES, SalvageLoss, salvage};
use ensilo_test_disk::{Recorder, SimulatedDisk};

use super::*;

/// How a sample came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Killed,
}

/// A small database with everything in it.
struct Sample {
    setup: Setup,
    end: End,
    disk: SimulatedDisk,
    history: History,
    /// The last moment that was acknowledged, and the one that was acknowledged before the last round of the log.
    last: u64,
    before_last_round: u64,
    /// What the log files held before the last rounds, by path.
    used_before: BTreeMap<PathBuf, u64>,
    /// What the manifest was at earlier times.
    manifests: Vec<Vec<u8>>,
    /// And the whole disk.
    earlier: Vec<SimulatedDisk>,
}

/// What came of damaged files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Refused,
    Exact,
    LastRoundLost,
    Shortened,
}

type Outcomes = BTreeMap<Outcome, u64>;

const MANIFEST: &str = "/db/MANIFEST";

/// What may come of it when a file is damaged.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// An error that names the file, or exactly what was there.
    Exact,
    /// The same, or all but the last round: nothing is left that could testify to it.
    LastRound,
    /// The same, or a shorter prefix of the history: what could testify to the rest is gone with it.
    Prefix,
}

impl Sample {
    fn new(seed: u64, loggers: usize, end: End) -> Sample {
        let setup = Setup { loggers, ..Setup::default() };
        let mut disk = Arc::new(SimulatedDisk::new());
        let mut history = History::default();
        let (mut manifests, mut earlier) = (Vec::new(), Vec::new());
        let plan = Plan { rows: 10, blob_bytes_max: 150, ..Plan::new(seed, 12) };
        let acknowledged = |last: u64| {
            let mut acknowledged = Acknowledged::default();
            acknowledged.raise(WORKER, last);
            acknowledged
        };
        for life in 0..3 {
            let recorder = Arc::new(Recorder::over(Arc::clone(&disk)));
            let db: Database = setup.open(Arc::clone(&recorder) as _).unwrap();
            for part in 0..3 {
                let seed = seed * 100 + life * 10 + part;
                serial::run(&db, &recorder, &mut history, &Plan { seed, ..plan }).unwrap();
                manifests.push(disk.contents(Path::new(MANIFEST)).unwrap());
                earlier.push(disk.fork());
                if part < 2 {
                    db.checkpoint().unwrap();
                }
            }
            // A copy: the log gives finished files their names meanwhile.
            let still = disk.fork();
            let files = still.files().into_iter().map(|(path, _)| Path::new("/").join(path));
            let used_before = files.map(|path| (path.clone(), used(&still.contents(&path).unwrap()) as u64));
            let used_before = used_before.collect();
            // Three rounds of the log, one transaction each.
            let mut moments = Vec::new();
            let mut seed = seed * 1000;
            while moments.len() < 3 {
                seed += 1;
                let before = history.last();
                let plan = Plan { seed, steps: 1, stored_percent: 100, ..plan };
                serial::run(&db, &recorder, &mut history, &plan).unwrap();
                if history.last() > before {
                    moments.push(history.last());
                }
            }
            if life == 2 {
                let (last, before_last_round) = (moments[2], moments[1]);
                if end == End::Closed {
                    db.close().unwrap();
                }
                let sample = Sample {
                    setup,
                    end,
                    disk: disk.fork(),
                    history,
                    last,
                    before_last_round,
                    used_before,
                    manifests,
                    earlier,
                };
                disk.kill();
                return sample;
            }
            disk = Arc::new(disk.fork().crash(seed));
            let db: Database = setup.open(Arc::new(disk.fork())).unwrap();
            let found = Oracle::<Engine>::check(&history, &db, &acknowledged(moments[2])).unwrap();
            history.cut_after(found);
        }
        unreachable!("the last life returns")
    }

    /// All files but the lock, which means nothing.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = self.disk.files().into_iter().map(|(path, _)| Path::new("/").join(path));
        let files = files.filter(|path| !path.ends_with("LOCK"));
        files.map(|path| (path.clone(), self.disk.contents(&path).unwrap())).collect()
    }

    /// Opens a damaged copy. A refusal has to name one of the damaged files.
    fn open(&self, disk: SimulatedDisk, damaged: &[&Path], allowed: Allowed) -> Result<Outcome, String> {
        self.open_or_told(disk, allowed, &|error| damaged.iter().any(|path| error.contains(&name(path))))
    }

    /// Opens a damaged copy. A refusal has to say what is wrong.
    fn open_or_told(
        &self,
        disk: SimulatedDisk,
        allowed: Allowed,
        is_right: &dyn Fn(&str) -> bool,
    ) -> Result<Outcome, String> {
        let db: Database = match self.setup.open(Arc::new(disk)) {
            Ok(db) => db,
            Err(error) => {
                let error = error.to_string();
                return if is_right(&error) {
                    Ok(Outcome::Refused)
                } else {
                    Err(format!("another file or place is named: {error}"))
                };
            }
        };
        let check = |number| {
            let mut acknowledged = Acknowledged::default();
            acknowledged.raise(WORKER, number);
            Oracle::<Engine>::check(&self.history, &db, &acknowledged)
        };
        match check(self.last) {
            Ok(_) => Ok(Outcome::Exact),
            Err(_) if allowed == Allowed::LastRound && check(self.before_last_round).is_ok() => {
                Ok(Outcome::LastRoundLost)
            }
            Err(_) if allowed == Allowed::Prefix && check(0).is_ok() => Ok(Outcome::Shortened),
            Err(wrong) => Err(format!("served: {wrong}")),
        }
    }

    fn must(&self, disk: SimulatedDisk, damaged: &[&Path], allowed: Allowed, what: &str) -> Outcome {
        let outcome = self.open(disk, damaged, allowed);
        outcome.unwrap_or_else(|wrong| panic!("{:?}, {what}: {wrong}", self.end))
    }

    /// Salvages a damaged database that cannot be opened. Damage of its checkpoint or manifest makes no table unreachable.
    fn must_save(&self, disk: SimulatedDisk, damaged: &Path, what: &str) {
        let tables = |disk: &Arc<dyn Disk>, dir: &str| -> Vec<String> {
            let db: Database = Options::default().open_with(Arc::clone(disk), dir).unwrap();
            db.statistics().unwrap().tables.into_iter().map(|table| table.name).collect()
        };
        let disk: Arc<dyn Disk> = Arc::new(disk);
        let saved = salvage(&disk, Path::new(DIRECTORY), Path::new("/saved"));
        let saved = saved.unwrap_or_else(|error| panic!("{:?}, {what}: not saved: {error}", self.end));
        if damaged == Path::new(MANIFEST) || damaged.extension().is_some_and(|extension| extension == "ckpt")
        {
            assert_ne!(saved.loss(), SalvageLoss::Definitions, "{:?}, {what}", self.end);
            let sound: Database = self.setup.open(Arc::new(self.disk.fork())).unwrap();
            let whole = sound.statistics().unwrap().tables.into_iter().map(|table| table.name);
            assert_eq!(tables(&disk, "/saved"), whole.collect::<Vec<_>>(), "{:?}, {what}", self.end);
        } else {
            tables(&disk, "/saved");
        }
    }

    /// Damage that takes nothing away with it. After an end in order it shows even in the last round.
    fn after_change(&self) -> Allowed {
        if self.end == End::Closed { Allowed::Exact } else { Allowed::LastRound }
    }
}

/// The name of a file as an error says it at least: that of a log file without its ending, which changes when it is sealed.
fn name(path: &Path) -> String {
    let path = path.display().to_string();
    match path.find("log-").and_then(|at| Some(at + path[at..].find("-e").or(path[at..].find('.'))?)) {
        Some(end) => path[..end].to_owned(),
        None => path,
    }
}

/// How an error names the place of a damaged byte: the file with the beginning of the block, or of the header, that it lies in. Of a
/// manifest it may be any byte.
fn place(path: &Path, contents: &[u8], byte: u64) -> String {
    if path == Path::new(MANIFEST) {
        return format!("{MANIFEST}, byte ");
    }
    let (mut start, mut next) = (0, FILE_HEADER_BYTES);
    while next as u64 <= byte {
        start = next;
        let Some(head) = contents[start..].first_chunk::<BLOCK_HEADER_BYTES>() else { break };
        let payload_bytes = u32::from_le_bytes(head[8..12].try_into().unwrap());
        next = if head.starts_with(b"ENSB") {
            start + BLOCK_HEADER_BYTES + payload_bytes as usize
        } else {
            // Nothing was written from here on.
            contents.len()
        };
    }
    format!("{}, byte {start}: ", path.display())
}

/// Samples of all kinds.
fn samples(seed: u64) -> Vec<Sample> {
    let kinds = [(1, End::Closed), (1, End::Killed), (2, End::Closed), (2, End::Killed)];
    kinds.into_iter().map(|(loggers, end)| Sample::new(seed, loggers, end)).collect()
}

/// Does `damage` for all numbers below `count`, or about `wanted` of them if the run is a short one, fewer for some engines, on two threads.
fn sweep(seed: u64, count: u64, wanted: u64, damage: impl Fn(u64) -> Outcome + Sync) -> Outcomes {
    let step = if is_long() { 1 } else { (count / share(wanted)).max(1) };
    let offset = Random::new(seed).below(step);
    let numbers = |thread: u64| {
        (0..).map(move |at| offset + (2 * at + thread) * step).take_while(move |&at| at < count)
    };
    let mut outcomes = Outcomes::new();
    let bar = progress::bar("damages", (count - offset).div_ceil(step));
    thread::scope(|scope| {
        let halves = [0, 1].map(|thread| {
            let (damage, bar) = (&damage, &bar);
            scope.spawn(move || numbers(thread).map(damage).inspect(|_| bar.inc(1)).collect::<Vec<_>>())
        });
        for half in halves {
            let half = half.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            half.into_iter().for_each(|outcome| *outcomes.entry(outcome).or_default() += 1);
        }
    });
    outcomes
}

/// The length of a file without the zeros that it ends with.
fn used(contents: &[u8]) -> usize {
    contents.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1)
}

#[test]
fn without_damage_everything_is_there() {
    for sample in samples(1) {
        assert_eq!(sample.must(sample.disk.fork(), &[], Allowed::Exact, "no damage"), Outcome::Exact);
    }
}

#[test]
fn rows_that_never_were_are_noticed() {
    let (sample, other) = (Sample::new(1, 1, End::Closed), Sample::new(2, 1, End::Closed));
    let mixed = Sample { disk: other.disk, ..sample };
    assert!(
        mixed.open(mixed.disk.fork(), &[], Allowed::Prefix).is_err_and(|wrong| wrong.starts_with("served"))
    );
}

#[test]
fn a_bit_that_is_turned_is_found_or_harmless() {
    let seed = 2;
    for sample in samples(seed) {
        let files = sample.files();
        let lengths: Vec<u64> = files
            .iter()
            .map(|(_, contents)| (used(contents) as u64 + 200).min(contents.len() as u64))
            .collect();
        let bits = lengths.iter().sum::<u64>() * 8;
        let outcomes = sweep(seed, bits, 700, |mut bit| {
            let at = lengths
                .iter()
                .position(|len| {
                    let is_here = bit < len * 8;
                    if !is_here {
                        bit -= len * 8;
                    }
                    is_here
                })
                .unwrap();
            let (path, contents) = &files[at];
            let disk = sample.disk.fork();
            disk.flip(path, bit).unwrap();
            let damaged = disk.fork();
            let expected = place(path, contents, bit / 8);
            // Nothing is shorter than it was.
            let is_right = |error: &str| error.contains(&expected) && !error.contains("cut off");
            let outcome = sample.open_or_told(disk, sample.after_change(), &is_right);
            let outcome =
                outcome.unwrap_or_else(|wrong| panic!("{:?}, bit {bit} of {expected}: {wrong}", sample.end));
            if outcome == Outcome::Refused {
                sample.must_save(damaged, path, &format!("bit {bit} of {expected}"));
            }
            outcome
        });
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
        assert!(outcomes[&Outcome::Refused] > share(700) / 7, "{outcomes:?}");
    }
}

#[test]
fn a_file_that_is_cut_is_found_or_harmless() {
    for sample in samples(3) {
        let mut outcomes = Outcomes::new();
        for (path, contents) in sample.files() {
            let cuts = (used(&contents) as u64 + 200).min(contents.len() as u64).div_ceil(64);
            let of_file = sweep(3, cuts, 40, |at| {
                let disk = sample.disk.fork();
                disk.truncate(&path, at * 64).unwrap();
                let what = format!("{} cut at {}", path.display(), at * 64);
                // The file in front of it may be named as the place where the log ends.
                let logger = name(&path);
                let logger = Path::new(logger.rsplit_once('-').map_or("", |(logger, _)| logger));
                let named = if name(&path).contains("/log-") { &[&*path, logger][..] } else { &[&*path] };
                sample.must(disk, named, Allowed::Exact, &what)
            });
            of_file.into_iter().for_each(|(outcome, count)| *outcomes.entry(outcome).or_default() += count);
        }
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
    }
}

#[test]
fn blocks_and_sectors_in_each_others_places_are_found() {
    for sample in samples(4) {
        let mut outcomes = Outcomes::new();
        for (path, contents) in sample.files() {
            let starts: Vec<u64> = (0..contents.len())
                .filter(|&at| contents[at..].starts_with(b"ENSB"))
                .map(|at| at as u64)
                .collect();
            let blocks = starts.windows(3).map(|starts| {
                let len = (starts[1] - starts[0]).min(starts[2] - starts[1]);
                (starts[0]..starts[0] + len, starts[1]..starts[1] + len)
            });
            let sectors = (used(&contents) / 512) as u64;
            let sectors = (1..sectors).map(|at| ((at - 1) * 512..at * 512, at * 512..(at + 1) * 512));
            let swaps: Vec<_> = blocks.chain(sectors).collect();
            let of_file = sweep(4, swaps.len() as u64, 40, |at| {
                let (first, second) = swaps[at as usize].clone();
                let disk = sample.disk.fork();
                disk.swap(&path, first.clone(), second.clone()).unwrap();
                let what = format!("{}: {first:?} and {second:?}", path.display());
                // Several rounds at once can be gone without a trace, if they are the last ones and there was no end in order.
                let allowed = match sample.end {
                    End::Killed if second.end > sample.used_before.get(&path).copied().unwrap_or(0) => {
                        Allowed::Prefix
                    }
                    _ => sample.after_change(),
                };
                sample.must(disk, &[&path], allowed, &what)
            });
            of_file.into_iter().for_each(|(outcome, count)| *outcomes.entry(outcome).or_default() += count);
        }
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
    }
}

#[test]
fn files_in_each_others_places_are_refused() {
    for sample in samples(5) {
        let files = sample.files();
        for (one, one_contents) in &files {
            for (other, other_contents) in files.iter().filter(|(other, _)| other > one) {
                let disk = sample.disk.fork();
                let aside = Path::new("/aside");
                disk.rename(one, aside).unwrap();
                disk.rename(other, one).unwrap();
                disk.rename(aside, other).unwrap();
                let what = format!("{} and {}", one.display(), other.display());
                let outcome = sample.must(disk, &[one, other], Allowed::Exact, &what);
                let is_empty = |contents: &[u8]| used(contents) < 4096;
                assert!(
                    outcome == Outcome::Refused || (is_empty(one_contents) && is_empty(other_contents)),
                    "{what}"
                );
            }
        }
    }
}

#[test]
fn a_file_that_is_missing_is_missed() {
    for sample in samples(6) {
        for (path, contents) in sample.files() {
            let disk = sample.disk.fork();
            disk.delete(&path).unwrap();
            let what = format!("{} is missing", path.display());
            let outcome = sample.must(disk, &[&path], Allowed::Exact, &what);
            assert!(outcome == Outcome::Refused || used(&contents) < 4096, "{what}: {outcome:?}");
        }
    }
}

#[test]
fn an_older_manifest_is_refused_or_leads_to_the_same() {
    for sample in samples(7) {
        let mut outcomes = Outcomes::new();
        for (number, manifest) in sample.manifests.iter().enumerate() {
            let disk = sample.disk.fork();
            let path = Path::new(MANIFEST);
            disk.truncate(path, 0).unwrap();
            disk.open(path).unwrap().write_at(0, manifest).unwrap();
            let files: Vec<PathBuf> = sample.files().into_iter().map(|(path, _)| path).collect();
            let directories = ["/db/checkpoint-", "/db/log/log-", "/disk-1/log-"].map(PathBuf::from);
            let named: Vec<&Path> = files.iter().chain(&directories).map(PathBuf::as_path).collect();
            let outcome = sample.must(disk, &named, Allowed::Exact, &format!("manifest {number}"));
            *outcomes.entry(outcome).or_default() += 1;
        }
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
        assert!(outcomes[&Outcome::Refused] >= 6, "{outcomes:?}");
    }
}

#[test]
fn files_of_two_databases_do_not_mix() {
    for (one, other) in samples(8).into_iter().zip(samples(9)) {
        for (path, contents) in other.files() {
            let disk = one.disk.fork();
            if disk.exists(&path).unwrap() {
                disk.delete(&path).unwrap();
            }
            let directory = path.parent().unwrap();
            disk.create_dir_all(directory).unwrap();
            disk.create(&path, 0).unwrap().write_at(0, &contents).unwrap();
            let what = format!("{} of another database", path.display());
            // A file of one database can make others of it look as if they were missing.
            let named = [Path::new("/db/"), Path::new("/disk-1/")];
            let outcome = one.must(disk, &named, Allowed::Exact, &what);
            // A copy of the manifest is not read.
            let was_there = one.disk.exists(&path).unwrap() && !path.ends_with("MANIFEST.copy");
            assert!(outcome == Outcome::Refused || !was_there, "{what}: {outcome:?}");
        }
    }
}
