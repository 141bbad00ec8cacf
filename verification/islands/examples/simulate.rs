//! Simulates two-phase commit between instances, seed by seed: `cargo xtask simulate --help`.

use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{panic, thread};

use clap::Parser;
use ensilo_islands::CommitUnit;
use ensilo_islands_simulation::{Tally, simulate};
use indicatif::{ProgressBar, ProgressStyle};

/// How many seeds a thread takes at once.
const SEEDS_AT_ONCE: u64 = 64;

/// Simulates two-phase commit between instances: messages are lost, doubled, late and out of order, and instances die and come back. Each seed is a
/// run of its own for either unit of commit, a transaction and an epoch, and is checked in the end: transactions have happened everywhere or nowhere,
/// as their callers were told, and in an order.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// How many seeds.
    #[arg(long, default_value_t = 1_000_000)]
    seeds: u64,
    /// The first one.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many threads; as many as there are processors by default.
    #[arg(long)]
    threads: Option<usize>,
}

fn main() -> ExitCode {
    let Arguments { seeds, first, threads } = Arguments::parse();
    let threads = threads.unwrap_or_else(|| thread::available_parallelism().map_or(1, Into::into));
    let progress = ProgressBar::new(seeds).with_style(style());
    let (next, has_failed) = (AtomicU64::new(first), AtomicBool::new(false));
    let run = || run_seeds(&next, first.saturating_add(seeds), &has_failed, &progress);
    let tallies = thread::scope(|scope| {
        let running: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(run)).collect();
        running.into_iter().map(thread::ScopedJoinHandle::join).collect::<Vec<_>>()
    });
    progress.finish_and_clear();
    let mut all = Tally::default();
    for tally in tallies {
        match tally {
            Ok(tally) => all += tally,
            Err(panic) => panic::resume_unwind(panic),
        }
    }
    let Tally { committed, distributed, aborted, crashes } = all;
    println!(
        "{committed} transactions committed, {distributed} of them distributed; {aborted} did not; {crashes} crashes"
    );
    if has_failed.into_inner() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn style() -> ProgressStyle {
    let style =
        ProgressStyle::with_template("{bar:40} {human_pos} of {human_len} seeds, {per_sec}, {eta} left");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Takes seeds until they end, or a run has failed.
fn run_seeds(next: &AtomicU64, end: u64, has_failed: &AtomicBool, progress: &ProgressBar) -> Tally {
    let mut tally = Tally::default();
    // Relaxed: each seed is a run of its own.
    while !has_failed.load(Ordering::Relaxed) {
        let begin = next.fetch_add(SEEDS_AT_ONCE, Ordering::Relaxed);
        if begin >= end {
            break;
        }
        let seeds = begin..end.min(begin + SEEDS_AT_ONCE);
        let count = seeds.end - seeds.start;
        for (seed, unit) in seeds.flat_map(|seed| CommitUnit::all().map(|unit| (seed, unit))) {
            match simulate(seed, unit, None) {
                Ok(of_seed) => tally += of_seed,
                Err(failure) => {
                    has_failed.store(true, Ordering::Relaxed);
                    progress.println(format!(
                        "seed {seed}, stored by the {unit}: {failure}\nAgain: cargo xtask simulate --first {seed} --seeds 1"
                    ));
                }
            }
        }
        progress.inc(count);
    }
    tally
}
