//! One end of a channel, over whatever carries its messages.

use std::fmt;
use std::time::Instant;

use rustix::event::PollFd;

use super::waiting::Waiting;
use super::{Channel, ChannelError, MESSAGE_BYTES_MAX};

/// What carries messages to the other end, and is not used any more in a direction in which it has failed for good.
pub(super) trait Transport: Send + fmt::Debug {
    /// See [`Channel::send`]; the message is not too long.
    fn put_in(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError>;

    /// See [`Channel::receive`].
    fn take_out(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError>;

    /// See [`Channel::try_receive`].
    fn take_out_now(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError>;

    /// See [`Waiting::begin_wait`].
    fn begin_wait(&mut self) -> bool;

    /// See [`Waiting::add_files`].
    fn add_files<'a>(&'a self, files: &mut Vec<PollFd<'a>>);

    /// See [`Waiting::end_wait`].
    fn end_wait(&mut self, is_ready: bool);

    /// See [`Waiting::has_unsent`].
    fn has_unsent(&self) -> bool;
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Endpoint<T> {
    transport: T,
    can_send: bool,
    can_receive: bool,
}

impl<T: Transport> Endpoint<T> {
    pub(super) fn new(transport: T) -> Self {
        Endpoint { transport, can_send: true, can_receive: true }
    }

    fn end_if_final<R>(&mut self, received: Result<R, ChannelError>) -> Result<R, ChannelError> {
        received.inspect_err(|error| {
            if error.is_final() {
                (self.can_send, self.can_receive) = (false, false);
            }
        })
    }
}

impl<T: Transport> Channel for Endpoint<T> {
    fn send(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(ChannelError::TooLong(message.len()));
        }
        if !self.can_send {
            return Err(ChannelError::Closed);
        }
        // What has come before can still be received.
        self.transport.put_in(message, deadline).inspect_err(|error| self.can_send = !error.is_final())
    }

    fn receive(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError> {
        if !self.can_receive {
            return Err(ChannelError::Closed);
        }
        let received = self.transport.take_out(message, deadline);
        self.end_if_final(received)
    }

    fn try_receive(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError> {
        if !self.can_receive {
            return Err(ChannelError::Closed);
        }
        let received = self.transport.take_out_now(message);
        self.end_if_final(received)
    }
}

impl<T: Transport> Waiting for Endpoint<T> {
    fn begin_wait(&mut self) -> bool {
        // What has failed says so again.
        !self.can_receive || self.transport.begin_wait()
    }

    fn add_files<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        self.transport.add_files(files);
    }

    fn end_wait(&mut self, is_ready: bool) {
        self.transport.end_wait(is_ready);
    }

    fn has_unsent(&self) -> bool {
        self.transport.has_unsent()
    }
}
