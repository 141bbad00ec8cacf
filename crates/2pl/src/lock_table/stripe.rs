//! What the mutex of a stripe guards: locks, and requests that wait. Here alone is decided what is granted.

use std::collections::BTreeMap;

use ensilo_engine::AbortReason;

use super::committing::Committing;
use crate::key::LockKey;
use crate::range::LockRange;

/// A transaction, as locks know it: the older, the smaller. An attempt of a request has that of the attempt before.
#[derive(Debug, Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owner {
    /// When its first attempt began, in nanoseconds since the start of the engine.
    pub(crate) began_ns: u64,
    /// The session's number, which tells it from others that began at the same time.
    pub(crate) session: u32,
}

/// What a lock allows its holder.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// To read.
    Shared,
    /// To read and to write.
    Exclusive,
}

/// How a request was granted.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub(crate) enum Grant {
    /// By a lock that is to be given back.
    New,
    /// By one that its owner has already.
    Held,
}

/// What is asked for.
#[derive(Debug, Copy, Clone)]
pub(super) enum Request<'a> {
    Key(&'a LockKey, Mode),
    /// With the number under which its owner knows it.
    Range(u32, &'a LockRange),
}

/// Why a request is not granted now.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) reason: AbortReason,
    /// Whether its owner may wait for all that it conflicts with: they are younger and not prepared, or commit.
    pub(super) may_wait: bool,
}

#[derive(Debug, Default)]
pub(super) struct StripeState {
    keys: BTreeMap<LockKey, KeyLock>,
    ranges: Vec<RangeLock>,
    waiting: Vec<Waiting>,
}

#[derive(Debug, Copy, Clone)]
struct Holder {
    owner: Owner,
    is_prepared: bool,
}

#[derive(Debug)]
struct KeyLock {
    mode: Mode,
    first: Holder,
    /// More holders of a shared lock.
    others: Vec<Holder>,
}

#[derive(Debug)]
struct RangeLock {
    holder: Holder,
    number: u32,
    range: LockRange,
}

#[derive(Debug)]
struct Waiting {
    owner: Owner,
    asked: Asked,
}

/// A request, kept.
#[derive(Debug)]
enum Asked {
    Key(LockKey, Mode),
    Range(LockRange),
}

impl StripeState {
    /// Grants a request, or says what it conflicts with.
    #[inline]
    pub(super) fn try_grant(
        &mut self,
        owner: Owner,
        request: Request<'_>,
        committing: &Committing,
    ) -> Result<Grant, Conflict> {
        let met = Met { owner, committing, conflict: None };
        match request {
            Request::Key(key, mode) => self.try_grant_key(met, key, mode),
            Request::Range(number, range) => self.try_grant_range(met, number, range),
        }
    }

    #[inline]
    fn try_grant_key(&mut self, mut met: Met<'_>, key: &LockKey, mode: Mode) -> Result<Grant, Conflict> {
        let owner = met.owner;
        let lock = self.keys.get_mut(key);
        let own_mode = lock.as_ref().filter(|lock| lock.is_held_by(owner)).map(|lock| lock.mode);
        if own_mode == Some(Mode::Exclusive) || own_mode == Some(mode) {
            return Ok(Grant::Held);
        }
        if let Some(lock) = &lock
            && (mode == Mode::Exclusive || lock.mode == Mode::Exclusive)
        {
            lock.holders().for_each(|holder| met.holder(holder, lock.mode));
        }
        if mode == Mode::Exclusive {
            let covering = self.ranges.iter().filter(|lock| lock.range.contains(key));
            covering.for_each(|lock| met.holder(&lock.holder, Mode::Shared));
        }
        // One that has the lock already is in the way of who waits for it anyway.
        if own_mode.is_none() || met.conflict.is_some() {
            let waiting = self.waiting.iter().filter(|waiting| waiting.asked.conflicts_with_key(key, mode));
            waiting.for_each(|waiting| met.waiting(waiting.owner));
        }
        met.outcome()?;
        match lock {
            None => _ = self.keys.insert(key.clone(), KeyLock::new(owner, mode)),
            Some(lock) if own_mode.is_some() => lock.mode = mode,
            Some(lock) => lock.others.push(Holder::new(owner)),
        }
        Ok(if own_mode.is_some() { Grant::Held } else { Grant::New })
    }

    fn try_grant_range(
        &mut self,
        mut met: Met<'_>,
        number: u32,
        range: &LockRange,
    ) -> Result<Grant, Conflict> {
        let owner = met.owner;
        let is_own = |lock: &&mut RangeLock| lock.holder.owner == owner && lock.number == number;
        let held = self.ranges.iter_mut().find(is_own);
        // I1: nobody else has an exclusive lock in what is held, so that a range that grows step by step is looked through once.
        // And who waits for a key in what is held waits for this holder anyway.
        for part in range.parts_beside(held.as_ref().map(|lock| &lock.range)) {
            for (_, lock) in self.keys.range::<LockKey, _>(part.bounds()) {
                if lock.mode == Mode::Exclusive {
                    met.holder(&lock.first, Mode::Exclusive);
                }
            }
            let waiting = self.waiting.iter().filter(|waiting| waiting.asked.conflicts_with_range(&part));
            waiting.for_each(|waiting| met.waiting(waiting.owner));
        }
        met.outcome()?;
        match held {
            Some(lock) => lock.range = range.clone(),
            None => self.ranges.push(RangeLock { holder: Holder::new(owner), number, range: range.clone() }),
        }
        Ok(Grant::New)
    }

