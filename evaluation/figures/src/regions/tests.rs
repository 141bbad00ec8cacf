use super::*;
use crate::verdict::Ruling;

/// A run whose shares of index, indirection, log and epochs are these; the rest is halved.
fn run(workers: usize, number: usize, [index, indirection, log, epochs]: [f64; 4]) -> RegionRun {
    let rest = 1.0 - index - indirection - log - epochs;
    RegionRun {
        system: SYSTEM.to_owned(),
        storage: STORAGE.to_owned(),
        workers,
        run: number,
        index,
        indirection,
        log,
        epochs,
        engine: rest / 2.0,
        workload: rest / 2.0,
        waiting: 0.25,
        looks: 5_000,
        transactions_per_second: 1e5,
        cores: 4,
        machine: "a machine".to_owned(),
    }
}

/// The paper's shares, three times, with one worker and with four.
fn as_in_the_paper() -> Vec<RegionRun> {
    let shares = [(1, 0.08), (4, 0.09)].map(|(workers, log)| (workers, [0.41, 0.155, log, 0.005]));
    (1..=3).flat_map(|number| shares.map(|(workers, shares)| run(workers, number, shares))).collect()
}

fn rulings(runs: &[RegionRun]) -> Vec<Ruling> {
    claims::rows_of(runs).into_iter().map(|row| row.ruling).collect()
}

#[test]
fn the_papers_shares_bear_out_the_paper() {
    assert_eq!(rulings(&as_in_the_paper()), vec![Ruling::Holds; 4]);
}

#[test]
fn a_share_that_speaks_against_a_claim_at_one_number_of_workers_refutes_it() {
    let with = |shares: [f64; 4]| {
        let mut runs = as_in_the_paper();
        runs.extend((1..=3).map(|number| run(2, number, shares)));
        rulings(&runs)
    };
    let refuted = |at: usize| {
        let mut rulings = vec![Ruling::Holds; 4];
        rulings[at] = Ruling::DoesNotHold;
        rulings
    };
    assert_eq!(with([0.2, 0.155, 0.085, 0.005]), refuted(0));
    assert_eq!(with([0.41, 0.2, 0.085, 0.005]), refuted(1));
    assert_eq!(with([0.41, 0.155, 0.12, 0.005]), refuted(2));
    assert_eq!(with([0.41, 0.155, 0.085, 0.03]), refuted(3));
}

#[test]
fn the_evaluation_says_what_follows_from_its_runs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let evaluation = std::fs::read_to_string(docs.join("evaluation.md")).unwrap();
    let runs = read_runs(&docs.join("results/full").join(FILE_NAME)).unwrap();
    for row in claims::rows_of(&runs) {
        let line = format!("| {} | {} | {} |", row.text, row.here, row.ruling.in_document());
        assert!(evaluation.lines().any(|it| it == line), "docs/evaluation.md lacks this line:\n{line}");
    }
}

#[test]
fn other_systems_and_too_many_workers_judge_nothing() {
    let mut runs = as_in_the_paper();
    let others = [0.1, 0.5, 0.3, 0.05];
    runs.extend((1..=3).map(|number| run(8, number, others)));
    runs.extend((1..=3).map(|number| RegionRun { system: "ensilo".to_owned(), ..run(2, number, others) }));
    runs.extend((1..=3).map(|number| RegionRun { storage: "memory".to_owned(), ..run(2, number, others) }));
    assert_eq!(rulings(&runs), vec![Ruling::Holds; 4]);
    let only_others = &runs[6..];
    assert!(rulings(only_others).iter().all(|ruling| matches!(ruling, Ruling::Undecided(_))));
}

#[test]
fn one_number_of_workers_says_nothing_of_steadiness() {
    let runs: Vec<_> = as_in_the_paper().into_iter().filter(|run| run.workers == 1).collect();
    let rulings = rulings(&runs);
    assert!(matches!(rulings[2], Ruling::Undecided(_)), "{rulings:?}");
    assert_eq!(rulings[0], Ruling::Holds);
}

#[test]
fn a_directory_keeps_its_runs_and_shows_them() {
    let directory = std::env::temp_dir().join(format!("ensilo-regions-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    assert!(section_in(&directory).unwrap().is_none());
    let runs = as_in_the_paper();
    let files = keep_runs(&directory, &runs).unwrap();
    assert_eq!(files.len(), 2);
    assert!(std::fs::read_to_string(&files[1]).unwrap().contains("ERMIA-SI, with a log"));
    assert_eq!(read_runs(&files[0]).unwrap(), runs);
    let section = section_in(&directory).unwrap().unwrap();
    let table = section.table.unwrap();
    assert_eq!((section.claims.len(), section.plots.len(), table.rows.len()), (4, 1, 2));
    assert!(text_of(&runs).contains("a machine") && text_of(&runs).contains("Epoch-based"));
    assert_eq!(table.rows[1][..6], ["ERMIA-SI, with a log", "4", "3", "41.0", "15.5", "9.0"]);
    std::fs::write(directory.join("empty.csv"), "system,storage\n").unwrap();
    assert!(read_runs(&directory.join("empty.csv")).is_err());
    std::fs::remove_dir_all(&directory).unwrap();
}
