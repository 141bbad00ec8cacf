//! What fuzzers look for, looked for in files that are damaged here and there.

use std::sync::{Arc, LazyLock};

use ensilo_oracles::{block, changes, checkpoint_part, entries, file_header, log_file, manifest, seeds};
use ensilo_test_disk::SimulatedDisk;
use proptest::prelude::*;
use proptest::sample::Index;

use super::history::Run;
use crate::format::Compression;

/// Something that happens to bytes.
#[derive(Debug, Clone)]
enum Corruption {
    Set(Index, u8),
    Flip(Index, u8),
    Word(Index, u64),
    Cut(Index),
    Remove(Index, u8),
    Double(Index, u8),
}

fn corruptions() -> impl Strategy<Value = Vec<Corruption>> {
    let one = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, value)| Corruption::Set(at, value)),
        (any::<Index>(), 0u8..8).prop_map(|(at, bit)| Corruption::Flip(at, bit)),
        (any::<Index>(), any::<u64>(), 0u32..64)
            .prop_map(|(at, word, shift)| Corruption::Word(at, word >> shift)),
        any::<Index>().prop_map(Corruption::Cut),
        (any::<Index>(), any::<u8>()).prop_map(|(at, len)| Corruption::Remove(at, len)),
        (any::<Index>(), any::<u8>()).prop_map(|(at, len)| Corruption::Double(at, len)),
    ];
    proptest::collection::vec(one, 0..4)
}

impl Corruption {
    fn happen(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let len = bytes.len();
        let range = |at: &Index, count: &u8| {
            let at = at.index(len);
            at..len.min(at + usize::from(*count))
        };
        match self {
            Corruption::Set(at, value) => bytes[at.index(len)] = *value,
            Corruption::Flip(at, bit) => bytes[at.index(len)] ^= 1 << bit,
            Corruption::Word(at, word) => {
                let at = at.index(len);
                bytes[at..].iter_mut().zip(word.to_le_bytes()).for_each(|(byte, value)| *byte = value);
            }
            Corruption::Cut(at) => bytes.truncate(at.index(len)),
            Corruption::Remove(at, count) => drop(bytes.drain(range(at, count))),
            Corruption::Double(at, count) => {
                let copy = bytes[range(at, count)].to_vec();
                bytes.splice(at.index(len)..at.index(len), copy).for_each(drop);
            }
        }
    }
}

/// Returns what a small database gives to begin with. The zeros that files end with are cut short.
fn all_seeds() -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    for compression in [Compression::None, Compression::Lz4] {
        let disk = Arc::new(SimulatedDisk::new());
        let mut run = Run::new(&disk, 2, 4);
        run.log.compression = compression;
        run.round();
        run.checkpoint(1);
        run.rotate(0);
        (0..20).for_each(|_| run.round());
        run.log.close();
        drop(run);
        for (path, _) in disk.files() {
            let mut file = disk.contents(&path).unwrap();
            let used = file.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
            let is_log = path.to_string_lossy().contains("log-");
            file.truncate(if is_log { (used + 100).max(4096).min(file.len()) } else { file.len() });
            all.extend(seeds(&file));
        }
    }
    all
}

static SEEDS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(all_seeds);

fn fuzz(target: &str, bytes: &[u8]) {
    match target {
        "file_header" => file_header(bytes),
        "block" => block(bytes),
        "entries" => entries(bytes),
        "manifest" => manifest(bytes),
        "changes" => changes(bytes),
        "log_file" => log_file(bytes),
        "checkpoint_part" => checkpoint_part(bytes),
        other => panic!("{other} is no target"),
    }
}

#[test]
fn sound_files_are_what_the_document_says() {
    let seeds = &*SEEDS;
    for target in ["file_header", "block", "entries", "manifest", "changes", "log_file", "checkpoint_part"] {
        assert!(seeds.iter().filter(|seed| seed.0 == target).count() > 1, "{target}");
    }
    seeds.iter().for_each(|(target, bytes)| fuzz(target, bytes));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn damaged_files_are_read_as_the_document_says(corruptions in corruptions()) {
        for (target, bytes) in SEEDS.iter() {
            let mut bytes = bytes.clone();
            corruptions.iter().for_each(|corruption| corruption.happen(&mut bytes));
            fuzz(target, &bytes);
        }
    }
}
