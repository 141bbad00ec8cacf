//! Two copies of a database that have gone on by themselves, and one file of the one in the place of the file of the same name of the other: the
//! opening is refused, or the file is one that means nothing or is the same.

use std::path::Path;
use std::sync::Arc;

use ensilo_crash::serial::{self, Plan};
use ensilo_disk::Disk;
use ensilo_test_disk::{Recorder, SimulatedDisk};

use super::{Allowed, Database, End, Outcome, Outcomes, Sample, name, samples};

impl Sample {
    /// A copy that has gone on by itself, in so many openings.
    fn gone_on(&self, seed: u64, openings: u64) -> Sample {
        let mut disk = Arc::new(self.disk.fork());
        let mut history = self.history.clone();
        for opening in 0..openings {
            let recorder = Arc::new(Recorder::over(Arc::clone(&disk)));
            let db: Database = self.setup.open(Arc::clone(&recorder) as _).unwrap();
            let plan = Plan { rows: 10, blob_bytes_max: 150, stored_percent: 100, ..Plan::new(seed, 12) };
            serial::run(&db, &recorder, &mut history, &Plan { seed: seed * 100 + opening, ..plan }).unwrap();
            if self.end == End::Closed {
                db.close().unwrap();
            }
            let ended = disk.fork();
            disk.kill();
            disk = Arc::new(ended);
        }
        let last = history.last();
        Sample {
            disk: disk.fork(),
            history,
            last,
            before_last_round: last,
            used_before: self.used_before.clone(),
            manifests: Vec::new(),
            earlier: Vec::new(),
            ..*self
        }
    }

    /// This database with one file of another one.
    fn with_file(&self, path: &Path, contents: &[u8]) -> SimulatedDisk {
        let disk = self.disk.fork();
        disk.delete(path).unwrap();
        disk.create(path, 0).unwrap().write_at(0, contents).unwrap();
        disk
    }
}

#[test]
fn one_file_of_a_diverged_copy_is_refused_or_means_nothing() {
    for (number, sample) in (0..).zip(samples(16)) {
        // The first opening of a copy, or a later one: then there is log of an earlier generation that differs, too.
        let openings = 1 + number % 2;
        let [own, other] = [1, 2].map(|seed| sample.gone_on(seed, openings));
        let (mut outcomes, mut log_files) = (Outcomes::new(), 0);
        for (path, contents) in other.files() {
            if !own.disk.exists(&path).unwrap() || own.disk.contents(&path).unwrap() == contents {
                continue;
            }
            let is_log = name(&path).contains("/log-");
            let is_right = |error: &str| match is_log {
                true => error.contains(&name(&path)) && error.contains("another copy"),
                // What a manifest names, or an `OWNER` is asked for, may be in another directory.
                false => ["/db/", "/disk-1/"].iter().any(|directory| error.contains(directory)),
            };
            let what = format!("{:?}, {}", own.end, path.display());
            let disk = own.with_file(&path, &contents);
            let outcome = own.open_or_told(disk.fork(), Allowed::Exact, &is_right);
            let outcome = outcome.unwrap_or_else(|wrong| panic!("{what}: {wrong}"));
            assert!(outcome == Outcome::Refused || path.ends_with("MANIFEST.copy"), "{what}: {outcome:?}");
            if is_log || path.extension().is_some_and(|extension| extension == "ckpt") {
                own.must_save(disk, &path, &what);
            }
            log_files += u64::from(is_log);
            *outcomes.entry(outcome).or_default() += 1;
        }
        println!("{:?}, {} loggers: {outcomes:?}, {log_files} log files", own.end, own.setup.loggers);
        // Those of an earlier generation have names of one's own, if their copy had other epochs.
        assert!(log_files >= own.setup.loggers as u64, "{outcomes:?}");
    }
}
