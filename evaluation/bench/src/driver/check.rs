//! The result of a consistency check: a name, what was examined, and the first violations in numbers.

/// The result of one consistency check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, like `3.3.2.1`.
    pub name: &'static str,
    /// What must hold, in a sentence.
    pub condition: &'static str,
    /// How many things (districts, orders, ..) it was held against.
    pub examined: u64,
    /// How many of them did not satisfy it.
    pub violated: u64,
    /// The first few violations, with the numbers that disagree.
    pub examples: Vec<String>,
}

/// Violations that a check describes; the others are only counted.
const EXAMPLES_MAX: usize = 5;

impl Check {
    /// A check that has examined nothing yet.
    pub fn new(name: &'static str, condition: &'static str) -> Self {
        Self { name, condition, examined: 0, violated: 0, examples: Vec::new() }
    }

    /// Counts one thing examined; `describe` says what is wrong if it does not hold.
    #[inline]
    pub fn expect(&mut self, holds: bool, describe: impl FnOnce() -> String) {
        self.examined += 1;
        if !holds {
            self.violated += 1;
            if self.examples.len() < EXAMPLES_MAX {
                self.examples.push(describe());
            }
        }
    }

    /// Adds what another part of the same check found.
    pub fn add(&mut self, other: Self) {
        debug_assert_eq!(self.name, other.name);
        self.examined += other.examined;
        self.violated += other.violated;
        let room = EXAMPLES_MAX - self.examples.len();
        self.examples.extend(other.examples.into_iter().take(room));
    }

    /// Whether nothing violated it.
    pub fn passed(&self) -> bool {
        self.violated == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_counts_all_and_describes_few() {
        let mut check = Check::new("even", "numbers are even");
        for number in 0..100 {
            check.expect(number % 2 == 0, || format!("{number} is odd"));
        }
        let mut sum = Check::new("even", "numbers are even");
        sum.add(check.clone());
        sum.add(check);
        assert_eq!((sum.examined, sum.violated, sum.examples.len()), (200, 100, EXAMPLES_MAX));
        assert_eq!(sum.examples[0], "1 is odd");
        assert!(!sum.passed());
    }
}
