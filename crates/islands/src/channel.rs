//! Channels: how instances talk to each other.
//!
//! A channel has two ends, in two processes or two threads, and carries messages both ways, in order. All kinds have the same [frame](frame): the
//! length of a message is bounded, and its bytes have a checksum. The other end is not trusted, nor is the memory that both share: [`connect`]
//! says what that means.
//!
//! # Source
//! Islands (VLDB Journal) §3 and figure 2 for what the operating system offers, §6.4 for shared memory.

#[cfg(not(loom))]
mod bytes;
#[cfg(not(loom))]
mod connect;
#[cfg(not(loom))]
mod endpoint;
mod frame;
#[cfg(not(loom))]
mod memory;
mod ring;
mod sleep;
#[cfg(not(loom))]
mod stream;
#[cfg(not(loom))]
mod wait;
#[cfg(not(loom))]
mod waiting;
mod words;

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Instant;

use serde::{Deserialize, Serialize};

#[cfg(not(loom))]
pub use connect::connect;
#[cfg(not(loom))]
pub(crate) use connect::connect_to_wait;
pub use frame::MESSAGE_BYTES_MAX;
#[cfg(not(loom))]
pub(crate) use waiting::{Waiting, wait_for_any};

/// How the two ends of a channel are connected.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ChannelKind {
    /// Rings in memory that both ends map; who waits spins for a moment, and then sleeps.
    Memory = 0,
    /// The Unix socket by which the ends have met.
    Unix = 1,
    /// Two pipes, between processes of one user.
    Pipe = 2,
    /// A TCP connection over the loopback device.
    Tcp = 3,
}

impl ChannelKind {
    /// Returns all kinds.
    #[must_use]
    pub const fn all() -> [ChannelKind; 4] {
        [ChannelKind::Memory, ChannelKind::Unix, ChannelKind::Pipe, ChannelKind::Tcp]
    }

    /// Returns the kind's name, in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            ChannelKind::Memory => "memory",
            ChannelKind::Unix => "unix",
            ChannelKind::Pipe => "pipe",
            ChannelKind::Tcp => "tcp",
        }
    }
}

impl fmt::Display for ChannelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads a [name](ChannelKind::name).
impl FromStr for ChannelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let named = ChannelKind::all().into_iter().find(|kind| kind.name() == text);
        named.ok_or_else(|| format!("{text:?} is none of memory, unix, pipe, tcp"))
    }
}

/// Why a message was not sent or received. A channel that is of no more use says that it is [closed](ChannelError::Closed) from then on.
#[derive(Debug)]
#[non_exhaustive]
pub enum ChannelError {
    /// The message has so many bytes, more than [`MESSAGE_BYTES_MAX`]. Nothing was sent; send it in parts.
    TooLong(usize),
    /// The deadline has passed. Nothing was sent or received, and the channel can be used.
    TimedOut,
    /// The other end is closed, or its process has died, perhaps in the midst of a message: the channel is of no more use.
    Closed,
    /// What the other end has sent is no message; this holds what is wrong with it. The channel is of no more use.
    Nonsense(&'static str),
    /// The operating system has failed. The channel is of no more use.
    Io(io::Error),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelError::TooLong(len) => {
                write!(f, "a message of {len} bytes is too long: a channel takes {MESSAGE_BYTES_MAX}")
            }
            ChannelError::TimedOut => f.write_str("the other end has not answered in time"),
            ChannelError::Closed => f.write_str("the other end of the channel is closed"),
            ChannelError::Nonsense(what) => {
                write!(f, "the other end of the channel has sent no message: {what}")
            }
            ChannelError::Io(error) => write!(f, "the channel has failed: {error}"),
        }
    }
}

impl std::error::Error for ChannelError {}

impl ChannelError {
    /// Returns whether the channel is of no more use.
    #[must_use]
    pub fn is_final(&self) -> bool {
        !matches!(self, ChannelError::TooLong(_) | ChannelError::TimedOut)
    }
}

impl From<io::Error> for ChannelError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused => {
                ChannelError::Closed
            }
            _ => ChannelError::Io(error),
        }
    }
}

/// One end of a channel. Dropping it closes the channel.
pub trait Channel: Send + fmt::Debug {
    /// Sends a message, and waits while there is no room for it, until the deadline if there is one. A deadline in the past waits for nothing.
    ///
    /// In channels other than those through memory a part of the message may be on its way when this returns. The rest goes when this end sends or
    /// receives again, and is lost, as the whole message is, if it is dropped before. A TCP connection may lose what was sent last when this end is
    /// dropped before it has received all that the other one has sent. Two ends that both send more than there is room for, and receive nothing
    /// meanwhile, wait for each other: a deadline ends that.
    ///
    /// # Errors
    /// See [`ChannelError`]. Messages that were sent before may not have been received when the other end is closed. What it had sent can still be
    /// received.
    fn send(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError>;

    /// Puts the next message in the place of what `message` holds, and waits while there is none, until the deadline if there is one. What
    /// `message` holds after an error is of no meaning.
    ///
    /// # Errors
    /// See [`ChannelError`].
    fn receive(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError>;

    /// Puts the next message in the place of what `message` holds, if one has come: for one who looks at several channels by turns. It may not find
    /// out that the other end is gone, as [`receive`](Self::receive) with a deadline in the past does.
    ///
    /// # Errors
    /// See [`ChannelError`].
    fn try_receive(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError>;
}
