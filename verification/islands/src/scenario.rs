//! Runs in which what happens is chosen.

use ensilo_islands::CommitUnit;
use ensilo_islands::commit::{DistributedId, Outcome, RefusalReason, Request};

use crate::fault::Fault;
use crate::judge;
use crate::store::{Step, to_bytes};
use crate::world::{Failure, World};

/// An instance that has only read dies after its vote, and comes back. Somebody changes what it has read, and reads what the transaction is about to
/// write, before the vote arrives.
///
/// # Errors
/// What is wrong with the run.
pub fn reader_ends_before_the_decision(fault: Option<Fault>) -> Result<(), Failure> {
    let mut world = World::of(fastrand::Rng::with_seed(0), 2, (CommitUnit::Transaction, fault));
    world.network.calm_down();
    let [writes, reads] = [(true, false), (false, true)]
        .map(|(writes, reads)| to_bytes(&[Step { key: 0, reads, writes, rejects: false }]));
    let request = |world: &World, to: usize| {
        Request::new(Some(writes.clone()), vec![(world.nodes[to].id(), reads.clone())])
    };
    make_acquainted(&mut world)?;
    let voting = request(&world, 1);
    let voting = world.begin_one(0, voting, 0).ok_or_else(|| stuck("one is dead"))?;
    deliver_to(&mut world, 1);
    let vote = world.network.take_all();
    world.crash(1);
    world.start(1);
    let between = request(&world, 0);
    commit(&mut world, 1, &between)?;
    world.network.put(vote);
    world.calm_down()?;
    world.told.get(&voting).ok_or_else(|| stuck("nobody is told"))?;
    judge::judge(&world.nodes, &world.begun, &world.told).map(|_| ())
}

/// Two transactions have each a part prepared where the other one is coordinated, and in its way. Nobody has waited for long.
///
/// # Errors
/// It is not the older one that commits, or something is wrong with the run.
pub fn two_wait_for_each_other() -> Result<(), Failure> {
    for ages in [[1, 2], [2, 1], [1, 1]] {
        let mut world = World::of(fastrand::Rng::with_seed(0), 2, (CommitUnit::Transaction, None));
        world.network.calm_down();
        make_acquainted(&mut world)?;
        let part = to_bytes(&[Step { key: 0, reads: true, writes: true, rejects: false }]);
        let mut ids = Vec::new();
        for (at, age) in ages.into_iter().enumerate() {
            let request = Request::new(Some(part.clone()), vec![(world.nodes[1 - at].id(), part.clone())]);
            ids.push(world.begin_one(at, request, age).ok_or_else(|| stuck("one is dead"))?);
        }
        for _ in 0..10 {
            world.pass_time();
            world.round();
        }
        let older = usize::from(ages[1] < ages[0]);
        let told: Vec<_> = ids.iter().map(|id| world.told.get(id)).collect();
        if !matches!(told[older], Some(Outcome::Committed { .. }))
            || !matches!(told[1 - older], Some(Outcome::Aborted(_)))
        {
            return Err(stuck(&format!("of ages {ages:?}: {told:?}")));
        }
        world.calm_down()?;
    }
    Ok(())
}

