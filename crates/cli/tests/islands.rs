//! `ensilo islands`: topology, plan, channels; and workloads on instances.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{TestDirectory, ensilo, expect_exit, text};
use ensilo_islands::{Instances, IslandDatabase, IslandsOptions, Partitioning, Placement, Plan, Topology};

#[test]
fn a_machine_is_described_as_it_is_read() {
    let directory = TestDirectory::new("islands-topology");
    let described = expect_exit(0, &["islands", "topology", "--machine", "octo-socket"], &[]);
    let file = directory.join("octo");
    std::fs::write(&file, &described).unwrap();
    assert_eq!(expect_exit(0, &["islands", "topology", "--machine"], &[&file]), described);
    assert!(expect_exit(0, &["islands", "topology"], &[]).contains("# CPU,Core,Socket,Node,L2,L3\n"));
}

#[test]
fn a_plan_shows_the_processors_of_each_instance() {
    let plan = expect_exit(0, &["islands", "plan", "--machine", "quad-socket", "--instances", "socket"], &[]);
    assert_eq!(plan.lines().count(), 4);
    assert!(plan.contains("instance 3: processors 18,19,20,21,22,23; memory of nodes 3\n"), "{plan}");
    let spread = ["--instances", "4", "--placement", "spread"];
    let plan = expect_exit(0, &[&["islands", "plan", "--machine", "quad-socket"], &spread[..]].concat(), &[]);
    assert!(plan.contains("instance 0: processors 0,6,12,18,"), "{plan}");
    let plan = expect_exit(0, &["islands", "plan", "--instances", "1000"], &[]);
    assert!(plan.ends_with("There are more instances than cores: several share one.\n"), "{plan}");
}

#[test]
fn every_kind_of_channel_is_measured() {
    let measured = expect_exit(0, &["islands", "channels", "--seconds", "0.05"], &[]);
    for kind in ["memory", "unix", "pipe", "tcp"] {
        let line = measured.lines().find(|line| line.starts_with(kind)).unwrap();
        assert_eq!(line.split_whitespace().count(), 5, "{line}");
    }
    let machine = expect_exit(0, &["islands", "topology"], &[]);
    let lines = machine.lines().filter(|line| !line.starts_with('#'));
    let mut cpus: Vec<_> = lines.filter_map(|line| line.split(',').next()).collect();
    // On a machine with a single processor both share it.
    cpus.resize(2, cpus[0]);
    let cpus = cpus.join(",");
    let one = ["--kinds", "pipe", "--cpus", &cpus, "--message-bytes", "0", "--seconds", "0.05"];
    assert_eq!(expect_exit(0, &[&["islands", "channels"], &one[..]].concat(), &[]).lines().count(), 4);
    let json = ["--kinds", "memory,tcp", "--placement", "spread", "--seconds", "0.05", "--format", "json"];
    let reports = expect_exit(0, &[&["islands", "channels"], &json[..]].concat(), &[]);
    for (line, kind) in reports.lines().zip(["memory", "tcp"]) {
        let report: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!((&report["channel"], &report["placement"]), (&kind.into(), &"spread".into()));
        assert!(report["throughput"].as_f64().unwrap() > 0.0, "{report}");
    }
    expect_exit(2, &[&["islands", "channels", "--placement", "group"], &one[..]].concat(), &[]);
}

#[test]
fn counters_are_counted_up_by_threads_that_are_placed() {
    let time = ["--seconds", "0.05", "--warmup", "0.01"];
    for placement in ["group", "spread", "mix", "system"] {
        let run = ["bench", "counters", "--counters", "one", "--workers", "3", "--placement", placement];
        let report = expect_exit(0, &[&run[..], &time].concat(), &[]);
        assert!(report.contains(&format!("1 counter by 3 threads, {placement},")), "{report}");
    }
    let run = ["bench", "counters", "--counters", "core", "--format", "json"];
    let report = ensilo(&[&run[..], &time].concat()).stdout;
    let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
    assert_eq!(report["counters"], report["workers"]);
    assert!(report["throughput"].as_f64().unwrap() > 0.0, "{report}");
}

