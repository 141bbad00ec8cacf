//! A protected transaction: others leave alone what it has read.
//!
//! An optimistic transaction that reads much may be overtaken at every attempt. Whoever has seen that happen asks that the next one is
//! protected ([`Session::protect_next`](ensilo_engine::Session::protect_next)): what it reads is registered where the reads of
//! [prepared](super::prepared) transactions stand, as it is read, so that a commit, an insert or a removal that would change it is
//! refused or deferred from then on. So are its own placeholders, before anybody can commit into them. There is one at a time, since two
//! that write what the other has read would refuse each other for ever.
//!
//! It commits like any other and is serializable by its validation. Protection only takes away what would make that fail. One thing is
//! different: a record that it has read or made may be locked by another one, and a node held, since these ask only then. They give back
//! what they hold, as they found it.
//!
//! # Memory ordering
//! The transaction counts itself among those that others look for, passes a full barrier, and for each record registers the address and
//! looks at the record's word *again*. A commit `T` locks the record, passes a full barrier, and asks. If `T` finds nobody counted, then
//! the barrier of the transaction comes second, and the second look sees the lock of `T`, or what it has written. If it asks for
//! the address, then under the lock of the address: either it finds it, or the second look comes after it. The same holds for nodes. So
//! who is seen to hold a record later has found it registered.

use ensilo_engine::parts::{HeldMemory, PointerMap, SetBuffer, refused};
use ensilo_engine::{Abort, AbortReason, Fault};
use ensilo_epoch::{Epoch, Guard, Participant};
use ensilo_index::{Masstree, NodeStamp};

use super::collect::carry_out_deferred;
use super::context::{Context, Phase};
use super::prepared::registry::{PreparedRegistry, PreparedUse};
use super::transaction::Transaction;
use super::variant::{Variant, has_fault};
use crate::record::RecordPtr;
use crate::shared::SiloShared;
use crate::tid::TidWord;

/// What a protected transaction has registered.
#[derive(Debug)]
pub(super) struct Protection {
    used: PreparedUse,
    /// Records and nodes, each once.
    addresses: SetBuffer<usize>,
    positions: PointerMap,
}

impl Protection {
    /// Registers a transaction that has the turn and began in this epoch.
    fn new(registry: &PreparedRegistry, began: Epoch) -> Box<Self> {
        // Pinned, it needs no stores to be kept for it.
        let used = PreparedUse { began, stores: Vec::new() };
        registry.enter(&used);
        Box::new(Protection { used, addresses: SetBuffer::new(), positions: PointerMap::default() })
    }

    /// Returns whether this very transaction has registered the address.
    fn has(&self, address: usize) -> bool {
        self.positions.get(address).is_some()
    }

    /// Registers the address of a record or a node, unless it is. What others can find already is looked at again afterwards.
    #[cold]
    pub(super) fn register(
        &mut self,
        registry: &PreparedRegistry,
        held: &mut HeldMemory,
        address: usize,
    ) -> Result<(), Abort> {
        if self.has(address) {
            return Ok(());
        }
        self.addresses.reserve(1, held)?;
        if self.positions.is_full() {
            held.add(self.positions.growth_bytes(1))?;
        }
        if !registry.rely_on(address) {
            return Err(refused(AbortReason::OutOfMemory));
        }
        let at = self.addresses.push_reserved(address);
        self.positions.insert(address, at);
        Ok(())
    }
}

/// Returns how often this transaction itself has registered the address.
#[inline]
pub(super) fn own_count(protection: Option<&Protection>, address: usize) -> u32 {
    u32::from(protection.is_some_and(|protection| protection.has(address)))
}

impl Context {
    /// If the transaction is protected, keeps others from changing a record in which it has just seen this version. Returns whether the
    /// record still has it; if not, it is read again.
    #[inline(always)]
    pub(super) fn protect_record<V: Variant>(
        &mut self,
        shared: &SiloShared,
        record: RecordPtr,
        word: TidWord,
    ) -> Result<bool, Abort> {
        let Context { protection, held, .. } = self;
        let Some(protection) = protection else { return Ok(true) };
        protection.register(&shared.prepared, held, record.address())?;
        Ok(has_fault::<V>(Fault::RegisteredWithoutLook) || record.is_still(word))
    }

    /// The same for a node; false when it has changed, so that the transaction cannot commit.
    #[inline(always)]
    pub(super) fn protect_node(
        &mut self,
        shared: &SiloShared,
        guard: &Guard<'_>,
        stamp: NodeStamp,
    ) -> Result<bool, Abort> {
        let Context { protection, held, .. } = self;
        let Some(protection) = protection else { return Ok(true) };
        protection.register(&shared.prepared, held, stamp.node.address())?;
        // SAFETY: the stamp was taken by this transaction, under the guard that it still holds.
        Ok(unsafe { Masstree::is_current_at_rest(stamp, guard) })
    }

    /// Returns whether a record that the transaction has read or made still has this version. If the transaction is protected, whoever holds
    /// the lock gives it back without a change.
    #[inline]
    pub(super) fn is_unchanged(&self, record: RecordPtr, word: TidWord) -> bool {
        record.is_still(word) || self.protection.is_some() && record.is_still(word.locked())
    }

    /// Asks that the next transaction of this worker is protected. Returns `false` while another one is.
    pub(crate) fn protect_next(&mut self, shared: &SiloShared) -> bool {
        let is_granted = self.phase == Phase::Idle && shared.prepared.take_turn();
        if is_granted {
            self.phase = Phase::IdleWithTurn;
        }
        is_granted
    }

    /// Gives back the turn that no transaction was begun with.
    pub(crate) fn give_up_turn(&mut self, shared: &SiloShared) {
        if self.phase == Phase::IdleWithTurn {
            shared.prepared.end_turn();
            self.phase = Phase::Idle;
        }
    }
}

impl<'w, V: Variant> Transaction<'w, V> {
    /// Begins a transaction whose worker has the turn.
    pub(super) fn begin_protected(
        shared: &'w SiloShared,
        participant: &'w mut Participant,
        context: &'w mut Context,
    ) -> Self {
        let transaction = Transaction::open(shared, participant, context);
        let protection = Protection::new(&shared.prepared, transaction.begin_epoch());
        transaction.context.protection = Some(protection);
        transaction
    }

    /// Ends the protection, and carries out what others have deferred. No lock is held.
    #[cold]
    pub(super) fn end_protection(&mut self) {
        let Some(protection) = self.context.protection.take() else { return };
        let registry = &self.shared.prepared;
        for deferred in registry.release(protection.addresses.iter().copied()) {
            carry_out_deferred::<V>(self.shared, &self.guard, self.context, deferred);
        }
        registry.end(&protection.used);
        registry.end_turn();
    }
}
