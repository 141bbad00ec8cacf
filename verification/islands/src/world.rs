//! A run: instances, a network, and what happens to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use ensilo_islands::CommitUnit;
use ensilo_islands::commit::{DistributedId, Outcome, Request};

use crate::epochs::Epochs;
use crate::fault::Fault;
use crate::judge;
use crate::network::Network;
use crate::node::{Node, PATIENCE, Surroundings};
use crate::store::{Step, to_bytes};

/// How much happens before all is well again.
const STEPS: usize = 400;

/// One in this many reads rejects its part, if the row was written.
const REJECTS_ONE_IN: u8 = 16;

/// How often everybody may go on then, until nothing waits.
const ROUNDS_MAX: usize = 1000;

/// What a run has come to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions that have committed, with parts at one instance or at several.
    pub committed: u64,
    /// Of those, the ones with parts at several instances.
    pub distributed: u64,
    /// Transactions that were begun and have not committed.
    pub aborted: u64,
    /// How often an instance has died.
    pub crashes: u64,
}

impl std::ops::AddAssign for Tally {
    fn add_assign(&mut self, other: Tally) {
        self.committed += other.committed;
        self.distributed += other.distributed;
        self.aborted += other.aborted;
        self.crashes += other.crashes;
    }
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Something waits for ever.
    Stuck(String),
    /// A transaction has happened in part, or twice, or its caller was told something else.
    NotAtomic(String),
    /// The history of all instances together is not serializable.
    NotSerializable(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Stuck(what) => write!(f, "stuck: {what}"),
            Failure::NotAtomic(what) => write!(f, "not atomic: {what}"),
            Failure::NotSerializable(what) => write!(f, "not serializable: {what}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Runs the simulation of this seed, with a mistake if one is named, and judges it.
///
/// # Errors
/// What is wrong with the run.
pub fn simulate(seed: u64, unit: CommitUnit, fault: Option<Fault>) -> Result<Tally, Failure> {
    let mut world = World::new(seed, unit, fault);
    for _ in 0..STEPS {
        world.step();
    }
    world.calm_down()?;
    let (committed, distributed) = judge::judge(&world.nodes, &world.begun, &world.told)?;
    let aborted = world.begun.len() as u64 - committed;
    Ok(Tally { committed, distributed, aborted, crashes: world.crashes })
}

pub(crate) struct World {
    unit: CommitUnit,
    fault: Option<Fault>,
    epochs: Epochs,
    random: fastrand::Rng,
    now: Instant,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    /// How many rows each instance has.
    keys: u8,
    pub(crate) begun: BTreeMap<DistributedId, Request>,
    pub(crate) told: BTreeMap<DistributedId, Outcome>,
    crashes: u64,
    /// Of a hundred steps, how many lose a message, and how many have an instance die.
    loses: u8,
    dies: u8,
}

impl World {
    fn new(seed: u64, unit: CommitUnit, fault: Option<Fault>) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let count = random.u16(2..=4);
        World::of(random, count, (unit, fault))
    }

    /// Returns a world of `count` instances, all of which are up.
    pub(crate) fn of(
        mut random: fastrand::Rng,
        count: u16,
        (unit, fault): (CommitUnit, Option<Fault>),
    ) -> Self {
        let nodes = (0..count).map(|instance| Node::new(instance, unit, fault)).collect();
        let (keys, loses, dies) = (random.u8(1..=4), random.u8(0..=5), random.u8(0..=3));
        let mut world = World {
            unit,
            fault,
            epochs: Epochs::default(),
            random,
            now: Instant::now(),
            nodes,
            network: Network::default(),
            keys,
            begun: BTreeMap::new(),
            told: BTreeMap::new(),
            crashes: 0,
            loses,
            dies,
        };
        (0..world.nodes.len()).for_each(|at| world.start(at));
        world
    }

    fn step(&mut self) {
        self.now += Duration::from_micros(self.random.u64(0..3000));
        if self.unit == CommitUnit::Epoch && self.random.u8(0..8) == 0 {
            self.go_on_with_epoch();
        }
        let at = self.random.usize(..self.nodes.len());
        match self.random.u8(0..100) {
            chance if chance < self.loses => self.network.lose_one(&mut self.random),
            chance if chance < self.loses + self.dies => {
                self.crash(at);
                if self.random.bool() {
                    self.start(at);
                }
            }
            10..15 => self.start(at),
            15..30 => self.begin(at),
            30..45 => self.nodes[at].store.sync(),
            45..60 => self.poll(at),
            60..63 => self.deliver(true),
            _ => self.deliver(false),
        }
    }

    /// Has everybody come back and go on, until nothing waits.
    pub(crate) fn calm_down(&mut self) -> Result<(), Failure> {
        self.network.calm_down();
        for _ in 0..ROUNDS_MAX {
            self.now += PATIENCE / 4;
            (0..self.nodes.len()).for_each(|at| self.start(at));
            self.round();
            if self.network.is_empty() && self.nodes.iter().all(Node::is_idle) {
                return Ok(());
            }
        }
        Err(Failure::Stuck(format!("{:?}", self.nodes)))
    }

    /// Has an instance die, and with it all others where they are stored together.
    pub(crate) fn crash(&mut self, at: usize) {
        if !self.nodes[at].is_up() {
            return;
        }
        self.crashes += 1;
        if self.unit == CommitUnit::Transaction {
            return self.crash_one(at);
        }
        if self.fault == Some(Fault::OthersGoOn) {
            self.crash_one(at);
        } else {
            (0..self.nodes.len()).for_each(|at| self.crash_one(at));
            // Channels end with those who have them.
            self.network.take_all();
        }
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        self.epochs.give_up(&mut self.nodes, &mut around);
    }

    fn crash_one(&mut self, at: usize) {
        self.nodes[at].crash(|unstored| self.random.usize(..=unstored));
    }

    fn go_on_with_epoch(&mut self) {
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        self.epochs.go_on(&mut self.nodes, &mut around, self.fault);
    }

    /// Has an instance come back, if it is dead. The others are told first.
    pub(crate) fn start(&mut self, at: usize) {
        if self.nodes[at].is_up() {
            return;
        }
        let (id, next_incarnation) = (self.nodes[at].id(), self.nodes[at].next_incarnation());
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        if self.fault != Some(Fault::EndUntold) {
            self.nodes.iter_mut().for_each(|node| node.hear_of_end(&mut around, id, next_incarnation));
        }
        self.nodes[at].start(&mut around);
    }

    pub(crate) fn poll(&mut self, at: usize) {
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        self.nodes[at].poll(&mut around, |id, outcome| {
            assert!(self.told.insert(id, outcome).is_none(), "{id} has two outcomes");
        });
    }

    fn deliver(&mut self, comes_twice: bool) {
        let Some(packet) = self.network.deliver(&mut self.random, comes_twice) else { return };
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        self.nodes[usize::from(packet.to.instance)].receive(&mut around, &packet);
    }

    fn begin(&mut self, at: usize) {
        let request = self.request(at);
        // As if some were tried for the second time.
        let since = self.random.u64(..4);
        self.begin_one(at, request, since);
    }

    pub(crate) fn begin_one(&mut self, at: usize, request: Request, since: u64) -> Option<DistributedId> {
        let mut around = Surroundings { network: &mut self.network, now: self.now };
        let id = self.nodes[at].begin(&mut around, &request, since)?;
        self.begun.insert(id, request);
        Some(id)
    }

    pub(crate) fn toss(&mut self) -> bool {
        self.random.bool()
    }

    /// Lets a moment pass.
    pub(crate) fn pass_time(&mut self) {
        self.now += Duration::from_millis(1);
    }

    pub(crate) fn deliver_all(&mut self) {
        while !self.network.is_empty() {
            self.deliver(false);
        }
    }

    /// Delivers all messages, stores everything, and has everybody go on, once.
    pub(crate) fn round(&mut self) {
        self.deliver_all();
        for at in 0..self.nodes.len() {
            self.nodes[at].store.sync();
            self.poll(at);
        }
        if self.unit == CommitUnit::Epoch {
            self.go_on_with_epoch();
        }
    }

    /// Returns a transaction of the instance: with a part there, and at others.
    pub(crate) fn request(&mut self, at: usize) -> Request {
        let mut request = Request::default();
        let is_distributed = self.random.u8(0..4) > 0;
        for other in 0..self.nodes.len() {
            if other == at {
                request.local = self.random.bool().then(|| self.part());
            } else if is_distributed && self.random.bool() {
                request.remote.push((self.nodes[other].id(), self.part()));
            }
        }
        if request.remote.is_empty() && request.local.is_none() {
            request.local = Some(self.part());
        }
        request
    }

    fn part(&mut self) -> Vec<u8> {
        let only_reads = self.random.u8(0..3) == 0;
        let mut steps = Vec::new();
        for key in 0..self.keys {
            let writes = !only_reads && self.random.u8(0..3) == 0;
            let reads = self.random.u8(0..3) == 0;
            // By epochs, what has come of a rejected one waits outside of the protocol.
            let rejects =
                self.unit == CommitUnit::Transaction && reads && self.random.u8(0..REJECTS_ONE_IN) == 0;
            if reads || writes {
                steps.push(Step { key, reads, writes, rejects });
            }
        }
        to_bytes(&steps)
    }
}
