//! Instances in processes of their own, which are killed while transactions run.
//!
//! This program is its own instances, so it has a `main` of its own.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bank;
mod loads;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bank::{Bank, Part, options, site, sum_of_all, transfer};
use ensilo::Database;
use ensilo_islands::commit::{Decision, DistributedId, Outcome, Request};
use ensilo_islands::{ChannelKind, CommitUnit, Islands, LoadTime, run_if_instance};
use loads::load_until;

const INSTANCES: usize = 3;

/// Names the directory of instances to a process that opens them and is killed; and the unit of commit.
const PARENT: &str = "ENSILO_TEST_PARENT";
const UNIT: &str = "ENSILO_TEST_UNIT";

/// How many processes are killed in all.
const KILLS: usize = 12;

fn main() -> ExitCode {
    if let Some(ended) = run_if_instance::<Bank>(Database::options) {
        return ended;
    }
    if let Some(directory) = std::env::var_os(PARENT) {
        transfer_until_killed(Path::new(&directory));
        return ExitCode::FAILURE;
    }
    for kind in ChannelKind::all() {
        processes_carry_out_transactions(kind);
    }
    an_instance_in_memory_that_dies_is_dead();
    an_instance_that_dies_after_terms_have_begun_comes_back();
    instances_that_are_being_closed_are_waited_for();
    what_a_copy_of_all_has_does_not_replace_an_instance_that_was_killed();
    an_older_copy_is_not_started_in_a_running_cluster();
    what_is_in_doubt_is_shown_and_can_be_decided();
    for unit in CommitUnit::all() {
        a_stopped_instance_holds_up_nobody_for_long(unit);
        what_was_answered_survives_killed_processes(unit);
        what_was_answered_survives_a_killed_parent(unit);
    }
    ExitCode::SUCCESS
}

fn this_program() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// What an instance says to a part alone.
fn ask(islands: &Islands<Bank>, instance: u16, part: &Part) -> Vec<u8> {
    let request = Request::new(Some(part.bytes()), Vec::new());
    match transact_in_time(islands, instance, &request) {
        Outcome::Committed { local: Some(reply), .. } => reply,
        outcome => panic!("{outcome:?}"),
    }
}

/// Lets a transaction be carried out that may be carried out twice, also where an instance was killed a moment ago: what it has left may be held
/// until it has come back, and its recovery takes its time on a slow disk.
fn transact_in_time(islands: &Islands<Bank>, instance: u16, request: &Request) -> Outcome {
    let begin = Instant::now();
    loop {
        let outcome = islands.transact(instance, request);
        let may_pass = match &outcome {
            Outcome::Committed { .. } => false,
            Outcome::Aborted(refusal) => refusal.reason.may_pass(),
            Outcome::Unknown(_) => true,
        };
        if !may_pass || begin.elapsed() > Duration::from_secs(60) {
            return outcome;
        }
    }
}

fn sum(islands: &Islands<Bank>) -> i64 {
    let sum_at = |instance| i64::from_le_bytes(ask(islands, instance, &Part::Sum).try_into().unwrap());
    (0..INSTANCES as u16).map(sum_at).sum()
}

fn numbers(islands: &Islands<Bank>, instance: u16) -> BTreeSet<u64> {
    let bytes = ask(islands, instance, &Part::Numbers);
    bytes.chunks(8).map(|number| u64::from_le_bytes(number.try_into().unwrap())).collect()
}

fn processes_carry_out_transactions(kind: ChannelKind) {
    let islands = options(INSTANCES).channel(kind).processes(this_program).open::<Bank>().unwrap();
    assert_ne!(islands.process_id(0), islands.process_id(1));
    let outcome = islands.transact(2, &transfer(0, (1, 1), 5, None));
    assert!(matches!(outcome, Outcome::Committed { .. }), "{kind}: {outcome:?}");
    assert!(load_until(&islands, 2, Duration::from_millis(300), 10) > 10, "{kind}");
    assert_eq!((sum(&islands), sum_of_all(&islands)), (8000 * INSTANCES as i64, 8000 * INSTANCES as i64));
    let unknown = DistributedId { coordinator: site(0), incarnation: 7, sequence: 7 };
    assert!(islands.in_doubt(1).is_empty() && !islands.resolve(1, unknown, Decision::Abort));
    assert!(islands.read_all(&[(1, vec![1])]).is_err_and(|refusal| refusal.to_string().contains("panicked")));
    // A reply of several pieces.
    let fill = ask(&islands, 1, &Part::Fill { bytes: 100_000 });
    assert_eq!(fill.len(), 100_000);
}

