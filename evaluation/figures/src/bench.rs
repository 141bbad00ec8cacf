//! Starting `ensilo bench` for a single run: each in a process of its own, so that each begins with fresh memory.

use std::io::{self, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ensilo_bench::driver::Interrupt;

use crate::error::FiguresError;
use crate::origin::this_program;
use crate::outcome::Outcome;

/// Something that makes single runs.
pub trait Bench {
    /// Makes the run that `arguments` ask for, which should take no longer than `limit`.
    fn run(&self, arguments: &[String], limit: Duration, interrupt: &Interrupt) -> Outcome;
}

/// The program that is started for each run.
#[derive(Debug, Clone)]
pub struct Program {
    path: PathBuf,
}

/// The exit code of bad parameters.
const USAGE: i32 = 2;
/// So often it is looked whether a run has ended or is to end.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);
/// A process that was asked to end is asked again after this time, by which it ends at once and still removes its files, and is killed
/// when it has passed once more.
const GRACE: Duration = Duration::from_secs(10);

/// When everything is to end at once, a run has this long to remove its files before it is killed.
const LAST_GRACE: Duration = Duration::from_secs(2);

/// The run under way, for a caller that ends this program without waiting for it.
#[derive(Debug)]
struct RunningBenches {
    children: Vec<Child>,
    /// No further run begins.
    is_closed: bool,
}

static RUNNING: Mutex<RunningBenches> = Mutex::new(RunningBenches { children: Vec::new(), is_closed: false });

fn running() -> MutexGuard<'static, RunningBenches> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the runs under way, which remove their files if they do that within two seconds, and lets no other begin. For a program that is
/// about to end at once: a thread that waits for a run does not come back.
pub fn end_runs() {
    let mut running = running();
    running.is_closed = true;
    running.children.iter_mut().for_each(end);
}

/// Asks until the process has ended: a bench ends in good order when it is asked once, and at once when it is asked again.
fn end(child: &mut Child) {
    let deadline = Instant::now() + LAST_GRACE;
    while let Ok(None) = child.try_wait() {
        if Instant::now() > deadline || ask_to_end(child).is_err() {
            // What can be done has been done: a process that cannot be killed or waited for has ended.
            let _ = child.kill().and_then(|()| child.wait());
            return;
        }
        thread::sleep(LOOK_INTERVAL);
    }
}

impl Program {
    /// The program at `path`, which understands `bench`.
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    /// The program that runs.
    ///
    /// # Errors
    /// [`FiguresError::File`] if its file is not there any more.
    pub fn this() -> Result<Self, FiguresError> {
        this_program().map(Self::new)
    }

    /// `None` if no further run may begin.
    fn start(&self, arguments: &[String]) -> io::Result<Option<Process>> {
        let mut command = Command::new(&self.path);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C reaches this process alone, which hands it on: a second one, by which it would end at once, must not come by itself.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        // Held until the process is in the list, so that `end_runs` either finds it or comes before it.
        let mut running = running();
        if running.is_closed {
            return Ok(None);
        }
        let mut child = command.spawn()?;
        let (output, errors) = (read_all(child.stdout.take()), read_all(child.stderr.take()));
        let id = child.id();
        running.children.push(child);
        Ok(Some(Process { id, output, errors }))
    }
}

impl Bench for Program {
    fn run(&self, arguments: &[String], limit: Duration, interrupt: &Interrupt) -> Outcome {
        let ended = self.start(arguments).and_then(|process| match process {
            Some(process) => process.wait(limit, interrupt),
            None => Ok(Outcome::Interrupted),
        });
        ended.unwrap_or_else(|error| Outcome::Failed(format!("cannot run {}: {error}", self.path.display())))
    }
}

/// A run under way, which is in the list of those. What it writes is read meanwhile, so that it never waits for a reader.
struct Process {
    id: u32,
    output: JoinHandle<Vec<u8>>,
    errors: JoinHandle<Vec<u8>>,
}

impl Process {
    fn wait(self, limit: Duration, interrupt: &Interrupt) -> io::Result<Outcome> {
        let deadline = Instant::now() + limit;
        let (mut is_late, mut asked, mut asked_at) = (false, 0, Instant::now());
        let status = loop {
            if let Some(status) = self.with_child(Child::try_wait)? {
                break status;
            }
            is_late |= Instant::now() > deadline;
            let is_due = asked == 0 || asked_at.elapsed() > GRACE;
            if is_due && (is_late || interrupt.is_raised()) {
                self.with_child(if asked < 2 { ask_to_end } else { Child::kill })?;
                (asked, asked_at) = (asked + 1, Instant::now());
            }
            thread::sleep(LOOK_INTERVAL);
        };
        running().children.retain(|child| child.id() != self.id);
        let [output, errors] = [self.output, self.errors].map(|reader| reader.join().unwrap_or_default());
        if interrupt.is_raised() {
            return Ok(Outcome::Interrupted);
        }
        if is_late {
            return Ok(Outcome::Failed(format!("took longer than {} s and was ended", limit.as_secs())));
        }
        Ok(outcome(status, &output, &String::from_utf8_lossy(&errors)))
    }

    /// The child is in the list until it has been waited for, hence its number is its own.
    fn with_child<T>(&self, act: impl FnOnce(&mut Child) -> io::Result<T>) -> io::Result<T> {
        let mut running = running();
        let child = running.children.iter_mut().find(|child| child.id() == self.id);
        child.map_or_else(|| Err(io::Error::other("the process is lost")), act)
    }
}

fn outcome(status: ExitStatus, output: &[u8], errors: &str) -> Outcome {
    match status.code() {
        Some(0) => match serde_json::from_slice(output) {
            Ok(report) => Outcome::Measured(report),
            Err(error) => Outcome::Failed(format!("its report cannot be read: {error}")),
        },
        Some(USAGE) => Outcome::Refused(errors.lines().next().unwrap_or("no reason given").trim().to_owned()),
        _ => Outcome::Failed(format!("{status}: {}", last_lines(errors))),
    }
}

/// The end of what a program had to say.
fn last_lines(errors: &str) -> String {
    let lines: Vec<&str> = errors.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].join("; ")
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // What was read until an error is all there is to tell.
            let _ = pipe.read_to_end(&mut bytes);
        }
        bytes
    })
}

