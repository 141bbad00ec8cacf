//! The experiments of SiloR (*Fast Databases with Fast Durability and Recovery Through Multicore Parallelism*, OSDI 2014, §6).
//!
//! Their points are known only as the averages that the text gives.

use super::Relation::{AtLeast, AtMost};
use super::{At, Axis, Claim, Experiment, Metric, Paper, Plot, Point, Quantity, Series};
use crate::command::{BenchCommand, Storage};
use crate::sizes::Sizes;

/// More mebibytes than a checkpoint has, or could be written in a second.
const MIB_UNLIMITED: u64 = 1 << 40;

const ONE_SYNC: &str = "(a) one sync";
const ONE_SYNC_AND_SLEEPS: &str = "(b) one sync, sleeps";
const REGULAR_SYNCS: &str = "(c) regular syncs";
const COMPRESSED_CHECKPOINTS: &str = "checkpoints by lz4";

pub(super) fn experiments(sizes: &Sizes) -> Vec<Experiment> {
    vec![
        figure_1(sizes),
        figures_2_and_3(sizes),
        figure_4(sizes),
        figure_5(sizes),
        compression(sizes),
        section_6_4(sizes),
    ]
}

/// SiloR's YCSB over time.
fn ycsb(sizes: &Sizes) -> BenchCommand {
    BenchCommand::ycsb(sizes.records, "silor", sizes.all_workers, sizes.warmup, sizes.timeline_seconds)
}

fn over_time() -> [Plot; 2] {
    [
        Plot::over_time("Throughput over half seconds; grey: a checkpoint is written", Metric::Throughput),
        Plot::over_time("Longest latency until stored, by half seconds", Metric::StoredLatencyMs),
    ]
}

fn figure_1(sizes: &Sizes) -> Experiment {
    let command = || ycsb(sizes);
    let [throughput, latency] = over_time();
    Experiment {
        name: "silor-1",
        source: "SiloR §6.2, figure 1",
        title: "A key-value workload over time, with log and checkpoints",
        about: "YCSB with 70 % reads and 30 % read-modify-writes of records of 100 bytes, keys chosen uniformly. SiloR logs and makes checkpoints, \
                LogSilo only logs, MemSilo does neither. The paper ran ten minutes with 400 million keys, 28 workers beside the loggers and 32 \
                without; here each has as many workers as there are processors. A third of the run lies between two checkpoints.",
        axis: Axis::Series,
        series: vec![
            Series::bar("MemSilo", Paper::Throughput(10.83e6), command()),
            Series::bar("LogSilo", Paper::Throughput(9.01e6), command().storage(Storage::Log)),
            Series::bar("SiloR", Paper::Throughput(8.76e6), command().storage(Storage::LogAndCheckpoints)),
        ],
        runs: sizes.timeline_runs,
        plots: vec![
            throughput,
            latency,
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("Relative to MemSilo", Metric::Throughput),
        ],
        claims: vec![
            Claim::times(
                "SiloR achieves 80 % of MemSilo's throughput",
                Quantity::ratio("SiloR", "MemSilo", At::First),
                0.81,
                AtLeast(0.80),
            ),
            Claim::times(
                "Checkpoints cost little: SiloR almost matches LogSilo",
                Quantity::ratio("SiloR", "LogSilo", At::First),
                0.97,
                AtLeast(0.95),
            ),
            Claim::times(
                "A transaction is stored after 90 ms on average (here: the median)",
                Quantity::Value { metric: Metric::StoredLatencyMs, of: "SiloR", at: At::First },
                90.0,
                AtMost(90.0),
            )
            .unit(" ms"),
        ],
    }
}

fn figures_2_and_3(sizes: &Sizes) -> Experiment {
    let series = |name, storage| {
        Series::over_workers(name, Paper::Unknown, &sizes.workers_around_cores, |workers| {
            BenchCommand::ycsb(sizes.records, "silor", workers, sizes.warmup, sizes.seconds).storage(storage)
        })
    };
    Experiment {
        name: "silor-2-3",
        source: "SiloR §6.2, figures 2 and 3",
        title: "Numbers of workers around that of the processors",
        about: "SiloR's YCSB. The paper runs MemSilo and SiloR with 28 and with 32 workers on 32 processors; here fewer than processors, as many, \
                and more.",
        axis: Axis::Workers,
        series: vec![series("MemSilo", Storage::Memory), series("SiloR", Storage::LogAndCheckpoints)],
        runs: sizes.runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::here("Median latency until stored", Metric::StoredLatencyMs),
            Plot::here("Slowest half second as a share of the median one", Metric::SlowestHalfSecond),
        ],
        claims: vec![
            Claim::times(
                "MemSilo with 32 workers makes 1.11x as much as with 28, of 32 processors",
                Quantity::LastToFirst { metric: Metric::Throughput, of: "MemSilo" },
                1.11,
                AtLeast(1.0),
            )
            .needs_cores(8),
            Claim::times(
                "SiloR, too, gains in average throughput from a worker on every processor",
                Quantity::LastToFirst { metric: Metric::Throughput, of: "SiloR" },
                1.04,
                AtLeast(1.0),
            )
            .needs_cores(8),
            Claim::times(
                "A worker on every processor beside loggers makes SiloR less steady (taken here as: the slowest half second is slower; the paper \
                 has no number)",
                Quantity::LastToFirst { metric: Metric::SlowestHalfSecond, of: "SiloR" },
                f64::NAN,
                AtMost(1.0),
            )
            .needs_cores(8),
        ],
    }
}

