//! Which numbers a sequence gives, and in which order: what follows from its definition alone.

use super::rows::ALL_NUMBERS;

/// What a sequence was made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Definition {
    pub(crate) start: i128,
    /// Not 0.
    pub(crate) increment: i64,
    pub(crate) min: i128,
    pub(crate) max: i128,
    pub(crate) cycles: bool,
    /// Not 0.
    pub(crate) block_len: u32,
}

/// Numbers of a sequence that follow each other.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: i128,
    pub(crate) count: u64,
}

impl Definition {
    /// Returns the options in which this differs from another one, with their values here.
    pub(crate) fn difference_from(&self, other: &Self) -> String {
        let options = [
            (self.start != other.start, format!("start {}", self.start)),
            (self.increment != other.increment, format!("increment {}", self.increment)),
            (self.min != other.min, format!("min {}", self.min)),
            (self.max != other.max, format!("max {}", self.max)),
            (self.cycles != other.cycles, if self.cycles { "cycle" } else { "no cycle" }.to_owned()),
            (self.block_len != other.block_len, format!("block_len {}", self.block_len)),
        ];
        let differing: Vec<String> =
            options.into_iter().filter_map(|(differs, option)| differs.then_some(option)).collect();
        differing.join(", ")
    }

    /// Returns what is to be written down as reserved so that the sequence goes on with `next`.
    pub(super) fn reserved_before(&self, next: i128) -> i128 {
        next - i128::from(self.increment)
    }

    /// Returns what is to be written down as reserved so that the sequence goes on by another definition where it is: behind `last`. Where that is no
    /// number at all the sequence was sent back to the one behind it.
    pub(super) fn reserved_in(&self, altered: &Self, last: i128) -> Option<i128> {
        if ALL_NUMBERS.contains(&last) {
            return Some(last);
        }
        let next = last + i128::from(self.increment);
        if altered.has(next) {
            Some(altered.reserved_before(next))
        } else if altered.is_before_bounds(next) {
            None
        } else {
            Some(next)
        }
    }

    /// Returns whether this is within the bounds.
    pub(super) fn has(&self, number: i128) -> bool {
        (self.min..=self.max).contains(&number)
    }

    /// Returns the number behind `last`, the first one if none was given yet; `None` at the end. `last` may be out of bounds that were altered since:
    /// before them the first number comes next, and past them none, or the next cycle.
    pub(super) fn behind(&self, last: Option<i128>) -> Option<i128> {
        let Some(last) = last else { return Some(self.start) };
        // Both are numbers of 64 bits.
        let next = last + i128::from(self.increment);
        if self.has(next) {
            return Some(next);
        }
        if self.is_before_bounds(next) {
            return Some(self.start);
        }
        self.start_of_cycle()
    }

    /// Returns the number that a further cycle begins with, if there are any.
    fn start_of_cycle(&self) -> Option<i128> {
        self.cycles.then_some(if self.increment > 0 { self.min } else { self.max })
    }

    /// Returns whether a number comes before all of the sequence's.
    pub(super) fn is_before_bounds(&self, number: i128) -> bool {
        if self.increment > 0 { number < self.min } else { number > self.max }
    }

    /// Returns a run of `count` numbers or, if there is room, a whole block, which begins with `next` if these fit before the end, and with
    /// the first number of the next cycle otherwise; `None` if they do not fit at all.
    pub(super) fn run_from(&self, next: i128, count: u64) -> Option<Run> {
        let wanted = count.max(u64::from(self.block_len));
        let run = |first| {
            let room = self.room_from(first);
            (room >= count).then(|| Run { first, count: wanted.min(room) })
        };
        run(next).or_else(|| run(self.start_of_cycle()?))
    }

    /// Returns how many numbers there are from this one to the end.
    fn room_from(&self, first: i128) -> u64 {
        let increment = i128::from(self.increment);
        let end = if increment > 0 { self.max } else { self.min };
        u64::try_from((end - first) / increment + 1).unwrap_or(u64::MAX)
    }

    /// Returns whether `one` comes behind `other` where no cycle begins in between.
    pub(super) fn is_behind(&self, one: i128, other: i128) -> bool {
        if self.increment > 0 { one > other } else { one < other }
    }

    /// Returns the number of a run with this place in it.
    pub(crate) fn at(&self, first: i128, place: u64) -> i128 {
        first + i128::from(self.increment) * i128::from(place)
    }

    /// Returns the last number of a run that has one.
    pub(super) fn last_of(&self, run: Run) -> i128 {
        self.at(run.first, run.count - 1)
    }

    /// Returns how many numbers of a run from `first` on are not behind `position`.
    pub(super) fn passed_by(&self, first: i128, position: i128) -> u64 {
        if self.is_behind(first, position) {
            return 0;
        }
        u64::try_from((position - first) / i128::from(self.increment) + 1).unwrap_or(u64::MAX)
    }
}