/// Each copy of all begins terms.
fn an_instance_that_dies_after_terms_have_begun_comes_back() {
    let directory = tempfile::tempdir().unwrap();
    let options = options(INSTANCES).directory(directory.path().join("here")).processes(this_program);
    let islands = options.open::<Bank>().unwrap();
    for copy in ["first", "second"] {
        islands.backup(directory.path().join(copy)).unwrap();
        signal(&islands, 1, "-KILL");
        assert_eq!(sum(&islands), 8000 * INSTANCES as i64);
    }
}

/// Whoever waits knew the term before the closing.
fn instances_that_are_being_closed_are_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let open = || options(INSTANCES).directory(directory.path()).processes(this_program).open::<Bank>();
    let first = open().unwrap();
    thread::scope(|scope| {
        let second = scope.spawn(open);
        // When it starts its first instance it has looked at what there is.
        while children() == INSTANCES && !second.is_finished() {
            thread::yield_now();
        }
        drop(first);
        assert_eq!(sum(&second.join().unwrap().unwrap()), 8000 * INSTANCES as i64);
    });
}

/// How many processes this one has started, and not waited for.
fn children() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let of_thread = |thread: std::io::Result<std::fs::DirEntry>| {
        let children = std::fs::read_to_string(thread.unwrap().path().join("children"));
        children.map_or(0, |children| children.split_whitespace().count())
    };
    threads.map(of_thread).sum()
}

/// All are killed in the term that they were opened in, or in which they were copied.
fn what_a_copy_of_all_has_does_not_replace_an_instance_that_was_killed() {
    for unit in CommitUnit::all() {
        let directory = tempfile::tempdir().unwrap();
        let (here, copy) = (directory.path().join("here"), directory.path().join("copy"));
        let open = |place: &Path| {
            let options = options(INSTANCES).directory(place).processes(this_program);
            options.commit_unit(unit).open::<Bank>()
        };
        let islands = open(&here).unwrap();
        islands.backup(&copy).unwrap();
        drop(islands);
        let mut command = this_program();
        command.env(PARENT, &here).env(UNIT, unit.name()).stdout(Stdio::piped());
        let mut parent = command.spawn().unwrap();
        let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        assert_eq!(lines.take(30).filter(Result::is_ok).count(), 30);
        parent.kill().unwrap();
        parent.wait().unwrap();
        // When it is open all instances of the killed process have ended.
        drop(open(&here).unwrap());
        let [own, kept, of_copy] = [here.join("instance-1"), here.join("kept"), copy.join("instance-1")];
        std::fs::rename(&own, &kept).unwrap();
        std::fs::rename(&of_copy, &own).unwrap();
        let refused = open(&here).unwrap_err().to_string();
        assert!(refused.contains("the files of instance 1 are an older copy"), "{unit}: {refused}");
        std::fs::rename(&own, &of_copy).unwrap();
        std::fs::rename(&kept, &own).unwrap();
        for place in [&here, &copy] {
            assert_eq!(sum(&open(place).unwrap()), 8000 * INSTANCES as i64);
        }
    }
}

/// An instance dies, and older files stand in its place when it is started again.
fn an_older_copy_is_not_started_in_a_running_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let (here, copy) = (directory.path().join("here"), directory.path().join("copy"));
    let open = |place: &Path| options(INSTANCES).directory(place).processes(this_program).open::<Bank>();
    let islands = open(&here).unwrap();
    islands.backup(&copy).unwrap();
    assert!(matches!(islands.transact(2, &transfer(0, (1, 1), 5, None)), Outcome::Committed { .. }));
    let [own, kept, of_copy] = [here.join("instance-1"), here.join("kept"), copy.join("instance-1")];
    std::fs::rename(&own, &kept).unwrap();
    std::fs::rename(&of_copy, &own).unwrap();
    signal(&islands, 1, "-KILL");
    let outcome = islands.try_transact(1, &transfer(0, (1, 1), 1, None));
    assert!(!matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
    drop(islands);
    std::fs::rename(&own, &of_copy).unwrap();
    std::fs::rename(&kept, &own).unwrap();
    assert_eq!(sum(&open(&here).unwrap()), 8000 * INSTANCES as i64);
}