fn figure_4(sizes: &Sizes) -> Experiment {
    let command = || ycsb(sizes).storage(Storage::LogAndCheckpoints);
    let synced_once = || command().option("--checkpoint-sync-mib", MIB_UNLIMITED);
    let [throughput, latency] = over_time();
    let steadier = |text, than| {
        let (metric, of) = (Metric::SlowestHalfSecond, REGULAR_SYNCS);
        Claim::times(text, Quantity::Ratio { metric, of, to: than, at: At::First }, f64::NAN, AtLeast(1.0))
    };
    Experiment {
        name: "silor-4",
        source: "SiloR §6.2, figure 4",
        title: "Regular synchronisation",
        about: "SiloR's YCSB with log and checkpoints, which are (a) written as fast as can be and synced once, at the end, (b) with sleeps, and \
                synced once, (c) synced after each 32 MiB. What Ensilo does is (b) and (c) together: a checkpoint is spread over four fifths of the \
                time to the next one. It goes past the page cache, in which the paper supposes the cause of (a)'s bursts.",
        axis: Axis::Series,
        series: vec![
            Series::bar(
                ONE_SYNC,
                Paper::Unknown,
                synced_once().option("--checkpoint-mib-per-second", MIB_UNLIMITED),
            ),
            Series::bar(ONE_SYNC_AND_SLEEPS, Paper::Unknown, synced_once()),
            Series::bar(
                REGULAR_SYNCS,
                Paper::Unknown,
                command().option("--checkpoint-mib-per-second", MIB_UNLIMITED),
            ),
            Series::bar("(b)+(c): Ensilo", Paper::Unknown, command()),
        ],
        runs: sizes.timeline_runs,
        plots: vec![
            throughput,
            latency,
            Plot::here("Slowest half second as a share of the median one", Metric::SlowestHalfSecond),
            Plot::here("Median latency until stored", Metric::StoredLatencyMs),
        ],
        claims: vec![
            steadier(
                "Regular syncs almost entirely eliminate the burstiness of one sync (taken here as: the slowest half second is no slower; the \
                 paper has no number)",
                ONE_SYNC,
            ),
            steadier(
                "Sleeps reduce burstiness less than regular syncs do (taken here as: the slowest half second is no slower with regular syncs; \
                 the paper has no number)",
                ONE_SYNC_AND_SLEEPS,
            ),
        ],
    }
}

fn figure_5(sizes: &Sizes) -> Experiment {
    let command = || BenchCommand::tpcc(sizes.all_workers, sizes.warmup, sizes.timeline_seconds);
    let [throughput, latency] = over_time();
    Experiment {
        name: "silor-5",
        source: "SiloR §6.3, figure 5",
        title: "TPC-C over time, with log and checkpoints",
        about: "The standard mix of TPC-C, a warehouse for each worker, and as many workers as processors unless --workers says otherwise (28 in the \
                paper, for ten minutes). The database grows all the time.",
        axis: Axis::Series,
        series: vec![
            Series::bar("MemSilo", Paper::Throughput(592e3), command()),
            Series::bar("LogSilo", Paper::Throughput(575e3), command().storage(Storage::Log)),
            Series::bar("SiloR", Paper::Throughput(548e3), command().storage(Storage::LogAndCheckpoints)),
        ],
        runs: sizes.timeline_runs,
        plots: vec![
            throughput,
            latency,
            Plot::here("Throughput", Metric::Throughput),
            Plot::beside_paper("Relative to MemSilo", Metric::Throughput),
        ],
        claims: vec![
            Claim::times(
                "SiloR's throughput is about 93 % of MemSilo's",
                Quantity::ratio("SiloR", "MemSilo", At::First),
                0.93,
                AtLeast(0.93),
            ),
            Claim::times(
                "LogSilo's throughput is 97 % of MemSilo's",
                Quantity::ratio("LogSilo", "MemSilo", At::First),
                0.97,
                AtLeast(0.97),
            ),
            Claim::times(
                "A transaction is stored after 110 ms on average (here: the median)",
                Quantity::Value { metric: Metric::StoredLatencyMs, of: "SiloR", at: At::First },
                110.0,
                AtMost(110.0),
            )
            .unit(" ms"),
        ],
    }
}

