//! Things that wait for their epoch, first in, first out.

use std::collections::VecDeque;

use crate::Epoch;

/// How many things a segment has at most. Lists grow and shrink by segments, so that to add or take one thing never
/// costs as much as a million.
const SEGMENT_LEN: usize = 1024;

/// Things that wait for a horizon to pass the epoch they were retired with, first in, first out.
///
/// Epochs are expected in rising order. Something pushed with an earlier epoch than its predecessor waits for that one.
#[derive(Debug)]
pub struct RetireList<T> {
    /// None is empty, unless it is the only one.
    segments: VecDeque<VecDeque<T>>,
    /// An emptied segment, for the next one.
    spare: VecDeque<T>,
    /// How many items in a row have which epoch; never with a length of 0.
    runs: VecDeque<Run>,
}

#[derive(Debug, Clone, Copy)]
struct Run {
    epoch: Epoch,
    len: usize,
}

impl<T> RetireList<T> {
    /// Returns an empty list.
    #[must_use]
    pub const fn new() -> Self {
        RetireList { segments: VecDeque::new(), spare: VecDeque::new(), runs: VecDeque::new() }
    }

    /// Returns how many things wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.runs.iter().map(|run| run.len).sum()
    }

    /// Returns whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns the epoch of the thing that waits longest.
    #[must_use]
    #[inline]
    pub fn oldest(&self) -> Option<Epoch> {
        self.runs.front().map(|run| run.epoch)
    }

    /// Returns how many things, from the front on, wait for horizons before this one.
    #[must_use]
    #[inline]
    pub fn len_before(&self, horizon: Epoch) -> usize {
        self.runs.iter().take_while(|run| run.epoch < horizon).map(|run| run.len).sum()
    }

    /// Lets `item` wait for a horizon later than `epoch`.
    #[inline]
    pub fn push(&mut self, epoch: Epoch, item: T) {
        match self.runs.back_mut() {
            Some(run) if run.epoch == epoch => run.len += 1,
            _ => self.runs.push_back(Run { epoch, len: 1 }),
        }
        match self.segments.back_mut() {
            Some(segment) if segment.len() < SEGMENT_LEN => segment.push_back(item),
            _ => self.begin_segment(item),
        }
    }

    #[cold]
    fn begin_segment(&mut self, item: T) {
        let mut segment = std::mem::take(&mut self.spare);
        if !self.segments.is_empty() {
            // A short list grows as it needs to.
            segment.reserve_exact(SEGMENT_LEN);
        }
        segment.push_back(item);
        self.segments.push_back(segment);
    }

    #[cold]
    fn end_segment(&mut self) {
        self.spare = self.segments.pop_front().unwrap_or_default();
    }

    /// Returns the thing that waits longest, if its epoch lies before `horizon`.
    #[inline]
    pub fn pop_ripe(&mut self, horizon: Epoch) -> Option<T> {
        let run = self.runs.front_mut()?;
        if run.epoch >= horizon {
            return None;
        }
        run.len -= 1;
        if run.len == 0 {
            self.runs.pop_front();
        }
        let segment = self.segments.front_mut()?;
        let item = segment.pop_front();
        if segment.is_empty() && self.segments.len() > 1 {
            self.end_segment();
        }
        item
    }
}

impl<T> RetireList<T> {
    /// Returns the first `count` of the things that [`pop_ripe`](Self::pop_ripe) would return next with this horizon, or all that there are.
    pub fn ripe(&self, horizon: Epoch, count: usize) -> impl Iterator<Item = &T> + Clone {
        let ripe = self.runs.iter().take_while(move |run| run.epoch < horizon);
        let places = ripe.flat_map(|run| std::iter::repeat_n((), run.len)).take(count);
        self.segments.iter().flatten().zip(places).map(|(item, ())| item)
    }

    /// Everything that waits, whatever its epoch, in the order in which it was pushed.
    pub fn into_items(self) -> impl Iterator<Item = T> {
        self.segments.into_iter().flatten()
    }
}

impl<T> Default for RetireList<T> {
    fn default() -> Self {
        RetireList::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_come_out_in_order_once_the_horizon_passed_them() {
        let mut list = RetireList::new();
        for (epoch, item) in [(3, 'a'), (3, 'b'), (4, 'c'), (7, 'd')] {
            list.push(Epoch::new(epoch), item);
        }
        assert_eq!(list.pop_ripe(Epoch::new(3)), None, "an epoch equal to the horizon is not over");
        assert_eq!(list.pop_ripe(Epoch::new(4)), Some('a'));
        assert_eq!(list.pop_ripe(Epoch::new(4)), Some('b'));
        assert_eq!(list.pop_ripe(Epoch::new(4)), None);
        assert_eq!((list.len(), list.oldest()), (2, Some(Epoch::new(4))));
        assert_eq!([4, 5, 8].map(|horizon| list.len_before(Epoch::new(horizon))), [0, 1, 2]);
        assert_eq!(list.pop_ripe(Epoch::new(8)), Some('c'));
        assert_eq!(list.pop_ripe(Epoch::new(8)), Some('d'));
        assert_eq!((list.pop_ripe(Epoch::new(9)), list.oldest()), (None, None));
    }

    #[test]
    fn what_is_ripe_is_shown_in_the_order_in_which_it_comes_out() {
        let mut list = RetireList::new();
        for item in 0..3 * SEGMENT_LEN {
            list.push(Epoch::new(if item < 2000 { 1 } else { 2 }), item);
        }
        assert_eq!(list.pop_ripe(Epoch::new(2)), Some(0));
        let shown = |horizon, count| list.ripe(Epoch::new(horizon), count).copied().collect::<Vec<_>>();
        assert_eq!(shown(1, 9), []);
        assert_eq!(shown(2, 3), [1, 2, 3]);
        assert_eq!(shown(2, usize::MAX), (1..2000).collect::<Vec<_>>());
        assert_eq!(shown(3, usize::MAX), (1..3 * SEGMENT_LEN).collect::<Vec<_>>());
    }

    #[test]
    fn a_late_comer_with_an_early_epoch_waits_for_its_predecessor() {
        let mut list = RetireList::new();
        list.push(Epoch::new(5), 'a');
        list.push(Epoch::new(2), 'b');
        assert_eq!(list.pop_ripe(Epoch::new(4)), None);
        assert_eq!(list.pop_ripe(Epoch::new(6)), Some('a'));
        assert_eq!(list.pop_ripe(Epoch::new(6)), Some('b'));
    }

    #[test]
    fn a_drained_list_gives_its_memory_back() {
        let mut list = RetireList::new();
        for item in 0..100 * SEGMENT_LEN + 1 {
            list.push(Epoch::new(1), item);
        }
        assert_eq!((list.len(), list.segments.len()), (100 * SEGMENT_LEN + 1, 101));
        let items: Vec<_> = std::iter::from_fn(|| list.pop_ripe(Epoch::new(2))).collect();
        assert!(items.iter().copied().eq(0..100 * SEGMENT_LEN + 1));
        let kept = list.segments.iter().chain([&list.spare]).map(VecDeque::capacity).sum::<usize>();
        assert!(list.is_empty() && kept <= 4 * SEGMENT_LEN, "{kept}");
        list.push(Epoch::new(3), 7);
        assert_eq!((list.pop_ripe(Epoch::new(4)), list.into_items().next()), (Some(7), None));
    }
}
