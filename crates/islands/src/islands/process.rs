//! An instance that has a process of its own, seen from within.

use std::env;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use ensilo::{Error, OpenError, Options};

use super::control::{self, Control};
use super::local::{InstanceOptions, LocalInstance};
use crate::commit::Failed;
use crate::instance::{InstanceError, Program};

/// How long the process of an instance that is to end may take, and how often it is looked for.
const PREDECESSOR_PATIENCE: Duration = Duration::from_secs(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

/// Says that a process is an instance. Its first file is the socket to the process that has started it.
pub(crate) const VARIABLE: &str = "ENSILO_INSTANCE";

/// Runs an instance in this process, if the process was started for one by [`Islands`](crate::Islands); returns what `main` is to return then. A
/// program whose instances are processes calls this at the beginning of its `main`, with the options that the database of each instance is opened
/// with:
///
/// ```no_run
/// # use ensilo_islands::Program;
/// # fn run_program<P: Program>() -> std::process::ExitCode {
/// if let Some(ended) = ensilo_islands::run_if_instance::<P>(ensilo::Database::options) {
///     return ended;
/// }
/// // What the program does otherwise.
/// # std::process::ExitCode::SUCCESS }
/// ```
#[must_use = "the process is an instance if there is something"]
pub fn run_if_instance<P: Program>(database: impl Fn() -> Options) -> Option<ExitCode> {
    env::var_os(VARIABLE)?;
    match run::<P>(&database) {
        Ok(ended) => Some(ended),
        // Nobody asks for more, as after Ctrl-C: there is nothing to complain about.
        Err(error) if is_of_an_ended_parent(&error) => Some(ExitCode::SUCCESS),
        Err(error) => {
            eprintln!("an instance has ended: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

/// Returns whether the socket to the process that has started this one says that it is gone.
fn is_of_an_ended_parent(error: &io::Error) -> bool {
    let kinds = [ErrorKind::UnexpectedEof, ErrorKind::BrokenPipe, ErrorKind::ConnectionReset];
    kinds.contains(&error.kind())
}

fn run<P: Program>(database: &impl Fn() -> Options) -> io::Result<ExitCode> {
    let socket = UnixStream::from(rustix::io::dup(rustix::stdio::stdin())?);
    let (Control::Open(options), _) = control::receive(&socket)? else {
        return Err(io::Error::other("it was not told what to open"));
    };
    let mut instance = match open::<P>(&options, database) {
        Ok(instance) => Arc::new(instance),
        Err(error) => {
            control::send(&socket, &Control::Refused(error.to_string()), None)?;
            // Whoever has started it says so.
            return Ok(ExitCode::FAILURE);
        }
    };
    control::send(&socket, &Control::Opened(instance.incarnation), None)?;
    let served = serve(&instance, &socket);
    instance.stop();
    let Some(instance) = Arc::get_mut(&mut instance) else {
        // Something is being connected still, which ends with the process.
        return served.map(|()| ExitCode::SUCCESS);
    };
    if served.is_ok() {
        instance.join();
    }
    served.map(|()| ExitCode::SUCCESS)
}

/// Opens the instance. The process of an earlier opening, whose own parent has been killed, may be about to end: it is waited for.
fn open<P: Program>(
    options: &InstanceOptions,
    database: &impl Fn() -> Options,
) -> Result<LocalInstance<P>, InstanceError> {
    let deadline = Instant::now() + PREDECESSOR_PATIENCE;
    loop {
        match LocalInstance::open(options, database(), end_process) {
            Err(InstanceError::Database(Error::Open(error)))
                if matches!(*error, OpenError::Locked { .. }) && Instant::now() < deadline =>
            {
                thread::sleep(RETRY_INTERVAL);
            }
            opened => return opened,
        }
    }
}

/// A worker can go on no more: what is under way is found when the instance is opened again, by another process.
fn end_process(failed: &Failed) {
    eprintln!("an instance has ended: {failed}");
    std::process::exit(1);
}

/// Does what it is told, until it is told to stop. Where the process that has started it is gone it stops as well.
fn serve<P: Program>(instance: &Arc<LocalInstance<P>>, socket: &UnixStream) -> io::Result<()> {
    loop {
        let (message, file) = control::receive(socket)?;
        match (message, file) {
            (Control::Link { worker, site }, Some(end)) => {
                connect(instance, end, move |instance, end| instance.link(worker, site, end))?;
            }
            (Control::Client { worker }, Some(end)) => {
                connect(instance, end, move |instance, end| instance.serve(worker, end))?;
            }
            (Control::Ended { instance: other, next_incarnation }, _) => {
                instance.end_other(other, next_incarnation);
                control::send(socket, &Control::Known, None)?;
            }
            (Control::Stop, _) => return Ok(()),
            _ => return Err(io::Error::other("it was told what is not for an instance")),
        }
    }
}

/// Connects in a thread of its own: the other end may take its time.
fn connect<P: Program>(
    instance: &Arc<LocalInstance<P>>,
    end: OwnedFd,
    connect: impl FnOnce(&LocalInstance<P>, UnixStream) -> io::Result<()> + Send + 'static,
) -> io::Result<()> {
    let instance = Arc::clone(instance);
    thread::Builder::new().name("connect".to_owned()).spawn(move || {
        // Where the other end is gone, another one comes.
        let _ = connect(&instance, UnixStream::from(end));
    })?;
    Ok(())
}
