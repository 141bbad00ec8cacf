//! A run in which each step is chosen.

use ensilo_islands::commit::{DistributedId, Outcome, Request};

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
    let mut world = World::of(fastrand::Rng::with_seed(0), 2, fault);
    world.network.calm_down();
    let [writes, reads] =
        [(true, false), (false, true)].map(|(writes, reads)| to_bytes(&[Step { key: 0, reads, writes }]));
    let request = |world: &World, to: usize| Request {
        local: Some(writes.clone()),
        remote: vec![(world.nodes[to].id(), reads.clone())],
    };
    // Both know each other's incarnation from here on.
    for (from, to) in [(0, 1), (1, 0)] {
        let request = request(&world, to);
        commit(&mut world, from, &request)?;
    }
    let voting = request(&world, 1);
    let voting = world.begin_one(0, voting).ok_or_else(|| stuck("one is dead"))?;
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

fn stuck(what: &str) -> Failure {
    Failure::Stuck(what.to_owned())
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
        let id = world.begin_one(at, request.clone()).ok_or_else(|| stuck("one is dead"))?;
        for _ in 0..10 {
            world.round();
        }
        if let Some(Outcome::Committed { .. }) = world.told.get(&id) {
            return Ok(id);
        }
    }
    Err(stuck("it does not commit"))
}
