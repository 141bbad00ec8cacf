//! How two ends meet: over a Unix socket that both have, one each.
//!
//! Each end makes what it will receive through, and passes the other end of that on. So both do the same, in the same order.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};

use super::memory::{Inbox, MemoryChannel};
use super::stream::StreamChannel;
use super::wait::wait_for;
use super::{Channel, ChannelError, ChannelKind};

/// What the ends say to each other first; the last byte is the kind.
const GREETING: [u8; 7] = *b"ensilo1";

/// How many bytes a step of the meeting has.
const STEP_BYTES: usize = GREETING.len() + 1;

/// The most files that are passed on in one step.
const FILES_MAX: usize = 2;

/// How long an end waits for the other one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connects this end of a channel with the other one, which does the same with the other end of the pair that `link` is of.
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
    let meeting = Meeting { kind, link, deadline: Instant::now() + PATIENCE };
    match kind {
        ChannelKind::Memory => meeting.share_memory(),
        ChannelKind::Unix => {
            let (reader, passed_on) = UnixStream::pair()?;
            let [writer] = meeting.exchange_files([passed_on.as_fd()])?;
            Ok(Box::new(StreamChannel::new(reader, UnixStream::from(writer))?))
        }
        ChannelKind::Pipe => {
            let (reader, passed_on) = io::pipe()?;
            let [writer] = meeting.exchange_files([passed_on.as_fd()])?;
            Ok(Box::new(StreamChannel::new(reader, io::PipeWriter::from(writer))?))
        }
        ChannelKind::Tcp => {
            let (reader, writer) = meeting.connect_loopback()?;
            Ok(Box::new(StreamChannel::new(reader, writer)?))
        }
    }
}

/// What an end knows while it meets the other one.
struct Meeting {
    kind: ChannelKind,
    link: UnixStream,
    deadline: Instant,
}

impl Meeting {
    fn share_memory(self) -> Result<Box<dyn Channel>, ChannelError> {
        let own = Inbox::new()?;
        let other = Inbox::from_other(self.exchange_files(own.files())?)?;
        Ok(Box::new(MemoryChannel::new(own, other, self.link)))
    }

    /// Returns a connection for each direction: the one that the other end has made, to be read, and its own. Another process that
    /// connects in between is turned away: each end says which port it comes from.
    fn connect_loopback(&self) -> Result<(TcpStream, TcpStream), ChannelError> {
        let [] = self.exchange_files([])?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = self.exchange_port(listener.local_addr()?.port())?;
        let writer = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        writer.set_nodelay(true)?;
        let from = self.exchange_port(writer.local_addr()?.port())?;
        loop {
            wait_for([(listener.as_fd(), PollFlags::IN)], Some(self.deadline))?;
            let (reader, address) = listener.accept()?;
            if address.port() == from {
                return Ok((reader, writer));
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
        sendmsg(&self.link, &[IoSlice::new(&step)], &mut passed_on, SendFlags::NOSIGNAL)
            .map_err(io::Error::from)?;
        self.receive_step()
    }

    fn receive_step<const N: usize>(&self) -> Result<([u8; STEP_BYTES], [OwnedFd; N]), ChannelError> {
        wait_for([(self.link.as_fd(), PollFlags::IN)], Some(self.deadline))?;
        let mut step = [0; STEP_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FILES_MAX))];
        let mut passed_on = RecvAncillaryBuffer::new(&mut space);
        let mut target = [IoSliceMut::new(&mut step)];
        let received = recvmsg(&self.link, &mut target, &mut passed_on, RecvFlags::CMSG_CLOEXEC);
        let received = received.map_err(io::Error::from)?.bytes;
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
