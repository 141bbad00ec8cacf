//! Processes that are killed while they work on a real directory.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};

use ensilo_crash::environment::seed_or;
use ensilo_crash::victim::Killer;

/// A directory of this test's own.
fn directory(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("ensilo-crash-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    directory
}

fn victim() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_ensilo-crash-victim"))
}

/// As many cycles as `ENSILO_CRASH_CYCLES` says, or a few.
#[test]
fn what_was_acknowledged_survives_kills() {
    let cycles =
        std::env::var("ENSILO_CRASH_CYCLES").ok().and_then(|cycles| cycles.parse().ok()).unwrap_or(5);
    let seed = seed_or(1);
    let directory = directory("kill");
    let killed = Killer::new(victim(), &directory, seed, false).run(cycles);
    // What a failure leaves is kept, to be looked at.
    let killed = killed.unwrap_or_else(|what| panic!("seed {seed}, {}: {what}", directory.display()));
    println!("{killed:?}");
    assert_eq!(killed.cycles, cycles);
    assert!(killed.acknowledged > 0);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn an_acknowledgement_that_comes_too_early_is_noticed() {
    let directory = directory("early");
    let found = Killer::new(victim(), &directory, 1, true).run(40).unwrap_err();
    assert!(found.contains("was acknowledged"), "{found}");
    std::fs::remove_dir_all(&directory).unwrap();
}
