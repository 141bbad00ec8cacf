//! `ensilo figures`: the papers' figures, measured again.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, value_parser};
use ensilo_bench::report::Machine;
use ensilo_figures::compare::write_picture;
use ensilo_figures::latency::{self, LatencyOptions};
use ensilo_figures::model::{Counts, Model, keep_counts};
use ensilo_figures::regions;
use ensilo_figures::{
    Evaluation, FiguresError, Origin, Overrides, Program, Scale, Sizes, command_line, end_runs, in_words,
    redraw_results, write_results,
};

use crate::growth::{self, GrowthArguments};
use crate::interrupt;
use crate::output::{FAILED, USAGE, complain, say};
use crate::seconds::seconds_of_run;

const EXAMPLES: &str = "\
Examples:
  ensilo figures list
      The experiments, their places in the papers, and how long each takes.
  ensilo figures run all
      Everything at a small scale: about three quarters of an hour on two cores. Then open ensilo-figures/index.html.
  ensilo figures run silo-4 silo-9 --workers 1,8,16,32 --seconds 10 --out longer
      Two figures with these numbers of workers, beside the results of others.
  ensilo figures run all --scale full --out results
      Runs that are long enough for figures that are to be kept. What was finished before an interrupt is not made again.
  ensilo figures run all --scale full --out results --replace
      The same with another build, which takes the place of what is there.
  ensilo figures run silo-8 --dry-run
      The commands alone.
  ensilo figures run latency
      No figure of a paper: how long answers from disk take Ensilo, for 1 to 64 clients or as many as --workers says, beside the
      disk's own write and sync and, in a program built with --features peers, other databases. By itself, and no part of all.
  ensilo figures growth
      No figure of a paper either: how cost grows with the work. See its own --help.
  ensilo figures model --out results
      What a model predicts for up to 64 cores, beside the paper's points.
  ensilo figures draw --out results
      The plots anew from the tables of runs that are there; nothing is measured. See its own --help.
  ensilo figures picture
      The picture of the README anew, from the runs in docs/results/full/compare.csv.
  ensilo figures regions --shares regions.csv --out results
      ERMIA's figure 11, from the shares that `cargo xtask regions --csv regions.csv` has written.

Every single run but those of latency is a process `ensilo bench ... --format json`. Databases lie in TMPDIR if that is set, otherwise in /tmp or,
where that lies in memory, in /var/tmp.
Runs in other sizes, of another program (any other build) or another machine are not replaced without --replace: the exit code is 2.
If a run fails, or this program does not know what is asked of it, the others go on, and the exit code is 1. After Ctrl-C it is 130, after SIGTERM 143.";

const EXAMPLES_OF_DRAW: &str = "\
Examples:
  ensilo figures draw --out docs/results/full
      Rulings and figures on stdout, then the name of each plot that was written.

Drawn are the tables of `ensilo figures run` (EXPERIMENT.csv and latency.csv), of `ensilo compare` (compare.csv), of `ensilo figures regions`
(ermia-11.csv) and of `ensilo figures model`, as these commands drew them. Tables and the page index.html stay as they are: `figures run` writes
the page. The plots of growth.csv are drawn by `ensilo figures growth --draw`.
All tables are read before the first plot is written, and each plot is replaced as a whole. If a table is damaged, has a column that is not known, or
has runs of another experiment than its name says, no plot is written, and the exit code is 1.
A plot for which an old table has no figures is named and stays as it is: those over time, of tables without the column timeline.";

/// The papers' figures, measured again on this machine
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum FiguresCommand {
    /// Show the experiments
    List(Sizing),
    /// Make the runs of experiments, and tables, plots and a page of what is there
    #[command(after_help = EXAMPLES)]
    Run(RunArguments),
    /// Predict throughput to 64 cores from counts of cache lines, and check the prediction against Silo's
    /// figure 4; see docs/scaling.md
    Model(ModelArguments),
    /// Measure how cost grows with records, sessions, tables, indexes, bytes of a row, the age of a snapshot, and
    /// instances
    Growth(GrowthArguments),
    /// Draw every plot of a directory of results anew from its tables, without measuring anything
    #[command(after_help = EXAMPLES_OF_DRAW)]
    Draw(DrawArguments),
    /// Draw one picture of what `ensilo compare` has measured: throughput, and how long an answer from disk takes
    Picture(PictureArguments),
    /// Draw where the time of TPC-C's workers goes (ERMIA's figure 11), and judge what the paper says of it
    Regions(RegionsArguments),
}

#[derive(Debug, Args)]
pub(crate) struct DrawArguments {
    /// Directory with the tables, like silo-4.csv or compare.csv, in which the plots are replaced
    #[arg(long, value_name = "DIR", default_value = "ensilo-figures")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct RegionsArguments {
    /// Directory for the table, the plots and the page
    #[arg(long, value_name = "DIR", default_value = "ensilo-figures")]
    out: PathBuf,