/// Its rows are gone: it is not started again, and nobody waits for it for ever.
fn an_instance_in_memory_that_dies_is_dead() {
    let islands = options(INSTANCES).processes(this_program).open::<Bank>().unwrap();
    // It ends with the instance.
    let time = LoadTime { warmup: Duration::ZERO, measured: Duration::from_secs(30) };
    thread::scope(|scope| {
        let loading = scope.spawn(|| islands.run_load(2, time, &[]));
        thread::sleep(Duration::from_millis(200));
        signal(&islands, 1, "-KILL");
        assert!(loading.join().unwrap().is_err());
    });
    let outcome = islands.try_transact(1, &transfer(0, (1, 1), 1, None));
    assert!(
        matches!(&outcome, Outcome::Aborted(refusal) if refusal.to_string().contains("in memory")),
        "{outcome:?}"
    );
    // What the dead one was coordinating waits for an operator; what others coordinate is decided in a moment.
    for id in islands.in_doubt(0).into_iter().filter(|id| id.coordinator.instance == 1) {
        assert!(islands.resolve(0, id, Decision::Abort));
    }
    ask(&islands, 0, &Part::Sum);
    let begin = Instant::now();
    drop(islands);
    assert!(begin.elapsed() < Duration::from_secs(60));
}

fn signal(islands: &Islands<Bank>, instance: u16, signal: &str) {
    let process = islands.process_id(instance).unwrap().to_string();
    assert!(Command::new("kill").args([signal, &process]).status().unwrap().success());
}

/// Another one dies meanwhile, of which the stopped one cannot be told.
fn a_stopped_instance_holds_up_nobody_for_long(unit: CommitUnit) {
    let directory = tempfile::tempdir().unwrap();
    let options = options(INSTANCES).directory(directory.path()).processes(this_program);
    let islands = options.commit_unit(unit).open::<Bank>().unwrap();
    signal(&islands, 1, "-STOP");
    signal(&islands, 0, "-KILL");
    // All are there again: the stopped one was ended, and started anew.
    assert_eq!(sum(&islands), 8000 * INSTANCES as i64);
    signal(&islands, 1, "-STOP");
    signal(&islands, 0, "-KILL");
    let begin = Instant::now();
    drop(islands);
    assert!(begin.elapsed() < Duration::from_secs(60));
}

/// The coordinator is stopped when its participant has voted: an operator decides in its place.
fn what_is_in_doubt_is_shown_and_can_be_decided() {
    let directory = tempfile::tempdir().unwrap();
    let islands = options(2).directory(directory.path()).processes(this_program).open::<Bank>().unwrap();
    let coordinator = islands.process_id(0).unwrap();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &coordinator.to_string()]).status().unwrap().success());
    };
    let stops = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stops.load(Ordering::Relaxed) {
                islands.try_transact(0, &transfer(1, (1, 1), 1, None));
            }
        });
        let begin = Instant::now();
        let in_doubt = loop {
            signal("-STOP");
            let in_doubt = islands.in_doubt(1);
            // What was decided before the coordinator stopped may be about to arrive.
            if !in_doubt.is_empty() && islands.in_doubt(1) == in_doubt {
                break in_doubt;
            }
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "it is never stopped between vote and decision"
            );
            signal("-CONT");
            thread::sleep(Duration::from_millis(3));
        };
        // The account is locked.
        let add = Request::new(Some(Part::Add { id: 1, amount: 0, number: None }.bytes()), Vec::new());
        assert!(matches!(islands.try_transact(1, &add), Outcome::Aborted(_)));
        assert!(in_doubt.iter().all(|id| islands.resolve(1, *id, Decision::Abort)));
        assert!(matches!(islands.try_transact(1, &add), Outcome::Committed { .. }));
        stops.store(true, Ordering::Relaxed);
        signal("-CONT");
    });
}

/// Each transaction moves money under a number of its own between two instances, both of which note the number.
fn what_was_answered_survives_killed_processes(unit: CommitUnit) {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let options = options(INSTANCES).directory(directory.path()).processes(this_program);
        options.commit_unit(unit).open::<Bank>().unwrap()
    };
    let islands = open();
    let (next, stops) = (AtomicU64::new(0), AtomicBool::new(false));
    let (committed, aborted) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    let move_money = |from: u16| {
        while !stops.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let to = (from + 1 + (number % 2) as u16) % INSTANCES as u16;
            let request = transfer(to, ((number % 8) as u32, (number / 8 % 8) as u32), 1, Some(number));
            match islands.try_transact(from, &request) {
                Outcome::Committed { .. } => committed.lock().unwrap().push((number, from, to)),
                Outcome::Aborted(_) => aborted.lock().unwrap().push(number),
                Outcome::Unknown(_) => {}
            }
        }
    };
    thread::scope(|scope| {
        let move_money = &move_money;
        let froms = (0..INSTANCES as u16).chain(0..INSTANCES as u16);
        let movers: Vec<_> = froms.map(|from| scope.spawn(move || move_money(from))).collect();
        for kill in 0..KILLS {
            let before = committed.lock().unwrap().len();
            let begin = Instant::now();
            // Something has been committed since the last one.
            while committed.lock().unwrap().len() < before + 20 {
                assert!(begin.elapsed() < Duration::from_secs(60), "nothing is committed after kill {kill}");
                thread::sleep(Duration::from_millis(5));
            }
            // One at a time, and two at once.
            for victim in [kill % INSTANCES, (kill + kill % 2) % INSTANCES] {
                let process = islands.process_id(victim as u16).unwrap();
                let killed = Command::new("kill").args(["-9", &process.to_string()]).status();
                assert!(killed.is_ok());
            }
        }
        stops.store(true, Ordering::Relaxed);
        movers.into_iter().for_each(|mover| mover.join().unwrap());
    });
    let (committed, aborted) = (committed.into_inner().unwrap(), aborted.into_inner().unwrap());
    check(&islands, &committed, &aborted);
    drop(islands);
    // And after everything was closed.
    check(&open(), &committed, &aborted);
    assert!(committed.len() > KILLS * 10);
    println!(
        "{unit:?}: {} were answered, {} aborted, of {}",
        committed.len(),
        aborted.len(),
        next.into_inner()
    );
}

