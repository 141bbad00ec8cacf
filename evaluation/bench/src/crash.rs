//! A run that is killed at its end while its workers are at work, and what comes back afterwards.
//!
//! The program starts itself again. The second process loads and runs; when the measured time is over and its results are handed on it
//! kills itself. The first then opens what lies on disk, checks it, and counts what is missing of that which the second had acknowledged.
//!
//! ```text
//! this process                                   the one that crashes
//!   a line on its standard input: Orders  ----->   loads, warms up, runs
//!   end of the input: end the run early   ----->
//!                                                  notes down in a file what is acknowledged
//!   reads RunResult                       <-----   writes it to its standard output, then SIGKILL
//!   opens the database, checks, counts
//! ```

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use ensilo::ermia::{Ermia, SnapshotIsolation};
use ensilo::generic::Database;
use ensilo::two_phase_locking::{NoWait, TwoPhaseLocking};
use ensilo::{Engine, Silo};
use serde::{Deserialize, Serialize};

use crate::database::{DatabaseOptions, Directories};
use crate::driver::{
    Crash, Failure, Interrupt, RunResult, View, Workload, read_acknowledged, run_until_crash,
};
use crate::options::{Benchmark, BenchmarkOptions, CrashOptions, Run};
use crate::place::TemporaryDirectory;
use crate::report::{CheckedRun, RecoveryReport, SurvivalReport, TimedCheckpoint};
use crate::stock::StockTable;
use crate::systems::System;
use crate::tpcb::Tpcb;
use crate::tpcc::{TpccOf, Whole};
use crate::tpcc_hybrid::TpccHybrid;
use crate::tpce::Tpce;
use crate::ycsb::Ycsb;

/// What the process that crashes has to know beside its arguments.
#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    directories: Directories,
    acknowledged: PathBuf,
}

/// So often the first process looks whether the second is to be ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Loads and runs as standard input orders, writes the results to standard output, and kills this process. Comes back only with a failure.
pub fn run_and_crash(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    view: &mut View,
    interrupt: &Arc<Interrupt>,
) -> Failure {
    let failed = |error| Failure::Io("cannot read orders".to_owned(), error);
    let mut line = String::new();
    let orders = io::stdin().lock().read_line(&mut line).and_then(|_| Ok(serde_json::from_str(&line)?));
    let orders: Orders = match orders {
        Ok(orders) => orders,
        Err(error) => return failed(error),
    };
    let raised = Arc::clone(interrupt);
    thread::spawn(move || {
        // The input ends when the first process wants this one to end, or when it is no more.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        raised.raise();
    });
    let load_and_crash = match options.system {
        System::Ermia => load_and_crash::<Ermia>,
        System::ErmiaSnapshot => load_and_crash::<Ermia<SnapshotIsolation>>,
        System::TwoPhaseLocking => load_and_crash::<TwoPhaseLocking>,
        System::TwoPhaseLockingNoWait => load_and_crash::<TwoPhaseLocking<NoWait>>,
        _ => load_and_crash::<Silo>,
    };
    load_and_crash(benchmark, options, &orders, view, interrupt).unwrap_or_else(|failure| failure)
}

