//! What every map must do to take part.

use crate::keys::Key;

/// A concurrent ordered map from keys to numbers.
pub(crate) trait Peer<K: Key>: Sync + Sized {
    /// Its name in the table.
    const NAME: &'static str;

    /// What a thread needs to work with the map.
    type Session<'m>
    where
        Self: 'm;

    /// An empty map.
    fn new() -> Self;

    fn session(&self) -> Self::Session<'_>;

    /// Between batches: what the thread's guard holds back may be freed.
    fn refresh(&self, session: &mut Self::Session<'_>);

    /// Whether the key is new.
    fn insert(&self, session: &mut Self::Session<'_>, key: K, value: u64) -> bool;

    fn get(&self, session: &mut Self::Session<'_>, key: K) -> Option<u64>;

    /// The sum of the values found, and how many. A map without such an operation does one after the other.
    fn get_many(&self, session: &mut Self::Session<'_>, keys: &[K]) -> (u64, u64) {
        let mut found = (0, 0);
        for &key in keys {
            if let Some(value) = self.get(session, key) {
                found = (found.0 + value, found.1 + 1);
            }
        }
        found
    }

    /// Whether the key was there. If so, it had this value: ours compares it, the other maps do not ask for it.
    fn remove(&self, session: &mut Self::Session<'_>, key: K, value: u64) -> bool;

    /// The sum of the values of up to `count` keys from `from` on, and how many there were.
    fn scan(&self, session: &mut Self::Session<'_>, from: K, count: usize) -> (u64, u64);
}
