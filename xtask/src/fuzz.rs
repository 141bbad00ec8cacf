//! The fuzzers in `verification/fuzz/`, without a tool of their own: the nightly compiler counts the branches
//! that are taken, and libFuzzer, which each fuzzer is linked with, looks for bytes that take others.

use crate::step::Step;

/// Functions of `ensilo_oracles`, each with a fuzzer.
pub(crate) const TARGETS: [&str; 7] =
    ["file_header", "block", "entries", "manifest", "changes", "log_file", "checkpoint_part"];

/// As `cargo fuzz` builds.
const RUSTFLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Zsanitizer=address";

/// Longer bytes show nothing more.
const INPUT_BYTES_MAX: usize = 64 << 10;

/// Runs each of `targets` for so many seconds, or until it finds something, which is then left in
/// `target/fuzz/found`. What it has learned stays in `target/fuzz/corpus`, and the next run goes on from
/// there.
pub(crate) fn fuzz(targets: &[&str], seconds: u64) -> Vec<Step> {
    let program = "run --release -p ensilo-oracles --example fuzz_seeds";
    let seeds = format!("{program} -- target/fuzz/seeds verification/crash/fixtures");
    let mut steps = vec![Step::cargo("seeds", &seeds)];
    for target in targets {
        let fuzzer = format!(
            "+nightly run --release --manifest-path verification/fuzz/Cargo.toml --target x86_64-unknown-linux-gnu --target-dir target/fuzz/build --bin {target}"
        );
        let arguments = format!(
            "target/fuzz/corpus/{target} target/fuzz/seeds/{target} -max_total_time={seconds} -max_len={INPUT_BYTES_MAX} -artifact_prefix=target/fuzz/found/{target}- -verbosity=0 -print_final_stats=1"
        );
        let step = Step::cargo(&format!("fuzzer: {target}"), &format!("{fuzzer} -- {arguments}"))
            .env("RUSTFLAGS", RUSTFLAGS)
            .folder(&format!("target/fuzz/corpus/{target}"))
            .folder("target/fuzz/found");
        steps.push(step);
    }
    steps
}
