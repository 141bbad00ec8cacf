//! A ring of messages: one end puts them in, the other one takes them out, without locks.
//!
//! # Layout
//! Words of shared memory, from the first one on:
//! ```text
//!   0        8        16                      16 + RING_WORDS
//!   | tail   | head   | frames, each from a whole word on, which go on at 16 behind the last word |
//! ```
//! `tail` counts the words that were ever put in, `head` those that were ever taken out; each has a cache line of its own.
//!
//! # Invariants
//! R1. `head <= tail <= head + RING_WORDS`, as long as both ends do what is written here. Each end keeps its own count to itself and only
//!     publishes it: what the other one may write there is checked before it is relied on.
//! R2. The words from `head` to `tail` belong to the receiver, all others to the sender.
//!
//! # Memory ordering
//! | edge | from | to | what it carries |
//! |---|---|---|---|
//! | `[message]` | `try_send`: tail, Release | `try_receive`: tail, Acquire | the words of the frame |
//! | `[room]` | `try_receive`: head, Release | `try_send`: head, Acquire | that the words were read before others come in their place |
//!
//! A message is copied out of the ring before its checksum is computed: who writes to the ring later changes nothing of it any more.

use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::frame::Header;
use super::words::SharedWords;

/// The words for frames, a power of two, and more than the longest message takes.
const RING_WORDS: usize = if cfg!(loom) { 4 } else { 8 << 10 };
const _: () =
    assert!(RING_WORDS.is_power_of_two() && frame_words(super::frame::MESSAGE_BYTES_MAX) <= RING_WORDS);

const WORD_BYTES: usize = size_of::<u64>();
const TAIL: usize = 0;
const HEAD: usize = 8;
const FRAMES: usize = 16;

/// How many words a ring takes.
pub(super) const WORDS: usize = FRAMES + RING_WORDS;

/// Returns how many words the frame of a message takes.
const fn frame_words(message_bytes: usize) -> usize {
    1 + message_bytes.div_ceil(WORD_BYTES)
}

/// The other end has broken R1, or has put in what is no frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Broken(pub(super) &'static str);

/// The words of a ring.
#[derive(Debug)]
struct Ring(SharedWords);

impl Ring {
    fn new(words: SharedWords) -> Self {
        assert!(WORDS <= words.len(), "a ring lies within its memory");
        Ring(words)
    }

    #[inline]
    fn word(&self, at: usize) -> &AtomicU64 {
        &self.0[at]
    }

    /// Returns the word of a frame at this count.
    #[inline]
    fn frame_word(&self, count: u64) -> &AtomicU64 {
        self.word(FRAMES + (count as usize & (RING_WORDS - 1)))
    }
}

/// Returns how many words lie between two counts, if that may be.
fn between(head: u64, tail: u64) -> Result<usize, Broken> {
    let words = tail.wrapping_sub(head);
    if words <= RING_WORDS as u64 {
        Ok(words as usize)
    } else {
        Err(Broken("its counts do not fit the ring"))
    }
}

/// The end of a ring that puts messages in.
#[derive(Debug)]
pub(super) struct RingSender {
    ring: Ring,
    tail: u64,
    /// As it was seen last: there is more room by now, or as much.
    head: u64,
    /// How many messages were sent.
    sent: u64,
}

impl RingSender {
    /// Returns the sender of the ring in these words, which are 0.
    pub(super) fn new(words: SharedWords) -> Self {
        RingSender { ring: Ring::new(words), tail: 0, head: 0, sent: 0 }
    }

    /// Puts a message in, which is not too long; `false` when there is no room for it.
    #[inline]
    pub(super) fn try_send(&mut self, message: &[u8]) -> Result<bool, Broken> {
        let needed = frame_words(message.len());
        if !self.has_room(needed)? {
            return Ok(false);
        }
        let header = Header::of(message, self.sent);
        self.ring.frame_word(self.tail).store(header.0, Ordering::Relaxed);
        for (count, bytes) in (self.tail + 1..).zip(message.chunks(WORD_BYTES)) {
            let mut word = [0; WORD_BYTES];
            word[..bytes.len()].copy_from_slice(bytes);
            // Relaxed: [message] the tail publishes it.
            self.ring.frame_word(count).store(u64::from_le_bytes(word), Ordering::Relaxed);
        }
        self.tail += needed as u64;
        self.sent += 1;
        // Release: [message].
        self.ring.word(TAIL).store(self.tail, Ordering::Release);
        Ok(true)
    }

    #[inline]
    fn has_room(&mut self, needed: usize) -> Result<bool, Broken> {
        if needed <= RING_WORDS - between(self.head, self.tail)? {
            return Ok(true);
        }
        // Acquire: [room].
        self.head = self.ring.word(HEAD).load(Ordering::Acquire);
        Ok(needed <= RING_WORDS - between(self.head, self.tail)?)
    }
}

/// The end of a ring that takes messages out.
#[derive(Debug)]
pub(super) struct RingReceiver {
    ring: Ring,
    head: u64,
    /// As it was seen last: there is more by now, or as much.
    tail: u64,
    /// How many messages were received.
    received: u64,
}

impl RingReceiver {
    /// Returns the receiver of the ring in these words, which are 0.
    pub(super) fn new(words: SharedWords) -> Self {
        RingReceiver { ring: Ring::new(words), head: 0, tail: 0, received: 0 }
    }

    /// Returns whether there is a message.
    #[inline]
    pub(super) fn has_message(&mut self) -> bool {
        if self.head == self.tail {
            // Acquire: [message].
            self.tail = self.ring.word(TAIL).load(Ordering::Acquire);
        }
        self.head != self.tail
    }

    /// Takes the next message out, in the place of what `message` holds; `false` when there is none.
    #[inline]
    pub(super) fn try_receive(&mut self, message: &mut Vec<u8>) -> Result<bool, Broken> {
        if !self.has_message() {
            return Ok(false);
        }
        let available = between(self.head, self.tail)?;
        let header = Header(self.ring.frame_word(self.head).load(Ordering::Relaxed));
        let message_bytes = header.message_bytes().map_err(Broken)?;
        let needed = frame_words(message_bytes);
        if needed > available {
            return Err(Broken("it is not there as a whole"));
        }
        self.copy(message_bytes, message);
        header.check(message, self.received).map_err(Broken)?;
        self.head += needed as u64;
        self.received += 1;
        // Release: [room].
        self.ring.word(HEAD).store(self.head, Ordering::Release);
        Ok(true)
    }

    fn copy(&self, message_bytes: usize, message: &mut Vec<u8>) {
        message.clear();
        for count in self.head + 1..self.head + frame_words(message_bytes) as u64 {
            // Relaxed: [message] the tail has published it.
            message.extend_from_slice(&self.ring.frame_word(count).load(Ordering::Relaxed).to_le_bytes());
        }
        message.truncate(message_bytes);
    }
}

#[cfg(all(test, loom))]
#[path = "ring/model.rs"]
mod model;

#[cfg(all(test, not(loom)))]
#[path = "ring/tests.rs"]
mod tests;
