//! The thread that answers.
//!
//! Only the user that the process runs as may connect: the socket has the rights of a private file, and whoever came before it had them is sent
//! away. One that connects and does not read gets nothing more after a moment; requests know nothing of any of this.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use ensilo_engine::Engine;
use ensilo_log::OpenError;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use super::socket_path::SocketPath;
use crate::mutex::lock;
use crate::shared::DatabaseShared;
use crate::statistics::Statistics;
use crate::{Error, Result};

/// For so long a reader may hold up the next one, and the end of the thread.
const ANSWER_TIME_MAX: Duration = Duration::from_millis(500);

/// How long the thread waits after it could not take a connection.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// What the process says.
#[derive(Serialize)]
struct Answer {
    format: u32,
    process: u32,
    #[serde(serialize_with = "crate::serialized::seconds_since_1970")]
    time: SystemTime,
    #[serde(serialize_with = "crate::serialized::seconds")]
    open_seconds: Duration,
    statistics: Statistics,
}

/// The thread of a database, if it has one.
#[derive(Debug, Default)]
pub(crate) struct StatisticsServer(Mutex<Option<Running>>);

#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    /// The thread ends when this goes.
    alive: UnixStream,
}

impl StatisticsServer {
    /// Answers for the database, which is that in `directory` and is open to write, until [`StatisticsServer::stop`].
    ///
    /// # Errors
    /// [`Error::Open`] where there can be no socket.
    pub(crate) fn start<E: Engine>(&self, shared: &Arc<DatabaseShared<E>>, directory: &Path) -> Result<()> {
        let (shared, opened) = (Arc::clone(shared), Instant::now());
        let answer = move || Answer {
            format: 1,
            process: std::process::id(),
            time: SystemTime::now(),
            open_seconds: opened.elapsed(),
            statistics: Statistics::collect(&shared),
        };
        let started = Running::start(directory, answer);
        let failed =
            |error| OpenError::Io { doing: "answer at a socket in", path: directory.to_path_buf(), error };
        *lock(&self.0) = Some(started.map_err(|error| Error::from_open(failed(error)))?);
        Ok(())
    }

    /// Ends the thread, and waits until it has ended and the socket is gone.
    ///
    /// # Panics
    /// When the thread has panicked.
    pub(crate) fn stop(&self) {
        let running = lock(&self.0).take();
        if let Some(Running { thread, alive }) = running {
            drop(alive);
            thread.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    }
}

impl Running {
    fn start(directory: &Path, answer: impl Fn() -> Answer + Send + 'static) -> io::Result<Running> {
        let socket = Socket::open(directory)?;
        let (alive, ended) = UnixStream::pair()?;
        let thread = thread::Builder::new().name("ensilo-stat".into());
        let thread = thread.spawn(move || socket.serve(&ended, answer))?;
        Ok(Running { thread, alive })
    }
}

/// The socket of a database. It is removed with the value.
struct Socket {
    listener: UnixListener,
    path: SocketPath,
}

impl Socket {
    /// Makes the socket, in the place of one that an earlier process has left. The directory is locked.
    fn open(directory: &Path) -> io::Result<Socket> {
        let path = SocketPath::of(directory)?;
        if fs::symlink_metadata(path.path()).is_ok_and(|left| left.file_type().is_socket()) {
            fs::remove_file(path.path())?;
        }
        let listener = UnixListener::bind(path.path())?;
        let socket = Socket { listener, path };
        fs::set_permissions(socket.path.path(), Permissions::from_mode(0o600))?;
        socket.listener.set_nonblocking(true)?;
        while socket.listener.accept().is_ok() {}
        Ok(socket)
    }

    /// Answers until the other end of `ended` is closed.
    fn serve(&self, ended: &UnixStream, answer: impl Fn() -> Answer) {
        let has_ended = |events: PollFlags| !events.is_empty();
        loop {
            let mut waited_for =
                [PollFd::new(ended, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
            // An interruption leads back here.
            let _ = poll(&mut waited_for, None);
            if has_ended(waited_for[0].revents()) {
                return;
            }
            match self.listener.accept() {
                // Whoever does not read it to the end gets no other one.
                Ok((stream, _)) => _ = text_of(&answer()).and_then(|text| send(stream, &text)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Too many files are open, for one.
                Err(_) => _ = poll(&mut [PollFd::new(ended, PollFlags::IN)], Some(&PAUSE)),
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Under the lock of the directory. What stays is removed by the next opening.
        let _ = fs::remove_file(self.path.path());
    }
}

/// Returns a line with an answer.
fn text_of(answer: &Answer) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    Ok(text)
}

/// Sends an answer, as far as that takes no longer than it may.
fn send(mut stream: UnixStream, text: &[u8]) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let (mut rest, began) = (text, Instant::now());
    while !rest.is_empty() {
        let left = ANSWER_TIME_MAX.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        rest = &rest[stream.write(rest)?..];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn a_reader_that_hangs_is_given_up_and_one_that_reads_gets_all() {
        let text = vec![b'x'; 8 << 20];
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        send(ours, &text).unwrap_err();
        let mut cut = Vec::new();
        theirs.read_to_end(&mut cut).unwrap();
        assert!(!cut.is_empty() && cut.len() < text.len());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).map(|_| read).unwrap()
        });
        send(ours, &text).unwrap();
        assert!(reader.join().unwrap() == text);
    }
}
