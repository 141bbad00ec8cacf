//! The `masstree` crate.

use masstree::{MassTree15Inline, RangeBound};
use seize::{Guard, LocalGuard};

use crate::keys::Key;
use crate::peer::Peer;

/// Another Masstree, without node versions for its callers. Its guards are those of `seize`.
pub(crate) struct MasstreeMap(MassTree15Inline<u64>);

impl<K: Key> Peer<K> for MasstreeMap {
    const NAME: &'static str = "masstree";
    type Session<'m> = LocalGuard<'m>;

    fn new() -> Self {
        MasstreeMap(MassTree15Inline::new())
    }

    fn session(&self) -> Self::Session<'_> {
        self.0.guard()
    }

    fn refresh(&self, session: &mut Self::Session<'_>) {
        session.refresh();
    }

    #[inline]
    fn insert(&self, guard: &mut Self::Session<'_>, key: K, value: u64) -> bool {
        self.0.insert_with_guard(key.to_bytes().as_ref(), value, guard).is_none()
    }

    #[inline]
    fn get(&self, guard: &mut Self::Session<'_>, key: K) -> Option<u64> {
        self.0.get_with_guard(key.to_bytes().as_ref(), guard)
    }

    #[inline]
    fn remove(&self, guard: &mut Self::Session<'_>, key: K, _: u64) -> bool {
        matches!(self.0.remove_with_guard(key.to_bytes().as_ref(), guard), Ok(Some(_)))
    }

    #[inline]
    fn scan(&self, guard: &mut Self::Session<'_>, from: K, count: usize) -> (u64, u64) {
        let (mut sum, mut seen) = (0, 0);
        let bytes = from.to_bytes();
        let (from, to) = (RangeBound::Included(bytes.as_ref()), RangeBound::Unbounded);
        let add = |_: &[u8], value: u64| {
            sum += value;
            seen += 1;
            seen < count as u64
        };
        // The scan by leaves is its fastest, but finds nothing when the first key lies in a lower layer.
        if bytes.as_ref().len() == 8 {
            self.0.scan_intra_leaf_batch(from, to, add, guard);
        } else {
            self.0.scan(from, to, add, guard);
        }
        (sum, seen)
    }
}