/// What is run on instances, each with a check of the rows afterwards.
const RUNS: [&str; 11] = [
    "micro --islands 2 --multisite 50 --update",
    "micro --islands 3 --threads --channel unix --multisite 100 --placement system",
    "micro --islands 2 --multisite 100 --rows 1000 --times",
    "tpcb-islands --islands 2 --accounts 1000 --channel pipe",
    "tpcb-islands --islands 2 --accounts 1000 --durable --width 8",
    "tpcb-islands --islands 1 --workers 2 --accounts 1000",
    "tpcc-islands --islands 2 --items 100 --customers 10",
    "tpcc-islands --islands 2 --warehouses 5 --items 100 --customers 10 --multisite 100 --durable --width 8",
    "ycsb-islands --islands 2 --records 1000 --mix rmw=50,insert=50 --multisite 50",
    "ycsb-islands --islands 3 --records 1000 --mix read=20,rmw=40,insert=40 --distribution latest --multisite 50",
    "ycsb-islands --islands 2 --records 1000 --mix e --multisite 20 --operations 3 --durable --width 8",
];

const TIME: [&str; 4] = ["--seconds", "0.3", "--warmup", "0.1"];

#[test]
fn workloads_run_on_instances_and_leave_consistent_rows() {
    for run in RUNS {
        let words: Vec<&str> = run.split(' ').collect();
        let report = expect_exit(0, &[&["bench"], &words[..], &TIME].concat(), &[]);
        assert!(report.contains("the rows are consistent"), "{run}: {report}");
    }
    let alone = expect_exit(1, &["instance", "micro"], &[]);
    assert!(alone.contains("ensilo bench"), "{alone}");
}

#[test]
fn a_report_on_instances_is_json_and_says_what_parts_take_where_they_are_timed() {
    let report_of = |options: &[&str]| -> serde_json::Value {
        let run = ["bench", "micro", "--islands", "2", "--format", "json"];
        serde_json::from_slice(&ensilo(&[&run[..], &TIME, options].concat()).stdout).unwrap()
    };
    let report = report_of(&[]);
    assert_eq!((&report["islands"], &report["processes"]), (&2.into(), &true.into()));
    assert!(report["throughput"].as_f64().unwrap() > 0.0 && report["in_parts_us"].is_null(), "{report}");
    let report = report_of(&["--times"]);
    let all = 2e6 / report["throughput"].as_f64().unwrap();
    assert!(report["in_parts_us"].as_f64().is_some_and(|part| (0.0..all).contains(&part)), "{report}");
}

/// Whether two instances can be measured beside each other; otherwise the advisor says so.
fn has_two_cores() -> bool {
    if std::thread::available_parallelism().unwrap().get() > 1 {
        return true;
    }
    let refused = expect_exit(1, &["islands", "advise", "tpcb"], &[]);
    assert!(refused.contains("two cores"), "{refused}");
    false
}

/// What is asked about, each for a size that is then verified.
const ADVISED: [&str; 6] = [
    "micro --rows 10000 --update --multisite 50",
    "tpcb --accounts 1000",
    "tpcc --items 100 --customers 10",
    "ycsb --records 10000 --mix e --multisite 20 --operations 2 --channel unix",
    "tpcb --branches 20 --accounts 100 --durable --width 16",
    "ycsb --records 10000 --mix f --multisite 20 --width 64 --durable --commit-unit epoch",
];

#[test]
fn a_size_of_islands_is_recommended() {
    if !has_two_cores() {
        return;
    }
    let time = ["--seconds", "0.05"];
    for advised in ADVISED {
        let words: Vec<&str> = advised.split(' ').collect();
        let advice =
            expect_exit(0, &[&["islands", "advise"], &words[..], &["--verify"], &time].concat(), &[]);
        assert_eq!(advice.matches("<- recommended").count(), 1, "{advice}");
        assert!(
            advice.contains("measured") && advice.contains("% of what the best one was measured with"),
            "{advice}"
        );
        assert!(advice.starts_with("A message and its answer take "), "{advice}");
        assert_eq!(advice.contains("To be stored takes"), advised.contains("--durable"), "{advice}");
    }
    let small = ["islands", "advise", "micro", "--rows", "10000", "--update", "--multisite", "50"];
    let described = ["--machine", "quad-socket"];
    let advice = expect_exit(0, &[&small[..], &described, &time].concat(), &[]);
    let sizes: Vec<&str> = advice
        .lines()
        .filter_map(|line| line.trim_start().split_once(" islands"))
        .map(|(size, _)| size)
        .collect();
    assert_eq!(sizes, ["24", "4", "1"], "{advice}");
    assert!(!advice.contains("A message"), "messages here say nothing of another machine: {advice}");
    let branches = ["islands", "advise", "tpcb", "--accounts", "100"];
    let advice = expect_exit(0, &[&branches[..], &described, &time].concat(), &[]);
    assert!(advice.contains("   24 islands"), "a branch for each of that machine's workers: {advice}");
    let both = [&["islands", "advise", "micro", "--verify"], &described[..]].concat();
    expect_exit(2, &both, &[]);
    expect_exit(2, &["islands", "advise", "tpcb", "--commit-unit", "epoch"], &[]);
    let few = expect_exit(2, &["islands", "advise", "micro", "--rows", "1"], &[]);
    assert!(few.contains("only 1 rows or keys"), "{few}");
}

