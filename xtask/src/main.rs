//! Commands for developers of Ensilo: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod fuzz;
mod miri;
mod publish;
mod step;
mod systems;

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use fuzz::{TARGETS, fuzz};
use miri::miri;
use publish::publishable;
use step::{Step, run};
use systems::systems;

/// Commands for developers of Ensilo.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask", version, about)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// All that a change has to pass: format, lints, documentation, tests, packages, other systems, models.
    Ci,
    /// The models of the lock-free protocols: loom (every interleaving of small ones) and shuttle (random
    /// ones of large ones).
    Models,
    /// The long checks: models, Miri (left out where the nightly toolchain lacks it), ThreadSanitizer (needs
    /// the nightly toolchain with its `rust-src`), and stress runs with histories that are checked for
    /// serializability.
    Safety {
        /// How long the stress runs take, in seconds.
        #[arg(long, default_value_t = 300)]
        stress_seconds: u64,
    },
    /// The long crash tests on every engine: every crash point with many tears, every fault, every bit of a
    /// small database turned, and processes that are killed. Some hours.
    Crash {
        /// How many processes are killed.
        #[arg(long, default_value_t = 200)]
        cycles: u64,
        /// Where the numbers of the runs come from.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Only the tests of this engine, and none in which engines take turns; once for each engine.
        #[arg(long = "engine", value_parser = PossibleValuesParser::new(ENGINES))]
        engines: Vec<String>,
    },
    /// Two-phase commit between instances, simulated seed by seed: messages are lost, doubled, late and out of order, and instances die and come
    /// back. A million takes some ten minutes.
    Simulate {
        /// How many seeds.
        #[arg(long, default_value_t = 1_000_000)]
        seeds: u64,
        /// The first one.
        #[arg(long, default_value_t = 0)]
        first: u64,
    },
    /// Fuzzers of everything that reads files (needs the nightly toolchain). What they find is left in
    /// target/fuzz/found; to look at it again, call the fuzzer with its name as the only argument behind
    /// `--`.
    Fuzz {
        /// How long each one runs.
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// Only this one.
        #[arg(long, value_parser = PossibleValuesParser::new(TARGETS))]
        target: Option<String>,
    },
    /// Cache lines that workers share, by transaction and system (docs/scaling.md): a table, and with `--csv
    /// FILE` the counts that `ensilo figures model` reads. `-- --help` shows the options.
    Sharing {
        /// Options of the program that counts.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Where the time of workers goes (ERMIA's figure 11, docs/evaluation.md): shares by part of the engine, looked at while TPC-C runs;
    /// with `--csv FILE` what `ensilo figures regions` draws. `-- --help` shows the options.
    Regions {
        /// Options of the program that looks.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// The benchmarks that docs/performance.md reports: TPC-C and YCSB with 1 and 2 workers, durable and in
    /// memory, JSON under target/bench.
    Bench {
        /// How long each run measures, in seconds.
        #[arg(long, default_value_t = 10)]
        seconds: u64,
        /// How many runs of each, of which the report gives the median.
        #[arg(long, default_value_t = 3)]
        runs: u32,
        /// Records of the YCSB database.
        #[arg(long, default_value_t = 10_000_000)]
        records: u64,
    },
}

fn main() -> ExitCode {
    let steps = match Arguments::parse().command {
        Command::Ci => ci(),
        Command::Models => models(),
        Command::Safety { stress_seconds } => safety(stress_seconds),
        Command::Crash { cycles, seed, engines } => crash(cycles, seed, &engines),
        Command::Simulate { seeds, first } => vec![simulate(seeds, first)],
        Command::Fuzz { seconds, target: None } => fuzz(&TARGETS, seconds),
        Command::Fuzz { seconds, target: Some(target) } => fuzz(&[&target], seconds),
        Command::Sharing { arguments } => vec![observed("sharing", "ensilo_count", &arguments)],
        Command::Regions { arguments } => vec![observed("regions", "ensilo_regions", &arguments)],
        Command::Bench { seconds, runs, records } => bench(seconds, runs, records),
    };
    run(&steps)
}

fn ci() -> Vec<Step> {
    let mut steps = vec![
        Step::cargo("format", "fmt --all --check"),
        Step::cargo("lints", "clippy --workspace --all-targets --profile quick -- -D warnings"),
        Step::cargo("documentation", "doc --workspace --no-deps --profile quick")
            .env("RUSTDOCFLAGS", "-D warnings"),
        Step::cargo("tests", "test --workspace --profile quick"),
    ];
    steps.extend(publishable());
    steps.extend(systems());
    steps.extend(models());
    steps
}

fn models() -> Vec<Step> {
    vec![
        Step::cargo("loom: memory freed by others", "test --profile quick -p ensilo-slab --lib")
            .model("loom"),
        Step::cargo("loom: epochs", "test --profile quick -p ensilo-epoch --test loom").model("loom"),
        Step::cargo("loom: records and commit", "test --profile quick -p ensilo-txn --lib").model("loom"),
        Step::cargo("loom: versions and ERMIA's commit", "test --profile quick -p ensilo-ermia --lib models")
            .model("loom"),
        Step::cargo("loom: the table of locks", "test --profile quick -p ensilo-2pl --lib model")
            .model("loom"),
        Step::cargo("loom: single keys", "test --profile quick -p ensilo-baselines --lib").model("loom"),
        Step::cargo(
            "loom: log buffers, places in the ring, who leads",
            "test --profile quick -p ensilo-log --lib model",
        )
        .model("loom"),
        Step::cargo(
            "loom: rings between instances, and who sleeps",
            "test --profile quick -p ensilo-islands --lib model",
        )
        .model("loom"),
        Step::cargo("loom: workers and closing", "test --profile quick -p ensilo --lib slot").model("loom"),
        Step::cargo("loom: waiting for rows", "test --profile quick -p ensilo --lib watch::").model("loom"),
        Step::cargo("shuttle: index", "test --profile quick -p ensilo-index --test shuttle").model("shuttle"),
        Step::cargo("shuttle: ERMIA's transactions", "test --profile quick -p ensilo-ermia --lib models")
            .model("shuttle"),
        Step::cargo("counting of accesses", "test --profile quick -p ensilo-counting --lib")
            .model("ensilo_count"),
        Step::cargo("looking at regions", "test --profile quick -p ensilo-sync -p ensilo-counting --lib")
            .model("ensilo_regions"),
    ]
}

/// Runs an example of the benchmarks in a build in which what workers do can be observed, in a build folder of its own.
fn observed(example: &str, configuration: &str, arguments: &[String]) -> Step {
    let program = format!("run --release -p ensilo-bench --example {example} --");
    Step::cargo(example, &format!("{program} {}", arguments.join(" "))).model(configuration)
}

fn simulate(seeds: u64, first: u64) -> Step {
    let program = "run --release -p ensilo-islands-simulation --example simulate --";
    Step::cargo("simulation: two-phase commit", &format!("{program} --seeds {seeds} --first {first}"))
}

fn safety(stress_seconds: u64) -> Vec<Step> {
    let mut steps = models();
    steps.extend(miri());
    // The standard library is built with them: ThreadSanitizer has to see what its locks, channels and joins
    // order. The sweeps over damaged files and power failures are of one thread, and would take hours.
    let packages = [
        ("ensilo-slab", ""),
        ("ensilo-epoch", ""),
        ("ensilo-index", ""),
        ("ensilo-txn", ""),
        ("ensilo-baselines", ""),
        ("ensilo-map-engine", ""),
        ("ensilo-log", "--skip recovery::tests::corruption --skip a_power_failure"),
        ("ensilo", ""),
    ];
    for (package, skipped) in packages {
        let arguments = format!(
            "+nightly test -Zbuild-std -p {package} --lib --tests --target x86_64-unknown-linux-gnu --target-dir target/thread-sanitizer -- --test-threads 1 {skipped}"
        );
        let step = Step::cargo(&format!("ThreadSanitizer: {package}"), &arguments)
            .env("RUSTFLAGS", "--cfg tsan -Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer")
            .env("TSAN_OPTIONS", "history_size=7");
        steps.push(step);
    }
    let stresses = [
        ("stress: checked histories", "stress"),
        ("stress: checked histories of ERMIA", "ermia"),
        ("stress: checked histories of two-phase locking", "two_phase_locking"),
        ("stress: jobs beside transactions", "background"),
    ];
    for (name, test) in stresses {
        let step = Step::cargo(name, &format!("test --profile quick -p ensilo-check --test {test}"));
        steps.push(step.env("ENSILO_STRESS_SECONDS", &stress_seconds.to_string()));
    }
    steps
}

/// The engines of the crash tests, as their modules are called.
const ENGINES: [&str; 3] = ["silo", "ermia", "ermia_snapshot_isolation"];

fn crash(cycles: u64, seed: u64, engines: &[String]) -> Vec<Step> {
    let test = |name: &str, module: &str| {
        // Every test whose path contains one of these runs.
        let of_engine = |engine: &String| format!("{engine}::{module} {engine}::every_engine::{module}");
        let paths = match engines {
            [] => format!("::{module}"),
            engines => engines.iter().map(of_engine).collect::<Vec<_>>().join(" "),
        };
        // Optimized, unlike in the profile of tests: it runs for hours.
        let program = "test --release -p ensilo-crash --test crash -- --nocapture";
        Step::cargo(name, &format!("{program} {paths}"))
            .env("ENSILO_CRASH_LONG", "1")
            .env("ENSILO_CRASH_SEED", &seed.to_string())
            .env("ENSILO_CRASH_CYCLES", &cycles.to_string())
    };
    vec![
        test("planted mistakes", "planted"),
        test("killed processes", "kill"),
        test("disks that fail", "faults"),
        test("crashes after operations that fail", "failed_operations"),
        test("power failures after every operation", "crash_points"),
        test("power failures while tables change", "changing_tables"),
        test("power failures during backups", "backups"),
        test("TPC-C after power failures", "tpcc"),
        test("damaged files", "corruption"),
    ]
}

fn bench(seconds: u64, runs: u32, records: u64) -> Vec<Step> {
    let measured = format!("--seconds {seconds} --runs {runs} --format json");
    let mut steps = vec![Step::cargo("build", "build --release -p ensilo-cli")];
    let mut add = |name: &str, file: &str, arguments: &str| {
        // In memory and durable in turn: a machine that slows down slows both.
        for (kind, option) in [("memory", "--memory"), ("durable", "")] {
            let program = format!("run --release -p ensilo-cli -- bench {arguments} {measured} {option}");
            let step = Step::cargo(&format!("{name}, {kind}"), &program);
            steps.push(step.output(&format!("{file}-{kind}.json")));
        }
    };
    for workers in [1, 2] {
        let tpcc = format!("tpcc --workers {workers} --warehouses {workers}");
        add(&format!("TPC-C, {workers} workers"), &format!("tpcc-{workers}"), &tpcc);
        for (mix, operations) in [("silo", 1), ("silo", 10), ("silor", 1)] {
            let ycsb =
                format!("ycsb --mix {mix} --records {records} --operations {operations} --workers {workers}");
            let name = format!("YCSB {mix}, {operations} operations, {workers} workers");
            add(&name, &format!("ycsb-{mix}-{operations}-{workers}"), &ycsb);
        }
    }
    let crash = format!("run --release -p ensilo-cli -- bench tpcc --crash {measured}");
    steps.push(Step::cargo("TPC-C, crash and recovery", &crash).output("tpcc-crash.json"));
    steps
}
