//! The channels of a worker, and what waits to go through them.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::channel::{ChannelError, MESSAGE_BYTES_MAX, Waiting};
use crate::commit::{Message, Outbox, SiteId};

/// The most bytes that wait for a site that receives nothing. What comes then is lost.
const UNSENT_BYTES_MAX: usize = 4 << 20;

/// A channel to one other site.
#[derive(Debug)]
struct Link {
    channel: Box<dyn Waiting>,
    /// Messages of the protocol, one behind the other, which go through the channel at once.
    unsent: Vec<u8>,
    /// Where those begin that were not sent.
    sent: usize,
    /// Where each of those ends.
    ends: Vec<usize>,
}

/// See the module's documentation. What cannot be sent to a site that is gone is lost, as the protocol has it.
#[derive(Debug, Default)]
pub(super) struct Links {
    links: BTreeMap<SiteId, Link>,
}

impl Links {
    /// Reaches a site through a channel, and through no other one any more.
    pub(super) fn set(&mut self, site: SiteId, channel: Box<dyn Waiting>) {
        self.links.insert(site, Link { channel, unsent: Vec::new(), sent: 0, ends: Vec::new() });
    }

    /// Reaches a site no more. What it has sent and nobody has received is gone.
    pub(super) fn remove(&mut self, site: SiteId) {
        self.links.remove(&site);
    }

    /// Returns all of them, to be waited for.
    pub(super) fn channels(&mut self) -> impl Iterator<Item = &mut (dyn Waiting + 'static)> {
        self.links.values_mut().map(|link| &mut *link.channel)
    }

    /// Returns the sites that they lead to.
    pub(super) fn sites(&self) -> Vec<SiteId> {
        self.links.keys().copied().collect()
    }

    /// Puts what a site has sent in the place of what `messages` holds, if something has come. They are read by [`read_messages`].
    ///
    /// # Errors
    /// Those of the channel. One that is of no more use is gone.
    pub(super) fn receive(&mut self, from: SiteId, messages: &mut Vec<u8>) -> Result<bool, ChannelError> {
        let Some(link) = self.links.get_mut(&from) else { return Ok(false) };
        let received = link.channel.try_receive(messages);
        self.remove_if_final(from, received)
    }

    /// Sends what there is, as far as there is room. Returns whether everything is sent.
    pub(super) fn flush(&mut self) -> bool {
        let mut is_all_sent = true;
        let mut gone = Vec::new();
        for (site, link) in &mut self.links {
            match link.flush() {
                Ok(is_sent) => is_all_sent &= is_sent && !link.channel.has_unsent(),
                Err(_) => gone.push(*site),
            }
        }
        for site in gone {
            self.links.remove(&site);
        }
        is_all_sent
    }

    fn remove_if_final<R>(
        &mut self,
        site: SiteId,
        result: Result<R, ChannelError>,
    ) -> Result<R, ChannelError> {
        result.inspect_err(|error| {
            if error.is_final() {
                self.links.remove(&site);
            }
        })
    }
}

impl Outbox for Links {
    fn send(&mut self, to: SiteId, message: &Message<'_>) {
        let Some(link) = self.links.get_mut(&to) else { return };
        if link.unsent.len() - link.sent > UNSENT_BYTES_MAX {
            return;
        }
        let Ok(unsent) = postcard::to_extend(message, std::mem::take(&mut link.unsent)) else {
            unreachable!("a message has bytes, and a vector takes them");
        };
        link.unsent = unsent;
        link.ends.push(link.unsent.len());
    }
}

impl Link {
    /// Sends what there is, as far as there is room: as many messages at once as go into one of the channel.
    fn flush(&mut self) -> Result<bool, ChannelError> {
        let mut is_first = 0;
        while is_first < self.ends.len() {
            let fits = |end: &usize| *end - self.sent <= MESSAGE_BYTES_MAX;
            let count = self.ends[is_first..].iter().take_while(|end| fits(end)).count().max(1);
            let end = self.ends[is_first + count - 1];
            // A deadline in the past waits for nothing.
            match self.channel.send(&self.unsent[self.sent..end], Some(Instant::now())) {
                Ok(()) => {
                    self.sent = end;
                    is_first += count;
                }
                Err(ChannelError::TimedOut) => {
                    self.ends.drain(..is_first);
                    self.forget_sent();
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        self.ends.clear();
        self.forget_sent();
        Ok(true)
    }

    /// Keeps of the messages those that are to be sent.
    fn forget_sent(&mut self) {
        self.unsent.drain(..self.sent);
        self.ends.iter_mut().for_each(|end| *end -= self.sent);
        self.sent = 0;
    }
}

/// Hands out the messages that were sent at once, and returns whether all of the bytes were messages.
pub(super) fn read_messages(mut bytes: &[u8], mut each: impl FnMut(Message<'_>)) -> bool {
    while !bytes.is_empty() {
        match postcard::take_from_bytes(bytes) {
            Ok((message, rest)) => {
                each(message);
                bytes = rest;
            }
            Err(_) => return false,
        }
    }
    true
}