#[derive(ensilo::Row)]
#[row(table = "account")]
struct Account {
    #[row(key)]
    id: u32,
    balance: i64,
}

fn open_accounts(directory: &Path, instances: usize) -> IslandDatabase {
    let topology = Topology::of_this_machine().unwrap();
    let plan = Plan::new(&topology, Instances::Count(instances), Placement::System);
    IslandsOptions::new(plan).workers(1).directory(directory).open_database().unwrap()
}

#[test]
fn tables_are_redistributed_over_another_number_of_instances() {
    let place = TestDirectory::new("islands-redistribute");
    let [one, three, two] = ["one", "three", "two"].map(|name| place.join(name));
    let rows = 0..90;
    {
        let db = open_accounts(&one, 1);
        let accounts = db.table::<Account>(Partitioning::hash()).unwrap();
        db.transact(|tx| rows.clone().try_for_each(|id| accounts.insert(tx, &Account { id, balance: 1 })))
            .unwrap();
    }
    let redistribute = ["islands", "redistribute", "--instances"];
    let by_ranges = [&redistribute[..], &["3", "--partition", "account=ranges"]].concat();
    let copied = expect_exit(0, &by_ranges, &[&one, &three]);
    assert!(
        copied.starts_with(
            "table account: 90 rows, ranges with 2 beginnings; by instance: 30 30 30\n1 tables, 90 rows in "
        ),
        "{copied}"
    );
    assert!(
        copied.ends_with(" s; instances: 3, workers of each: 1, unit of commit: transaction\n"),
        "{copied}"
    );
    let hashed =
        [&redistribute[..], &["2", "--partition", "account=hash:1", "--commit-unit", "transaction"]].concat();
    expect_exit(0, &hashed, &[&three, &two]);
    let db = open_accounts(&two, 2);
    let accounts = db.table::<Account>(Partitioning::hash()).unwrap();
    let all = db.read(|tx| accounts.scan().collect(tx)).unwrap();
    assert!(all.iter().map(|account| (account.id, account.balance)).eq(rows.map(|id| (id, 1))));
    let busy = expect_exit(1, &hashed, &[&two, &place.join("none")]);
    assert!(busy.contains("the database is open in process"), "{busy}");
    let taken = expect_exit(1, &hashed, &[&one, &three]);
    assert!(taken.contains("not empty"), "{taken}");
    for wrong in ["account=range", "account", "account=hash:0", "account=replicated:1"] {
        expect_exit(2, &["islands", "redistribute", "--partition", wrong], &[&one, &place.join("none")]);
    }
    expect_exit(2, &[&redistribute[..], &["0"]].concat(), &[&one, &place.join("none")]);
    let twice = ["--partition", "account=hash", "--partition", "account=ranges"];
    let twice = expect_exit(2, &[&redistribute[..], &["2"], &twice].concat(), &[&one, &place.join("none")]);
    assert!(twice.contains("twice for table account"), "{twice}");
}

