//! A channel through shared memory.
//!
//! Each end makes the memory that it receives through: a ring, and a word that counts its sleeps. It sleeps on an event of its own after it has
//! looked for a while, and looks at the socket by which the ends have met as well: nothing more comes there, but it ends when the
//! other process does.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use ensilo_sync::atomic::AtomicU64;
use ensilo_sync::{Backoff, cpu_relax};
use rustix::event::{EventfdFlags, PollFlags, eventfd};

use super::ring::{self, Broken, RingReceiver, RingSender};
use super::sleep::{Sleeps, Wakeups};
use super::wait::wait_for;
use super::words::{MemoryFile, SharedWords};
use super::{Channel, ChannelError, MESSAGE_BYTES_MAX};

/// Where the word is that counts the receiver's sleeps.
const SLEEP: usize = ring::WORDS;

/// How many words the memory of one direction has.
const WORDS: usize = ring::WORDS + 8;

/// How often the receiver looks for a message before it sleeps.
const LOOKS: u32 = 1000;

/// How often a sender that finds no room looks again before it sleeps for moments.
const WAITS_BEFORE_NAP: u32 = 1000;

/// Such a moment.
const NAP: Duration = Duration::from_micros(50);

/// What an end receives through.
#[derive(Debug)]
pub(super) struct Inbox {
    memory: MemoryFile,
    event: OwnedFd,
    words: SharedWords,
}

impl Inbox {
    pub(super) fn new() -> io::Result<Self> {
        let memory = MemoryFile::new(WORDS)?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let words = memory.map(WORDS)?;
        Ok(Inbox { memory, event, words })
    }

    /// Takes over the memory and the event that the other end receives through.
    pub(super) fn from_other([memory, event]: [OwnedFd; 2]) -> io::Result<Self> {
        let memory = MemoryFile::from_other(memory, WORDS)?;
        let words = memory.map(WORDS)?;
        Ok(Inbox { memory, event, words })
    }

    /// Returns the files that the other end needs.
    pub(super) fn files(&self) -> [std::os::fd::BorrowedFd<'_>; 2] {
        [self.memory.as_fd(), self.event.as_fd()]
    }

    fn sleep_word(&self) -> &AtomicU64 {
        &self.words[SLEEP]
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct MemoryChannel {
    receiver: RingReceiver,
    sender: RingSender,
    sleeps: Sleeps,
    wakeups: Wakeups,
    own: Inbox,
    other: Inbox,
    /// Ends when the other end does.
    link: UnixStream,
}

impl From<Broken> for ChannelError {
    fn from(Broken(what): Broken) -> Self {
        ChannelError::Nonsense(what)
    }
}

impl MemoryChannel {
    pub(super) fn new(own: Inbox, other: Inbox, link: UnixStream) -> Self {
        let receiver = RingReceiver::new(own.words.clone(), 0);
        let sender = RingSender::new(other.words.clone(), 0);
        let (sleeps, wakeups) = (Sleeps::default(), Wakeups::default());
        MemoryChannel { receiver, sender, sleeps, wakeups, own, other, link }
    }

    /// Waits until there is room for a message, and puts it in.
    #[cold]
    fn send_when_there_is_room(
        &mut self,
        message: &[u8],
        deadline: Option<Instant>,
    ) -> Result<(), ChannelError> {
        let mut backoff = Backoff::new();
        while !self.sender.try_send(message)? {
            if backoff.waits() < WAITS_BEFORE_NAP {
                backoff.wait();
                continue;
            }
            std::thread::sleep(NAP);
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(ChannelError::TimedOut);
            }
            match wait_for([(self.link.as_fd(), PollFlags::IN)], Some(Instant::now())) {
                Err(ChannelError::TimedOut) => {}
                Ok(_) => return Err(ChannelError::Closed),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Sleeps until there may be a message.
    #[cold]
    fn sleep(&mut self, deadline: Option<Instant>) -> Result<(), ChannelError> {
        let files = [(self.own.event.as_fd(), PollFlags::IN), (self.link.as_fd(), PollFlags::IN)];
        let [is_woken, is_ended] = wait_for(files, deadline)?;
        if is_woken {
            // Whatever it has counted: it is looked for messages after this.
            let _ = rustix::io::read(&self.own.event, &mut [0; size_of::<u64>()]);
        }
        if is_ended && !is_woken { Err(ChannelError::Closed) } else { Ok(()) }
    }
}

impl Channel for MemoryChannel {
    fn send(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(ChannelError::TooLong(message.len()));
        }
        if !self.sender.try_send(message)? {
            self.send_when_there_is_room(message, deadline)?;
        }
        if self.wakeups.are_due(self.other.sleep_word()) {
            // A counter that is full, as the other end may have left it, wakes as well.
            let _ = rustix::io::write(&self.other.event, &1u64.to_ne_bytes());
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError> {
        loop {
            for _ in 0..LOOKS {
                if self.receiver.try_receive(message)? {
                    return Ok(());
                }
                cpu_relax();
            }
            self.sleeps.begin(self.own.sleep_word());
            let found = self.receiver.try_receive(message)?;
            let slept = if found { Ok(()) } else { self.sleep(deadline) };
            self.sleeps.end(self.own.sleep_word());
            match slept {
                Ok(()) if found => return Ok(()),
                Ok(()) => {}
                // Something may have come before the end, or at the deadline.
                Err(error) => return if self.receiver.try_receive(message)? { Ok(()) } else { Err(error) },
            }
        }
    }
}
