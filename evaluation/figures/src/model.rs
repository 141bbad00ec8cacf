//! Throughput to 64 cores, predicted from what a transaction does to cache lines (`docs/scaling.md`).
//!
//! ```text
//! counts -> demand --(hardware, mva)--> throughput by workers -> check against figure 4, predictions
//! ```
//! For the paper's machine one number is fitted, at one point, and said to be.

mod counts;
mod demand;
mod hardware;
pub mod mva;
mod rendering;

use std::path::{Path, PathBuf};

pub use counts::{Cost, Counts, Sharing};
pub use demand::Demand;
pub use hardware::Hardware;

use crate::error::FiguresError;
use crate::experiment::{Paper, PaperPoint};
use crate::files::write_whole;
use crate::page::Section;
use crate::redraw::Rendered;

/// Numbers of workers that are predicted.
const WORKERS: [usize; 13] = [1, 2, 4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 64];

/// From core to core on the machine of the costs, by `cargo run --release -p ensilo-bench --example ping_pong`.
const TRANSFER_HERE_NS: f64 = 25.0;

/// Where the one number is fitted.
const FITTED_AT: usize = 32;

/// A predicted curve beside one of the paper's figure 4.
#[derive(Debug, Clone)]
pub struct Check {
    /// Its name, and from what it is predicted.
    pub name: String,
    /// The paper's curve.
    pub series: &'static str,
    /// Workers, the paper's throughput, and the predicted one.
    pub points: Vec<(PaperPoint, f64)>,
    /// The predicted throughput by workers, to 64.
    pub predicted: Vec<(usize, f64)>,
    /// The point that a number was fitted at.
    pub fitted_at: Option<usize>,
}

/// The predicted curve of a system here.
#[derive(Debug, Clone)]
pub struct Prediction {
    /// The workload.
    pub workload: String,
    /// The system.
    pub system: String,
    /// What it needs.
    pub demand: Demand,
    /// Throughput by workers.
    pub points: Vec<(usize, f64)>,
}

/// All that the model says.
#[derive(Debug, Clone)]
pub struct Model {
    /// Curves of the paper.
    pub checks: Vec<Check>,
    /// Curves of Ensilo and of what it is compared with.
    pub predictions: Vec<Prediction>,
    /// By how much getting a hot line takes longer while others want it, fitted.
    pub crowding: f64,
    /// Where the costs were measured that Ensilo's curves are predicted from, in words.
    pub machine: String,
}

impl Check {
    /// By how much of the paper's throughput the prediction is off, by workers; without the first point, which is given, and the fitted one.
    pub fn errors(&self) -> impl Iterator<Item = (usize, f64)> {
        let all = self
            .points
            .iter()
            .map(|(paper, predicted)| (paper.x as usize, predicted / paper.throughput - 1.0));
        all.filter(|&(workers, _)| workers > 1 && Some(workers) != self.fitted_at)
    }

    /// The mean of the errors' amounts, and the largest.
    pub fn mean_and_worst(&self) -> (f64, f64) {
        let amounts: Vec<f64> = self.errors().map(|(_, error)| error.abs()).collect();
        let worst = amounts.iter().copied().fold(0.0, f64::max);
        (amounts.iter().sum::<f64>() / amounts.len().max(1) as f64, worst)
    }
}

impl Model {
    /// Computes everything.
    pub fn new(counts: &Counts) -> Self {
        let (hardware, memsilo, global_tid) = (Hardware::PAPER, "MemSilo", "MemSilo+GlobalTID");
        let memory_lines = counts.demand("ycsb", "ensilo").map_or(0.0, |demand| demand.memory_lines);
        let plain = paper_demand(memsilo, memory_lines);
        let hot =
            Demand { hot_lines: 1, hot_fetches: PAPER_HOT_FETCHES, ..paper_demand(global_tid, memory_lines) };
        let last = points_of(global_tid).into_iter().find(|point| point.x as usize == FITTED_AT);
        let crowding = last.map_or(1.0, |point| hot.crowding_for(FITTED_AT, point.throughput, &hardware));
        let local = Demand { memory_lines: 0.0, ..plain };
        let fitted = check(global_tid, "crowded", &hot, crowding);
        let checks = vec![
            check(memsilo, "lines of other cores only", &local, 1.0),
            check(memsilo, "and farther memory", &plain, 1.0),
            check(global_tid, "nothing fitted", &hot, 1.0),
            Check { fitted_at: Some(FITTED_AT), ..fitted },
        ];
        let machine = counts.machine().to_owned();
        Self { checks, predictions: predictions(counts, crowding), crowding, machine }
    }

    /// Writes tables, plots and a page of the model into a directory.
    ///
    /// # Errors
    /// [`FiguresError::File`] and [`FiguresError::Plot`].
    pub fn write(&self, directory: &Path) -> Result<Vec<PathBuf>, FiguresError> {
        let mut files = self.tables().to_vec();
        files.extend(rendering::plots_of(self)?);
        std::fs::create_dir_all(directory).map_err(FiguresError::file(directory))?;
        let write = |(name, content): (String, String)| {
            let path = directory.join(name);
            write_whole(&path, content.as_bytes()).map(|()| path)
        };
        files.into_iter().map(write).collect()
    }

