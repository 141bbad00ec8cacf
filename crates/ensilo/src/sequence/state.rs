//! What a sequence has reserved and given, in memory.
//!
//! # Invariants
//! - N1: the numbers in `left` are behind all that were given since the sequence was made, sent back, or began a further cycle, and not behind
//!   `reserved`, which a transaction of the epoch `reserved_in` has written down.

use std::ops::RangeInclusive;

use ensilo_epoch::Epoch;

use super::definition::{Definition, Run};

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct State {
    pub(super) definition: Definition,
    /// Where the sequence is: the last number that was given, or passed over.
    position: Option<i128>,
    /// What can be given without a reservation.
    left: Run,
    /// The last number that may have been given, as it is written down.
    reserved: Option<i128>,
    reserved_in: Epoch,
    pub(super) end: Option<End>,
}

/// Why a sequence gives no numbers any more.
#[derive(Copy, Clone, Debug)]
pub(super) enum End {
    /// It was dropped, or its table was.
    Dropped,
    /// The database was closed.
    Closed,
}

/// Numbers that were given, and the epoch that has to be durable before they are known not to be given again.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Given {
    pub(crate) first: i128,
    /// From one to the next.
    pub(crate) increment: i64,
    pub(crate) epoch: Epoch,
}

impl State {
    /// The state at an opening: what was reserved may have been given.
    pub(super) fn opened(definition: Definition, reserved: Option<i128>) -> Self {
        let left = Run { first: 0, count: 0 };
        State { definition, position: reserved, left, reserved, reserved_in: Epoch::new(0), end: None }
    }

    pub(super) fn position(&self) -> Option<i128> {
        self.position
    }

    /// Returns the run that is to be reserved before `count` numbers can be given; `Ok(None)` if they can.
    ///
    /// # Errors
    /// The sequence has not as many.
    pub(super) fn to_reserve(&self, count: u64) -> Result<Option<Run>, Exhausted> {
        if self.left.count >= count {
            return Ok(None);
        }
        self.next().and_then(|next| self.definition.run_from(next, count)).map(Some).ok_or(Exhausted)
    }

    /// Returns the number that comes next, if any is left.
    fn next(&self) -> Option<i128> {
        if self.left.count > 0 { Some(self.left.first) } else { self.definition.behind(self.reserved) }
    }

    /// Notes that a run was reserved in this epoch.
    pub(super) fn reserve(&mut self, run: Run, epoch: Epoch) {
        self.left = run;
        self.reserved = Some(self.definition.last_of(run));
        self.reserved_in = epoch;
    }

    /// Returns whether the first `count` numbers of what is left, which has as many, are all among these.
    pub(super) fn are_next_among(&self, count: u64, numbers: &RangeInclusive<i128>) -> bool {
        let next = Run { count, ..self.left };
        numbers.contains(&next.first) && numbers.contains(&self.definition.last_of(next))
    }

    /// Gives the first `count` numbers of what is left, which has as many.
    pub(super) fn give(&mut self, count: u64) -> Given {
        debug_assert!((1..=self.left.count).contains(&count), "{count} of {:?}", self.left);
        let first = self.left.first;
        self.position = Some(self.definition.at(first, count - 1));
        self.skip(count);
        Given { first, increment: self.definition.increment, epoch: self.reserved_in }
    }

    fn skip(&mut self, count: u64) {
        self.left = Run { first: self.definition.at(self.left.first, count), count: self.left.count - count };
    }

    /// Passes over what is left up to `position`. Returns whether the sequence is behind that then; otherwise `position` is to be
    /// written down, and [`State::jump`] follows.
    pub(super) fn pass_over(&mut self, position: i128) -> bool {
        let is_behind = |at: Option<i128>| at.is_some_and(|at| !self.definition.is_behind(position, at));
        let is_next_behind = self.next().is_some_and(|next| self.definition.is_behind(next, position));
        if is_behind(self.position) || is_next_behind {
            return true;
        }
        if self.left.count == 0 || !is_behind(self.reserved) {
            return false;
        }
        let passed = self.definition.passed_by(self.left.first, position).min(self.left.count);
        self.position = Some(position);
        self.skip(passed);
        true
    }

