//! One picture for who reads no tables: throughput and the time that an answer from disk takes, beside what people use today.

use super::rendering::is_own;
use super::run::PeerRun;
use crate::error::FiguresError;
use crate::plot::{Bar, BarChart, BarGroup, beside};
use crate::results::Spread;

/// The settings as runs have them.
const IN_MEMORY: &str = "not synced";
const ON_DISK: &str = "synced";

/// What is read off the runs of a database.
type Figure = fn(&[&PeerRun]) -> Option<Bar>;

/// Draws the runs of `workload` with the most clients of each setting: on the left transactions a second without waiting for the disk, on
/// the right the milliseconds in which 99 of 100 answers are on disk.
///
/// # Errors
/// [`FiguresError::Plot`], also if there are no such runs.
pub fn picture_of(runs: &[PeerRun], workload: &str) -> Result<String, FiguresError> {
    let throughput = panel(
        runs,
        workload,
        IN_MEMORY,
        ("transactions a second, not synced", "up", "transactions/s"),
        |runs| bar_of(runs, |run| run.transactions_per_second),
    )?;
    let what = ("99 of 100 answers are on disk within", "down", "ms");
    let latency = panel(runs, workload, ON_DISK, what, |runs| bar_of(runs, |run| run.latency_us_p99 / 1e3))?;
    Ok(beside(&[throughput, latency]))
}

/// The bars of all databases.
fn panel(
    runs: &[PeerRun],
    workload: &str,
    setting: &str,
    (what, better, unit): (&str, &str, &str),
    figure: Figure,
) -> Result<String, FiguresError> {
    let of_setting = || runs.iter().filter(|run| run.workload == workload && run.setting == setting);
    let Some(clients) = of_setting().map(|run| run.workers).max() else {
        return Err(FiguresError::Plot(format!("there are no runs of {workload}, {setting}")));
    };
    let drawn: Vec<&PeerRun> = of_setting().filter(|run| run.workers == clients).collect();
    let mut names: Vec<&str> = Vec::new();
    for run in &drawn {
        if !names.contains(&run.peer.as_str()) {
            names.push(&run.peer);
        }
    }
    let group = |name: &str| {
        let own: Vec<&PeerRun> = drawn.iter().copied().filter(|run| run.peer == name).collect();
        let here = figure(&own);
        BarGroup { label: name.to_owned(), here, paper: None, is_marked: false, is_own: is_own(name) }
    };
    let chart = BarChart {
        title: format!("{workload}, {clients} clients: {what} ({better} is better)"),
        y_label: unit.to_owned(),
        groups: names.into_iter().map(group).collect(),
        mark_meaning: String::new(),
    };
    chart.to_svg()
}

fn bar_of(runs: &[&PeerRun], figure: fn(&PeerRun) -> f64) -> Option<Bar> {
    let Spread { median: value, min, max, .. } = Spread::of(runs.iter().map(|run| figure(run)).collect())?;
    Some(Bar { value, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::rendering::tests;

    fn run(setting: &str, workers: usize, peer: &str, transactions_per_second: f64) -> PeerRun {
        let run = tests::run(peer, workers, 1, transactions_per_second);
        PeerRun { workload: "tpcc".to_owned(), setting: setting.to_owned(), ..run }
    }

    #[test]
    fn both_settings_are_drawn_with_the_most_clients() {
        let runs = [
            run("not synced", 1, "ensilo", 5.0),
            run("not synced", 2, "ensilo", 7e3),
            run("not synced", 2, "redb", 1e3),
            run("synced", 32, "ensilo", 2e3),
            run("synced", 32, "redb", 1e3),
        ];
        let svg = picture_of(&runs, "tpcc").unwrap();
        assert_eq!(svg.matches("<svg").count(), 3, "two plots in one: {svg}");
        assert!(svg.contains("tpcc, 2 clients") && svg.contains("tpcc, 32 clients"), "{svg}");
        assert!(svg.contains("7k") && svg.matches("redb").count() == 2, "{svg}");
        assert!(matches!(picture_of(&runs, "ycsb"), Err(FiguresError::Plot(_))));
    }
}
