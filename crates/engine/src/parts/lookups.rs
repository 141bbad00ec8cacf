//! The answers to many look-ups that are made at once.

use ensilo_epoch::Guard;
use ensilo_index::{Lookup, Masstree};

use super::set_buffer::{HeldMemory, SetBuffer};
use crate::abort::Abort;

/// Answers of an index to one statement. It takes the buffer out of its transaction, which it uses meanwhile.
#[derive(Debug, Default)]
pub struct Lookups(SetBuffer<Option<Lookup>>);

impl Lookups {
    /// Looks all keys up, their descents interleaved.
    ///
    /// # Errors
    /// As for [`SetBuffer::reserve`].
    #[inline]
    pub fn look_up<K: AsRef<[u8]>>(
        &mut self,
        index: &Masstree,
        keys: &[K],
        guard: &Guard<'_>,
        held: &mut HeldMemory,
    ) -> Result<(), Abort> {
        let Lookups(answers) = self;
        answers.clear();
        answers.reserve(keys.len(), held)?;
        // Not `repeat_n`, which takes three times as long.
        answers.extend_reserved((0..keys.len()).map(|_| None));
        index.get_many(keys, guard, |at, lookup| answers[at] = Some(lookup));
        Ok(())
    }

    /// Returns the answers in the order of the keys.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Lookup> + Clone + '_ {
        self.0.iter().map(|answer| match answer {
            Some(lookup) => *lookup,
            None => unreachable!("get_many answers every key"),
        })
    }

    /// Forgets the answers.
    #[inline]
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
