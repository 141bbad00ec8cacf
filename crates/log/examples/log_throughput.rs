//! What the log costs and how soon it stores: `cargo run --release -p ensilo-log --example log_throughput --
//! --help`.
#![allow(clippy::unwrap_used, reason = "a program for developers: a failure ends it")]

use std::collections::VecDeque;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use ensilo_disk::{Disk, RealDisk};
use ensilo_epoch::{Advance, Epoch, EpochOptions, Epochs, Participant};
use ensilo_log::{
    Compression, DatabaseId, EpochClock, Log, LogOptions, LogStatistics, LogWriter, NewGeneration, OpeningId,
    put_bytes, transaction_bytes,
};
use ensilo_slab::Pool;

const HELP: &str = "\
Threads commit made-up transactions: some work on the processor, then one row into the log. Each number of threads runs without
a log and with it, in turns, and the program prints what the log takes from the threads and how soon it stores.

  --dir DIR           where the log lies, in a directory of its own that is removed [default: .]
  --threads LIST      numbers of threads [default: 1,2]
  --seconds N         length of each run [default: 3]
  --runs N            how often each pair of runs is made; medians are printed [default: 3]
  --bytes N           bytes of a row [default: 700]
  --work-us N         work of a transaction in microseconds, 0 for none: then the disk sets the pace [default: 10]
  --wait              each thread waits until its transaction is stored before it begins the next one
  --epoch-ms N        epochs of a fixed length
  --buffer-kib N      bytes of a log buffer in KiB [default: 512]
  --buffers N         full buffers per logger [default: that of the library]
  --file-mib N        bytes of a log file in MiB [default: 64]
  --loggers N         number of loggers, all in one directory [default: 1]
  --lz4               compress blocks";

struct Arguments {
    directory: PathBuf,
    threads: Vec<usize>,
    seconds: f64,
    runs: usize,
    row_bytes: usize,
    work_us: f64,
    waits: bool,
    loggers: usize,
    log: LogOptions,
}

fn main() {
    let arguments = parse();
    let directory = arguments.directory.join(format!("log-throughput-{}", std::process::id()));
    fs::create_dir_all(&directory).unwrap();
    measure_disk(&directory);
    let work = Work::of(Duration::from_nanos((arguments.work_us * 1000.0) as u64));
    println!(
        "\nthreads  tx/s without  tx/s with  ratio    MB/s  p50 ms  p99 ms   max ms  rounds/s  sync ms  cpu ms/MB  cpu %  waits"
    );
    for &threads in &arguments.threads {
        let mut runs: Vec<_> = (0..arguments.runs)
            .map(|_| {
                let without = run(threads, &arguments, work, None);
                let with = run(threads, &arguments, work, Some(&directory));
                (without.rate(), with)
            })
            .collect();
        runs.sort_by(|one, other| (one.1.rate() / one.0).total_cmp(&(other.1.rate() / other.0)));
        let (without, with) = &runs[runs.len() / 2];
        with.print(threads, *without);
    }
    fs::remove_dir_all(&directory).unwrap();
}

/// Work that keeps a processor busy and touches no memory.
#[derive(Clone, Copy)]
struct Work(u64);

impl Work {
    /// About so long on an idle processor.
    fn of(duration: Duration) -> Work {
        let began = Instant::now();
        Work(10_000_000).go();
        Work((10_000_000.0 * duration.as_secs_f64() / began.elapsed().as_secs_f64()) as u64)
    }

    fn go(self) {
        black_box((0..self.0).fold(1, |x: u64, i| black_box(x.wrapping_mul(3) ^ i)));
    }
}

#[derive(Default)]
struct Outcome {
    transactions: u64,
    elapsed: Duration,
    latencies: Vec<Duration>,
    statistics: LogStatistics,
    log_cpu: Duration,
}

impl Outcome {
    fn rate(&self) -> f64 {
        self.transactions as f64 / self.elapsed.as_secs_f64()
    }

