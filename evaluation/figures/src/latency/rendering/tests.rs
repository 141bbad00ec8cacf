use super::*;
use crate::compare::RunSubject;
use crate::latency::{make_way, section_in, write_runs};

fn run(peer: &str, workers: usize, number: usize, latency_us: u64) -> PeerRun {
    let subject = RunSubject {
        workload: "transfer-uniform",
        setting: "synced",
        workers,
        peer,
        isolation: "serializable",
        rows: 10,
        run: number,
    };
    let mut latencies = ensilo_bench::driver::Latencies::new();
    latencies.record(1_000 * latency_us);
    PeerRun::of_latencies(subject, 1.0, &latencies, "ensilo figures run latency".to_owned())
}

fn alone() -> Vec<PeerRun> {
    let of_number = |number: usize| {
        let more = 10 * number as u64;
        [("disk", 1, 100 + more), ("ensilo", 1, 120 + more), ("ensilo", 64, 240 + more)]
            .map(|(peer, workers, latency_us)| run(peer, workers, number, latency_us))
    };
    (1..=3).flat_map(of_number).collect()
}

#[test]
fn points_are_medians_beside_the_disk() {
    let rows = rows_of(&alone());
    let told: Vec<_> = rows.iter().map(|row| [&row[0], &row[1], &row[2], &row[3], &row[6]]).collect();
    assert_eq!(told[0], ["ensilo", "1", "3", "140", "1.17x"]);
    assert_eq!(told[1], ["ensilo", "64", "3", "260", "2.17x"]);
    assert_eq!(told[2], ["disk", "1", "3", "120", "1.00x"]);
}

#[test]
fn it_is_said_what_was_not_measured_and_what_failed() {
    let mut runs = alone();
    assert!(text_of(&runs).contains("--features peers"));
    runs.push(run("redb", 1, 1, 300));
    assert!(!text_of(&runs).contains("--features peers"));
    runs[1].checks_failed = 1;
    assert!(text_of(&runs).contains("ensilo failed the check after run 1 with 1 client(s)"));
}

#[test]
fn a_directory_has_a_table_plots_and_a_section_and_keeps_them() {
    let out = std::env::temp_dir().join(format!("ensilo-figures-latency-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&out);
    make_way(&out, false).unwrap();
    assert!(section_in(&out).unwrap().is_none());
    let runs = alone();
    write_runs(&out, &runs).unwrap();
    let section = section_in(&out).unwrap().unwrap();
    assert_eq!((section.plots.len(), section.table.unwrap().rows.len()), (3, 3));
    for number in 1..=3 {
        let svg = std::fs::read_to_string(out.join(format!("latency-{number}.svg"))).unwrap();
        assert!(svg.contains("the disk") && svg.contains("ensilo"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    }
    assert!(matches!(make_way(&out, false), Err(FiguresError::WouldReplace(..))));
    make_way(&out, true).unwrap();
    std::fs::remove_dir_all(out).unwrap();
}