#[test]
fn an_instance_of_several_is_neither_copied_nor_repaired_nor_salvaged_by_itself() {
    let place = TestDirectory::new("islands-alone");
    let [two, one, elsewhere] = ["two", "one", "elsewhere"].map(|name| place.join(name));
    drop(open_accounts(&two, 2));
    drop(open_accounts(&one, 1));
    let instance = two.join("instance-1");
    let target = place.join("target");
    let commands: [(&str, &[&Path]); 3] =
        [("repair", &[&instance]), ("salvage", &[&instance, &target]), ("backup", &[&instance, &target])];
    for (command, paths) in commands {
        let refused = expect_exit(1, &[command], paths);
        assert!(refused.contains("instance 1 of 2: an instance of several that are one"), "{refused}");
        assert!(refused.contains("copy") && !target.exists(), "{refused}");
    }
    // Also one that is damaged, or was put elsewhere.
    std::fs::rename(instance.join("MANIFEST"), place.join("MANIFEST")).unwrap();
    assert!(expect_exit(1, &["salvage"], &[&instance, &target]).contains("instance 1 of 2"));
    std::fs::rename(place.join("MANIFEST"), instance.join("MANIFEST")).unwrap();
    expect_exit(0, &["salvage", "--instance-alone"], &[&instance, &target]);
    std::fs::remove_dir_all(&target).unwrap();
    std::fs::rename(&instance, &elsewhere).unwrap();
    assert!(expect_exit(1, &["backup"], &[&elsewhere, &target]).contains("instance 1 of 2"));
    expect_exit(0, &["backup", "--instance-alone"], &[&elsewhere, &target]);
    std::fs::remove_dir_all(&target).unwrap();
    let alone = expect_exit(1, &["repair", "--instance-alone"], &[&elsewhere]);
    assert!(!alone.contains("of several"), "{alone}");
    // The only one of a cluster.
    expect_exit(0, &["backup"], &[&one.join("instance-0"), &target]);
}

#[test]
fn rows_are_loaded_into_the_only_instance_of_a_store_and_not_into_one_of_several() {
    let place = TestDirectory::new("islands-load");
    let [one, two, epochs] = ["one", "two", "epochs"].map(|name| place.join(name));
    for (place, instances) in [(&one, 1), (&two, 2)] {
        let db = open_accounts(place, instances);
        db.table::<Account>(Partitioning::hash()).unwrap();
    }
    expect_exit(0, &["islands", "redistribute", "--commit-unit", "epoch"], &[&one, &epochs]);
    let rows = place.join("rows.jsonl");
    std::fs::write(&rows, "{\"id\": 7, \"balance\": 9}\n").unwrap();
    let load = |place: &Path, code| {
        let instance = place.join("instance-0");
        let [place, rows] = [&instance, &rows].map(|path| path.to_str().unwrap());
        expect_exit(code, &["load", place, "account", rows], &[])
    };
    assert!(load(&two, 1).contains("of several that are one"));
    assert!(load(&epochs, 1).contains("commits by epochs"));
    load(&one, 0);
    let db = open_accounts(&one, 1);
    let accounts = db.table::<Account>(Partitioning::hash()).unwrap();
    assert_eq!(db.transact(|tx| accounts.get(tx, 7)).unwrap().map(|account| account.balance), Some(9));
}

