//! What an experiment is. `data/experiments.json` describes them: what is run and drawn, and what the papers claim of it. Their series are
//! in `silo.rs`, `silor.rs`, `ermia.rs` and `islands.rs`, since they depend on the machine and on the user. One runner runs them all.
//!
//! To add one, describe it in the file, and name the function that makes its series in the list of its paper.

mod claim;
mod description;
mod ermia;
mod islands;
mod metric;
mod paper;
mod silo;
mod silor;

use description::Description;

pub use claim::{At, Claim, Quantity, Relation};
pub use description::{Axis, Experiment, Plot, PlotKind, Point, Series};
pub use metric::Metric;
pub use paper::{Paper, PaperPoint};

use crate::sizes::Sizes;

impl Experiment {
    /// All experiments, sized.
    pub fn all(sizes: &Sizes) -> Vec<Self> {
        let sized = |described: &Description| Self {
            name: described.name,
            source: described.source,
            title: described.title,
            about: described.about.join(" "),
            axis: described.axis,
            series: series_of(described.name, sizes),
            runs: if described.timeline_runs { sizes.timeline_runs } else { sizes.runs },
            plots: described.plots.clone(),
            claims: described.claims.clone(),
        };
        description::ALL.iter().map(sized).collect()
    }
}

fn series_of(experiment: &str, sizes: &Sizes) -> Vec<Series> {
    let functions = silo::SERIES.iter().chain(&silor::SERIES).chain(&ermia::SERIES).chain(&islands::SERIES);
    let found = functions.into_iter().find(|(name, _)| *name == experiment);
    let (_, series) = found.unwrap_or_else(|| unreachable!("{experiment} is described and has no series"));
    series(sizes)
}

#[cfg(test)]
mod tests;
