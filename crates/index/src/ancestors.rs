//! The interior nodes that a split goes up to, locked, with the new nodes that it takes there.

use ensilo_epoch::Guard;
use ensilo_slab::{AccountId, OutOfMemory};

use crate::INTERIOR_WIDTH;
use crate::interior::Interior;
use crate::locked::Locked;
use crate::node::{Node, NodeRef};
use crate::version::NodeVersion;

/// More than the levels that a layer can have. The highest level is split, and one put above it, when its node has no room;
/// since its last split it was given at least 7 children, each by the split of a node below: that takes
/// `7^HEIGHT_MAX` inserts, more than 64 bits can count.
pub(crate) const HEIGHT_MAX: usize = 24;

/// A locked ancestor; one that is full has a new node beside it.
#[derive(Debug)]
struct Level<'g> {
    node: Locked<'g, Interior>,
    sibling: Option<&'g Interior>,
}

/// The ancestors from the parent up to the first that has room, or to a new root.
#[derive(Debug)]
pub(crate) struct Ancestors<'g> {
    levels: [Option<Level<'g>>; HEIGHT_MAX],
    height: usize,
    new_root: Option<&'g Interior>,
}

/// A node that has been split: `new` takes its range from `low` on.
#[derive(Debug, Copy, Clone)]
pub(crate) struct NewSibling<'g> {
    pub(crate) old: NodeRef<'g>,
    pub(crate) new: NodeRef<'g>,
    pub(crate) low: u64,
}

impl<'g> Ancestors<'g> {
    /// Locks the ancestors of a node that is to be split, and makes the nodes that will stand beside the full ones.
    pub(crate) fn lock<N: Node>(
        node: &Locked<'g, N>,
        guard: &'g Guard<'_>,
        account: AccountId,
    ) -> Result<Self, OutOfMemory> {
        let mut ancestors = Ancestors { levels: [const { None }; HEIGHT_MAX], height: 0, new_root: None };
        match ancestors.lock_upwards(node, guard, account) {
            Ok(()) => Ok(ancestors),
            Err(error) => {
                ancestors.give_up(guard, account);
                Err(error)
            }
        }
    }

    fn lock_upwards<N: Node>(
        &mut self,
        node: &Locked<'g, N>,
        guard: &'g Guard<'_>,
        account: AccountId,
    ) -> Result<(), OutOfMemory> {
        let mut parent = node.lock_parent();
        while let Some(node) = parent {
            let is_full = node.is_full();
            let above = if is_full { node.lock_parent() } else { None };
            let level = self.levels[self.height].insert(Level { node, sibling: None });
            self.height += 1;
            if !is_full {
                return Ok(());
            }
            parent = above;
            let sibling = Interior::empty_locked(NodeVersion::INTERIOR).allocate(guard, account);
            match sibling {
                Ok(sibling) => level.sibling = Some(sibling),
                Err(error) => {
                    if let Some(parent) = parent {
                        parent.unlock_unchanged();
                    }
                    return Err(error);
                }
            }
        }
        let root = Interior::empty_locked(NodeVersion::INTERIOR_ROOT);
        self.new_root = Some(root.allocate(guard, account)?);
        Ok(())
    }

    /// Undoes `lock`.
    fn give_up(self, guard: &'g Guard<'_>, account: AccountId) {
        for level in self.levels.into_iter().flatten() {
            level.node.unlock_unchanged();
            if let Some(sibling) = level.sibling {
                // SAFETY: it was made by `lock` with this account, and nobody else knows it.
                unsafe { sibling.free(guard, account) };
            }
        }
    }

    /// Gives each level its new child, and unlocks all of them; returns the new root if there is one.
    ///
    /// With `ascending`, a full node that gets a new last child stays full.
    pub(crate) fn insert(self, child: NewSibling<'g>, ascending: bool) -> Option<&'g Interior> {
        let mut child = Some(child);
        for level in self.levels[..self.height].iter().flatten() {
            level.node.mark_changing();
            child = child.and_then(|child| level.insert(child, ascending));
        }
        if let (Some(root), Some(child)) = (self.new_root, child) {
            set_first_child(root, child.old);
            insert_behind(root, 0, child);
        }
        let new_root = self.new_root;
        self.unlock();
        new_root
    }

    /// All at once, so that nobody finds a new node whose parent is not set yet.
    fn unlock(self) {
        let has_new_root = self.new_root.is_some();
        let top = self.height.saturating_sub(1);
        for (height, level) in self.levels.into_iter().flatten().enumerate() {
            match level.sibling {
                None => level.node.unlock_after_insert(),
                Some(_) if has_new_root && height == top => level.node.unlock_below_a_new_root(),
                Some(_) => level.node.unlock_after_shrink(),
            };
            if let Some(sibling) = level.sibling {
                Locked::made(sibling, NodeVersion::INTERIOR).unlock_unchanged();
            }
        }
        if let Some(root) = self.new_root {
            Locked::made(root, NodeVersion::INTERIOR_ROOT).unlock_unchanged();
        }
    }
}

impl<'g> Level<'g> {
    /// Takes the new child in; if the node was full it is split, and its own new sibling is returned.
    fn insert(&self, child: NewSibling<'g>, ascending: bool) -> Option<NewSibling<'g>> {
        let node = self.node.node_ref();
        let place = node.place_of(child.old);
        let Some(sibling) = self.sibling else {
            insert_behind(node, place, child);
            return None;
        };
        let low = if ascending && place == node.len() {
            set_first_child(sibling, child.new);
            child.low
        } else {
            let middle = INTERIOR_WIDTH / 2;
            let low = node.move_upper_half(middle, sibling);
            for moved in (0..=sibling.len()).filter_map(|place| sibling.child(place)) {
                moved.set_parent(sibling);
            }
            if place <= middle {
                insert_behind(node, place, child);
            } else {
                insert_behind(sibling, place - middle - 1, child);
            }
            low
        };
        Some(NewSibling { old: node.node(), new: sibling.node(), low })
    }
}

/// Gives an empty node its first child.
fn set_first_child(node: &Interior, child: NodeRef<'_>) {
    node.set_first_child(child);
    child.set_parent(node);
}

/// Puts the new node behind the child at `place`. The caller holds the lock, and there is room.
fn insert_behind(node: &Interior, place: usize, child: NewSibling<'_>) {
    node.insert_behind(place, child.low, child.new);
    child.new.set_parent(node);
}