    #[inline]
    pub(super) fn remove_key(&mut self, owner: Owner, key: &LockKey) {
        if self.keys.get_mut(key).is_some_and(|lock| lock.is_free_without(owner)) {
            self.keys.remove(key);
        }
    }

    pub(super) fn remove_ranges(&mut self, owner: Owner) {
        self.ranges.retain(|lock| lock.holder.owner != owner);
    }

    pub(super) fn prepare_key(&mut self, owner: Owner, key: &LockKey) {
        let Some(lock) = self.keys.get_mut(key) else { return };
        for holder in std::iter::once(&mut lock.first).chain(&mut lock.others) {
            holder.is_prepared |= holder.owner == owner;
        }
    }

    pub(super) fn prepare_ranges(&mut self, owner: Owner) {
        for lock in &mut self.ranges {
            lock.holder.is_prepared |= lock.holder.owner == owner;
        }
    }

    pub(super) fn begin_to_wait(&mut self, owner: Owner, request: Request<'_>) {
        let asked = match request {
            Request::Key(key, mode) => Asked::Key(key.clone(), mode),
            Request::Range(_, range) => Asked::Range(range.clone()),
        };
        self.waiting.push(Waiting { owner, asked });
    }

    pub(super) fn end_to_wait(&mut self, owner: Owner) {
        self.waiting.retain(|waiting| waiting.owner != owner);
    }

    #[inline]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.ranges.is_empty() && self.waiting.is_empty()
    }
}

/// What a request has met that it conflicts with.
struct Met<'c> {
    owner: Owner,
    committing: &'c Committing,
    conflict: Option<Conflict>,
}

impl Met<'_> {
    /// Notes one that holds a lock in this mode.
    #[inline]
    fn holder(&mut self, holder: &Holder, mode: Mode) {
        if holder.owner == self.owner {
            return;
        }
        let reason = match (holder.is_prepared, mode) {
            (false, _) => AbortReason::LockHeld,
            (true, Mode::Shared) => AbortReason::PreparedRead,
            (true, Mode::Exclusive) => AbortReason::PreparedLock,
        };
        let may_wait = self.owner < holder.owner && !holder.is_prepared;
        self.add(reason, may_wait || self.committing.has(holder.owner));
    }

    /// Notes one that waits. An older request goes ahead of it.
    fn waiting(&mut self, owner: Owner) {
        if owner < self.owner {
            self.add(AbortReason::LockHeld, false);
        }
    }

    fn add(&mut self, reason: AbortReason, may_wait: bool) {
        let conflict = self.conflict.get_or_insert(Conflict { reason, may_wait });
        conflict.may_wait &= may_wait;
        if reason != AbortReason::LockHeld {
            conflict.reason = reason;
        }
    }

    #[inline]
    fn outcome(self) -> Result<(), Conflict> {
        self.conflict.map_or(Ok(()), Err)
    }
}

impl Holder {
    fn new(owner: Owner) -> Self {
        Holder { owner, is_prepared: false }
    }
}

impl KeyLock {
    fn new(owner: Owner, mode: Mode) -> Self {
        KeyLock { mode, first: Holder::new(owner), others: Vec::new() }
    }

    #[inline]
    fn holders(&self) -> impl Iterator<Item = &Holder> {
        std::iter::once(&self.first).chain(&self.others)
    }

    #[inline]
    fn is_held_by(&self, owner: Owner) -> bool {
        self.holders().any(|holder| holder.owner == owner)
    }

    /// Takes a holder out, if it is one of several; otherwise returns whether it is the last one.
    #[inline]
    fn is_free_without(&mut self, owner: Owner) -> bool {
        if self.first.owner != owner {
            self.others.retain(|holder| holder.owner != owner);
            return false;
        }
        match self.others.pop() {
            Some(other) => self.first = other,
            None => return true,
        }
        false
    }
}

impl Asked {
    fn conflicts_with_key(&self, key: &LockKey, mode: Mode) -> bool {
        match self {
            Asked::Key(asked, asked_mode) => {
                asked == key && (mode == Mode::Exclusive || *asked_mode == Mode::Exclusive)
            }
            Asked::Range(asked) => mode == Mode::Exclusive && asked.contains(key),
        }
    }

    fn conflicts_with_range(&self, range: &LockRange) -> bool {
        matches!(self, Asked::Key(key, Mode::Exclusive) if range.contains(key))
    }
}
