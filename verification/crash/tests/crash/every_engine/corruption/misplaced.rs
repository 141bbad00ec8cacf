//! Files under other names, files that nobody asked for, and directories in the places of others: the opening is refused with an error that
//! names a file, or all that was acknowledged is there, and is still there at the next opening.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ensilo_crash::explore::{Acknowledged, Oracle};
use ensilo_crash::serial::WORKER;
use ensilo_crash::setup::DIRECTORY;
use ensilo_disk::Disk;
use ensilo_test_disk::SimulatedDisk;

use super::{Database, End, Engine, Outcome, Outcomes, Sample, samples, share, sweep};

/// Opens the database in `directory` twice. What the first opening serves the second one serves, too; a refusal has to name one of the
/// `named`. Everything from `at_least` on has to be there.
fn open_twice(
    sample: &Sample,
    disk: &Arc<SimulatedDisk>,
    directory: &str,
    named: &[String],
    at_least: u64,
    what: &str,
) -> Outcome {
    let mut served = None;
    for opening in 1..=2 {
        let shared: Arc<dyn Disk> = Arc::clone(disk) as _;
        let opened = sample.setup.options(Path::new(directory)).open_with(shared, directory);
        let db: Database = match opened {
            Ok(db) => db,
            Err(error) => {
                let error = error.to_string();
                assert_eq!(opening, 1, "{:?}, {what}: opened once, then refused: {error}", sample.end);
                let is_named = named.iter().any(|name| error.contains(name));
                assert!(is_named, "{:?}, {what}: another file is named: {error}", sample.end);
                return Outcome::Refused;
            }
        };
        let mut acknowledged = Acknowledged::default();
        acknowledged.raise(WORKER, served.unwrap_or(at_least));
        let found = Oracle::<Engine>::check(&sample.history, &db, &acknowledged);
        let found = found.unwrap_or_else(|wrong| panic!("{:?}, {what}, {opening}: {wrong}", sample.end));
        assert!(served.is_none_or(|served| served == found), "{:?}, {what}: a hole", sample.end);
        served = Some(found);
        db.close().unwrap();
    }
    if served >= Some(sample.last) { Outcome::Exact } else { Outcome::Shortened }
}

/// How an error names a file: a log file without its ending, which changes.
fn without_ending(path: &Path) -> String {
    let path = path.display().to_string();
    match path.rfind("log-").and_then(|at| Some(at + path[at..].find("-e").or(path[at..].find('.'))?)) {
        Some(end) => path[..end].to_owned(),
        None => path,
    }
}

/// All paths that differ from this one in a single digit of the file's name.
fn with_other_digits(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().unwrap().to_str().unwrap();
    let digits = name.char_indices().filter(|(_, letter)| letter.is_ascii_digit());
    let others = digits.flat_map(|(at, letter)| {
        ('0'..='9').filter(move |&digit| digit != letter).map(move |digit| {
            let mut other = name.to_owned();
            other.replace_range(at..=at, &digit.to_string());
            path.with_file_name(other)
        })
    });
    others.collect()
}

fn add(outcomes: &mut Outcomes, more: Outcomes) {
    more.into_iter().for_each(|(outcome, count)| *outcomes.entry(outcome).or_default() += count);
}

#[test]
fn every_digit_of_every_file_name_counts_or_does_no_harm() {
    for sample in samples(11) {
        let files = sample.files().into_iter().map(|(path, _)| path);
        let names: Vec<(PathBuf, PathBuf)> = files
            .flat_map(|path| with_other_digits(&path).into_iter().map(move |other| (path.clone(), other)))
            .filter(|(_, other)| !sample.disk.exists(other).unwrap())
            .collect();
        let outcomes = sweep(11, names.len() as u64, 60, |at| {
            let (path, other) = &names[at as usize];
            let disk = Arc::new(sample.disk.fork());
            disk.rename(path, other).unwrap();
            let named = [path, other].map(|path| without_ending(path));
            let what = format!("{} as {}", path.display(), other.display());
            open_twice(&sample, &disk, DIRECTORY, &named, sample.last, &what)
        });
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
        assert!(outcomes[&Outcome::Refused] > share(60) / 6, "{outcomes:?}");
    }
}

/// Names of log files, most of which no opening would write.
const NAMES: [&str; 14] = [
    "log-0-0-1-e1099511627775.log",
    "log-1-0-1-e1099511627775.log",
    "log-1-0-1-e18446744073709551615.log",
    "log-2-0-9-e3.log",
    "log-3-0-1-e4.log",
    "log-3-0-77.open",
    "log-3-0-1099511627775-e1099511627775.log",
    "log-3-1-1.open",
    "log-3-9-1.open",
    "log-4-0-1.open",
    "log-9-0-1-e5.log",
    "log-1099511627775-0-1.open",
    "log-18446744073709551615-0-1.open",
    "log-3-4294967295-1-e7.log",
];

