//! Which of the numbered messages of another site have come.

/// How many numbers are remembered, the newest among them.
pub const WINDOW: u64 = 1024;

const BITS: u64 = u64::BITS as u64;

/// The numbers that one incarnation of a site has sent. Numbers that are [`WINDOW`] or more below the newest one are not remembered, and count as
/// received.
#[derive(Clone, Debug)]
pub(super) struct Window {
    incarnation: u32,
    /// All that come are smaller.
    end: u64,
    /// A bit for each of the last numbers, at its remainder.
    come: [u64; (WINDOW / BITS) as usize],
}

impl Window {
    /// Returns the window of an incarnation that nothing has come from.
    pub(super) fn new(incarnation: u32) -> Self {
        Window { incarnation, end: 0, come: [0; (WINDOW / BITS) as usize] }
    }

    /// Notes that a number has come from an incarnation of the site. False if it has come before, or is too old to tell.
    pub(super) fn admit(&mut self, incarnation: u32, number: u64) -> bool {
        if incarnation > self.incarnation {
            *self = Window::new(incarnation);
        }
        if incarnation < self.incarnation || number == u64::MAX {
            return false;
        }
        self.move_to(number + 1);
        if self.end - number > WINDOW {
            return false;
        }
        let (word, bit) = Window::place(number);
        let is_new = self.come[word] & bit == 0;
        self.come[word] |= bit;
        is_new
    }

    /// Forgets what the window moves away from.
    fn move_to(&mut self, end: u64) {
        if end > self.end {
            for number in self.end.max(end.saturating_sub(WINDOW))..end {
                let (word, bit) = Window::place(number);
                self.come[word] &= !bit;
            }
            self.end = end;
        }
    }

    fn place(number: u64) -> (usize, u64) {
        let at = number % WINDOW;
        ((at / BITS) as usize, 1 << (at % BITS))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_later_incarnation_begins_anew_and_an_earlier_one_is_past() {
        let mut window = Window::new(1);
        assert!(window.admit(1, 0) && !window.admit(1, 0));
        assert!(window.admit(2, 0));
        assert!(!window.admit(1, 1) && !window.admit(2, u64::MAX));
    }

    proptest! {
        #[test]
        fn each_number_is_admitted_once_unless_it_is_too_old(
            steps in prop::collection::vec((0..3 * WINDOW, any::<bool>()), 1..200)
        ) {
            let (mut window, mut come, mut newest) = (Window::new(0), BTreeSet::new(), 0);
            for (number, is_far) in steps {
                let number = if is_far { newest + number } else { u64::saturating_sub(newest, number) };
                newest = newest.max(number);
                let is_old = newest - number >= WINDOW;
                let is_new = come.insert(number);
                prop_assert_eq!(window.admit(0, number), is_new && !is_old);
            }
        }
    }
}