/// One that keeps others waiting stands in the queue behind an older one, and what it waits for goes to one that is older than it. Nobody has waited
/// for long.
///
/// # Errors
/// It waits all the same, or something is wrong with the run.
pub fn one_waits_behind_another() -> Result<(), Failure> {
    let mut world = World::of(fastrand::Rng::with_seed(0), 3, (CommitUnit::Transaction, None));
    world.network.calm_down();
    make_acquainted(&mut world)?;
    let part = |keys: &[u8]| {
        to_bytes(
            &keys
                .iter()
                .map(|key| Step { key: *key, reads: true, writes: true, rejects: false })
                .collect::<Vec<_>>(),
        )
    };
    let [at_0, at_1] = [0, 1].map(|at| world.nodes[at].id());
    let begin = |world: &mut World, at, local, remote, age| {
        world.begin_one(at, Request::new(local, remote), age).ok_or_else(|| stuck("one is dead"))
    };
    // These hold keys 0 and 1 of instance 0.
    begin(&mut world, 2, None, vec![(at_0, part(&[0]))], 4)?;
    deliver_to(&mut world, 0);
    let first_vote = world.network.take_all();
    begin(&mut world, 2, None, vec![(at_0, part(&[1]))], 5)?;
    deliver_to(&mut world, 0);
    let second_vote = world.network.take_all();
    // The oldest one waits for both, and another one behind it for key 0, which keeps key 0 of instance 1.
    let oldest = begin(&mut world, 2, None, vec![(at_0, part(&[0, 1]))], 1)?;
    deliver_to(&mut world, 0);
    let behind = begin(&mut world, 0, Some(part(&[0])), vec![(at_1, part(&[0]))], 3)?;
    deliver_to(&mut world, 1);
    deliver_to(&mut world, 0);
    // Key 0 is free, and goes to one that wants both keys 0.
    world.network.put(first_vote);
    deliver_to(&mut world, 2);
    deliver_to(&mut world, 0);
    let older = begin(&mut world, 2, None, vec![(at_0, part(&[0])), (at_1, part(&[0]))], 2)?;
    for _ in 0..20 {
        world.pass_time();
        world.round();
    }
    let told = [oldest, behind, older].map(|id| world.told.get(&id));
    if !matches!(told, [None, Some(Outcome::Aborted(_)), Some(Outcome::Committed { .. })]) {
        return Err(stuck(&format!("somebody waits, or does not: {told:?}")));
    }
    world.network.put(second_vote);
    world.calm_down()
}

/// Transactions that are in each other's way are tried until they have committed, or are rejected by the rows.
///
/// # Errors
/// One is tried for too long, or something is wrong with the run.
pub fn all_are_tried_until_they_commit(seed: u64) -> Result<(), Failure> {
    let mut world = World::of(fastrand::Rng::with_seed(seed), 3, (CommitUnit::Transaction, None));
    world.network.calm_down();
    let mut under_way = Vec::new();
    for since in 0..60 {
        let at = since as usize % 3;
        let request = world.request(at);
        under_way.push((since, at, request, None::<DistributedId>));
    }
    for _ in 0..ROUNDS_MAX {
        under_way.retain_mut(|(since, at, request, id)| {
            let outcome = id.and_then(|id| world.told.get(&id));
            if outcome.is_some_and(has_ended) {
                return false;
            }
            // After a pause of random length, as they are tried again by callers.
            if (id.is_none() || outcome.is_some()) && world.toss() {
                *id = world.begin_one(*at, request.clone(), *since);
            }
            true
        });
        if under_way.is_empty() {
            world.calm_down()?;
            return judge::judge(&world.nodes, &world.begun, &world.told).map(|_| ());
        }
        world.pass_time();
        world.round();
    }
    Err(stuck(&format!("{} have not committed", under_way.len())))
}

/// Returns whether a transaction with this outcome is not tried again.
fn has_ended(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Committed { .. } => true,
        Outcome::Aborted(refusal) => refusal.reason == RefusalReason::Rejected,
        Outcome::Unknown(_) => false,
    }
}

/// How often everybody goes on until all have committed.
const ROUNDS_MAX: usize = 1000;

fn stuck(what: &str) -> Failure {
    Failure::Stuck(what.to_owned())
}

/// Has all instances know each other's incarnation.
fn make_acquainted(world: &mut World) -> Result<(), Failure> {
    let count = world.nodes.len();
    let pairs = (0..count).flat_map(|from| (0..count).map(move |to| (from, to)));
    for (from, to) in pairs.filter(|(from, to)| from != to) {
        let request = Request::new(None, vec![(world.nodes[to].id(), Vec::new())]);
        commit(world, from, &request)?;
    }
    Ok(())
}

/// Delivers what is under way, to one instance alone, which stores and goes on.
fn deliver_to(world: &mut World, to: usize) {
    world.deliver_all();
    world.nodes[to].store.sync();
    world.poll(to);
}

/// Tries a transaction until it has committed.
fn commit(world: &mut World, at: usize, request: &Request) -> Result<DistributedId, Failure> {
    for _ in 0..10 {
        let id = world.begin_one(at, request.clone(), 0).ok_or_else(|| stuck("one is dead"))?;
        for _ in 0..10 {
            world.round();
        }
        if let Some(Outcome::Committed { .. }) = world.told.get(&id) {
            return Ok(id);
        }
    }
    Err(stuck("it does not commit"))
}
