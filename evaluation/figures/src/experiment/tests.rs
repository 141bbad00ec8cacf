use std::collections::BTreeSet;

use ensilo_bench::report::Machine;

use super::*;
use crate::sizes::{Overrides, Scale};

/// All experiments at both scales on small and large machines.
fn everywhere() -> Vec<Experiment> {
    let sizes = [1, 2, 8, 32].into_iter().flat_map(|cores| {
        let machine = Machine { cpu: String::new(), cores, memory_bytes: 24 << 30, os: String::new() };
        [Scale::Quick, Scale::Full].map(|scale| Sizes::new(scale, &machine, &Overrides::default()))
    });
    sizes.flat_map(|sizes| Experiment::all(&sizes)).collect()
}

#[test]
fn every_claim_is_about_series_that_are_there() {
    for experiment in everywhere() {
        for claim in &experiment.claims {
            for name in claim.quantity.series() {
                assert!(experiment.series_at(name).is_some(), "{}: {name}", experiment.name);
            }
        }
    }
}

#[test]
fn every_experiment_is_complete() {
    for experiment in everywhere() {
        let name = experiment.name;
        assert!(!experiment.about.is_empty() && !experiment.plots.is_empty(), "{name}");
        assert!(!experiment.claims.is_empty() && experiment.runs > 0, "{name}");
        for series in &experiment.series {
            assert!(!series.points.is_empty(), "{name}: {}", series.name);
            assert!(series.points.is_sorted_by(|a, b| a.x < b.x), "{name}: {}", series.name);
            assert!(experiment.axis != Axis::Series || series.points.len() == 1, "{name}: {}", series.name);
        }
    }
}

#[test]
fn names_tell_experiments_and_series_apart() {
    let machine = Machine { cpu: String::new(), cores: 2, memory_bytes: 24 << 30, os: String::new() };
    let experiments = Experiment::all(&Sizes::new(Scale::Quick, &machine, &Overrides::default()));
    let names: BTreeSet<_> = experiments.iter().map(|experiment| experiment.name).collect();
    assert_eq!(names.len(), experiments.len());
    for experiment in &experiments {
        let names: BTreeSet<_> = experiment.series.iter().map(|series| series.name).collect();
        assert_eq!(names.len(), experiment.series.len(), "{}", experiment.name);
    }
}

#[test]
fn what_is_shown_beside_the_paper_has_the_papers_points() {
    for experiment in everywhere() {
        let is_beside = |plot: &Plot| plot.kind == PlotKind::BesidePaper;
        if experiment.plots.iter().any(is_beside) {
            assert!(!experiment.series[0].paper.points().is_empty(), "{}", experiment.name);
        }
        for series in &experiment.series {
            let is_named = series.paper != Paper::Unknown;
            assert_eq!(is_named, !series.paper.points().is_empty(), "{}: {}", experiment.name, series.name);
        }
    }
}

#[test]
fn every_figure_and_section_is_there() {
    let sources: Vec<_> = everywhere().iter().map(|experiment| experiment.source).collect();
    for part in [
        "Silo §5.2, figure 4",
        "Silo §5.3, figures 5, 6 and 7",
        "Silo §5.4, figure 8",
        "Silo §5.4, figure 9",
        "Silo §5.5, figure 10",
        "Silo §5.6",
        "group Regular",
        "group Persistence",
        "SiloR §6.2, figure 1",
        "figures 2 and 3",
        "SiloR §6.2, figure 4",
        "SiloR §6.3, figure 5",
        "Compression",
        "SiloR §6.4",
        "ERMIA §1, figure 1",
        "ERMIA §1, figure 2",
        "ERMIA §4.3, figure 5 and table 1",
        "ERMIA §4.3, figure 6 and table 1",
        "ERMIA §4.4, figure 7",
        "ERMIA §4.4, figure 8",
        "ERMIA §4.4, figure 9",
        "ERMIA §4.4, figure 10",
        "ERMIA §4.5, figure 12",
        "Islands §3, figure 2",
        "Islands §4.1, figure 5",
        "Islands §4.1, figure 6",
        "Islands §4.2, figure 7",
        "Islands §4.2, figure 8",
        "Islands §5, figure 10",
        "Islands §6.1, figure 11",
        "figures 13, 15 and 26",
        "figures 14 and 25",
        "figures 17 and 27",
        "Islands §7.1.2, figure 18",
        "Islands §7.2, figure 19",
        "Islands §7.3, figure 20",
        "Islands §7.4, figure 21",
        "Islands §8, figure 22",
        "Islands §8.2, figure 23",
        "Islands §8.4, figure 24",
        "Islands §9, figure 28",
    ] {
        assert!(sources.iter().any(|source| source.contains(part)), "{part}");
    }
}
