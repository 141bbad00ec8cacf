//! A channel through two streams of bytes that the operating system carries, one for each direction.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant;

use rustix::event::PollFlags;

use super::frame::Header;
use super::wait::wait_for;
use super::{Channel, ChannelError, MESSAGE_BYTES_MAX};

/// How many bytes are read at once, at most.
const READ_BYTES: usize = 64 << 10;

/// See the module's documentation.
pub(super) struct StreamChannel<R, W> {
    reader: R,
    /// It does not block.
    writer: W,
    /// What was read and is not received yet lies from `begin` to `end`.
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    /// The rest of a message of which a part was written, and where that begins.
    unsent: Vec<u8>,
    written: usize,
    sent: u64,
    received: u64,
}

impl<R: Read + AsFd, W: Write + AsFd> StreamChannel<R, W> {
    /// Returns a channel that reads here, and writes there without blocking.
    pub(super) fn new(reader: R, writer: W) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&writer, true)?;
        let buffer = vec![0; READ_BYTES].into();
        let (unsent, begin, end) = (Vec::new(), 0, 0);
        Ok(StreamChannel { reader, writer, buffer, begin, end, unsent, written: 0, sent: 0, received: 0 })
    }

    /// Writes what is unsent, as far as there is room.
    fn flush(&mut self) -> Result<(), ChannelError> {
        while self.written < self.unsent.len() {
            match self.writer.write(&self.unsent[self.written..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        if self.written == self.unsent.len() {
            self.unsent.clear();
            self.written = 0;
        }
        Ok(())
    }

    /// Waits until something can be written, and writes what is unsent as far as that goes.
    fn wait_and_flush(&mut self, deadline: Option<Instant>) -> Result<(), ChannelError> {
        wait_for([(self.writer.as_fd(), PollFlags::OUT)], deadline)?;
        self.flush()
    }

    /// Takes a message from what was read; `false` when there is none as a whole.
    fn take(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError> {
        let read = &self.buffer[self.begin..self.end];
        let Some((header, rest)) = read.split_first_chunk() else { return Ok(false) };
        let header = Header(u64::from_le_bytes(*header));
        let bytes = header.message_bytes().map_err(ChannelError::Nonsense)?;
        let Some(bytes) = rest.get(..bytes) else { return Ok(false) };
        header.check(bytes, self.received).map_err(ChannelError::Nonsense)?;
        message.clear();
        message.extend_from_slice(bytes);
        self.begin += Header::BYTES + message.len();
        self.received += 1;
        Ok(true)
    }

    /// Reads more; blocks while there is nothing.
    fn read(&mut self) -> Result<(), ChannelError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        match self.reader.read(&mut self.buffer[self.end..]) {
            Ok(0) if self.end > 0 => Err(ChannelError::Nonsense("it ends in its midst")),
            Ok(0) => Err(ChannelError::Closed),
            Ok(read) => {
                self.end += read;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

impl<R: Read + AsFd + Send, W: Write + AsFd + Send> Channel for StreamChannel<R, W> {
    fn send(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        if message.len() > MESSAGE_BYTES_MAX {
            return Err(ChannelError::TooLong(message.len()));
        }
        while !self.unsent.is_empty() {
            self.wait_and_flush(deadline)?;
        }
        self.unsent.extend_from_slice(&Header::of(message, self.sent).0.to_le_bytes());
        self.unsent.extend_from_slice(message);
        let mut flushed = self.flush();
        while flushed.is_ok() && !self.unsent.is_empty() && self.written == 0 {
            flushed = self.wait_and_flush(deadline);
        }
        if let Err(error) = flushed {
            // Nothing of it was written, or the channel is of no more use.
            self.unsent.clear();
            return Err(error);
        }
        self.sent += 1;
        Ok(())
    }

    fn receive(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError> {
        while !self.take(message)? {
            if self.unsent.is_empty() && deadline.is_none() {
                self.read()?;
                continue;
            }
            let writable = if self.unsent.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            let files = [(self.reader.as_fd(), PollFlags::IN), (self.writer.as_fd(), writable)];
            let [is_readable, is_writable] = wait_for(files, deadline)?;
            if is_readable {
                self.read()?;
            } else if is_writable {
                self.flush()?;
            }
        }
        Ok(())
    }
}

impl<R, W> fmt::Debug for StreamChannel<R, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamChannel { sent, received, .. } = self;
        f.debug_struct("StreamChannel")
            .field("sent", sent)
            .field("received", received)
            .finish_non_exhaustive()
    }
}
