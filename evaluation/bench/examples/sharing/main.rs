//! Cache lines that workers share, for each transaction, on the systems that Silo's paper compares.
//!
//! ```sh
//! cargo xtask sharing                                  # a table
//! cargo xtask sharing --csv docs/results/sharing.csv   # the counts that `ensilo figures model` reads
//! cargo xtask sharing -- --help
//! ```
//!
//! The command builds this with `--cfg ensilo_count`, in a folder of its own; otherwise nothing can be counted. See the crate `ensilo-counting`
//! for what is seen, and `docs/scaling.md` for what follows from it.

#[cfg(ensilo_count)]
mod arguments;
#[cfg(ensilo_count)]
mod measure;
#[cfg(ensilo_count)]
mod output;
#[cfg(ensilo_count)]
mod place;
#[cfg(ensilo_count)]
mod turns;

use std::process::ExitCode;

#[cfg(not(ensilo_count))]
fn main() -> ExitCode {
    eprintln!(
        "error: this program was built without --cfg ensilo_count; `cargo xtask sharing` builds it with"
    );
    ExitCode::from(2)
}

#[cfg(ensilo_count)]
fn main() -> ExitCode {
    match count() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(ensilo_count)]
fn count() -> Result<(), Box<dyn std::error::Error>> {
    use clap::Parser;

    let arguments = arguments::Arguments::parse();
    let mut rows = Vec::new();
    for subject in arguments.subjects() {
        eprintln!("{} on {}", subject.workload.name(), subject.system.name());
        rows.extend(output::rows_of(&subject, arguments.workers, &measure::measure(&arguments, &subject)?));
    }
    print!("{}", output::text_of(&rows));
    if let Some(path) = &arguments.csv {
        output::write_csv(path, &rows)?;
    }
    Ok(())
}
