//! `ensilo figures run latency`: answers from disk, by the number of clients.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use ensilo_bench::driver::{Failure, View};
use ensilo_bench::remove_temporary_files;
use ensilo_figures::latency::{LatencyOptions, make_way, measure_latency, text_of, write_runs};
use ensilo_figures::{FiguresError, in_words, make_directory, write_results};

use crate::output::{complain, failed, say};
use crate::{compare, interrupt};

/// Makes the runs, keeps each finished one in the directory `out`, and reports.
///
/// # Errors
/// Those of the directory and what is in it, before the first run, or of the page.
pub(crate) fn run(
    options: &LatencyOptions,
    out: &Path,
    replaces: bool,
    is_quiet: bool,
) -> Result<ExitCode, FiguresError> {
    make_way(out, replaces)?;
    make_directory(out)?;
    let interrupt = interrupt::on_ctrl_c(remove_temporary_files);
    let mut view = if is_quiet { View::silent() } else { View::stderr() };
    let others = compare::others(options);
    let (count, time) = size_of(options);
    view.note(&format!("{count} runs, about {}", in_words(time)));
    let mut runs = Vec::new();
    let done = measure_latency(options, others.as_deref(), &mut view, &interrupt, |run| {
        runs.push(run);
        write_runs(out, &runs)
            .map_err(|error| Failure::Io("cannot keep the results".to_owned(), std::io::Error::other(error)))
    });
    view.close();
    if !runs.is_empty() {
        say(format_args!("{}", text_of(&runs)));
        if let Some(others) = &others {
            say(format_args!("Not measured: {}; see `ensilo compare --help`.", others.missing().join(", ")));
        }
        say(format_args!("{}", write_results(out)?.display()));
    }
    Ok(match done {
        Err(failure) => failed(failure),
        Ok(()) if runs.iter().any(|run| run.checks_failed > 0) => failed("a check did not hold"),
        Ok(()) if interrupt.is_raised() => {
            complain(format_args!("interrupted"));
            interrupt::exit_code()
        }
        Ok(()) => ExitCode::SUCCESS,
    })
}

/// How many runs there are, and about how long they take.
pub(crate) fn size_of(options: &LatencyOptions) -> (usize, Duration) {
    let others = compare::others(options).map_or_else(Vec::new, |others| others.names());
    let runs = options.plan(&others).len();
    (runs, options.estimate(runs))
}
