//! From an experiment's results to its plots.

use crate::error::FiguresError;
use crate::experiment::{Axis, Experiment, Metric, Plot, PlotKind, Point, Series};
use crate::files::file_name;
use crate::measurement::Measurement;
use crate::plot::{Bar, BarChart, BarGroup, Curve, CurvePoint, LineChart, Shade, Ticks};
use crate::processors::Processors;
use crate::results::Results;

/// The plots of an experiment by the names of their files; `None` where nothing has been measured that one could show.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(crate) fn plots_of(
    experiment: &Experiment,
    results: &Results,
    processors: Processors,
) -> Result<Vec<(String, Option<String>)>, FiguresError> {
    let numbered = (1..).zip(&experiment.plots);
    let drawn = numbered.map(|(number, plot)| {
        let name = format!("{}-{number}.svg", file_name(experiment.name));
        Ok((name, svg_of(experiment, plot, results, processors)?))
    });
    drawn.collect()
}

/// A plot of an experiment as SVG; `None` if nothing has been measured that it could show.
///
/// # Errors
/// [`FiguresError::Plot`].
pub(crate) fn svg_of(
    experiment: &Experiment,
    plot: &Plot,
    results: &Results,
    processors: Processors,
) -> Result<Option<String>, FiguresError> {
    let view = DrawnPlot { experiment, plot, results, processors };
    match (plot.kind, experiment.axis) {
        (PlotKind::OverTime, _) => view.over_time(),
        (PlotKind::Here, Axis::Series) => view.bars(None),
        (PlotKind::BesidePaper, Axis::Series) => view.bars_beside_paper(),
        (PlotKind::Here, _) => view.curves(),
        (PlotKind::BesidePaper, _) => view.curves_beside_paper(),
    }
}

struct DrawnPlot<'a> {
    experiment: &'a Experiment,
    plot: &'a Plot,
    results: &'a Results,
    processors: Processors,
}

/// What figures are divided by.
#[derive(Clone, Copy)]
struct Units {
    here: f64,
    paper: f64,
}

