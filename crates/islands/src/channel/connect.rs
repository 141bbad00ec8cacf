//! How two ends meet: over a Unix socket that both have, one each.
//!
//! Both do the same, in the same order: they say what kind of channel they want, and pass on what the other end needs of them.

use std::cmp;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use super::bytes::{Bytes, read_socket};
use super::endpoint::Endpoint;
use super::memory::{self, MemoryTransport};
use super::stream::StreamTransport;
use super::wait::{has_passed, wait_for};
use super::waiting::Waiting;
use super::words::MemoryFile;
use super::{Channel, ChannelError, ChannelKind};

/// What the ends say to each other first; the last byte is the kind.
const GREETING: [u8; 7] = *b"ensilo1";

/// How many bytes a step of the meeting has.
const STEP_BYTES: usize = GREETING.len() + 1;

/// The most files that are passed on in one step.
const FILES_MAX: usize = 1;

/// How long an end waits for the other one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects this end of a channel with the other one, which does the same with the other end of the pair of stream sockets that `link` is of.
///
/// The channel keeps the socket, and finds out by it, or by what was connected over it, that the other end is gone. So whoever has passed a socket
/// on to another process closes its own copy: as long as somebody has the other end open, it is not gone.
///
/// The other end need not be trusted: whatever it does ends in an error here, and waits end at their deadlines, but for this:
/// - Where the machine promises no more memory than it has (`vm.overcommit_memory=2`), or the process is at the limit of its control group, the other
///   end of a channel through memory can make this process end when none is left.
/// - It may pass on files that nobody asked for, and the kernel may take its time to close the last copy of one: a socket with data to send, or a
///   file of a file system in a user's process.
/// - Pipes connect processes of one user, and a process that does not ignore SIGPIPE, as those of Rust do, uses none: the signal comes when the other
///   end is gone.
///
/// ```
/// use ensilo_islands::{ChannelKind, connect};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (here, there) = std::os::unix::net::UnixStream::pair()?;
/// let other = std::thread::spawn(move || {
///     let mut channel = connect(ChannelKind::Memory, there)?;
///     channel.send(b"hello", None)
/// });
/// let mut channel = connect(ChannelKind::Memory, here)?;
/// let mut message = Vec::new();
/// channel.receive(&mut message, None)?;
/// assert_eq!(message, b"hello");
/// other.join().unwrap()?;
/// # Ok(()) }
/// ```
///
/// # Errors
/// [`ChannelError::TimedOut`] when the other end has not come for ten seconds; [`ChannelError::Closed`] when it is gone;
/// [`ChannelError::Nonsense`] when it wants another kind of channel, or is no end of one; [`ChannelError::Io`].
pub fn connect(kind: ChannelKind, link: UnixStream) -> Result<Box<dyn Channel>, ChannelError> {
    connect_to_wait(kind, link).map(|channel| channel as Box<dyn Channel>)
}

/// Does the same for a channel that is waited for together with others.
pub(crate) fn connect_to_wait(kind: ChannelKind, link: UnixStream) -> Result<Box<dyn Waiting>, ChannelError> {
    let meeting = Meeting { kind, link, deadline: Instant::now() + PATIENCE };
    let bytes = match kind {
        ChannelKind::Memory => return meeting.share_memory(),
        ChannelKind::Unix => {
            let [] = meeting.exchange_files([])?;
            Bytes::Socket(meeting.link.into())
        }
        ChannelKind::Pipe => {
            let (reader, passed_on) = io::pipe()?;
            let [writer] = meeting.exchange_files([passed_on.as_fd()])?;
            Bytes::through_pipes(reader.into(), &writer)?
        }
        ChannelKind::Tcp => Bytes::Socket(meeting.connect_loopback()?.into()),
    };
    Ok(Box::new(Endpoint::new(StreamTransport::new(bytes))))
}

/// What an end knows while it meets the other one.
struct Meeting {
    kind: ChannelKind,
    link: UnixStream,
    deadline: Instant,
}

impl Meeting {
    fn share_memory(self) -> Result<Box<dyn Waiting>, ChannelError> {
        let own = MemoryFile::new(memory::WORDS)?;
        let [other] = self.exchange_files([own.as_fd()])?;
        let other = MemoryFile::from_other(other, memory::WORDS)?;
        let (own, other) = (own.map(memory::WORDS)?, other.map(memory::WORDS)?);
        Ok(Box::new(Endpoint::new(MemoryTransport::new(own, other, self.link))))
    }

    /// Returns a connection over the loopback device: the end with the smaller port waits for the other one, and sends back over the connection a
    /// number that only the other end of the link can have told it. So the other one is not led to a program that has nothing to do with this.
    fn connect_loopback(&self) -> Result<TcpStream, ChannelError> {
        let [] = self.exchange_files([])?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let own = listener.local_addr()?.port();
        let other = self.exchange_port(own)?;
        let secret = RandomState::new().build_hasher().finish().to_le_bytes();
        let mut connection = match own.cmp(&other) {
            cmp::Ordering::Less => self.accept(&listener, self.exchange_port(0)?)?,
            cmp::Ordering::Equal => return Err(ChannelError::Nonsense("two ends cannot listen at one port")),
            cmp::Ordering::Greater => {
                let address = SocketAddr::from((Ipv4Addr::LOCALHOST, other));
                let connection = TcpStream::connect_timeout(&address, self.time_left()).map_err(|error| {
                    let is_late = error.kind() == io::ErrorKind::TimedOut;
                    if is_late { ChannelError::TimedOut } else { error.into() }
                })?;
                self.exchange_port(connection.local_addr()?.port())?;
                connection
            }
        };
        let (others_secret, []) = self.exchange(secret, [])?;
        connection.set_nodelay(true)?;
        if own < other {
            connection.write_all(&others_secret)?;
        } else {
            self.check_secret(&connection, secret)?;
        }
        Ok(connection)
    }

