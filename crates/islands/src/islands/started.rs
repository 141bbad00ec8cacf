//! The processes of instances that this process has started, for whoever ends it without closing its islands.
//!
//! Each is held by a file of the system that stands for that process alone, also when its number is another one's by now.

use std::io;
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

static STARTED: Mutex<Started> = Mutex::new(Started { ends: false, processes: Vec::new() });

struct Started {
    /// No more are started.
    ends: bool,
    processes: Vec<Weak<OwnedFd>>,
}

/// As long as this exists the process is one of those that [`end_instance_processes`] ends.
#[derive(Debug)]
pub(super) struct StartedProcess(
    #[expect(dead_code, reason = "it holds what others look for")] Option<Arc<OwnedFd>>,
);

/// Ends the processes of all instances that this process has started, whatever they do, and returns when they have ended. From then on none is started
/// any more. It is for a program that is about to exit in the midst of its work, such as at Ctrl-C: otherwise they find out by themselves that it is
/// gone, and go on until then with files that it may want to remove. What is stored is found by the next opening, as after a crash.
pub fn end_instance_processes() {
    let mut started = lock();
    started.ends = true;
    let processes: Vec<Arc<OwnedFd>> =
        started.processes.drain(..).filter_map(|process| process.upgrade()).collect();
    for process in &processes {
        // It may have ended by itself.
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
    for process in &processes {
        let mut ended = [PollFd::new(process, PollFlags::IN)];
        while matches!(poll(&mut ended, None), Err(rustix::io::Errno::INTR)) {}
    }
}

/// Starts a process.
pub(super) fn spawn(command: &mut Command) -> io::Result<(Child, StartedProcess)> {
    let mut started = lock();
    if started.ends {
        return Err(io::Error::other("the program is about to end"));
    }
    let child = command.spawn()?;
    // A system that is older than such files does not have it ended early.
    let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok().map(Arc::new);
    started.processes.retain(|process| process.strong_count() > 0);
    started.processes.extend(process.as_ref().map(Arc::downgrade));
    Ok((child, StartedProcess(process)))
}

fn lock() -> MutexGuard<'static, Started> {
    STARTED.lock().unwrap_or_else(PoisonError::into_inner)
}
