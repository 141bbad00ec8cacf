//! A channel through shared memory.
//!
//! Each end makes the memory that it receives through: a ring, and a word that counts its sleeps. It sleeps after it has looked for messages for
//! a while, on the socket by which the ends have met: a byte there wakes it, and so does the end of the other process. An event of the
//! kernel (`eventfd`) would have to be shared with the other end, which could make it block.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ensilo_sync::{Backoff, cpu_relax};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown, send, shutdown};

use super::ChannelError;
use super::bytes::read_socket;
use super::endpoint::Transport;
use super::ring::{self, Broken, RingReceiver, RingSender};
use super::sleep::{Sleeps, Wakeups};
use super::wait::{has_passed, wait_for};
use super::words::SharedWords;

/// Where the word is that counts the receiver's sleeps.
const SLEEP: usize = ring::WORDS;

/// How many words the memory of one direction has.
pub(super) const WORDS: usize = ring::WORDS + 8;

/// How often the receiver looks for a message before it sleeps.
const LOOKS: u32 = 1000;

/// How often a sender that finds no room looks again before it sleeps for moments, each longer than the one before.
const WAITS_BEFORE_NAP: u32 = 100;
const NAP_MIN: Duration = Duration::from_micros(20);
const NAP_MAX: Duration = Duration::from_millis(1);

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct MemoryTransport {
    receiver: RingReceiver,
    sender: RingSender,
    sleeps: Sleeps,
    wakeups: Wakeups,
    /// The memory that this end receives through, and that of the other end.
    own: SharedWords,
    other: SharedWords,
    /// Carries bytes that wake, and ends when the other end does.
    link: UnixStream,
    /// Whether a wait has found out that nothing is sent any more.
    is_other_gone: bool,
}

impl From<Broken> for ChannelError {
    fn from(Broken(what): Broken) -> Self {
        ChannelError::Nonsense(what)
    }
}

impl MemoryTransport {
    /// Takes over [`WORDS`] words that this end receives through, and as many of the other end.
    pub(super) fn new(own: SharedWords, other: SharedWords, link: UnixStream) -> Self {
        MemoryTransport {
            receiver: RingReceiver::new(own.clone()),
            sender: RingSender::new(other.clone()),
            sleeps: Sleeps::default(),
            wakeups: Wakeups::default(),
            own,
            other,
            link,
            is_other_gone: false,
        }
    }

    /// Wakes the other end.
    #[cold]
    fn wake_other(&self) -> Result<(), ChannelError> {
        loop {
            match send(&self.link, &[0], SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
                Err(Errno::INTR) => {}
                // Where there is no room for the byte, others are there that wake. Where nobody reads it, the next wait finds that out.
                Ok(_) | Err(Errno::AGAIN | Errno::PIPE | Errno::CONNRESET) => return Ok(()),
                Err(error) => return Err(ChannelError::Io(error.into())),
            }
        }
    }

    #[cold]
    fn put_in_when_there_is_room(
        &mut self,
        message: &[u8],
        deadline: Option<Instant>,
    ) -> Result<(), ChannelError> {
        let (mut backoff, mut nap) = (Backoff::new(), NAP_MIN);
        while !self.sender.try_send(message)? {
            if has_passed(deadline) {
                return Err(ChannelError::TimedOut);
            }
            if backoff.waits() < WAITS_BEFORE_NAP {
                backoff.wait();
                continue;
            }
            let nap_end = Instant::now() + nap;
            match self.wait_for_link(Some(deadline.map_or(nap_end, |deadline| deadline.min(nap_end)))) {
                Ok(()) => {}
                Err(ChannelError::TimedOut) => nap = NAP_MAX.min(2 * nap),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sleeps until the other end wakes this one.
    ///
    /// # Errors
    /// [`ChannelError::TimedOut`]; [`ChannelError::Closed`] when the other end is.
    #[cold]
    fn wait_for_link(&self, deadline: Option<Instant>) -> Result<(), ChannelError> {
        wait_for([(self.link.as_fd(), PollFlags::IN)], deadline)?;
        // The bytes say nothing more: messages are looked for after this.
        match read_socket(&self.link, &mut [0; 64]) {
            Ok(0) => Err(ChannelError::Closed),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl Transport for MemoryTransport {
    fn put_in(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        if !self.sender.try_send(message)? {
            self.put_in_when_there_is_room(message, deadline)?;
        }
        if self.wakeups.are_due(&self.other[SLEEP]) { self.wake_other() } else { Ok(()) }
    }

    fn take_out(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError> {
        loop {
            for _ in 0..LOOKS {
                if self.receiver.try_receive(message)? {
                    return Ok(());
                }
                cpu_relax();
            }
            self.sleeps.begin(&self.own[SLEEP]);
            let received = self.receiver.try_receive(message);
            let slept = if received == Ok(false) { self.wait_for_link(deadline) } else { Ok(()) };
            self.sleeps.end(&self.own[SLEEP]);
            if received? {
                return Ok(());
            }
            let end = slept.err().or_else(|| has_passed(deadline).then_some(ChannelError::TimedOut));
            if let Some(end) = end {
                // Something may have come before the end, or at the deadline.
                return if self.receiver.try_receive(message)? { Ok(()) } else { Err(end) };
            }
        }
    }

    fn take_out_now(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError> {
        let is_over = self.is_other_gone;
        let received = self.receiver.try_receive(message)?;
        if is_over && !received { Err(ChannelError::Closed) } else { Ok(received) }
    }

    fn begin_wait(&mut self) -> bool {
        self.sleeps.begin(&self.own[SLEEP]);
        self.is_other_gone || self.receiver.has_message()
    }

    fn add_files<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        files.push(PollFd::from_borrowed_fd(self.link.as_fd(), PollFlags::IN));
    }

    fn has_unsent(&self) -> bool {
        false
    }

    fn end_wait(&mut self, is_ready: bool) {
        self.sleeps.end(&self.own[SLEEP]);
        // The bytes say nothing more: messages are looked for after this.
        let read = if is_ready { read_socket(&self.link, &mut [0; 64]) } else { Ok(1) };
        self.is_other_gone |= match read {
            Ok(read) => read == 0,
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
        };
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        // The other end finds out also where somebody else holds this socket as well.
        let _ = shutdown(&self.link, Shutdown::Both);
    }
}
