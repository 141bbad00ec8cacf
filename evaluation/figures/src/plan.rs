//! Which single runs are made, and in which order.

use std::time::Duration;

use crate::experiment::Experiment;

/// A single run.
#[derive(Debug, Clone, PartialEq)]
pub struct SingleRun {
    /// Which of the experiments.
    pub experiment: usize,
    /// Which of its series.
    pub series: usize,
    /// Which point of the series.
    pub point: usize,
    /// Which repetition, from 0.
    pub repetition: usize,
    /// The arguments that the program is given.
    pub arguments: Vec<String>,
    /// About how long it takes.
    pub estimate: Duration,
}

/// All runs of these experiments on `cores` processors. The series that are compared take turns (A B C A B C), since single runs on
/// machines that others use, too, differ more than systems do.
pub(crate) fn plan(experiments: &[Experiment], cores: usize) -> Vec<SingleRun> {
    let of_experiment = |(at, experiment)| runs_of(at, experiment, cores);
    experiments.iter().enumerate().flat_map(of_experiment).collect()
}

fn runs_of(at: usize, experiment: &Experiment, cores: usize) -> Vec<SingleRun> {
    let points = experiment.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
    let mut runs = Vec::new();
    for repetition in 0..experiment.runs {
        for point in 0..points {
            for (series, described) in experiment.series.iter().enumerate() {
                let Some(described) = described.points.get(point) else { continue };
                runs.push(SingleRun {
                    experiment: at,
                    series,
                    point,
                    repetition,
                    arguments: described.command.arguments(repetition + 1),
                    estimate: described.command.estimate(cores),
                });
            }
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sizes::{Overrides, Scale, Sizes};
    use ensilo_bench::report::Machine;

    fn machine(cores: usize) -> Machine {
        Machine { cpu: String::new(), cores, memory_bytes: 24 << 30, os: String::new() }
    }

    #[test]
    fn quick_takes_at_most_three_quarters_of_an_hour_on_two_cores() {
        let sizes = Sizes::new(Scale::Quick, &machine(2), &Overrides::default());
        let runs = plan(&Experiment::all(&sizes), 2);
        let minutes = runs.iter().map(|run| run.estimate).sum::<Duration>().as_secs_f64() / 60.0;
        assert!((5.0..45.0).contains(&minutes), "{minutes} minutes, {} runs", runs.len());
    }

    #[test]
    fn compared_series_take_turns() {
        let sizes = Sizes::new(Scale::Quick, &machine(2), &Overrides::default());
        let experiments = Experiment::all(&sizes);
        let runs = plan(&experiments, 2);
        for pair in runs.windows(2).filter(|pair| pair[0].experiment == pair[1].experiment) {
            let several = experiments[pair[0].experiment].series.len() > 1;
            assert!(!several || pair[0].series != pair[1].series, "{pair:?}");
        }
    }
}