impl DrawnPlot<'_> {
    fn curves(&self) -> Result<Option<String>, FiguresError> {
        let ticks = self.measured_xs();
        let ticks = if self.experiment.axis == Axis::Workers { Ticks::At(ticks) } else { Ticks::Even };
        self.line_chart(&self.plot.metric.label(), ticks, self.curves_here(1.0, ""))
    }

    fn curves_beside_paper(&self) -> Result<Option<String>, FiguresError> {
        let Some(units) = self.units() else { return Ok(None) };
        let mut curves = self.curves_here(units.here, ", here");
        curves.extend(self.curves_of_paper(units.paper));
        let paper_xs = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.x));
        let ticks = if self.experiment.axis == Axis::Workers {
            Ticks::Doubling(powers_of_two_up_to(paper_xs.fold(1.0, f64::max)))
        } else {
            Ticks::Even
        };
        self.line_chart("times", ticks, curves)
    }

    fn line_chart(
        &self,
        y_label: &str,
        ticks: Ticks,
        curves: Vec<Curve>,
    ) -> Result<Option<String>, FiguresError> {
        if curves.iter().all(|curve| curve.is_paper) {
            return Ok(None);
        }
        let chart = LineChart {
            title: self.title(),
            x_label: self.experiment.axis.label().to_owned(),
            y_label: y_label.to_owned(),
            ticks,
            curves,
            shades: self.shade_beyond().into_iter().collect(),
            shade_meaning: self.beyond(),
            has_markers: true,
        };
        chart.to_svg().map(Some)
    }

    /// Where points lie that have more workers than there are processors.
    fn shade_beyond(&self) -> Option<Shade> {
        let (beyond, within): (Vec<&Point>, Vec<&Point>) =
            self.measured().partition(|point| point.is_beyond(self.processors.at_least()));
        let last = |points: &[&Point]| points.iter().map(|point| point.x).max_by(f64::total_cmp);
        let end = last(&beyond)?;
        let Some(begin) = last(&within) else {
            return Some(Shade { from: f64::NEG_INFINITY, to: f64::INFINITY });
        };
        // It begins a little after the last point that is not beyond, and ends a little after the last that is.
        Some(Shade { from: begin + 0.15 * (end - begin), to: end + 0.05 * (end - begin) })
    }

    /// What a mark on points with more workers than processors means.
    fn beyond(&self) -> String {
        format!("here, beyond {}", self.processors)
    }

    /// What was measured, each figure divided by `unit`.
    fn curves_here(&self, unit: f64, suffix: &str) -> Vec<Curve> {
        let curve = |(at, series): (usize, &Series)| {
            let points = series.points.iter().enumerate().filter_map(|(point, described)| {
                let spread = self.results.spread(at, point, self.plot.metric)?;
                let [y, min, max] = [spread.median, spread.min, spread.max].map(|figure| figure / unit);
                Some(CurvePoint { x: described.x, y, min, max })
            });
            Curve {
                name: format!("{}{suffix}", series.name),
                series: at,
                is_paper: false,
                is_own: self.stands_out(at),
                points: points.collect(),
            }
        };
        let curves = self.experiment.series.iter().enumerate().map(curve);
        curves.filter(|curve| !curve.points.is_empty()).collect()
    }

    fn curves_of_paper(&self, unit: f64) -> Vec<Curve> {
        let curve = |(at, series): (usize, &Series)| {
            let points = series.paper.points().into_iter().filter_map(|point| {
                let [y, min, max] = point.figure(self.plot.metric)?.map(|figure| figure / unit);
                Some(CurvePoint { x: point.x, y, min, max })
            });
            Curve {
                name: format!("{}, paper", series.paper.series().unwrap_or(series.name)),
                series: at,
                is_paper: true,
                is_own: false,
                points: points.collect(),
            }
        };
        let curves = self.experiment.series.iter().enumerate().map(curve);
        curves.filter(|curve| !curve.points.is_empty()).collect()
    }

    /// The first point of the first series that has the figure both here and in the paper.
    fn units(&self) -> Option<Units> {
        let of_series = |(at, series): (usize, &Series)| {
            let [paper, ..] = series.paper.points().first()?.figure(self.plot.metric)?;
            let here = self.results.spread(at, 0, self.plot.metric)?.median;
            (here > 0.0).then_some(Units { here, paper })
        };
        self.experiment.series.iter().enumerate().find_map(of_series)
    }

    fn bars_beside_paper(&self) -> Result<Option<String>, FiguresError> {
        self.units().map_or(Ok(None), |units| self.bars(Some(units)))
    }

    fn bars(&self, relative_to: Option<Units>) -> Result<Option<String>, FiguresError> {
        let unit = relative_to.map_or(1.0, |units| units.here);
        let group = |(at, series): (usize, &Series)| BarGroup {
            label: series.name.to_owned(),
            here: self.results.spread(at, 0, self.plot.metric).map(|spread| Bar {
                value: spread.median / unit,
                min: spread.min / unit,
                max: spread.max / unit,
            }),
            paper: relative_to.and_then(|units| {
                let figure = series.paper.points().first()?.figure(self.plot.metric)?;
                let [value, min, max] = figure.map(|figure| figure / units.paper);
                Some(Bar { value, min, max })
            }),
            is_marked: series.points.first().is_some_and(|point| point.is_beyond(self.processors.at_least())),
            is_own: relative_to.is_none() && self.stands_out(at),
        };
        let groups: Vec<_> = self.experiment.series.iter().enumerate().map(group).collect();
        if groups.iter().all(|group| group.here.is_none()) {
            return Ok(None);
        }
        let y_label = if relative_to.is_some() { "times".to_owned() } else { self.plot.metric.label() };
        let chart = BarChart {
            title: self.title(),
            y_label: y_label.to_owned(),
            groups,
            mark_meaning: self.beyond(),
        };
        chart.to_svg().map(Some)
    }

    /// The first run of each series in half seconds.
    fn over_time(&self) -> Result<Option<String>, FiguresError> {
        let runs: Vec<_> = (0..self.experiment.series.len())
            .filter_map(|series| Some((series, self.results.of_point(series, 0).next()?)))
            .collect();
        let curve = |&(series, run): &(usize, &Measurement)| Curve {
            name: self.experiment.series[series].name.to_owned(),
            series,
            is_paper: false,
            is_own: self.stands_out(series),
            points: self.over_time_of(run),
        };
        let curves: Vec<_> = runs.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
        if curves.is_empty() {
            return Ok(None);
        }
        // Several series may make checkpoints: those of the last one are shown, which is the one with everything switched on.
        let (last, shades) = runs
            .iter()
            .rev()
            .map(|&(series, run)| (series, checkpoints(run)))
            .find(|(_, shades)| !shades.is_empty())
            .unwrap_or_default();
        let chart = LineChart {
            title: self.title_over_time(),
            x_label: "seconds".to_owned(),
            y_label: self.plot.metric.label(),
            ticks: Ticks::Even,
            curves,
            shades,
            shade_meaning: format!("checkpoint ({})", self.experiment.series[last].name),
            has_markers: false,
        };
        chart.to_svg().map(Some)
    }

    /// Whether the product runs this series and something else runs another one.
    fn stands_out(&self, series: usize) -> bool {
        let is_own = |series: &Series| series.points.first().is_some_and(|point| point.command.is_own());
        let all = &self.experiment.series;
        let has_others = all.iter().any(|other| !other.points.is_empty() && !is_own(other));
        has_others && is_own(&all[series])
    }

    /// The workload, what is shown, and what is better.
    fn title(&self) -> String {
        let workload = self.experiment.workload();
        let better = if self.plot.metric.is_better_up() { "up" } else { "down" };
        format!("{workload}: {} ({better} is better)", self.plot.title)
    }

    /// Grey means a checkpoint there.
    fn title_over_time(&self) -> String {
        let workers = self.experiment.most_workers();
        let title = self.title();
        if workers > self.processors.at_least() {
            format!("{title} ({workers} workers, {})", self.beyond())
        } else {
            title
        }
    }

    fn over_time_of(&self, run: &Measurement) -> Vec<CurvePoint> {
        let halves = run.half_seconds();
        let figures = halves.iter().filter_map(|half| {
            let y = match self.plot.metric {
                Metric::StoredLatencyMs => half.durable_latency_ms_max?,
                _ => half.throughput(),
            };
            Some(CurvePoint { x: half.ended_at, y, min: y, max: y })
        });
        figures.collect()
    }

    /// Where there is a measurement, ascending.
    fn measured_xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self.measured().map(|point| point.x).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// The points that there is a measurement of, once for each.
    fn measured(&self) -> impl Iterator<Item = &Point> {
        self.results.runs().map(|((series, point, _), _)| &self.experiment.series[series].points[point])
    }
}

/// When checkpoints were written.
fn checkpoints(run: &Measurement) -> Vec<Shade> {
    let mut shades: Vec<Shade> = Vec::new();
    let mut began = 0.0;
    for moment in run.timeline() {
        if moment.checkpoint {
            match shades.last_mut() {
                Some(last) if last.to == began => last.to = moment.ended_at,
                _ => shades.push(Shade { from: began, to: moment.ended_at }),
            }
        }
        began = moment.ended_at;
    }
    shades
}

fn powers_of_two_up_to(most: f64) -> Vec<f64> {
    (0..).map(|power: i32| f64::from(power).exp2()).take_while(|&power| power <= most * 1.01).collect()
}
