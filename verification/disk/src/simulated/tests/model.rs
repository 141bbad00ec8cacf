//! Runs of random operations beside a model that only remembers what each file has been and been called since it was last synced.

use std::collections::BTreeMap;
use std::path::Path;

use ensilo_disk::{Disk, File};
use proptest::prelude::*;

use crate::SimulatedDisk;

const NAMES: [&str; 6] = ["a", "b", "c", "d/a", "d/b", "d/c"];
const SECTOR: usize = 512;

#[derive(Debug, Clone)]
enum Step {
    Create { name: usize },
    Write { name: usize, offset: usize, len: usize },
    SetLen { name: usize, len: usize },
    Sync { name: usize },
    SyncDir { dir: &'static str },
    Rename { from: usize, to: usize },
    Remove { name: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let name = || 0..NAMES.len();
    prop_oneof![
        3 => name().prop_map(|name| Step::Create { name }),
        6 => (name(), 0..3000_usize, 0..1500_usize).prop_map(|(name, offset, len)| Step::Write { name, offset, len }),
        2 => (name(), 0..4000_usize).prop_map(|(name, len)| Step::SetLen { name, len }),
        2 => name().prop_map(|name| Step::Sync { name }),
        2 => prop_oneof![Just(""), Just("d")].prop_map(|dir| Step::SyncDir { dir }),
        2 => (name(), name()).prop_map(|(from, to)| Step::Rename { from, to }),
        1 => name().prop_map(|name| Step::Remove { name }),
    ]
}

/// A file by what it is and not by its name. Its first sector is stored from the start and says which one it is.
struct Modelled {
    /// All that it was since it was last synced.
    bytes: Vec<Vec<u8>>,
    /// What it was called since its name was last stored; nothing before it was created and after it was removed.
    names: Vec<Named>,
    handle: Box<dyn File>,
}

struct Named {
    name: Option<usize>,
    /// The names that the change which led here has touched.
    touched: Vec<usize>,
}

struct Run {
    disk: SimulatedDisk,
    files: BTreeMap<u64, Modelled>,
    /// Which file has each name now.
    named: BTreeMap<usize, u64>,
    steps: u64,
}

impl Run {
    fn new() -> Run {
        let disk = SimulatedDisk::new();
        disk.create_dir_all(Path::new("d")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        Run { disk, files: BTreeMap::new(), named: BTreeMap::new(), steps: 0 }
    }

    fn file_at(&mut self, name: usize) -> Option<&mut Modelled> {
        let id = self.named.get(&name)?;
        self.files.get_mut(id)
    }

    fn apply(&mut self, step: &Step) {
        self.steps += 1;
        let fill = u8::try_from(self.steps % 251 + 1).unwrap();
        match *step {
            Step::Create { name } => self.create(name),
            Step::Write { name, offset, len } => {
                let Some(file) = self.file_at(name) else { return };
                file.handle.write_at((SECTOR + offset) as u64, &vec![fill; len]).unwrap();
                let mut bytes = file.bytes.last().unwrap().clone();
                if len > 0 {
                    bytes.resize(bytes.len().max(SECTOR + offset + len), 0);
                    bytes[SECTOR + offset..SECTOR + offset + len].fill(fill);
                }
                file.bytes.push(bytes);
            }
            Step::SetLen { name, len } => {
                let Some(file) = self.file_at(name) else { return };
                file.handle.set_len((SECTOR + len) as u64).unwrap();
                let mut bytes = file.bytes.last().unwrap().clone();
                bytes.resize(SECTOR + len, 0);
                file.bytes.push(bytes);
            }
            Step::Sync { name } => {
                let Some(file) = self.file_at(name) else { return };
                file.handle.sync_data().unwrap();
                file.bytes.drain(..file.bytes.len() - 1);
            }
            Step::SyncDir { dir } => self.sync_dir(dir),
            Step::Rename { from, to } => self.rename(from, to),
            Step::Remove { name } => self.remove(name),
        }
    }

    fn create(&mut self, name: usize) {
        let created = self.disk.create(Path::new(NAMES[name]), 0);
        assert_eq!(created.is_ok(), !self.named.contains_key(&name));
        let Ok(handle) = created else { return };
        let mut first_sector = vec![0; SECTOR];
        first_sector[..8].copy_from_slice(&self.steps.to_le_bytes());
        handle.write_at(0, &first_sector).unwrap();
        handle.sync_all().unwrap();
        let names =
            vec![Named { name: None, touched: vec![] }, Named { name: Some(name), touched: vec![name] }];
        self.files.insert(self.steps, Modelled { bytes: vec![first_sector], names, handle });
        self.named.insert(name, self.steps);
    }

    fn sync_dir(&mut self, dir: &str) {
        self.disk.sync_dir(Path::new(dir)).unwrap();
        let is_in = |name: &usize| Path::new(NAMES[*name]).parent() == Some(Path::new(dir));
        for file in self.files.values_mut() {
            if let Some(stored) = file.names.iter().rposition(|named| named.touched.iter().any(is_in)) {
                file.names.drain(..stored);
            }
        }
    }

    fn rename(&mut self, from: usize, to: usize) {
        let renamed = self.disk.rename(Path::new(NAMES[from]), Path::new(NAMES[to]));
        assert_eq!(renamed.is_ok(), self.named.contains_key(&from));
        if renamed.is_err() || from == to {
            return;
        }
        if let Some(replaced) = self.file_at(to) {
            replaced.names.push(Named { name: None, touched: vec![from, to] });
        }
        self.file_at(from).unwrap().names.push(Named { name: Some(to), touched: vec![from, to] });
        let id = self.named.remove(&from).unwrap();
        self.named.insert(to, id);
    }

    fn remove(&mut self, name: usize) {
        let removed = self.disk.remove(Path::new(NAMES[name]));
        assert_eq!(removed.is_ok(), self.named.contains_key(&name));
        if let Some(file) = self.file_at(name) {
            file.names.push(Named { name: None, touched: vec![name] });
            self.named.remove(&name);
        }
    }

    /// What a power failure leaves is something that the model allows.
    fn check(&self, found: &SimulatedDisk) {
        assert!(found.is_synced());
        let mut found_names: BTreeMap<u64, Vec<String>> = BTreeMap::new();
        for (path, _) in found.files() {
            let bytes = found.contents(&path).unwrap();
            let id = u64::from_le_bytes(bytes[..8].try_into().unwrap());
            found_names.entry(id).or_default().push(path.to_str().unwrap().to_string());
            check_bytes(&bytes, &self.files[&id].bytes);
        }
        for (id, file) in &self.files {
            let found = found_names.remove(id).unwrap_or_default();
            assert!(found.len() <= 1, "one file of two names: {found:?}");
            let found = found.first().map(|name| NAMES.iter().position(|known| known == name).unwrap());
            assert!(file.names.iter().any(|named| named.name == found), "file {id} is found as {found:?}");
        }
        assert!(found_names.is_empty());
    }
}

/// Each sector is as it was at some time since the sync, and the length is one that the file had or passed.
fn check_bytes(found: &[u8], since_sync: &[Vec<u8>]) {
    let lengths = since_sync.iter().map(Vec::len);
    assert!(lengths.clone().min().unwrap() <= found.len() && found.len() <= lengths.max().unwrap());
    for (index, sector) in found.chunks(SECTOR).enumerate() {
        let is_as_in = |bytes: &Vec<u8>| {
            let bytes = bytes.get(index * SECTOR..).unwrap_or_default();
            (0..sector.len()).all(|place| sector[place] == bytes.get(place).copied().unwrap_or(0))
        };
        assert!(since_sync.iter().any(is_as_in), "sector {index} was never like this");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_crash_leaves_what_was_synced_and_some_of_the_rest(steps in prop::collection::vec(step(), 1..50)) {
        let mut run = Run::new();
        for step in &steps {
            run.apply(step);
            run.check(&run.disk.fork().crash(run.steps));
        }
        for (name, id) in &run.named {
            prop_assert_eq!(&run.disk.contents(Path::new(NAMES[*name])).unwrap(), run.files[id].bytes.last().unwrap());
        }
        let killed = run.disk.kill();
        for seed in 0..24 {
            run.check(&run.disk.crash(seed));
            run.check(&killed.crash(seed));
        }
    }

    #[test]
    fn a_seed_always_gives_the_same(steps in prop::collection::vec(step(), 1..30), seed: u64) {
        let mut run = Run::new();
        steps.iter().for_each(|step| run.apply(step));
        let (first, second) = (run.disk.crash(seed), run.disk.crash(seed));
        prop_assert_eq!(first.files(), second.files());
        for (path, _) in first.files() {
            prop_assert_eq!(first.contents(&path).unwrap(), second.contents(&path).unwrap());
        }
    }
}
