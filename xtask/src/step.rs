//! One command of a longer job.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Where the output of benchmarks is kept.
const BENCH_FOLDER: &str = "target/bench";

/// A call of cargo with its name, environment, the folders that it needs and, if it is kept, its output.
#[derive(Debug)]
pub(crate) struct Step {
    name: String,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    output: Option<PathBuf>,
    folders: Vec<PathBuf>,
    need: Option<Need>,
    refusal: Option<&'static str>,
}

/// A part of the toolchain that not every machine has: a step that needs it is left out where it is missing
/// and cannot be fetched, and is named as left out.
#[derive(Debug)]
pub(crate) enum Need {
    /// A toolchain of this name.
    Toolchain(String),
    /// The standard library for this target.
    Target(&'static str),
    /// Miri, in the nightly toolchain.
    Miri,
}

impl Need {
    fn is_met(&self) -> bool {
        match self {
            Need::Toolchain(name) => answers(&mut cargo(&[&format!("+{name}"), "--version"])),
            Need::Target(name) => {
                let library =
                    Command::new("rustc").args(["--print", "target-libdir", "--target", name]).output();
                library.is_ok_and(|it| Path::new(String::from_utf8_lossy(&it.stdout).trim()).exists())
            }
            Need::Miri => answers(&mut cargo(&["+nightly", "miri", "--version"])),
        }
    }

    /// Returns whether it is there, after an attempt to install it if it is small: the standard library of a
    /// target is fetched in seconds.
    fn is_provided(&self) -> bool {
        if self.is_met() {
            return true;
        }
        let Need::Target(name) = self else { return false };
        let installed = Command::new("rustup").args(["target", "add", name]).status();
        installed.is_ok_and(|status| status.success()) && self.is_met()
    }

    /// Returns how it is installed.
    fn remedy(&self) -> String {
        match self {
            Need::Toolchain(name) => format!("rustup toolchain install {name}"),
            Need::Target(name) => format!("rustup target add {name}"),
            Need::Miri => "rustup component add miri rust-src --toolchain nightly".to_owned(),
        }
    }
}

impl Step {
    /// Returns a call of cargo; the arguments contain no spaces of their own.
    pub(crate) fn cargo(name: &str, arguments: &str) -> Self {
        Step {
            name: name.to_owned(),
            arguments: arguments.split_whitespace().map(str::to_owned).collect(),
            environment: Vec::new(),
            output: None,
            folders: Vec::new(),
            need: None,
            refusal: None,
        }
    }

    /// Returns the same call, left out where this is not installed.
    pub(crate) fn needs(mut self, need: Need) -> Self {
        self.need = Some(need);
        self
    }

    /// Returns the same call with an environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Returns the same call, which passes if it fails and says this on standard error.
    pub(crate) fn fails_with(mut self, text: &'static str) -> Self {
        self.refusal = Some(text);
        self
    }

    /// Returns the same call with the atomics of a model checker, in a build folder of its own.
    pub(crate) fn model(self, checker: &str) -> Self {
        self.env("RUSTFLAGS", &format!("--cfg {checker}"))
            .env("CARGO_TARGET_DIR", &format!("target/{checker}"))
    }

    /// Returns the same call with its standard output kept in a file of the benchmarks' folder.
    pub(crate) fn output(mut self, file: &str) -> Self {
        self.output = Some(PathBuf::from(BENCH_FOLDER).join(file));
        self
    }

    /// Returns the same call with a folder that is made for it.
    pub(crate) fn folder(mut self, folder: &str) -> Self {
        self.folders.push(PathBuf::from(folder));
        self
    }

    fn succeeds(&self) -> std::io::Result<bool> {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let mut command = cargo(&arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        self.folders.iter().try_for_each(std::fs::create_dir_all)?;
        if let Some(path) = &self.output {
            std::fs::create_dir_all(BENCH_FOLDER)?;
            command.stdout(Stdio::from(File::create(path)?));
        }
        let Some(text) = self.refusal else { return Ok(command.status()?.success()) };
        let refused = command.output()?;
        let said = String::from_utf8_lossy(&refused.stderr);
        eprint!("{said}");
        Ok(!refused.status.success() && said.contains(text))
    }
}

/// Returns a call of cargo with these arguments.
fn cargo(arguments: &[&str]) -> Command {
    // Not the `cargo` of the environment: that is the real program, which does not know `+nightly`.
    let mut command = Command::new("cargo");
    command.args(arguments);
    if arguments.first().is_some_and(|first| first.starts_with('+')) {
        command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO");
    }
    command
}

/// Returns whether the call succeeds. A toolchain that is missing is not fetched in passing.
fn answers(command: &mut Command) -> bool {
    command.env("RUSTUP_AUTO_INSTALL", "0").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Runs the steps in order until one fails, and says on standard error what each one took, and at the end
/// what was skipped.
pub(crate) fn run(steps: &[Step]) -> ExitCode {
    let mut skipped = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let place = format!("[{}/{}] {}", at + 1, steps.len(), step.name);
        eprintln!("{place}");
        if let Some(need) = step.need.as_ref().filter(|need| !need.is_provided()) {
            let line = format!("{place}: SKIPPED, not installed here: {}", need.remedy());
            eprintln!("{line}");
            skipped.push(line);
            continue;
        }
        let start = Instant::now();
        match step.succeeds() {
            Ok(true) => eprintln!("{place}: passed in {:.0} s", start.elapsed().as_secs_f64()),
            Ok(false) => {
                eprintln!("{place}: FAILED (cargo {})", step.arguments.join(" "));
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("{place}: cannot be run: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    skipped.iter().for_each(|line| eprintln!("{line}"));
    ExitCode::SUCCESS
}