/// Says the number of each transaction that is answered, and where it has happened.
fn transfer_until_killed(directory: &Path) {
    let unit: CommitUnit = std::env::var(UNIT).unwrap().parse().unwrap();
    let options = options(INSTANCES).directory(directory).processes(this_program).commit_unit(unit);
    let islands = options.open::<Bank>().unwrap();
    let first = numbers(&islands, 0).last().map_or(0, |last| last + 1000);
    for number in first.. {
        let (from, to) = ((number % 3) as u16, ((number + 1) % 3) as u16);
        let ids = ((number % 8) as u32, (number / 8 % 8) as u32);
        if matches!(islands.transact(from, &transfer(to, ids, 1, Some(number))), Outcome::Committed { .. }) {
            println!("{number} {from} {to}");
        }
    }
}

fn what_was_answered_survives_a_killed_parent(unit: CommitUnit) {
    let directory = tempfile::tempdir().unwrap();
    let mut answered = Vec::new();
    for _ in 0..3 {
        let mut command = this_program();
        command.env(PARENT, directory.path()).env(UNIT, unit.name()).stdout(Stdio::piped());
        let mut parent = command.spawn().unwrap();
        let lines = BufReader::new(parent.stdout.take().unwrap()).lines();
        let of_line = |line: String| {
            let mut words = line.split(' ');
            let mut next = || words.next().unwrap().to_owned();
            (next().parse().unwrap(), next().parse().unwrap(), next().parse().unwrap())
        };
        answered.extend(lines.take(30).map(|line| of_line(line.unwrap())));
        parent.kill().unwrap();
        parent.wait().unwrap();
    }
    // Its instances may be about to end.
    let options = options(INSTANCES).directory(directory.path()).processes(this_program);
    let islands = options.commit_unit(unit).open::<Bank>().unwrap();
    assert_eq!(answered.len(), 90);
    check(&islands, &answered, &[]);
    let copy = directory.path().join("copy");
    islands.checkpoint().unwrap();
    islands.backup(&copy).unwrap();
    drop(islands);
    let options = bank::options(INSTANCES).directory(copy).processes(this_program);
    check(&options.commit_unit(unit).open::<Bank>().unwrap(), &answered, &[]);
}

fn check(islands: &Islands<Bank>, committed: &[(u64, u16, u16)], aborted: &[u64]) {
    assert_eq!(sum(islands), 8000 * INSTANCES as i64);
    let notes: Vec<BTreeSet<u64>> = (0..INSTANCES as u16).map(|at| numbers(islands, at)).collect();
    for (number, from, to) in committed {
        for instance in [from, to] {
            assert!(notes[usize::from(*instance)].contains(number), "{number} is not at {instance}");
        }
    }
    for number in aborted {
        assert!(notes.iter().all(|notes| !notes.contains(number)), "{number} was aborted, and is there");
    }
    let all: BTreeSet<u64> = notes.iter().flatten().copied().collect();
    for number in all {
        let count = notes.iter().filter(|notes| notes.contains(&number)).count();
        assert_eq!(count, 2, "{number} has happened at {count} instances");
    }
    // Locks that were left would show.
    let everywhere: Vec<_> = (1..INSTANCES as u16).map(|at| (site(at), Part::Sum.bytes())).collect();
    let outcome = transact_in_time(islands, 0, &Request::new(Some(Part::Sum.bytes()), everywhere));
    assert!(matches!(outcome, Outcome::Committed { .. }), "{outcome:?}");
}