fn load_and_crash<E: Engine>(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    orders: &Orders,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Failure, Failure> {
    let acknowledged = File::create(&orders.acknowledged)
        .map_err(|error| Failure::Io(format!("cannot make {}", orders.acknowledged.display()), error))?;
    let crash = Crash { acknowledged: &acknowledged, end: &hand_on_and_die };
    let database: Database<E> = options.database.open(Some(&orders.directories))?;
    Ok(match benchmark {
        Benchmark::Tpcb(tpcb) => {
            let tpcb = Tpcb::load(tpcb.clone(), database, view, interrupt)?;
            run_until_crash(&tpcb, &options.run, view, interrupt, &crash)
        }
        Benchmark::Tpcc(tpcc) => {
            let tpcc = TpccOf::<Whole<E>>::load(tpcc.clone(), database, view, interrupt)?;
            run_until_crash(&tpcc, &options.run, view, interrupt, &crash)
        }
        Benchmark::TpccHybrid(hybrid) => {
            let hybrid = TpccHybrid::load(hybrid.clone(), database, view, interrupt)?;
            run_until_crash(&hybrid, &options.run, view, interrupt, &crash)
        }
        Benchmark::Stock(stock) => {
            let stock = StockTable::load(stock.clone(), database, view, interrupt)?;
            run_until_crash(&stock, &options.run, view, interrupt, &crash)
        }
        Benchmark::Tpce(tpce) => {
            let tpce = Tpce::load(tpce.clone(), database, view, interrupt)?;
            run_until_crash(&tpce, &options.run, view, interrupt, &crash)
        }
        Benchmark::Ycsb(ycsb) => {
            let ycsb = Ycsb::load(ycsb.clone(), database, view, interrupt)?;
            run_until_crash(&ycsb, &options.run, view, interrupt, &crash)
        }
    })
}

fn hand_on_and_die(result: &RunResult) -> Failure {
    let handed_on = serde_json::to_vec(result).map_err(io::Error::from).and_then(|bytes| {
        let mut output = io::stdout().lock();
        output.write_all(&bytes)?;
        output.flush()
    });
    match handed_on {
        Ok(()) => Failure::Io("cannot kill this process".to_owned(), kill_this_process()),
        Err(error) => Failure::Io("cannot hand on the results".to_owned(), error),
    }
}

/// Ends the process as a power cut would, but for what the kernel still has to write.
#[cfg(target_os = "linux")]
fn kill_this_process() -> io::Error {
    use rustix::process::{Signal, getpid, kill_process};
    match kill_process(getpid(), Signal::KILL) {
        // The signal is on its way.
        Ok(()) => loop {
            thread::park();
        },
        Err(error) => error.into(),
    }
}

/// Ends the process without any cleaning up.
#[cfg(not(target_os = "linux"))]
fn kill_this_process() -> io::Error {
    std::process::abort()
}

/// Has another process run and crash, and brings its database back.
pub(crate) fn crash_and_recover(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    crash: &CrashOptions,
    directories: &Directories,
    view: &mut View,
    interrupt: &Interrupt,
) -> Result<Run, Failure> {
    // Beside the database nobody but it may have files in its directory. This one need not outlive the machine.
    let temporary = TemporaryDirectory::new(&std::env::temp_dir())?;
    let orders =
        Orders { directories: directories.clone(), acknowledged: temporary.path().join("acknowledged") };
    let result = run_other_process(crash, &orders, interrupt)?;
    // If the run is stopped early, its results are still wanted and checked; a second stop has no effect here.
    let database = DatabaseOptions { prefault_bytes: 0, ..options.database.clone() };
    let recover_and_check = match options.system {
        System::Ermia => recover_and_check::<Ermia>,
        System::ErmiaSnapshot => recover_and_check::<Ermia<SnapshotIsolation>>,
        System::TwoPhaseLocking => recover_and_check::<TwoPhaseLocking>,
        System::TwoPhaseLockingNoWait => recover_and_check::<TwoPhaseLocking<NoWait>>,
        _ => recover_and_check::<Silo>,
    };
    recover_and_check(benchmark, options, &database, result, &orders, view)
}

fn recover_and_check<E: Engine>(
    benchmark: &Benchmark,
    options: &BenchmarkOptions,
    database: &DatabaseOptions,
    result: RunResult,
    orders: &Orders,
    view: &mut View,
) -> Result<Run, Failure> {
    let recovered = recover::<E>(database, &orders.directories, view)?;
    match benchmark {
        Benchmark::Tpcb(tpcb) => {
            let tpcb = Tpcb::open(tpcb.clone(), recovered.database.clone())?;
            check(&tpcb, recovered, result, orders, options, view)
        }
        Benchmark::Tpcc(tpcc) => {
            let tpcc = TpccOf::<Whole<E>>::open(tpcc.clone(), recovered.database.clone())?;
            check(&tpcc, recovered, result, orders, options, view)
        }
        Benchmark::TpccHybrid(hybrid) => {
            let hybrid = TpccHybrid::open(hybrid.clone(), recovered.database.clone())?;
            check(&hybrid, recovered, result, orders, options, view)
        }
        Benchmark::Stock(stock) => {
            let stock = StockTable::open(stock.clone(), recovered.database.clone())?;
            check(&stock, recovered, result, orders, options, view)
        }
        Benchmark::Tpce(tpce) => {
            let tpce = Tpce::open(tpce.clone(), recovered.database.clone())?;
            check(&tpce, recovered, result, orders, options, view)
        }
        Benchmark::Ycsb(ycsb) => {
            let ycsb = Ycsb::open(ycsb.clone(), recovered.database.clone())?;
            check(&ycsb, recovered, result, orders, options, view)
        }
    }
}

/// Runs the other process to its violent end and returns what it measured.
fn run_other_process(
    crash: &CrashOptions,
    orders: &Orders,
    interrupt: &Interrupt,
) -> Result<RunResult, Failure> {
    let cannot = |error| Failure::Io(format!("cannot run {}", crash.program.display()), error);
    let mut child = Command::new(&crash.program)
        .args(&crash.arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    let output = converse(&mut child, orders, interrupt);
    let status = child.wait().map_err(cannot)?;
    let output = output.map_err(cannot)?;
    if was_killed(status) {
        return serde_json::from_str(&output).map_err(|error| {
            Failure::Io("the run was killed before it had results".to_owned(), error.into())
        });
    }
    if interrupt.is_raised() {
        return Err(Failure::Interrupted);
    }
    Err(Failure::Refused(format!("the run ended before its crash: {status}")))
}

/// Gives the orders and returns all that is answered. Ends the run early after an interrupt.
fn converse(child: &mut Child, orders: &Orders, interrupt: &Interrupt) -> io::Result<String> {
    let (input, output) = (child.stdin.take(), child.stdout.take());
    let (Some(mut input), Some(mut output)) = (input, output) else {
        return Err(io::ErrorKind::BrokenPipe.into());
    };
    writeln!(input, "{}", serde_json::to_string(orders)?)?;
    thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut text = String::new();
            output.read_to_string(&mut text).map(|_| text)
        });
        let mut input = Some(input);
        while !reader.is_finished() {
            if input.is_none() {
                thread::sleep(LOOK_INTERVAL);
            } else if interrupt.wait_until(Instant::now() + LOOK_INTERVAL) {
                input = None;
            }
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

#[cfg(unix)]
fn was_killed(status: ExitStatus) -> bool {
    std::os::unix::process::ExitStatusExt::signal(&status).is_some()
}

#[cfg(not(unix))]
fn was_killed(status: ExitStatus) -> bool {
    !status.success()
}

/// A database that is back.
struct Recovered<E: Engine> {
    database: Database<E>,
    seconds: f64,
}

/// Opens the database and shows how far it is.
fn recover<E: Engine>(
    options: &DatabaseOptions,
    directories: &Directories,
    view: &mut View,
) -> Result<Recovered<E>, Failure> {
    view.stage("recovering");
    let (sender, receiver) = channel();
    let hook = move |progress: &ensilo::RecoveryProgress| {
        // Nobody listens any more once the database is open.
        let _ = sender.send(*progress);
    };
    let start = Instant::now();
    thread::scope(|scope| {
        let opening = scope.spawn(|| {
            let database = options.recover(directories, hook);
            (database, start.elapsed().as_secs_f64())
        });
        while !opening.is_finished() {
            match receiver.recv_timeout(LOOK_INTERVAL) {
                Ok(progress) => view.recovery(&progress),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let (database, seconds) = opening.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok(Recovered { database: database?, seconds })
    })
}

/// Checks what came back, and counts what did not.
fn check<W: Workload, E: Engine>(
    workload: &W,
    recovered: Recovered<E>,
    result: RunResult,
    orders: &Orders,
    options: &BenchmarkOptions,
    view: &mut View,
) -> Result<Run, Failure> {
    let types = workload.transaction_types();
    let checks = if options.check { workload.check(view, &Interrupt::new())? } else { Vec::new() };
    let acknowledged = read_acknowledged(&orders.acknowledged, types.len())
        .map_err(|error| Failure::Io("cannot read what was acknowledged".to_owned(), error))?;
    let survivals = SurvivalReport::of_types(types, &acknowledged, &workload.count_effects()?);
    let recovery = recovery_report(&recovered, survivals)?;
    let timed_checkpoint =
        options.times_checkpoint.then(|| TimedCheckpoint::make(&recovered.database)).transpose()?;
    recovered.database.close()?;
    Ok((types, CheckedRun { result, checks, disk: None, recovery: Some(recovery), timed_checkpoint }))
}

fn recovery_report<E: Engine>(
    recovered: &Recovered<E>,
    transactions: Vec<SurvivalReport>,
) -> Result<RecoveryReport, Failure> {
    let durability = recovered.database.statistics()?.durability.ok_or(ensilo::Error::NotDurable)?;
    let counts = durability.recovery;
    let bytes = counts.checkpoint_bytes + counts.log_bytes;
    Ok(RecoveryReport {
        seconds: recovered.seconds,
        bytes,
        checkpoint_bytes: counts.checkpoint_bytes,
        log_bytes: counts.log_bytes,
        checkpoint_rows: counts.checkpoint_rows,
        log_writes: counts.log_writes,
        mb_per_second: bytes as f64 / 1e6 / recovered.seconds,
        transactions_lost: transactions.iter().map(SurvivalReport::lost).sum(),
        transactions,
    })
}
