use super::super::id::OpenId;
use super::super::site::Site;
use super::super::store::{Participants, Voting};
use super::*;

/// Rows that nobody is in conflict about.
struct NoRows;

impl PartStore for NoRows {
    type Prepared = ();
    type Ticket = ();

    fn prepare(
        &mut self,
        _: DistributedId,
        _: Option<OpenId>,
        _: &[u8],
    ) -> Result<Voting<(), ()>, Refused<()>> {
        Ok(Voting { prepared: (), reply: Vec::new(), writes: true, ticket: () })
    }

    fn commit(&mut self, _: DistributedId, (): ()) -> Result<(), Failed> {
        Ok(())
    }

    fn abort(&mut self, _: DistributedId, (): ()) {}

    fn decide(
        &mut self,
        _: DistributedId,
        _: Option<OwnPart<'_>>,
        _: Participants<'_>,
    ) -> Result<Decided<()>, Refused<()>> {
        Ok(Decided { local: None, ticket: () })
    }

    fn forget(&mut self, _: DistributedId) {}

    fn is_stored(&mut self, (): &mut ()) -> Result<bool, Failed> {
        Ok(true)
    }
}

/// The incarnations that parts are sent to.
#[derive(Default)]
struct Sent(Vec<u32>);

impl Outbox for Sent {
    fn send(&mut self, _: SiteId, message: &Message<'_>) {
        if let Message::Execute { incarnation, .. } = message {
            self.0.push(*incarnation);
        }
    }
}

const OTHERS: [SiteId; 2] = [SiteId { instance: 1, worker: 0 }, SiteId { instance: 2, worker: 0 }];

struct Coordinating {
    site: Site<NoRows>,
    sent: Sent,
}

impl Coordinating {
    fn new() -> Self {
        let own = SiteId { instance: 0, worker: 0 };
        Coordinating {
            site: Site::new(own, 1, Ages::default(), Duration::from_secs(1)),
            sent: Sent::default(),
        }
    }

    fn with<R>(&mut self, act: impl FnOnce(&mut Site<NoRows>, Io<'_, NoRows, Sent>) -> R) -> R {
        act(&mut self.site, Io { store: &mut NoRows, outbox: &mut self.sent, now: Instant::now() })
    }

    fn begin(&mut self, request: &Request) -> DistributedId {
        self.with(|site, io| site.begin(io, request, 0))
    }

    fn vote(&mut self, from: SiteId, id: DistributedId, vote: Vote<'_>) {
        self.with(|site, io| site.receive(io, from, Message::Vote { id, incarnation: 1, vote })).unwrap();
        self.with(|site, io| site.poll(io)).unwrap();
    }
}

/// What it has read before it has written first is not protected any more when it comes back.
#[test]
fn an_open_transaction_does_not_survive_a_writer_that_has_voted() {
    for is_open in [true, false] {
        let mut coordinating = Coordinating::new();
        let request = match is_open {
            true => Request::ending(OpenId(7), OTHERS),
            false => Request::new(None, OTHERS.map(|site| (site, Vec::new())).to_vec()),
        };
        let id = coordinating.begin(&request);
        coordinating.vote(OTHERS[0], id, Vote::Yes(&[]));
        coordinating.with(|site, io| site.ended(io, OTHERS[0], 2));
        coordinating.vote(OTHERS[1], id, Vote::Yes(&[]));
        let (_, outcome) = coordinating.site.next_outcome().unwrap();
        assert_eq!(matches!(outcome, Outcome::Aborted(_)), is_open, "{outcome:?}");
    }
}

#[test]
fn parts_are_meant_for_the_incarnation_that_a_site_has_said() {
    let mut coordinating = Coordinating::new();
    let request = Request::new(None, OTHERS.map(|site| (site, Vec::new())).to_vec());
    // The second one comes late, from before an end that was told of.
    for incarnation in [5, 4] {
        coordinating.with(|site, io| site.receive(io, OTHERS[1], Message::Hello { incarnation })).unwrap();
    }
    coordinating.begin(&request);
    assert_eq!(coordinating.sent.0, [0, 5]);
}

#[test]
fn where_all_is_in_conflict_one_at_a_time_is_under_way() {
    let mut coordinating = Coordinating::new();
    let request = Request::new(None, vec![(OTHERS[0], Vec::new())]);
    let refuse = |coordinating: &mut Coordinating, id| {
        let refusal = Refusal::new(RefusalReason::Conflict, "somebody else was first");
        coordinating.vote(OTHERS[0], id, Vote::No(refusal));
    };
    let ids: Vec<DistributedId> = (0..100).map(|_| coordinating.begin(&request)).collect();
    assert_eq!(coordinating.sent.0.len(), 100);
    ids.into_iter().for_each(|id| refuse(&mut coordinating, id));
    let ids: Vec<DistributedId> = (0..100).map(|_| coordinating.begin(&request)).collect();
    assert_eq!(coordinating.sent.0.len(), 101);
    // Each that commits lets the next one through, and more and more of them.
    for id in ids {
        coordinating.vote(OTHERS[0], id, Vote::Yes(&[]));
    }
    assert_eq!(coordinating.sent.0.len(), 200);
    let ids: Vec<DistributedId> = (0..100).map(|_| coordinating.begin(&request)).collect();
    assert!((210..240).contains(&coordinating.sent.0.len()), "{}", coordinating.sent.0.len());
    ids.into_iter().for_each(|id| coordinating.vote(OTHERS[0], id, Vote::Yes(&[])));
    assert!(coordinating.site.next_outcome().is_some());
}
