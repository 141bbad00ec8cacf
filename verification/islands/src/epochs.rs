//! How epochs of all instances end, in a world where an epoch is the unit of commit.

use crate::fault::Fault;
use crate::node::{Node, Surroundings};

/// What the end of an epoch waits for.
#[derive(Debug, Default)]
pub(crate) enum Epochs {
    /// There is no epoch that ends.
    #[default]
    Running,
    /// Decisions are carried out, and none is made.
    Pausing,
    /// It has ended so far in the logs of the first instances. They go on, but for decisions.
    Ending(Vec<usize>),
    /// It has ended so far in the log of each instance, which has not been stored everywhere.
    Ended(Vec<usize>),
}

impl Epochs {
    /// Takes the next step, if it is time for it.
    pub(crate) fn go_on(&mut self, nodes: &mut [Node], around: &mut Surroundings<'_>, fault: Option<Fault>) {
        match self {
            Epochs::Running if nodes.iter().all(Node::is_up) => {
                nodes.iter_mut().for_each(Node::pause);
                *self = Epochs::Pausing;
            }
            Epochs::Pausing
                if nodes.iter().all(Node::has_carried_out) || fault == Some(Fault::EpochUnpaused) =>
            {
                *self = Epochs::Ending(Vec::new());
            }
            Epochs::Ending(ends) => {
                ends.push(nodes[ends.len()].store.log().len());
                if ends.len() == nodes.len() {
                    let ends = std::mem::take(ends);
                    nodes.iter_mut().for_each(|node| node.resume(around));
                    *self = Epochs::Ended(ends);
                }
            }
            Epochs::Ended(ends) => {
                let is_stored = |(node, end): (&Node, &usize)| node.store.stored() >= *end;
                if nodes.iter().zip(&*ends).all(is_stored) || fault == Some(Fault::EpochUnstored) {
                    nodes.iter_mut().zip(&*ends).for_each(|(node, end)| node.store.record(*end));
                    *self = Epochs::Running;
                }
            }
            Epochs::Running | Epochs::Pausing => {}
        }
    }

    /// An instance has died: nobody pauses any more.
    pub(crate) fn give_up(&mut self, nodes: &mut [Node], around: &mut Surroundings<'_>) {
        nodes.iter_mut().for_each(|node| node.resume(around));
        *self = Epochs::Running;
    }
}
