use super::*;
use crate::compare::{read_runs, write_runs};

pub(in crate::compare) fn run(
    peer: &str,
    workers: usize,
    number: usize,
    transactions_per_second: f64,
) -> PeerRun {
    PeerRun {
        workload: "transfer-uniform".to_owned(),
        setting: "not synced".to_owned(),
        workers,
        peer: peer.to_owned(),
        isolation: "serializable, one writer at a time".to_owned(),
        rows: 100,
        run: number,
        seconds: 1.0,
        committed: 75,
        aborted: 25,
        transactions_per_second,
        latency_us_p50: 1.0,
        latency_us_p99: 2.5,
        checks: 3,
        checks_failed: 0,
        measured_at: format!("2026-01-01T00:00:0{number}Z"),
        command: "ensilo compare".to_owned(),
        program: "ensilo".to_owned(),
        machine: format!("a machine, {workers} processors"),
    }
}

/// Two databases with one client take turns, then one has two clients.
fn runs() -> Vec<PeerRun> {
    let mut runs = Vec::new();
    for (number, own) in [(1, 1_000.0), (2, 3_000.0), (3, 2_000.0)] {
        runs.extend([run("ensilo", 1, number, own), run("redb", 1, number, own / 2.0)]);
    }
    runs.push(run("redb", 2, 1, 7.0));
    runs
}

#[test]
fn a_point_is_shown_by_its_median_beside_that_of_ensilo() {
    let rows = rows_of(&runs());
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[0][3..8], ["2k", "1k", "3k", "1.00x", "25.0 %"]);
    assert_eq!(rows[1][3..7], ["1k", "500", "1.5k", "0.50x"]);
    assert_eq!(rows[2][3..7], ["7", "7", "7", ""], "Ensilo was not run with two clients");
    assert!(text_of(&runs()).contains("0.50x"));
}

#[test]
fn a_failed_check_is_shown() {
    let mut runs = runs();
    runs[1].checks_failed = 1;
    let section = section_of(&runs).unwrap();
    assert_eq!(section.notes.len(), 1);
    assert!(section.notes[0].contains("redb failed the check after run 1"), "{}", section.notes[0]);
    assert_eq!(rows_of(&runs)[1][11], "1 failed");
}

#[test]
fn there_is_a_plot_for_each_number_of_clients() {
    let plots = plots_of(&runs()).unwrap();
    let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["transfer-uniform-not-synced-1", "transfer-uniform-not-synced-2"]);
    assert!(plots[0].1.contains("ensilo") && !plots[1].1.contains("ensilo"));
}

#[test]
fn what_is_written_is_read() {
    let directory = std::env::temp_dir().join(format!("ensilo-compare-{}", std::process::id()));
    assert_eq!(read_runs(&directory).unwrap(), []);
    write_runs(&directory, &runs()).unwrap();
    assert_eq!(read_runs(&directory).unwrap(), runs());
    assert!(directory.join("compare-transfer-uniform-not-synced-2.svg").exists());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_section_tells_what_its_runs_were_made_with() {
    let facts = section_of(&runs()).unwrap().facts;
    let fact = |word| facts.iter().find(|(name, _)| *name == word).unwrap().1.as_str();
    assert_eq!(fact("machine"), "a machine, 1 processors\na machine, 2 processors");
    assert_eq!(fact("measured"), "2026-01-01T00:00:01Z to 2026-01-01T00:00:03Z");
    assert_eq!((fact("command"), fact("program")), ("ensilo compare", "ensilo"));
}

#[test]
fn tables_from_before_the_facts_can_be_read() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/full");
    let runs = read_runs(&directory).unwrap();
    assert!(runs.len() > 300 && section_of(&runs).unwrap().notes.is_empty());
}
