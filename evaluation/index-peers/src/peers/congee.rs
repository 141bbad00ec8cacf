//! `congee`, for 8-byte keys.

use congee::Congee;
use congee::epoch::Guard;

use crate::peer::Peer;

/// A concurrent adaptive radix tree.
pub(crate) struct CongeeMap(Congee<usize, usize>);

impl Peer<u64> for CongeeMap {
    const NAME: &'static str = "congee";
    type Session<'m> = Guard;

    fn new() -> Self {
        CongeeMap(Congee::default())
    }

    fn session(&self) -> Guard {
        self.0.pin()
    }

    fn refresh(&self, session: &mut Guard) {
        *session = self.0.pin();
    }

    #[inline]
    fn insert(&self, guard: &mut Guard, key: u64, value: u64) -> bool {
        let old = self.0.insert(key as usize, value as usize, guard);
        old.is_ok_and(|old| old.is_none())
    }

    #[inline]
    fn get(&self, guard: &mut Guard, key: u64) -> Option<u64> {
        self.0.get(&(key as usize), guard).map(|value| value as u64)
    }

    #[inline]
    fn remove(&self, guard: &mut Guard, key: u64, _: u64) -> bool {
        self.0.remove(&(key as usize), guard).is_some()
    }

    #[inline]
    fn scan(&self, guard: &mut Guard, from: u64, count: usize) -> (u64, u64) {
        let mut found = [(0, 0); crate::work::SCAN_LENGTH];
        let count = self.0.range(&(from as usize), &usize::MAX, &mut found[..count], guard);
        (found[..count].iter().map(|&(_, value)| value as u64).sum(), count as u64)
    }
}
