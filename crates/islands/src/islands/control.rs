//! What a process that runs islands says to those of its instances, over a socket that both have from the start.
//!
//! Both are of one program and one user: what they send is trusted as to what it says, and checked as to whether it is a message.

use std::io::{self, IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};

use super::local::InstanceOptions;
use crate::commit::SiteId;

/// A message, to an instance where nothing else is said.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Control {
    /// Open the instance, and start its workers.
    Open(Box<InstanceOptions>),
    /// From the instance: it is open, in this incarnation.
    Opened(u32),
    /// From the instance: it cannot be opened.
    Refused(String),
    /// Another instance has ended, and comes back with this incarnation.
    Ended { instance: u16, next_incarnation: u32 },
    /// From the instance: all of it knows what it was told.
    Known,
    /// Has a worker reach this site over the socket that comes with this.
    Link { worker: u16, site: SiteId },
    /// Has a worker serve a client over the socket that comes with this.
    Client { worker: u16 },
    /// End when nothing is under way any more.
    Stop,
}

/// The most bytes of a message.
const BYTES_MAX: usize = 1 << 20;

/// Sends a message, and a file if there is one.
pub(crate) fn send(socket: &UnixStream, message: &Control, file: Option<BorrowedFd<'_>>) -> io::Result<()> {
    let Ok(bytes) = postcard::to_allocvec(message) else {
        unreachable!("a message has bytes");
    };
    let length = (bytes.len() as u32).to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed_on = SendAncillaryBuffer::new(&mut space);
    let files: Vec<BorrowedFd<'_>> = file.into_iter().collect();
    let has_room = files.is_empty() || passed_on.push(SendAncillaryMessage::ScmRights(&files));
    assert!(has_room, "there is room for one file");
    let sent = sendmsg(socket, &[IoSlice::new(&length)], &mut passed_on, SendFlags::NOSIGNAL)?;
    let mut socket = socket;
    socket.write_all(&length[sent..])?;
    socket.write_all(&bytes)
}

/// Waits for a message, and returns it with the file that has come with it.
///
/// # Errors
/// [`io::ErrorKind::UnexpectedEof`] when the other end is gone.
pub(crate) fn receive(socket: &UnixStream) -> io::Result<(Control, Option<OwnedFd>)> {
    let mut length = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut passed_on = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let into = &mut [IoSliceMut::new(&mut length)];
        match recvmsg(socket.as_fd(), into, &mut passed_on, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received.bytes,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    };
    if received == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let files = passed_on.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let file = files.flatten().next();
    let mut socket = socket;
    socket.read_exact(&mut length[received..])?;
    let length = u32::from_le_bytes(length) as usize;
    if length > BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a message of an instance is too long"));
    }
    let mut bytes = vec![0; length];
    socket.read_exact(&mut bytes)?;
    let message = postcard::from_bytes(&bytes);
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "what an instance was sent is no message");
    message.map(|message| (message, file)).map_err(invalid)
}
