//! Processes that are killed while they work on a real directory.

use std::path::{Path, PathBuf};

use ensilo_crash::environment::seed_or;
use ensilo_crash::victim::{Killer, Victim};

/// Returns an unused directory, with the name of the test in it.
pub(crate) fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ensilo-crash-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ensilo-crash-victim"))
}

/// As many cycles as `ENSILO_CRASH_CYCLES` says, or `otherwise`.
pub(crate) fn cycles_or(otherwise: u64) -> u64 {
    std::env::var("ENSILO_CRASH_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(otherwise)
}

/// Kills the victims, which take turns on one directory.
///
/// # Panics
/// When something that was acknowledged is lost.
pub(crate) fn survive_kills(name: &str, victims: &[Victim], cycles: u64) {
    let (seed, directory) = (seed_or(1), directory(name));
    let killed = Killer::new(program(), &directory, seed, victims).run(cycles);
    // What a failure leaves is kept, to be looked at.
    let killed = killed.unwrap_or_else(|what| panic!("seed {seed}, {}: {what}", directory.display()));
    println!("{killed:?}");
    assert_eq!(killed.cycles, cycles);
    assert!(killed.acknowledged > 0);
    std::fs::remove_dir_all(&directory).unwrap();
}