    /// Shares, as `cargo xtask regions --csv FILE` writes them
    #[arg(long, value_name = "FILE")]
    shares: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct PictureArguments {
    /// Runs, as `ensilo compare` keeps them
    #[arg(long, value_name = "FILE", default_value = "docs/results/full/compare.csv")]
    runs: PathBuf,

    /// The workload to draw, of which there must be runs synced and not
    #[arg(long, value_name = "NAME", default_value = "tpcc")]
    workload: String,

    /// File for the picture, as SVG
    #[arg(long, value_name = "FILE", default_value = "docs/results/beside-others.svg")]
    out: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct ModelArguments {
    /// Directory for tables, plots and the page, which uses the same counts and costs from then on
    #[arg(long, value_name = "DIR", default_value = "ensilo-figures")]
    out: PathBuf,

    /// Counts of lines, as `cargo xtask sharing --csv FILE` writes them [default: those of
    /// docs/results/sharing.csv]
    #[arg(long, value_name = "FILE")]
    counts: Option<PathBuf>,

    /// What a transaction costs alone, a table with the columns workload,system,instructions,alone_ns
    /// [default: docs/results/costs.csv, measured on the machine that the output names]
    #[arg(long, value_name = "FILE")]
    costs: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Names that `ensilo figures list` shows, or `all`; `latency` by itself
    #[arg(required = true, value_name = "NAME")]
    names: Vec<String>,

    /// Directory for the results; runs that are in it and fit are not made again
    #[arg(long, value_name = "DIR", default_value = "ensilo-figures")]
    out: PathBuf,

    /// Give up what the directory has of these experiments in other sizes, of another program or another
    /// machine
    #[arg(long)]
    replace: bool,

    /// Only write the commands that would be run to stdout
    #[arg(long)]
    dry_run: bool,

    /// Show no progress on stderr
    #[arg(long)]
    quiet: bool,

    #[command(flatten)]
    sizing: Sizing,
}

#[derive(Debug, Args)]
pub(crate) struct Sizing {
    /// How thorough
    #[arg(long, value_enum, default_value_t = ScaleArgument::Quick)]
    scale: ScaleArgument,

    /// Numbers of workers, like 1,2,4; the last is used where a figure has one number [default: by the
    /// machine's cores; for latency 1 to 64 in powers of two]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = value_parser!(u16).range(1..=4096))]
    workers: Vec<u16>,

    /// Seconds that each run measures; runs over time take six times as long [default: 1 or, in full, 10]
    #[arg(long, value_name = "S", value_parser = seconds_of_run)]
    seconds: Option<f64>,

    /// Runs of each point [default: 3; in quick 1 for runs over time]
    #[arg(long, value_name = "R", value_parser = value_parser!(u16).range(1..=1000))]
    runs: Option<u16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ScaleArgument {
    /// About three quarters of an hour for all together on two cores
    Quick,
    /// Ten times as long, with larger databases
    Full,
}

/// Carries out the command.
pub(crate) fn run(command: &FiguresCommand) -> ExitCode {
    let done = match command {
        FiguresCommand::List(sizing) => list(sizing),
        FiguresCommand::Run(arguments) => make(arguments),
        FiguresCommand::Model(arguments) => predict(arguments),
        FiguresCommand::Growth(arguments) => growth::run(arguments),
        FiguresCommand::Draw(arguments) => redraw(arguments),
        FiguresCommand::Picture(arguments) => draw_picture(arguments),
        FiguresCommand::Regions(arguments) => draw_regions(arguments),
    };
    done.unwrap_or_else(|error| {
        complain(format_args!("error: {error}"));
        let is_usage = matches!(error, FiguresError::UnknownExperiment(_) | FiguresError::WouldReplace(..));
        ExitCode::from(if is_usage { USAGE } else { FAILED })
    })
}

fn list(sizing: &Sizing) -> Result<ExitCode, FiguresError> {
    let evaluation = sizing.evaluation(PathBuf::new())?;
    let in_columns = |(runs, time)| format!("{runs:>4} runs {:>11}", in_words(time));
    let size = |selected: &[usize]| in_columns(evaluation.size_of(selected));
    for (at, experiment) in evaluation.experiments().iter().enumerate() {
        let size = size(&[at]);
        say(format_args!("{:20} {size}  {}: {}", experiment.name, experiment.source, experiment.title));
    }
    let latency_size = in_columns(crate::latency::size_of(&sizing.latency_options()));
    say(format_args!("{:20} {latency_size}  by itself: {}", latency::NAME, latency::TITLE));
    say(format_args!("{:20} {}", "all", size(&evaluation.select(&["all".to_owned()])?)));
    Ok(ExitCode::SUCCESS)
}

fn make(arguments: &RunArguments) -> Result<ExitCode, FiguresError> {
    let RunArguments { names, out, replace, dry_run, quiet, sizing } = arguments;
    if names.iter().any(|name| name == latency::NAME) {
        if names.len() > 1 || *dry_run {
            crate::refuse_usage("latency is run by itself, within this program and not by commands");
        }
        return crate::latency::run(&sizing.latency_options(), out, *replace, *quiet);
    }
    let evaluation = arguments.sizing.evaluation(arguments.out.clone())?.replacing(arguments.replace);
    let selected = evaluation.select(&arguments.names)?;
    if arguments.dry_run {
        evaluation.to_do(&selected).for_each(|run| say(format_args!("{}", command_line(&run.arguments))));
        return Ok(ExitCode::SUCCESS);
    }
    let workload = evaluation.workload(&selected);
    let is_refused = workload.outdated > 0 && !arguments.replace;
    if !arguments.quiet && !is_refused {
        complain(format_args!("{workload}"));
    }
    let interrupt = interrupt::on_ctrl_c(end_runs);
    let ending = evaluation.run(&selected, &Program::this()?, &interrupt, arguments.quiet)?;
    ending.lines.iter().for_each(|line| say(format_args!("{line}")));
    say(format_args!("{}", ending.page.display()));
    if ending.interrupted {
        complain(format_args!("interrupted; the same command goes on from here"));
        return Ok(interrupt::exit_code());
    }
    Ok(if ending.missing > 0 { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

fn predict(arguments: &ModelArguments) -> Result<ExitCode, FiguresError> {
    let (counts, costs) = (arguments.counts.as_deref(), arguments.costs.as_deref());
    let model = Model::new(&Counts::read(counts, costs)?);
    say(format_args!("{}", model.to_text()));
    for file in model.write(&arguments.out)? {
        say(format_args!("{}", file.display()));
    }
    keep_counts(&arguments.out, counts, costs)?;
    say(format_args!("{}", write_results(&arguments.out)?.display()));
    Ok(ExitCode::SUCCESS)
}

fn redraw(arguments: &DrawArguments) -> Result<ExitCode, FiguresError> {
    let redrawn = redraw_results(&arguments.out)?;
    redrawn.lines.iter().chain(&redrawn.notes()).for_each(|line| say(format_args!("{line}")));
    redrawn.plots.iter().for_each(|plot| say(format_args!("{}", plot.display())));
    Ok(ExitCode::SUCCESS)
}

fn draw_picture(arguments: &PictureArguments) -> Result<ExitCode, FiguresError> {
    write_picture(&arguments.runs, &arguments.workload, &arguments.out)?;
    say(format_args!("{}", arguments.out.display()));
    Ok(ExitCode::SUCCESS)
}

fn draw_regions(arguments: &RegionsArguments) -> Result<ExitCode, FiguresError> {
    let runs = regions::read_runs(&arguments.shares)?;
    say(format_args!("{}", regions::text_of(&runs)));
    for file in regions::keep_runs(&arguments.out, &runs)? {
        say(format_args!("{}", file.display()));
    }
    say(format_args!("{}", write_results(&arguments.out)?.display()));
    Ok(ExitCode::SUCCESS)
}

impl Sizing {
    fn evaluation(&self, out: PathBuf) -> Result<Evaluation, FiguresError> {
        let machine = Machine::this();
        let overrides =
            Overrides { workers: self.workers(), seconds: self.seconds, runs: self.runs.map(usize::from) };
        let scale = match self.scale {
            ScaleArgument::Quick => Scale::Quick,
            ScaleArgument::Full => Scale::Full,
        };
        let sizes = Sizes::new(scale, &machine, &overrides);
        Ok(Evaluation::new(sizes, machine, Origin::of_this_program()?, out))
    }

    fn latency_options(&self) -> LatencyOptions {
        let defaults = LatencyOptions::default();
        let measured = match (self.seconds, self.scale) {
            (Some(seconds), _) => Duration::from_secs_f64(seconds),
            (None, ScaleArgument::Quick) => defaults.measured,
            (None, ScaleArgument::Full) => 10 * defaults.measured,
        };
        LatencyOptions {
            clients: self.workers().unwrap_or(defaults.clients),
            measured,
            warmup: measured / 4,
            runs: self.runs.map_or(defaults.runs, usize::from),
            ..defaults
        }
    }

    /// The numbers that were given, each once, ascending.
    fn workers(&self) -> Option<Vec<usize>> {
        let mut workers: Vec<usize> = self.workers.iter().map(|&workers| usize::from(workers)).collect();
        workers.sort_unstable();
        workers.dedup();
        (!workers.is_empty()).then_some(workers)
    }
}