    /// The tables by the names of their files.
    fn tables(&self) -> [(String, String); 2] {
        [
            ("model-check.csv".to_owned(), rendering::csv_of_checks(&self.checks)),
            ("model.csv".to_owned(), rendering::csv_of_predictions(&self.predictions)),
        ]
    }

    /// The model in words, for a terminal.
    pub fn to_text(&self) -> String {
        rendering::text_of(self)
    }
}

/// Lines that a transaction of the paper's MemSilo+GlobalTID gets for its TID. One transaction of five writes and draws one (§5.2), and the
/// published code looks at a flag in the counter's line first (`gen_commit_tid` in `txn_proto2_impl.h`): under load the line is fetched to be read, and
/// again to be written.
const PAPER_HOT_FETCHES: f64 = 0.2 * 2.0;

/// A curve's first point is the time of a transaction alone.
fn paper_demand(series: &'static str, memory_lines: f64) -> Demand {
    let alone_ns = points_of(series).first().map_or(0.0, |point| 1e9 / point.throughput);
    Demand { alone_ns, memory_lines, fetched_lines: 0.0, hot_lines: 0, hot_fetches: 0.0 }
}

fn points_of(series: &'static str) -> Vec<PaperPoint> {
    Paper::Curve { figure: "fig4", series }.points()
}

fn check(series: &'static str, from: &str, demand: &Demand, crowding: f64) -> Check {
    let predict = |workers| demand.throughput(workers, &Hardware::PAPER, crowding);
    Check {
        name: format!("{series}, {from}"),
        series,
        points: points_of(series).into_iter().map(|point| (point, predict(point.x as usize))).collect(),
        predicted: WORKERS.map(|workers| (workers, predict(workers))).to_vec(),
        fitted_at: None,
    }
}

fn predictions(counts: &Counts, crowding: f64) -> Vec<Prediction> {
    let hardware = Hardware::one_socket(TRANSFER_HERE_NS);
    let predict = |(workload, system): (&str, &str)| {
        let demand = counts.demand(workload, system)?;
        let points = WORKERS.map(|workers| (workers, demand.throughput(workers, &hardware, crowding)));
        Some(Prediction {
            workload: workload.to_owned(),
            system: system.to_owned(),
            demand,
            points: points.to_vec(),
        })
    };
    counts.subjects().filter_map(predict).collect()
}

/// Copies of the counts and costs that a user has given for a directory of results. Its page is made of them from then on.
const OWN_COUNTS: &str = "model-counts.csv";
const OWN_COSTS: &str = "model-costs.csv";

/// Keeps counts and costs for a directory's page; those that are not given are those of this program.
///
/// # Errors
/// [`FiguresError::File`] if one cannot be read or written.
pub fn keep_counts(
    directory: &Path,
    counts: Option<&Path>,
    costs: Option<&Path>,
) -> Result<(), FiguresError> {
    for (given, name) in [(counts, OWN_COUNTS), (costs, OWN_COSTS)] {
        let kept = directory.join(name);
        match given {
            Some(path) => write_whole(&kept, &std::fs::read(path).map_err(FiguresError::file(path))?)?,
            None if kept.exists() => std::fs::remove_file(&kept).map_err(FiguresError::file(&kept))?,
            None => {}
        }
    }
    Ok(())
}

/// The section of a directory's page: always there, since nothing has to be measured.
pub(crate) fn section_in(directory: &Path) -> Result<Section, FiguresError> {
    rendering::section_of(&model_in(directory)?)
}

/// The model by the counts and costs of a directory.
fn model_in(directory: &Path) -> Result<Model, FiguresError> {
    let [counts, costs] =
        [OWN_COUNTS, OWN_COSTS].map(|name| Some(directory.join(name)).filter(|path| path.exists()));
    Ok(Model::new(&Counts::read(counts.as_deref(), costs.as_deref())?))
}

/// What is said and drawn of the model; `None` if the directory has no table of it.
///
/// # Errors
/// [`FiguresError::Plot`], also if its tables are of another model, of which the plots would not be; [`FiguresError::File`].
pub(crate) fn rendered_in(directory: &Path) -> Result<Option<Rendered>, FiguresError> {
    let model = model_in(directory)?;
    let mut is_there = false;
    for (name, table) in model.tables() {
        let path = directory.join(name);
        if !path.exists() {
            continue;
        }
        is_there = true;
        if std::fs::read(&path).map_err(FiguresError::file(&path))? != table.as_bytes() {
            return Err(FiguresError::Plot(format!(
                "{} is not what this program computes; `ensilo figures model --out {}` makes table and plots anew",
                path.display(),
                directory.display()
            )));
        }
    }
    if !is_there {
        return Ok(None);
    }
    Ok(Some(Rendered { text: model.to_text(), plots: rendering::plots_of(&model)? }))
}

#[cfg(test)]
mod tests;
