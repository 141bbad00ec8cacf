//! Miri: the tests of parts that need no system, by an interpreter that finds undefined behaviour.

use crate::step::{Need, Step};

/// Packages, each with those of its tests that take Miri seconds, not hours.
const PURE: [(&str, &str, &str); 4] = [
    ("rows and keys", "ensilo-row", "--skip an_index_key_takes_one_step"),
    ("nodes of the index", "ensilo-index", "key:: permuter:: a_layer_that_a_reader_can_still_find"),
    ("workers that are lent", "ensilo", "worker::slot worker::spare"),
    ("formats of files", "ensilo-log", "format::block format::cursor"),
];

/// Returns the steps, which are reported as skipped where Miri is not installed.
pub(crate) fn miri() -> Vec<Step> {
    let step = |(name, package, tests): (&str, &str, &str)| {
        let call = format!("+nightly miri test -p {package} --lib --target-dir target/miri -- {tests}");
        // Property tests keep what they have found in files; nodes are found by their addresses.
        Step::cargo(&format!("Miri: {name}"), &call)
            .needs(Need::Miri)
            .env("MIRIFLAGS", "-Zmiri-disable-isolation -Zmiri-permissive-provenance")
            .env("PROPTEST_CASES", "4")
            .env("RUSTFLAGS", "--cfg ensilo_portable")
    };
    PURE.into_iter().map(step).collect()
}