    fn check_secret(&self, connection: &TcpStream, secret: [u8; STEP_BYTES]) -> Result<(), ChannelError> {
        let (mut sent_back, mut come) = ([0; STEP_BYTES], 0);
        while come < STEP_BYTES {
            wait_for([(connection.as_fd(), PollFlags::IN)], Some(self.deadline))?;
            match read_socket(connection, &mut sent_back[come..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(read) => come += read,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
        }
        if sent_back == secret { Ok(()) } else { Err(ChannelError::Nonsense("it leads to somebody else")) }
    }

    /// Returns how long the other end is still waited for, at least a moment.
    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }

    /// Waits for the connection that comes from this port. Others that connect meanwhile are turned away.
    fn accept(&self, listener: &TcpListener, from: u16) -> Result<TcpStream, ChannelError> {
        listener.set_nonblocking(true)?;
        loop {
            wait_for([(listener.as_fd(), PollFlags::IN)], Some(self.deadline))?;
            match listener.accept() {
                Ok((connection, address)) if address == SocketAddr::from((Ipv4Addr::LOCALHOST, from)) => {
                    return Ok(connection);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error.into()),
            }
            if has_passed(Some(self.deadline)) {
                return Err(ChannelError::TimedOut);
            }
        }
    }

    fn exchange_port(&self, port: u16) -> Result<u16, ChannelError> {
        let mut step = [0; STEP_BYTES];
        step[..2].copy_from_slice(&port.to_le_bytes());
        let ([low, high, ..], []) = self.exchange(step, [])?;
        Ok(u16::from_le_bytes([low, high]))
    }

    /// Passes files on, and returns as many that the other end has passed on.
    fn exchange_files<const N: usize>(
        &self,
        files: [BorrowedFd<'_>; N],
    ) -> Result<[OwnedFd; N], ChannelError> {
        let mut step = [self.kind as u8; STEP_BYTES];
        step[..GREETING.len()].copy_from_slice(&GREETING);
        match self.exchange(step, files)? {
            (other, files) if other == step => Ok(files),
            _ => Err(ChannelError::Nonsense("it is of another kind of channel")),
        }
    }

    fn exchange<const N: usize>(
        &self,
        step: [u8; STEP_BYTES],
        files: [BorrowedFd<'_>; N],
    ) -> Result<([u8; STEP_BYTES], [OwnedFd; N]), ChannelError> {
        const { assert!(N <= FILES_MAX) };
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut passed_on = SendAncillaryBuffer::new(&mut space);
        let has_room = files.is_empty() || passed_on.push(SendAncillaryMessage::ScmRights(&files));
        assert!(has_room, "there is room for as many files as are passed on");
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        loop {
            match sendmsg(&self.link, &[IoSlice::new(&step)], &mut passed_on, flags) {
                Ok(_) => return self.receive_step(),
                Err(Errno::AGAIN) => wait_for([(self.link.as_fd(), PollFlags::OUT)], Some(self.deadline))?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    fn receive_step<const N: usize>(&self) -> Result<([u8; STEP_BYTES], [OwnedFd; N]), ChannelError> {
        let mut step = [0; STEP_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut passed_on = RecvAncillaryBuffer::new(&mut space);
        let received = loop {
            wait_for([(self.link.as_fd(), PollFlags::IN)], Some(self.deadline))?;
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            match recvmsg(&self.link, &mut [IoSliceMut::new(&mut step)], &mut passed_on, flags) {
                Ok(received) if received.flags.contains(ReturnFlags::CTRUNC) => {
                    // Otherwise the file that was passed on would have come.
                    return Err(ChannelError::Io(io::Error::from(Errno::MFILE)));
                }
                Ok(received) => break received.bytes,
                Err(Errno::AGAIN | Errno::INTR) if !has_passed(Some(self.deadline)) => {}
                Err(Errno::AGAIN | Errno::INTR) => return Err(ChannelError::TimedOut),
                Err(error) => return Err(io::Error::from(error).into()),
            }
        };
        let files = passed_on.drain().filter_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => Some(files),
            _ => None,
        });
        let files: Vec<OwnedFd> = files.flatten().collect();
        match (received, files.try_into()) {
            (0, _) => Err(ChannelError::Closed),
            (STEP_BYTES, Ok(files)) => Ok((step, files)),
            _ => Err(ChannelError::Nonsense("it does not meet as the end of a channel does")),
        }
    }
}

#[cfg(test)]
#[path = "connect/tests.rs"]
mod tests;
