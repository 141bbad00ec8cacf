//! The network between simulated instances: it loses messages, and has them come late, twice, and in any order.

use ensilo_islands::commit::{Message, Outbox, SiteId};

use crate::fault::Fault;

/// A message on its way.
#[derive(Clone, Debug)]
pub(crate) struct Packet {
    pub(crate) from: SiteId,
    pub(crate) to: SiteId,
    pub(crate) bytes: Vec<u8>,
    is_late: bool,
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Network {
    under_way: Vec<Packet>,
    /// How many were sent.
    sent: u64,
    /// Late messages are so no more.
    is_calm: bool,
}

/// One in this many messages is late: others overtake it.
const LATE_ONE_IN: u64 = 8;

/// How many times the delivery of a late message is put off, on average.
const LATENESS: u8 = 16;

impl Network {
    pub(crate) fn is_empty(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Delivers late messages as any others.
    pub(crate) fn calm_down(&mut self) {
        self.is_calm = true;
    }

    /// Returns one of the messages, and keeps it as well where it comes twice.
    pub(crate) fn deliver(&mut self, random: &mut fastrand::Rng, comes_twice: bool) -> Option<Packet> {
        let at = random.usize(..self.under_way.len().max(1));
        let packet = self.under_way.get(at)?;
        if packet.is_late && !self.is_calm && random.u8(..LATENESS) > 0 {
            return None;
        }
        if comes_twice { self.under_way.get(at).cloned() } else { self.lose(at) }
    }

    /// Takes all messages out.
    pub(crate) fn take_all(&mut self) -> Vec<Packet> {
        std::mem::take(&mut self.under_way)
    }

    /// Has messages be under way.
    pub(crate) fn put(&mut self, packets: Vec<Packet>) {
        self.under_way.extend(packets);
    }

    /// Loses one of the messages.
    pub(crate) fn lose_one(&mut self, random: &mut fastrand::Rng) {
        let at = random.usize(..self.under_way.len().max(1));
        self.lose(at);
    }

    fn lose(&mut self, at: usize) -> Option<Packet> {
        (at < self.under_way.len()).then(|| self.under_way.swap_remove(at))
    }
}

/// What one site sends into the network.
#[derive(Debug)]
pub(crate) struct Sender<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) from: SiteId,
}

impl Outbox for Sender<'_> {
    fn send(&mut self, to: SiteId, message: &Message<'_>) {
        let bytes = postcard::to_allocvec(message).expect("a message has bytes");
        self.network.sent += 1;
        let is_late = self.network.sent.is_multiple_of(LATE_ONE_IN);
        self.network.under_way.push(Packet { from: self.from, to, bytes, is_late });
    }
}

/// Changes what a message says, as a fault has it, before an instance of this incarnation receives it for the `count`-th time of all.
pub(crate) fn falsify(message: &mut Message<'_>, fault: Option<Fault>, own_incarnation: u32, count: u64) {
    let Message::Execute { number, incarnation, .. } = message else { return };
    match fault {
        Some(Fault::PartsTwice) => *number = (1 << 32) + count,
        Some(Fault::AnyIncarnation) => *incarnation = own_incarnation,
        _ => {}
    }
}
