//! Where the time of TPC-C's workers goes: index, indirection arrays, log, epochs, the rest (ERMIA, figure 11).
//!
//! ```sh
//! cargo xtask regions                                  # a table
//! cargo xtask regions --csv regions.csv                # the shares that `ensilo figures regions` draws
//! cargo xtask regions -- --help
//! ```
//!
//! The command builds this with `--cfg ensilo_regions`, in a folder of its own; otherwise nothing can be seen. See `ensilo_sync::region` for how
//! parts of the program are marked, and the crate `ensilo-counting` for how they are looked at.

#[cfg(ensilo_regions)]
mod arguments;
#[cfg(ensilo_regions)]
mod measure;
#[cfg(ensilo_regions)]
mod observed;
#[cfg(ensilo_regions)]
mod output;

use std::process::ExitCode;

#[cfg(not(ensilo_regions))]
fn main() -> ExitCode {
    eprintln!(
        "error: this program was built without --cfg ensilo_regions; `cargo xtask regions` builds it with"
    );
    ExitCode::from(2)
}

#[cfg(ensilo_regions)]
fn main() -> ExitCode {
    match look() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(ensilo_regions)]
fn look() -> Result<(), Box<dyn std::error::Error>> {
    use clap::Parser;

    let arguments = arguments::Arguments::parse();
    let subjects = arguments.subjects();
    let mut runs = Vec::new();
    // Subjects take turns: what disturbs the machine for a while disturbs all of them.
    for run in 1..=usize::from(arguments.runs) {
        for subject in &subjects {
            eprintln!("run {run} of {}: {subject}", arguments.runs);
            runs.push(measure::measure(&arguments, subject, run)?);
        }
    }
    println!("{}", output::text_of(&runs));
    if let Some(path) = &arguments.csv {
        output::write_csv(path, &runs)?;
    }
    Ok(())
}
