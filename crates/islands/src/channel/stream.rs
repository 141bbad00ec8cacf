//! A channel through streams of bytes that the operating system carries.

use std::fmt;
use std::io;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags};

use super::ChannelError;
use super::bytes::Bytes;
use super::endpoint::Transport;
use super::frame::Header;
use super::wait::{has_passed, wait_for};

/// How many bytes are read at once, at most: more than the longest frame has.
const READ_BYTES: usize = 64 << 10;

/// See the module's documentation.
pub(super) struct StreamTransport {
    bytes: Bytes,
    /// What was read and is not received yet lies from `begin` to `end`.
    buffer: Box<[u8]>,
    begin: usize,
    end: usize,
    /// The frame of which a part was written, and how much of it; empty when there is none.
    unsent: Vec<u8>,
    written: usize,
    sent: u64,
    received: u64,
}

impl StreamTransport {
    pub(super) fn new(bytes: Bytes) -> Self {
        let buffer = vec![0; READ_BYTES].into();
        StreamTransport {
            bytes,
            buffer,
            begin: 0,
            end: 0,
            unsent: Vec::new(),
            written: 0,
            sent: 0,
            received: 0,
        }
    }

    /// Writes what is unsent, as far as there is room.
    fn flush(&mut self) -> Result<(), ChannelError> {
        while self.written < self.unsent.len() {
            match self.bytes.write(&self.unsent[self.written..]) {
                Ok(0) => return Err(ChannelError::Closed),
                Ok(written) => self.written += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent.clear();
        self.written = 0;
        Ok(())
    }

    /// Waits until something can be written, and writes what is unsent as far as that goes.
    fn wait_and_flush(&mut self, deadline: Option<Instant>) -> Result<(), ChannelError> {
        let written = self.written;
        wait_for([(self.bytes.writer(), PollFlags::OUT)], deadline)?;
        self.flush()?;
        let is_in_vain = self.written == written && !self.unsent.is_empty();
        if is_in_vain && has_passed(deadline) { Err(ChannelError::TimedOut) } else { Ok(()) }
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

    /// Reads more; `false` when there is nothing.
    fn read(&mut self) -> Result<bool, ChannelError> {
        self.buffer.copy_within(self.begin..self.end, 0);
        (self.begin, self.end) = (0, self.end - self.begin);
        match self.bytes.read(&mut self.buffer[self.end..]) {
            Ok(0) => Err(ChannelError::Closed),
            Ok(read) => {
                self.end += read;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl Transport for StreamTransport {
    /// Writes the message as far as there is room for it, at least its first byte.
    fn put_in(&mut self, message: &[u8], deadline: Option<Instant>) -> Result<(), ChannelError> {
        self.flush()?;
        while !self.unsent.is_empty() {
            self.wait_and_flush(deadline)?;
        }
        self.unsent.extend_from_slice(&Header::of(message, self.sent).0.to_le_bytes());
        self.unsent.extend_from_slice(message);
        self.flush()?;
        while !self.unsent.is_empty() && self.written == 0 {
            if let Err(error) = self.wait_and_flush(deadline) {
                self.unsent.clear();
                return Err(error);
            }
        }
        self.sent += 1;
        Ok(())
    }

    fn take_out(&mut self, message: &mut Vec<u8>, deadline: Option<Instant>) -> Result<(), ChannelError> {
        while !self.take_out_now(message)? {
            if has_passed(deadline) {
                return Err(ChannelError::TimedOut);
            }
            let reader = (self.bytes.reader(), PollFlags::IN);
            if self.unsent.is_empty() {
                wait_for([reader], deadline)?;
            } else {
                wait_for([reader, (self.bytes.writer(), PollFlags::OUT)], deadline)?;
            }
        }
        Ok(())
    }

    fn take_out_now(&mut self, message: &mut Vec<u8>) -> Result<bool, ChannelError> {
        // First: the other end may wait for the rest. If that fails, what has come can be received all the same.
        let flushed = self.flush();
        loop {
            if self.take(message)? {
                return Ok(true);
            }
            if !self.read()? {
                return flushed.map(|()| false);
            }
        }
    }

    fn begin_wait(&mut self) -> bool {
        false
    }

    fn add_files<'a>(&'a self, files: &mut Vec<PollFd<'a>>) {
        files.push(PollFd::from_borrowed_fd(self.bytes.reader(), PollFlags::IN));
        if !self.unsent.is_empty() {
            files.push(PollFd::from_borrowed_fd(self.bytes.writer(), PollFlags::OUT));
        }
    }

    fn end_wait(&mut self, _: bool) {}

    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty()
    }
}

impl fmt::Debug for StreamTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StreamTransport { bytes, sent, received, .. } = self;
        let mut shown = f.debug_struct("StreamTransport");
        shown.field("bytes", bytes).field("sent", sent).field("received", received).finish_non_exhaustive()
    }
}
