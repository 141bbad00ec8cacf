//! Bytes to and from the other end, through what the operating system offers. Nothing here blocks, whatever the other end does to what both
//! have open: what a socket does is said with each call, and a pipe is opened anew for this end alone.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, recv, send, shutdown};

/// See the module's documentation.
#[derive(Debug)]
pub(super) enum Bytes {
    /// A connected socket of a stream.
    Socket(OwnedFd),
    /// Two pipes, which do not block.
    Pipes { reader: OwnedFd, writer: OwnedFd },
}

impl Bytes {
    /// Returns the bytes through two pipes: one that this end has made, to be read, and one that the other end has passed on.
    pub(super) fn through_pipes(reader: OwnedFd, writer: &OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&reader, true)?;
        let path = format!("/proc/self/fd/{}", writer.as_raw_fd());
        // No file with a path has such a name. To ask the file what it is could take as long as its file system likes.
        if !std::fs::read_link(&path)?.as_os_str().as_bytes().starts_with(b"pipe:[") {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "what the other end has sent is no pipe"));
        }
        // Whether a file blocks belongs to what was opened, which the other end has as well.
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let writer = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| match error {
            // There is no reader any more.
            Errno::NXIO => io::ErrorKind::BrokenPipe.into(),
            error => io::Error::from(error),
        })?;
        Ok(Bytes::Pipes { reader, writer })
    }

    pub(super) fn reader(&self) -> BorrowedFd<'_> {
        let (Bytes::Socket(reader) | Bytes::Pipes { reader, .. }) = self;
        reader.as_fd()
    }

    pub(super) fn writer(&self) -> BorrowedFd<'_> {
        let (Bytes::Socket(writer) | Bytes::Pipes { writer, .. }) = self;
        writer.as_fd()
    }

    /// Returns how many bytes were read: 0 at the end, [`io::ErrorKind::WouldBlock`] when there are none.
    pub(super) fn read(&self, target: &mut [u8]) -> io::Result<usize> {
        match self {
            Bytes::Socket(socket) => read_socket(socket, target),
            Bytes::Pipes { reader, .. } => again_if_interrupted(|| rustix::io::read(reader, &mut *target)),
        }
    }

    /// Returns how many bytes were written; [`io::ErrorKind::WouldBlock`] when there is no room.
    pub(super) fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Bytes::Socket(socket) => {
                again_if_interrupted(|| send(socket, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL))
            }
            Bytes::Pipes { writer, .. } => again_if_interrupted(|| rustix::io::write(writer, bytes)),
        }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        if let Bytes::Socket(socket) = self {
            // The other end finds out also where somebody else holds this socket as well.
            let _ = shutdown(socket, Shutdown::Write);
        }
    }
}

/// Reads from a socket, as [`Bytes::read`] does.
pub(super) fn read_socket(socket: impl AsFd, target: &mut [u8]) -> io::Result<usize> {
    again_if_interrupted(|| recv(&socket, &mut *target, RecvFlags::DONTWAIT).map(|(_, read)| read))
}

fn again_if_interrupted<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            done => return Ok(done?),
        }
    }
}