/// By default a process may have 1,024 files open, which some tens of instances take.
#[test]
fn many_instances_have_as_many_files_open_as_the_system_allows() {
    let place = TestDirectory::new("islands-files");
    let one = place.join("one");
    {
        let db = open_accounts(&one, 1);
        db.table::<Account>(Partitioning::hash()).unwrap();
    }
    let redistribute = |limit: &str, target: &str| {
        let script = format!("{limit} && exec \"$@\"");
        let program = env!("CARGO_BIN_EXE_ensilo");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", program, "islands", "redistribute", "--instances", "8"]);
        command.arg(&one).arg(place.join(target)).output().unwrap()
    };
    let raised = redistribute("ulimit -Sn 120", "raised");
    assert!(raised.status.success(), "{}", text(&raised.stderr));
    let refused = redistribute("ulimit -n 120", "refused");
    let errors = text(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{errors}");
    assert!(errors.contains("ulimit -n") && errors.contains("may have 120 open"), "{errors}");
}

#[test]
fn a_size_of_islands_is_recommended_for_recorded_transactions() {
    if !has_two_cores() {
        return;
    }
    let directory = TestDirectory::new("islands-recorded");
    let file = directory.join("recorded");
    let lines = (0..500u64).map(|at| {
        let key = at.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        match at % 10 {
            0 => format!("w {key} w {}\n", key.wrapping_mul(3)),
            1 => format!("r {key} r *\n"),
            _ => format!("r {key} w {key}\n"),
        }
    });
    std::fs::write(&file, lines.collect::<String>()).unwrap();
    let advise = ["islands", "advise", "recorded", "--seconds", "0.05"];
    for options in
        [&["--verify"][..], &["--verify", "--durable", "--width", "16"], &["--machine", "quad-socket"]]
    {
        let advice = expect_exit(0, &[&advise[..], options].concat(), &[&file]);
        assert_eq!(advice.matches("<- recommended").count(), 1, "{advice}");
    }
    for (text, problem) in [
        ("r 1 w 2\n# a comment\nr one\n", "line 3 is no transaction"),
        ("# nothing\n\n", "no transaction is recorded there"),
        ("r 1\n", "record more transactions"),
        ("r 1\nw 183655924057700", "cut off in line 2"),
    ] {
        std::fs::write(&file, text).unwrap();
        let refused = expect_exit(1, &advise, &[&file]);
        assert!(refused.contains(problem), "{refused}");
    }
    // Keys in threes, which two instances do not part, but 24 do.
    let threes = (0..96u64).step_by(3).map(|key| format!("w {key} w {} r {}\n", key + 1, key + 2));
    std::fs::write(&file, threes.collect::<String>()).unwrap();
    let unknown = expect_exit(1, &[&advise[..], &["--machine", "quad-socket"]].concat(), &[&file]);
    assert!(unknown.contains("no transaction has rows at both of two instances"), "{unknown}");
    let missing = expect_exit(1, &advise, &[&directory.join("missing")]);
    assert!(missing.contains("missing"), "{missing}");
}

#[test]
fn a_suite_of_workloads_shows_how_good_the_advice_is() {
    if !has_two_cores() {
        return;
    }
    let unknown = expect_exit(2, &["islands", "advise", "suite", "--workloads", "tpcb,tpcd"], &[]);
    assert!(unknown.contains("no workload tpcd"), "{unknown}");
    let some = ["islands", "advise", "suite", "--workloads", "update-5,tpcb-stored", "--seconds", "0.05"];
    let table = expect_exit(0, &some, &[]);
    for name in ["update-5 ", "tpcb-stored "] {
        let line = table.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(line.ends_with(" %") && line.split_whitespace().count() == 8, "{line}");
    }
    assert!(table.contains(" of 2 recommended sizes are within 10 % of the best measured one.\n"), "{table}");
    assert!(!table.contains("read-local"), "{table}");
    // What is stored has no place.
    let failed =
        Command::new(env!("CARGO_BIN_EXE_ensilo")).args(some).env("TMPDIR", "/dev/null/place").output();
    let failed = failed.unwrap();
    assert_eq!(failed.status.code(), Some(1));
    let (table, errors) = (text(&failed.stdout), text(&failed.stderr));
    assert!(errors.contains("/dev/null/place"), "{errors}");
    assert!(table.contains("update-5 ") && table.contains(" of 1 recommended sizes"), "{table}");
    assert!(!table.contains("tpcb-stored"), "{table}");
}

/// Each is refused before anything is begun.
const BAD: [&str; 98] = [
    "islands",
    "islands move",
    "islands topology --machine /no/such/machine",
    "islands topology --machine Cargo.toml",
    "islands topology --machine .",
    "islands plan --machine /no/such/machine",
    "islands plan --machine ",
    "islands plan --instances 0",
    "islands plan --instances -1",
    "islands plan --instances 65536",
    "islands plan --instances some",
    "islands plan --placement near",
    "islands channels --kinds pigeon",
    "islands channels --kinds ",
    "islands channels --message-bytes 32769",
    "islands channels --message-bytes -1",
    "islands channels --message-bytes few",
    "islands channels --seconds 0",
    "islands channels --seconds -1",
    "islands channels --seconds NaN",
    "islands channels --seconds 1e9",
    "islands channels --cpus 0",
    "islands channels --cpus 0,1,2",
    "islands channels --cpus 0,x",
    "islands channels --cpus 0,-1",
    "islands channels --cpus 0,100000",
    "islands channels --cpus 0,0 --placement group",
    "islands channels --format xml",
    "islands advise",
    "islands advise tpch",
    "islands advise micro --rows 0",
    "islands advise micro --rows-per-transaction 0",
    "islands advise micro --rows-per-transaction 1001",
    "islands advise micro --multisite 101",
    "islands advise micro --multisite -1",
    "islands advise micro --skew 1",
    "islands advise micro --skew -0.1",
    "islands advise micro --width 0",
    "islands advise micro --width 4097",
    "islands advise micro --seconds 0",
    "islands advise micro --channel pigeon",
    "islands advise micro --commit-unit epoch",
    "islands advise micro --durable --commit-unit week",
    "islands advise micro --machine /no/such/machine",
    "islands advise micro --machine quad-socket --verify",
    "islands advise tpcb --branches 0",
    "islands advise tpcb --accounts 0",
    "islands advise tpcc --warehouses 0",
    "islands advise tpcc --items 0",
    "islands advise tpcc --customers 3001",
    "islands advise tpcc --mix buy=100",
    "islands advise ycsb --records 0",
    "islands advise ycsb --mix g",
    "islands advise ycsb --theta 1",
    "islands advise ycsb --operations 0",
    "islands advise ycsb --scan-len-max 0",
    "islands advise ycsb --distribution normal",
    "islands advise recorded",
    "islands advise suite --seconds 0",
    "islands redistribute",
    "islands redistribute from",
    "islands redistribute from to --instances 0",
    "islands redistribute from to --instances 65536",
    "islands redistribute from to --workers 0",
    "islands redistribute from to --commit-unit week",
    "islands redistribute from to --partition orders",
    "islands redistribute from to --partition =hash",
    "islands redistribute from to --partition orders=hash:0",
    "islands redistribute from to --partition orders=ranges:x",
    "islands redistribute from to --partition orders=replicated:1",
    "islands redistribute from to --partition orders=hash --partition orders=ranges",
    "bench micro --islands 0",
    "bench micro --islands 65536",
    "bench micro --islands 2 --rows 1",
    "bench micro --islands 2 --rows 3 --workers 2",
    "bench micro --workers 0",
    "bench micro --workers 1025",
    "bench micro --warmup -1",
    "bench micro --seconds 0",
    "bench micro --width 0",
    "bench micro --prefault-mib -1",
    "bench micro --commit-unit epoch",
    "bench micro --placement near",
    "bench micro --times maybe",
    "bench tpcb-islands --multisite 101",
    "bench tpcb-islands --islands 2 --branches 1",
    "bench tpcb-islands --branches 100001",
    "bench tpcc-islands --islands 2 --warehouses 1",
    "bench tpcc-islands --warehouses 10001",
    "bench tpcc-islands --mix 45/43/4/4",
    "bench tpcc-islands --items 100001",
    "bench ycsb-islands --islands 70 --records 100 --threads --placement system",
    "bench ycsb-islands --mix read=80,rmw=30",
    "bench counters --counters 0",
    "bench counters --counters 65536",
    "bench counters --counters 4097",
    "bench counters --counters 5 --workers 3",
    "bench counters --workers 4097",
];

/// What takes two cores to be asked.
const BAD_ON_TWO_CORES: [&str; 5] = [
    "islands advise micro --rows 1",
    "islands advise micro --machine octo-socket --rows 10",
    "islands advise tpcb --branches 1",
    "islands advise tpcc --warehouses 1",
    "islands advise suite --workloads none",
];

#[test]
fn bad_parameters_are_usage_errors() {
    let on_two_cores = if has_two_cores() { &BAD_ON_TWO_CORES[..] } else { &[] };
    for bad in BAD.iter().chain(on_two_cores) {
        let ended = ensilo(&bad.split(' ').collect::<Vec<_>>());
        let (said, errors) = (text(&ended.stdout), text(&ended.stderr));
        assert_eq!(ended.status.code(), Some(2), "{bad}: {said}{errors}");
        assert!(said.is_empty(), "{bad}: {said}");
        assert!(errors.contains("Usage") || errors.contains("--help"), "{bad}: {errors}");
    }
    assert!(!Path::new("to").exists());
}

#[test]
fn what_is_wrong_is_named() {
    let machine = expect_exit(2, &["islands", "plan", "--machine", "/no/such/machine"], &[]);
    assert!(machine.contains("/no/such/machine"), "{machine}");
    let cpu = expect_exit(2, &["islands", "channels", "--cpus", "0,100000", "--seconds", "0.05"], &[]);
    assert!(cpu.contains("processor 100000 may not be used"), "{cpu}");
    let few = expect_exit(2, &["bench", "micro", "--islands", "2", "--rows", "1"], &[]);
    assert!(few.contains("fewer islands or more rows"), "{few}");
    let counters = expect_exit(2, &["bench", "counters", "--counters", "5", "--workers", "3"], &[]);
    assert!(counters.contains("5 counters, and 3 threads"), "{counters}");
}