fn compression(sizes: &Sizes) -> Experiment {
    let command = || {
        ycsb(sizes).storage(Storage::LogAndCheckpoints).option("--checkpoint-mib-per-second", MIB_UNLIMITED)
    };
    let claim = |text, metric, relation| {
        let (of, to, at) = (COMPRESSED_CHECKPOINTS, "SiloR", At::First);
        Claim::times(text, Quantity::Ratio { metric, of, to, at }, f64::NAN, relation)
    };
    Experiment {
        name: "silor-compression",
        source: "SiloR §6.2, Compression",
        title: "Whether compression pays off",
        about: "SiloR's YCSB with log and checkpoints, as they are, with checkpoints compressed by LZ4 as in the paper, and with the log \
                compressed. Checkpoints are written as fast as can be, so that it shows how long they take.",
        axis: Axis::Series,
        series: vec![
            Series::bar("SiloR", Paper::Unknown, command()),
            Series::bar(
                COMPRESSED_CHECKPOINTS,
                Paper::Unknown,
                command().option("--checkpoint-compression", "lz4"),
            ),
            Series::bar("log by lz4", Paper::Unknown, command().option("--log-compression", "lz4")),
        ],
        runs: sizes.timeline_runs,
        plots: vec![
            Plot::here("Throughput", Metric::Throughput),
            Plot::here("Median latency until stored", Metric::StoredLatencyMs),
            Plot::here("Time that checkpoints took, in all", Metric::CheckpointSeconds),
            Plot::here("Checkpoints", Metric::CheckpointMegabytes),
            Plot::here("Log", Metric::LogBytesPerTransaction),
        ],
        claims: vec![
            claim(
                "Compressing checkpoints does not help throughput (the paper has no number)",
                Metric::Throughput,
                AtMost(1.0),
            ),
            claim(
                "Compressing checkpoints does not help latency (the paper has no number)",
                Metric::StoredLatencyMs,
                AtLeast(1.0),
            ),
            claim(
                "Compressing checkpoints makes them take longer (the paper has no number)",
                Metric::CheckpointSeconds,
                AtLeast(1.0),
            ),
        ],
    }
}

fn section_6_4(sizes: &Sizes) -> Experiment {
    let lengths = [1.0, 2.0, 4.0].map(|times| times * sizes.timeline_seconds / 4.0);
    let series = |name, command: &dyn Fn(f64) -> BenchCommand| {
        let points =
            lengths.map(|seconds| Point { x: seconds, command: command(seconds).storage(Storage::Crash) });
        Series { name, paper: Paper::Unknown, points: points.to_vec() }
    };
    let (workers, warmup) = (sizes.all_workers, sizes.warmup);
    let per_gigabyte = |of, at| Quantity::Value { metric: Metric::RecoverySecondsPerGigabyte, of, at };
    let rate_claim = |text, of, paper| {
        Claim::times(text, per_gigabyte(of, At::Last), paper, AtMost(paper)).unit(" s/GB").needs_cores(24)
    };
    Experiment {
        name: "silor-recovery",
        source: "SiloR §6.4",
        title: "Recovery after a crash",
        about: "The program is killed at the end of runs of growing length, its workers at work, and the database recovered by all processors \
                and checked. A third of the run lies between two checkpoints (the paper crashes just before a checkpoint is complete, which \
                makes the log as long as it can be). The time of checkpoint and log is not told apart: both are replayed at once; the share of \
                bytes is.",
        axis: Axis::Number("seconds before the crash"),
        series: vec![
            series("YCSB", &|seconds| BenchCommand::ycsb(sizes.records, "silor", workers, warmup, seconds)),
            series("TPC-C", &|seconds| BenchCommand::tpcc(workers, warmup, seconds)),
        ],
        runs: sizes.timeline_runs,
        plots: vec![
            Plot::here("Recovery time", Metric::RecoverySeconds),
            Plot::here("What was read", Metric::RecoveryGigabytes),
            Plot::here("Time for each GB", Metric::RecoverySecondsPerGigabyte),
            Plot::here("Share of the checkpoint", Metric::RecoveryCheckpointPercent),
        ],
        claims: vec![
            rate_claim(
                "YCSB is recovered in 1.06 s for each GB of checkpoint and log (32 threads)",
                "YCSB",
                1.06,
            ),
            rate_claim("TPC-C is recovered in 1.08 s for each GB (32 threads)", "TPC-C", 1.08),
            Claim::times(
                "Recovery time is proportional to the data (taken here as: four times the run takes at most 1.25x for each GB; the paper's \
                 two databases differ by 1.02x)",
                Quantity::LastToFirst { metric: Metric::RecoverySecondsPerGigabyte, of: "TPC-C" },
                1.02,
                AtMost(1.25),
            ),
            Claim::times(
                "Log replay is the limiting factor (taken here as: TPC-C, mostly log, takes at least as long for each GB as YCSB, mostly \
                 checkpoint; in the paper, where YCSB is two thirds log, 1.02x)",
                Quantity::Ratio {
                    metric: Metric::RecoverySecondsPerGigabyte,
                    of: "TPC-C",
                    to: "YCSB",
                    at: At::Last,
                },
                1.02,
                AtLeast(1.0),
            ),
        ],
    }
}