/// As Ctrl-C does, so that the run removes its files.
#[cfg(unix)]
fn ask_to_end(child: &mut Child) -> io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    // The process has not been waited for, hence its number is its own.
    Ok(kill_process(Pid::from_child(child), Signal::INT)?)
}

#[cfg(not(unix))]
fn ask_to_end(child: &mut Child) -> io::Result<()> {
    child.kill()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    /// A shell cannot trap a signal that is ignored when it begins, as this one is in the background of another shell.
    const ENDS_WHEN_ASKED: &str = r#"
        loop="trap 'exit 0' INT; while :; do sleep 0.05; done"
        env --default-signal=INT true 2>/dev/null && exec env --default-signal=INT sh -c "$loop"
        eval "$loop"
    "#;

    /// What comes of a shell script that stands in for the program.
    fn run(script: &str, limit: Duration, interrupt: &Interrupt) -> Outcome {
        let arguments = ["-c", script].map(str::to_owned);
        Program::new("/bin/sh".into()).run(&arguments, limit, interrupt)
    }

    #[test]
    fn exit_codes_tell_reports_refusals_and_failures_apart() {
        let run = |script| run(script, LIMIT, &Interrupt::new());
        assert_eq!(run(r#"echo '{"seconds": 1}'"#), Outcome::Measured(serde_json::json!({ "seconds": 1 })));
        assert_eq!(
            run("echo 'error: no such option' >&2; echo Usage >&2; exit 2"),
            Outcome::Refused("error: no such option".to_owned())
        );
        for script in [
            "echo {}; echo 'check failed' >&2; exit 1",
            "echo '{'; echo; echo 'check failed' >&2",
            "kill -9 $$",
        ] {
            assert!(matches!(run(script), Outcome::Failed(_)), "{script}");
        }
        let missing = Program::new("/no/such/program".into()).run(&[], LIMIT, &Interrupt::new());
        assert!(matches!(missing, Outcome::Failed(why) if why.contains("/no/such/program")));
    }

    #[test]
    fn an_interrupt_is_handed_on_once() {
        let interrupt = Interrupt::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(200));
                interrupt.raise();
            });
            let begun = Instant::now();
            assert_eq!(run(ENDS_WHEN_ASKED, LIMIT, &interrupt), Outcome::Interrupted);
            assert!(begun.elapsed() < GRACE);
        });
    }

    #[test]
    fn a_run_that_hangs_is_ended() {
        let outcome = run("exec sleep 60", Duration::from_millis(100), &Interrupt::new());
        assert!(matches!(outcome, Outcome::Failed(why) if why.contains("longer")));
    }

    #[test]
    fn long_reports_are_read_while_they_are_written() {
        let script = r#"printf '{"a": "'; head -c 1000000 /dev/zero | tr '\0' x; printf '"}'"#;
        let Outcome::Measured(report) = run(script, LIMIT, &Interrupt::new()) else { panic!("no report") };
        assert_eq!(report["a"].as_str().map(str::len), Some(1_000_000));
    }
}
