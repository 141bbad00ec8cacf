//! What must hold for any bytes that somebody takes for a file of a database, or for a part of one.
//!
//! Each function takes any bytes, and panics where a reader of `ensilo-log` does something with them that it
//! must not. The fuzzers in `verification/fuzz` call them (`cargo xtask fuzz`), and tests of `ensilo-log` with
//! damaged files.
#![forbid(unsafe_code)]

mod changes;
mod files;
mod parts;
mod plain;

use ensilo_log::{BlockCodec, FILE_HEADER_BYTES, FileHeader, FileRole, Manifest};

pub use changes::changes;
pub use files::{checkpoint_part, log_file};
pub use parts::{block, entries, file_header, manifest};

/// Returns bytes to begin with for each function, made of a file of a database.
///
/// A log file also gives its header, its blocks and their payloads; the body of a manifest also stands alone, and a manifest gives a
/// history of changes that goes with it.
#[must_use]
pub fn seeds(file: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    if let Ok(manifest) = Manifest::decode(file) {
        let body = file[plain::MANIFEST_HEAD_BYTES..].to_vec();
        let history = changes::seed_of(&manifest);
        let history_body = history[plain::MANIFEST_HEAD_BYTES..].to_vec();
        return vec![
            ("manifest", file.to_vec()),
            ("manifest", body),
            ("changes", history),
            ("changes", history_body),
        ];
    }
    if file.starts_with(b"ENSILOCH") {
        return vec![("changes", file.to_vec())];
    }
    let Ok(header) = FileHeader::decode(file) else { return Vec::new() };
    let whole = match header.identity.file {
        FileRole::Log { .. } => "log_file",
        FileRole::Checkpoint { .. } => "checkpoint_part",
    };
    let mut seeds = vec![(whole, file.to_vec()), ("file_header", file[..FILE_HEADER_BYTES].to_vec())];
    if whole == "log_file" {
        add_blocks(file, &header, &mut seeds);
    }
    seeds
}

fn add_blocks(file: &[u8], header: &FileHeader, seeds: &mut Vec<(&'static str, Vec<u8>)>) {
    let codec = BlockCodec::new(&header.identity);
    let mut at = FILE_HEADER_BYTES;
    while let Ok((sealed, payload)) = codec.check(&file[at..], at as u64) {
        seeds.push(("block", file[at..at + sealed.bytes()].to_vec()));
        if let Ok(raw) = sealed.raw(&file[at..][payload], &mut Vec::new()) {
            seeds.push(("entries", raw.to_vec()));
        }
        at += sealed.bytes();
    }
}
