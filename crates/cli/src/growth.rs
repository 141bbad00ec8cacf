//! `ensilo figures growth`: how cost grows with the work.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use ensilo_bench::report::Machine;
use ensilo_figures::growth::{GrowthRuns, GrowthScale, MakeOptions, names, write_growth};
use ensilo_figures::{FiguresError, Program, end_runs, in_words, make_directory};

use crate::interrupt;
use crate::output::{FAILED, complain, failed, say};

const EXAMPLES: &str = "\
Examples:
  ensilo figures growth
      All curves at a small scale, in about two minutes. Then read ensilo-growth/scaling-of-work.md.
  ensilo figures growth --scale full --out docs/results/growth --page docs/scaling-of-work.md --replace
      The figures that are to be kept, in ten minutes to half an hour: nothing else should run on the machine.
  ensilo figures growth records indexes --replace
      Two of the curves again; the others stay as they are.
  ensilo figures growth --draw
      Plots and page anew from what is there.

Every run is a process `ensilo bench ... --format json`. A cost may grow like n log n. If one grows faster and its description has no
sentence that says why, or if a run fails, the exit code is 1; at the tiny scale figures mean nothing, and nothing is judged.";

/// How cost grows with records, sessions, tables, indexes, bytes of a row, the age of a snapshot, and instances
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GrowthArguments {
    /// Curves to measure: records, stored-records, sessions, tables, indexes, row-bytes, open-snapshot, islands
    /// [default: all]
    #[arg(value_name = "NAME", value_parser = names())]
    names: Vec<String>,

    /// How large it all grows, and how long is measured
    #[arg(long, value_enum, default_value_t = ScaleArgument::Quick)]
    scale: ScaleArgument,

    /// Directory for the table of runs and the plots
    #[arg(long, value_name = "DIR", default_value = "ensilo-growth")]
    out: PathBuf,

    /// File for the page [default: scaling-of-work.md in the directory]
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,

    /// Give up the runs of these curves that the directory has
    #[arg(long)]
    replace: bool,

    /// Make no runs, only plots and page from those that the directory has
    #[arg(long, conflicts_with_all = ["names", "scale", "replace", "dry_run"])]
    draw: bool,

    /// Only write the commands that would be run to stdout
    #[arg(long)]
    dry_run: bool,

    /// Show no progress on stderr
    #[arg(long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScaleArgument {
    /// Some seconds, to see that everything works
    Tiny,
    /// About two minutes
    Quick,
    /// About half an hour; up to 60 million records, as far as they fit into the machine's memory
    Full,
}

impl From<ScaleArgument> for GrowthScale {
    fn from(argument: ScaleArgument) -> Self {
        match argument {
            ScaleArgument::Tiny => Self::Tiny,
            ScaleArgument::Quick => Self::Quick,
            ScaleArgument::Full => Self::Full,
        }
    }
}

/// Carries out the command.
///
/// # Errors
/// Those of the directory and what is in it, or of the page.
pub(crate) fn run(arguments: &GrowthArguments) -> Result<ExitCode, FiguresError> {
    if arguments.draw {
        return arguments.draw().map(|_| ExitCode::SUCCESS);
    }
    let runs = GrowthRuns::new(&arguments.names, arguments.scale.into(), Machine::this())?;
    if arguments.dry_run {
        runs.commands().iter().for_each(|command| say(format_args!("{command}")));
        return Ok(ExitCode::SUCCESS);
    }
    make_directory(&arguments.out)?;
    if !arguments.quiet {
        let (count, time) = runs.size();
        complain(format_args!("{count} runs, about {}", in_words(time)));
    }
    let interrupt = interrupt::on_ctrl_c(end_runs);
    let options = MakeOptions { replaces: arguments.replace, is_quiet: arguments.quiet };
    let ending = runs.make(&Program::this()?, &arguments.out, options, &interrupt)?;
    let is_explained = arguments.draw()?;
    if ending.interrupted {
        complain(format_args!("interrupted"));
        return Ok(interrupt::exit_code());
    }
    Ok(match ending.failed {
        0 if is_explained || arguments.scale == ScaleArgument::Tiny => ExitCode::SUCCESS,
        0 => {
            complain(format_args!("a cost grows faster than n log n, and nothing says why"));
            ExitCode::from(FAILED)
        }
        count => failed(format_args!("{count} figures are missing")),
    })
}

impl GrowthArguments {
    /// Writes plots and page, and says what they say. Returns whether all that grows too fast is explained.
    fn draw(&self) -> Result<bool, FiguresError> {
        let page = self.page.clone().unwrap_or_else(|| self.out.join("scaling-of-work.md"));
        let (lines, is_explained) = write_growth(&self.out, &page)?;
        lines.iter().for_each(|line| say(format_args!("{line}")));
        say(format_args!("{}", page.display()));
        Ok(is_explained)
    }
}