#[test]
fn files_that_nobody_asked_for_are_named_or_do_no_harm() {
    for sample in samples(12) {
        let files: Vec<_> =
            sample.files().into_iter().filter(|(path, _)| without_ending(path).contains("log-")).collect();
        let mut outcomes = Outcomes::new();
        // An empty file first, then a copy of each log file.
        let contents: Vec<&[u8]> =
            [&[][..]].into_iter().chain(files.iter().map(|(_, bytes)| &bytes[..])).collect();
        for name in NAMES {
            let path = Path::new("/db/log").join(name);
            if sample.disk.exists(&path).unwrap() {
                continue;
            }
            add(
                &mut outcomes,
                sweep(12, contents.len() as u64, 2, |at| {
                    let disk = Arc::new(sample.disk.fork());
                    disk.create(&path, 0).unwrap().write_at(0, contents[at as usize]).unwrap();
                    let what = format!("{} with the bytes of file {at}", path.display());
                    open_twice(&sample, &disk, DIRECTORY, &[without_ending(&path)], sample.last, &what)
                }),
            );
        }
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
        assert!(outcomes.keys().all(|outcome| matches!(outcome, Outcome::Refused | Outcome::Exact)));
    }
}

/// Makes what lies in `to` what lies in `from` of `source`, without the directories in it.
fn replace_directory(disk: &SimulatedDisk, to: &str, source: &SimulatedDisk, from: &str) {
    let within = |disk: &SimulatedDisk, dir: &str| {
        let listed = disk.list(Path::new(dir)).unwrap().into_iter();
        listed
            .filter(|entry| !entry.is_dir && entry.name != "LOCK")
            .map(|entry| entry.name)
            .collect::<Vec<_>>()
    };
    for name in within(disk, to) {
        disk.delete(&Path::new(to).join(name)).unwrap();
    }
    for name in within(source, from) {
        let bytes = source.contents(&Path::new(from).join(&name)).unwrap();
        disk.create(&Path::new(to).join(&name), 0).unwrap().write_at(0, &bytes).unwrap();
    }
}

#[test]
fn swapped_log_directories_are_refused() {
    for sample in samples(13).into_iter().filter(|sample| sample.setup.loggers > 1) {
        let disk = Arc::new(sample.disk.fork());
        replace_directory(&disk, "/db/log", &sample.disk, "/disk-1");
        replace_directory(&disk, "/disk-1", &sample.disk, "/db/log");
        let named = ["/db/log/log-", "/disk-1/log-"].map(str::to_owned);
        let outcome = open_twice(&sample, &disk, DIRECTORY, &named, sample.last, "swapped");
        assert_eq!(outcome, Outcome::Refused);
    }
}

#[test]
fn a_copy_of_the_directory_goes_its_own_way_or_is_refused() {
    for sample in samples(14) {
        let disk = Arc::new(sample.disk.fork());
        for (path, bytes) in sample.files() {
            let Ok(within) = path.strip_prefix(DIRECTORY) else { continue };
            let path = Path::new("/copy").join(within);
            disk.create_dir_all(path.parent().unwrap()).unwrap();
            disk.create(&path, 0).unwrap().write_at(0, &bytes).unwrap();
        }
        // One logger has its directory within the database's; the second one's is not copied.
        let (wanted, named) = match sample.setup.loggers {
            1 => (Outcome::Exact, vec![]),
            _ => (Outcome::Refused, vec!["/disk-1/OWNER: ".to_owned()]),
        };
        assert_eq!(open_twice(&sample, &disk, "/copy", &named, sample.last, "the copy"), wanted);
        assert_eq!(open_twice(&sample, &disk, DIRECTORY, &[], sample.last, "the original"), Outcome::Exact);
        assert_eq!(open_twice(&sample, &disk, "/copy", &named, sample.last, "the copy"), wanted);
    }
}

#[test]
fn older_copies_of_directories_are_named_or_do_no_harm() {
    for sample in samples(15) {
        let mut outcomes = Outcomes::new();
        for (number, earlier) in sample.earlier.iter().enumerate() {
            for directory in ["/db", "/db/log", "/disk-1"] {
                if !earlier.exists(Path::new(directory)).unwrap() {
                    continue;
                }
                let disk = Arc::new(sample.disk.fork());
                replace_directory(&disk, directory, earlier, directory);
                // A log of the last opening that did not end in order has nothing that could testify to its last rounds.
                let is_of_last_opening = number + 3 >= sample.earlier.len();
                let may_be_short = sample.end == End::Killed && is_of_last_opening && directory != "/db";
                let at_least = if may_be_short { 0 } else { sample.last };
                let what = format!("{directory} as it was at {number}");
                let named = ["/db/", "/disk-1/"].map(str::to_owned);
                let outcome = open_twice(&sample, &disk, DIRECTORY, &named, at_least, &what);
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
        println!("{:?}, {} loggers: {outcomes:?}", sample.end, sample.setup.loggers);
        assert!(outcomes[&Outcome::Refused] >= 6, "{outcomes:?}");
    }
}