    /// Goes to a position that was written down in this epoch.
    pub(super) fn jump(&mut self, position: i128, epoch: Epoch) {
        self.alter(self.definition.clone(), Some(position), epoch);
    }

    /// Goes on by another definition, behind `reserved`: both were written down in this epoch. Nothing is left of what was reserved before.
    pub(super) fn alter(&mut self, definition: Definition, reserved: Option<i128>, epoch: Epoch) {
        *self = State { reserved_in: epoch, ..State::opened(definition, reserved) };
    }

    /// Returns the epoch that the last reservation was made in.
    pub(super) fn reserved_in(&self) -> Epoch {
        self.reserved_in
    }

    /// Ends the sequence because the database is closed. Returns what is to be written down as reserved where numbers are left.
    pub(super) fn close(&mut self) -> Option<Option<i128>> {
        self.end = Some(End::Closed);
        (self.left.count > 0).then_some(self.position)
    }
}

/// A sequence has not as many numbers as were asked for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Exhausted;

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives numbers one by one, with blocks, as a program would have them without.
    #[test]
    fn numbers_follow_each_other_whatever_the_blocks() {
        let mut random = 1u64;
        let mut below = |end: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % end
        };
        for _ in 0..2000 {
            let (min, room) = (below(20) as i128 - 10, below(40) as i128);
            let increment = (below(9) as i64 - 4, 5);
            let definition = Definition {
                start: min + below(room as u64 + 1) as i128,
                increment: if increment.0 == 0 { increment.1 } else { increment.0 },
                min,
                max: min + room,
                cycles: below(2) == 0,
                block_len: below(10) as u32 + 1,
            };
            let (mut state, mut last) = (State::opened(definition.clone(), None), None);
            for step in 0..60 {
                // An opening after a clean end.
                if below(10) == 0 {
                    let reserved = state.close().unwrap_or(state.reserved);
                    state = State::opened(definition.clone(), reserved);
                }
                // A single number is all that a cycle without gaps can be asked for.
                let count = if definition.cycles { 1 } else { below(4) + 1 };
                let expected: Option<Vec<i128>> = (0..count)
                    .scan(last, |last, _| {
                        let next = definition.behind(*last);
                        *last = next.or(*last);
                        Some(next)
                    })
                    .collect();
                match (state.to_reserve(count), expected) {
                    (Err(Exhausted), None) => {}
                    (Ok(run), Some(expected)) => {
                        if let Some(run) = run {
                            state.reserve(run, Epoch::new(step));
                        }
                        let given = state.give(count);
                        let given: Vec<_> = (0..count).map(|at| definition.at(given.first, at)).collect();
                        assert_eq!(given, expected, "{definition:?} after {last:?}");
                        last = given.last().copied();
                        assert_eq!(state.position(), last);
                    }
                    (run, expected) => panic!("{run:?} where {expected:?} in {definition:?} after {last:?}"),
                }
            }
        }
    }

    #[test]
    fn what_was_passed_over_is_not_given() {
        let definition =
            Definition { start: 1, increment: 2, min: 1, max: 1000, cycles: false, block_len: 5 };
        let mut state = State::opened(definition.clone(), None);
        let next = |state: &mut State| {
            if let Some(run) = state.to_reserve(1).unwrap() {
                state.reserve(run, Epoch::new(1));
            }
            state.give(1).first
        };
        assert_eq!(next(&mut state), 1);
        // 3, 5, 7 and 9 are left.
        assert!(state.pass_over(4));
        assert_eq!(next(&mut state), 5);
        assert!(state.pass_over(2) && state.pass_over(9));
        assert_eq!(next(&mut state), 11);
        assert!(!state.pass_over(20));
        state.jump(20, Epoch::new(2));
        assert_eq!((next(&mut state), state.position()), (22, Some(22)));
        assert!(state.pass_over(22));
    }
}
