//! The thread that answers.
//!
//! Only the user that the process runs as may connect: the socket has the permissions of a private file. Before it has them somebody else may have
//! connected, so that the thread also asks the system which user a connection is of. A reader that connects and does not read is given up after a moment.
//! Requests of the database notice nothing of all this.

use std::fs::{self, Permissions};
use std::io::{self, Write};
use std::net::Shutdown;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
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
    opened: SystemTime,
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
    /// The thread ends when this is shut down.
    alive: UnixStream,
}

impl StatisticsServer {
    /// Answers for the database, which is that in `directory` and is open to write, until [`StatisticsServer::stop`].
    ///
    /// # Errors
    /// [`Error::Open`] where there can be no socket.
    pub(crate) fn start<E: Engine>(&self, shared: &Arc<DatabaseShared<E>>, directory: &Path) -> Result<()> {
        let (shared, opened, since) = (Arc::clone(shared), SystemTime::now(), Instant::now());
        let answer = move || Answer {
            format: 1,
            process: std::process::id(),
            opened,
            time: SystemTime::now(),
            open_seconds: since.elapsed(),
            statistics: Statistics::collect(&shared),
        };
        let started = Running::start(directory, answer);
        let failed = |error| Error::from_open(io_error("start to answer at a socket in", directory, error));
        *lock(&self.0) = Some(started.map_err(failed)?);
        Ok(())
    }

    /// Ends the thread, and waits until it has ended and the socket is gone.
    ///
    /// # Panics
    /// When the thread has panicked.
    pub(crate) fn stop(&self) {
        let running = lock(&self.0).take();
        if let Some(running) = running {
            running.stop();
        }
    }
}

/// Checks whether there can be a socket in a directory, which is locked, before a database is opened there.
///
/// # Errors
/// [`Error::NoStatisticsSocket`] where there can be none.
pub(crate) fn check(directory: &Path) -> Result<()> {
    let refused =
        |error| Error::NoStatisticsSocket(Arc::new(io_error("answer at a socket in", directory, error)));
    Socket::open(directory).map(drop).map_err(refused)
}

fn io_error(doing: &'static str, directory: &Path, error: io::Error) -> OpenError {
    OpenError::Io { doing, path: directory.to_path_buf(), error }
}

impl Running {
    fn start(directory: &Path, answer: impl Fn() -> Answer + Send + 'static) -> io::Result<Running> {
        let socket = Socket::open(directory)?;
        let (alive, ended) = UnixStream::pair()?;
        let thread = thread::Builder::new().name("ensilo-stat".into());
        let thread = thread.spawn(move || socket.serve(&ended, answer))?;
        Ok(Running { thread, alive })
    }

    fn stop(self) {
        // To close it does not suffice: a child that was forked and has not executed a program has it, too.
        let shut_down = self.alive.shutdown(Shutdown::Both);
        debug_assert!(shut_down.is_ok(), "{shut_down:?}");
        drop(self.alive);
        self.thread.join().unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// The socket of a database. It is removed with the value.
struct Socket {
    listener: UnixListener,
    path: SocketPath,
    /// Which file it is, by device and inode: directories may have been moved when it is to be removed.
    file: (u64, u64),
}

impl Socket {
    /// Makes the socket, in the place of one that an earlier process has left. The directory is locked.
    fn open(directory: &Path) -> io::Result<Socket> {
        let path = SocketPath::of(directory)?;
        if fs::symlink_metadata(path.path()).is_ok_and(|left| left.file_type().is_socket()) {
            fs::remove_file(path.path())?;
        }
        let listener = UnixListener::bind(path.path())?;
        let file = file_at(path.path())?;
        let socket = Socket { listener, path, file };
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
                Ok((stream, _)) if !is_permitted(&stream) => {}
                // Whoever does not read it to the end gets no other one.
                Ok((stream, _)) => {
                    _ = text_of(&answer()).and_then(|text| send(stream, &text, ANSWER_TIME_MAX))
                }
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
        if file_at(self.path.path()).is_ok_and(|file| file == self.file) {
            let _ = fs::remove_file(self.path.path());
        }
    }
}

/// Returns whether the process at the other end runs as the same user, or as the one that may do everything, as far as the system says.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_permitted(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == own || peer.uid.is_root())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_permitted(_stream: &UnixStream) -> bool {
    true
}

/// Returns which file has a name, by device and inode.
fn file_at(path: &Path) -> io::Result<(u64, u64)> {
    let metadata = fs::symlink_metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Returns a line with an answer.
fn text_of(answer: &Answer) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(answer)?;
    text.push(b'\n');
    Ok(text)
}

/// Sends an answer, as far as that takes no longer than it may.
fn send(mut stream: UnixStream, text: &[u8], time_max: Duration) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let (mut rest, began) = (text, Instant::now());
    while !rest.is_empty() {
        let left = time_max.saturating_sub(began.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_write_timeout(Some(left))?;
        match stream.write(rest) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            written => rest = &rest[written?..],
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::PathBuf;

    use super::*;

    /// A directory that is removed with the value.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let place = std::env::temp_dir().join(format!("ensilo-socket-{name}-{}", std::process::id()));
            let _ = fs::remove_dir_all(&place);
            fs::create_dir(&place).unwrap();
            Place(place)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_thread_ends_although_a_forked_child_has_its_handles() {
        let place = Place::new("forked");
        let running = Running::start(&place.0, || unreachable!("nobody asks")).unwrap();
        let of_the_child = running.alive.try_clone().unwrap();
        running.stop();
        drop(of_the_child);
        assert_eq!(fs::read_dir(&place.0).unwrap().count(), 0);
    }

    #[test]
    fn the_socket_of_a_database_that_was_moved_away_leaves_another_one_s_in_its_place() {
        let place = Place::new("moved");
        let (here, there) = (place.0.join("here"), place.0.join("there"));
        fs::create_dir(&here).unwrap();
        let moved = Socket::open(&here).unwrap();
        fs::rename(&here, &there).unwrap();
        fs::create_dir(&here).unwrap();
        let another = Socket::open(&here).unwrap();
        drop(moved);
        assert!(fs::exists(another.path.path()).unwrap());
        drop(another);
        assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
    }

    #[test]
    fn a_reader_that_hangs_is_given_up_and_one_that_reads_gets_all() {
        let text = vec![b'x'; 8 << 20];
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        send(ours, &text, ANSWER_TIME_MAX).unwrap_err();
        let mut cut = Vec::new();
        theirs.read_to_end(&mut cut).unwrap();
        assert!(!cut.is_empty() && cut.len() < text.len());
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let reader = thread::spawn(move || {
            let mut read = Vec::new();
            theirs.read_to_end(&mut read).map(|_| read).unwrap()
        });
        // A busy machine may need longer than a reader is given.
        send(ours, &text, Duration::from_secs(60)).unwrap();
        assert!(reader.join().unwrap() == text);
    }
}