    fn print(&self, threads: usize, without: f64) {
        let ms = |duration: Duration| duration.as_secs_f64() * 1000.0;
        let quantile = |q: f64| {
            let last = self.latencies.len().saturating_sub(1);
            self.latencies.get((last as f64 * q) as usize).copied().map_or(f64::NAN, ms)
        };
        let seconds = self.elapsed.as_secs_f64();
        let megabytes = self.statistics.written_bytes as f64 / 1e6;
        println!(
            "{threads:7}  {without:12.0}  {:9.0}  {:5.3}  {:6.1}  {:6.2}  {:6.2}  {:7.2}  {:8.0}  {:7.2}  {:9.2}  {:5.1}  {:5}",
            self.rate(),
            self.rate() / without,
            megabytes / seconds,
            quantile(0.5),
            quantile(0.99),
            quantile(1.0),
            self.statistics.syncs as f64 / seconds,
            ms(self.statistics.sync_time) / self.statistics.syncs as f64,
            ms(self.log_cpu) / megabytes,
            self.log_cpu.as_secs_f64() / seconds * 100.0,
            self.statistics.buffer_waits,
        );
    }
}

/// One run, with a log if there is a directory for it.
fn run(threads: usize, arguments: &Arguments, work: Work, directory: Option<&Path>) -> Outcome {
    let options = EpochOptions { advance: Advance::Manual, ..EpochOptions::default() };
    let epochs = Epochs::new(options, Pool::new(None));
    let log = directory.map(|directory| start(directory, &epochs, arguments));
    let is_over = Arc::new(AtomicBool::new(false));
    let began = Instant::now();
    let working: Vec<_> = (0..threads)
        .map(|_| {
            let mut worker = Worker {
                participant: epochs.participant(),
                log: log.as_ref().map(|log| (Arc::clone(log), log.writer())),
                row_bytes: arguments.row_bytes,
                waits: arguments.waits,
                pending: VecDeque::new(),
                latencies: Vec::new(),
            };
            let is_over = Arc::clone(&is_over);
            thread::spawn(move || {
                let mut transactions = 0;
                while !is_over.load(Ordering::Relaxed) {
                    work.go();
                    transactions += 1;
                    worker.commit(transactions);
                }
                (transactions, worker.latencies)
            })
        })
        .collect();
    thread::sleep(Duration::from_secs_f64(arguments.seconds));
    is_over.store(true, Ordering::Relaxed);
    let mut outcome = Outcome::default();
    for thread in working {
        let (transactions, mut latencies) = thread.join().unwrap();
        outcome.transactions += transactions;
        outcome.latencies.append(&mut latencies);
    }
    outcome.elapsed = began.elapsed();
    outcome.latencies.sort_unstable();
    if let Some(log) = log {
        outcome.statistics = log.statistics();
        outcome.log_cpu = log_processor_time();
        log.close().unwrap();
        fs::remove_dir_all(directory.unwrap().join("log")).unwrap();
    }
    outcome
}

fn start(directory: &Path, epochs: &Arc<Epochs>, arguments: &Arguments) -> Arc<Log> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let directories = vec![directory.join("log"); arguments.loggers];
    let first = epochs.global_epoch();
    let file_bytes = arguments.log.first_file_bytes();
    let (database, opening) = (DatabaseId::random(), OpeningId::random());
    let files = NewGeneration::create(&*disk, database, opening, 1, first, &directories, file_bytes).unwrap();
    Log::start(disk, files, Arc::clone(epochs), &arguments.log).unwrap()
}

struct Worker {
    participant: Participant,
    log: Option<(Arc<Log>, LogWriter)>,
    row_bytes: usize,
    waits: bool,
    /// Some of the commits that are not stored yet, at most one an epoch.
    pending: VecDeque<(Epoch, Instant)>,
    latencies: Vec<Duration>,
}

impl Worker {
    fn commit(&mut self, sequence: u64) {
        let Some((log, writer)) = &mut self.log else { return };
        let bytes = transaction_bytes(1) + put_bytes(1, 8, self.row_bytes);
        let epoch = loop {
            self.participant.begin_commit();
            let epoch = self.participant.global_epoch();
            let reserved = writer.reserve(bytes);
            if reserved.is_ok() {
                writer.begin(epoch.get() << 20 | (sequence % (1 << 17)) << 3, 1);
                let words = (0..self.row_bytes.div_ceil(8) as u64).map(|word| sequence ^ word);
                writer.put(1, &sequence.to_be_bytes(), self.row_bytes, words);
                writer.publish();
            }
            self.participant.end_commit();
            if reserved.is_ok() {
                break epoch;
            }
            writer.wait_for_buffer().unwrap();
        };
        if self.waits {
            let began = Instant::now();
            log.wait_durable(epoch).unwrap();
            self.latencies.push(began.elapsed());
            return;
        }
        if sequence.is_multiple_of(16) {
            self.pending.push_back((epoch, Instant::now()));
        }
        let durable = log.durable_epoch();
        while let Some(&(epoch, began)) = self.pending.front()
            && epoch <= durable
        {
            self.pending.pop_front();
            self.latencies.push(began.elapsed());
        }
    }
}

