//! A simulated instance, which dies and comes back.

use std::time::{Duration, Instant};

use ensilo_islands::CommitUnit;
use ensilo_islands::commit::{Ages, DistributedId, Io, Message, Outcome, Request, Site, SiteId};

use crate::fault::Fault;
use crate::network::{Network, Packet, Sender, falsify};
use crate::store::Store;

/// How long sites wait for each other, in simulated time.
pub(crate) const PATIENCE: Duration = Duration::from_millis(300);

/// See the module's documentation.
#[derive(Debug)]
pub(crate) struct Node {
    id: SiteId,
    incarnation: u32,
    fault: Option<Fault>,
    pub(crate) store: Store,
    /// `None` while it is dead.
    site: Option<Site<Store>>,
    /// How many messages it has received.
    received: u64,
}

/// What there is beside an instance.
pub(crate) struct Surroundings<'a> {
    pub(crate) network: &'a mut Network,
    pub(crate) now: Instant,
}

impl Surroundings<'_> {
    fn sender(&mut self, from: SiteId) -> Sender<'_> {
        Sender { network: &mut *self.network, from }
    }
}

impl Node {
    pub(crate) fn new(instance: u16, unit: CommitUnit, fault: Option<Fault>) -> Self {
        let id = SiteId { instance, worker: 0 };
        Node { id, incarnation: 0, fault, store: Store::new(unit, fault), site: None, received: 0 }
    }

    pub(crate) fn id(&self) -> SiteId {
        self.id
    }

    pub(crate) fn is_up(&self) -> bool {
        self.site.is_some()
    }

    /// Makes no decisions that others take part in.
    pub(crate) fn pause(&mut self) {
        self.site.iter_mut().for_each(Site::pause);
    }

    /// Goes on with those.
    pub(crate) fn resume(&mut self, around: &mut Surroundings<'_>) {
        let (now, mut sender) = (around.now, around.sender(self.id));
        if let Some(site) = &mut self.site {
            site.resume(io(&mut self.store, &mut sender, now));
        }
    }

    /// Returns whether it is up, and all decisions that were made here are carried out.
    pub(crate) fn has_carried_out(&self) -> bool {
        self.site.as_ref().is_some_and(Site::has_carried_out)
    }

    /// Dies.
    pub(crate) fn crash(&mut self, kept: impl FnOnce(usize) -> usize) {
        self.site = None;
        self.store.crash(kept);
    }

    /// Comes back; it is dead.
    pub(crate) fn start(&mut self, around: &mut Surroundings<'_>) {
        assert!(!self.is_up(), "one that lives does not come back");
        self.incarnation += 1;
        let mut site = Site::new(self.id, self.incarnation, Ages::default(), PATIENCE);
        let decisions = self.store.recover_decisions();
        let parts = self.store.recover_parts();
        for (id, participants) in decisions {
            let (now, mut sender) = (around.now, around.sender(self.id));
            site.recover_decision(io(&mut self.store, &mut sender, now), id, participants);
        }
        for (id, prepared) in parts {
            let (now, mut sender) = (around.now, around.sender(self.id));
            site.recover_part(io(&mut self.store, &mut sender, now), id, prepared);
        }
        self.site = Some(site);
    }

    /// Returns the incarnation that it comes back with.
    pub(crate) fn next_incarnation(&self) -> u32 {
        self.incarnation + 1
    }

    /// Is told that another instance has ended, and comes back.
    pub(crate) fn hear_of_end(
        &mut self,
        around: &mut Surroundings<'_>,
        other: SiteId,
        next_incarnation: u32,
    ) {
        let (now, mut sender) = (around.now, around.sender(self.id));
        if let Some(site) = self.site.as_mut() {
            site.ended(io(&mut self.store, &mut sender, now), other, next_incarnation);
            site.meet(io(&mut self.store, &mut sender, now), other);
        }
    }

    /// Begins a transaction, if it is up.
    pub(crate) fn begin(
        &mut self,
        around: &mut Surroundings<'_>,
        request: &Request,
        since: u64,
    ) -> Option<DistributedId> {
        let (now, mut sender) = (around.now, around.sender(self.id));
        let site = self.site.as_mut()?;
        Some(site.begin(io(&mut self.store, &mut sender, now), request, since))
    }

    /// Receives a message, if it is up.
    pub(crate) fn receive(&mut self, around: &mut Surroundings<'_>, packet: &Packet) {
        self.received += 1;
        let Some(site) = self.site.as_mut() else { return };
        let mut message: Message<'_> =
            postcard::from_bytes(&packet.bytes).expect("what was sent is a message");
        falsify(&mut message, self.fault, self.incarnation, self.received);
        let (now, mut sender) = (around.now, around.sender(self.id));
        let received = site.receive(io(&mut self.store, &mut sender, now), packet.from, message);
        received.expect("the log does not fail");
    }

    /// Lets it go on, if it is up, and hands out what has become of its transactions.
    pub(crate) fn poll(
        &mut self,
        around: &mut Surroundings<'_>,
        mut each: impl FnMut(DistributedId, Outcome),
    ) {
        let Some(site) = self.site.as_mut() else { return };
        let (now, mut sender) = (around.now, around.sender(self.id));
        site.poll(io(&mut self.store, &mut sender, now)).expect("the log does not fail");
        while let Some((id, outcome)) = site.next_outcome() {
            each(id, outcome);
        }
    }

    /// Returns whether nothing waits here, and nobody holds anything.
    pub(crate) fn is_idle(&self) -> bool {
        self.site.as_ref().is_some_and(Site::is_idle) && self.store.is_free()
    }
}

fn io<'a, 'n>(store: &'a mut Store, outbox: &'a mut Sender<'n>, now: Instant) -> Io<'a, Store, Sender<'n>> {
    Io { store, outbox, now }
}