/// What the threads of the log have taken of the processors, where the system tells.
fn log_processor_time() -> Duration {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let nanos = tasks.flatten().filter_map(|task| {
        let name = fs::read_to_string(task.path().join("comm")).ok()?;
        let spent = fs::read_to_string(task.path().join("schedstat")).ok()?;
        name.starts_with("ensilo-").then(|| spent.split(' ').next()?.parse::<u64>().ok())?
    });
    Duration::from_nanos(nanos.sum())
}

/// Prints what the disk does without us.
fn measure_disk(directory: &Path) {
    const SMALL: usize = 4096;
    const LARGE: usize = 1 << 20;
    let path = directory.join("disk");
    let file = RealDisk.create(&path, 0).unwrap();
    let block: Vec<u8> = (0..LARGE).map(|i| (i * 31) as u8).collect();
    let mut syncs: Vec<_> = (0..200)
        .map(|i| {
            let began = Instant::now();
            file.write_at(i * SMALL as u64, &block[..SMALL]).unwrap();
            file.sync_data().unwrap();
            began.elapsed()
        })
        .collect();
    syncs.sort_unstable();
    let began = Instant::now();
    (0..256).for_each(|i| file.write_at(i * LARGE as u64, &block).unwrap());
    file.sync_data().unwrap();
    let rate = 256.0 * LARGE as f64 / 1e6 / began.elapsed().as_secs_f64();
    println!(
        "disk: write of 4 KiB and sync: p50 {:.2} ms, p99 {:.2} ms; 256 MiB in a row: {rate:.0} MB/s",
        syncs[100].as_secs_f64() * 1000.0,
        syncs[198].as_secs_f64() * 1000.0,
    );
    drop(file);
    fs::remove_file(&path).unwrap();
}

fn parse() -> Arguments {
    let mut arguments = Arguments {
        directory: PathBuf::from("."),
        threads: vec![1, 2],
        seconds: 3.0,
        runs: 3,
        row_bytes: 700,
        work_us: 10.0,
        waits: false,
        loggers: 1,
        log: LogOptions::default(),
    };
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--wait" => arguments.waits = true,
            "--lz4" => arguments.log.compression = Compression::Lz4,
            "--help" | "-h" => end(HELP, 0),
            name => {
                let value =
                    words.next().unwrap_or_else(|| end(&format!("{name}: a value is missing\n\n{HELP}"), 2));
                set(&mut arguments, name, &value);
            }
        }
    }
    arguments
}

fn set(arguments: &mut Arguments, name: &str, value: &str) {
    let number = || {
        value.parse::<f64>().unwrap_or_else(|_| end(&format!("{name}: {value} is no number\n\n{HELP}"), 2))
    };
    let log = &mut arguments.log;
    match name {
        "--dir" => arguments.directory = PathBuf::from(value),
        "--threads" => arguments.threads = value.split(',').map(|word| word.parse().unwrap()).collect(),
        "--seconds" => arguments.seconds = number(),
        "--runs" => arguments.runs = number() as usize,
        "--bytes" => arguments.row_bytes = number() as usize,
        "--work-us" => arguments.work_us = number(),
        "--loggers" => arguments.loggers = number() as usize,
        "--epoch-ms" => log.clock = EpochClock::Fixed(Duration::from_secs_f64(number() / 1000.0)),
        "--buffer-kib" => log.buffer_bytes = number() as usize * 1024,
        "--buffers" => log.buffers_per_logger = number() as usize,
        "--file-mib" => log.file_bytes = number() as u64 * (1 << 20),
        _ => end(&format!("{name} is not known\n\n{HELP}"), 2),
    }
}

fn end(message: &str, code: i32) -> ! {
    println!("{message}");
    std::process::exit(code)
}
