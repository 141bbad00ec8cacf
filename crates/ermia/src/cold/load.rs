//! From a slot to the newest version, where that is not the address that stands there.

use ensilo_engine::{AbortReason, Store as _};
use ensilo_epoch::Guard;
use ensilo_sync::atomic::{AtomicU64, Ordering};

use super::{COLD, COOLING, ColdRecord, ColdRows, ColdWord, Unreadable};
use crate::isolation::{Fault, Isolation, has_fault};
use crate::oid_array::{DEAD, Oid};
use crate::shared::ErmiaShared;
use crate::stamp::Author;
use crate::store::ErmiaStore;
use crate::version::Version;

/// The bits of which one is set in a slot that does not hold just an address.
pub(crate) const NOT_PLAIN: u64 = COLD | COOLING | DEAD;

/// Where the newest version of a record is.
#[derive(Debug)]
pub(crate) enum Newest<I: Isolation> {
    InMemory(Version<I>),
    /// On the disk, in this place.
    Cold(ColdRecord, ColdWord),
}

impl ErmiaStore {
    /// Returns the newest version of a record, if it has one, for a transaction that is pinned and has begun. What is cold is read back, and
    /// what is cooling stays.
    ///
    /// # Errors
    /// [`AbortReason::OutOfMemory`], [`AbortReason::RowUnreadable`].
    #[inline]
    pub(crate) fn newest<I: Isolation>(
        &self,
        oid: Oid,
        shared: &ErmiaShared,
        guard: &Guard<'_>,
    ) -> Result<Option<Version<I>>, AbortReason> {
        // Acquire: [head] the version is as complete as the way to it.
        let word = self.slot(oid).load(Ordering::Acquire);
        if word & NOT_PLAIN != 0 {
            return self.newest_in_memory(oid, shared, guard);
        }
        // SAFETY: the newest version of a record is freed only when every transaction that could find it here has ended: by one that
        // has begun before it was overwritten, and is under way, it is kept.
        Ok(unsafe { Version::from_word(word) })
    }

    /// Returns the newest version of a record, where it is, under the same condition.
    ///
    /// # Errors
    /// [`Unreadable`].
    pub(crate) fn find_newest<I: Isolation>(
        &self,
        oid: Oid,
        cold: Option<&ColdRows>,
    ) -> Result<Option<Newest<I>>, Unreadable> {
        let slot = self.slot(oid);
        loop {
            // Acquire: [head], [cold].
            let word = slot.load(Ordering::Acquire);
            if word == DEAD {
                return Ok(None);
            }
            if let Some(place) = ColdWord::from_slot(word) {
                let read = cold.map_or(Err(Unreadable::Damaged), |cold| cold.read(place, slot));
                if let Some(record) = read? {
                    return Ok(Some(Newest::Cold(record, place)));
                }
            } else if word & COOLING == 0 || has_fault::<I>(Fault::KeepMark) || end_cooling(slot, word) {
                // SAFETY: as above; a version that is cooling is freed only if its slot still says so when nobody is left who has found it.
                return Ok(unsafe { Version::from_word(word & !COOLING) }.map(Newest::InMemory));
            }
        }
    }

    #[cold]
    fn newest_in_memory<I: Isolation>(
        &self,
        oid: Oid,
        shared: &ErmiaShared,
        guard: &Guard<'_>,
    ) -> Result<Option<Version<I>>, AbortReason> {
        loop {
            let newest = self.find_newest::<I>(oid, shared.cold.as_ref());
            let (record, place) = match newest? {
                None => return Ok(None),
                Some(Newest::InMemory(version)) => return Ok(Some(version)),
                Some(Newest::Cold(record, place)) => (record, place),
            };
            let version = self.version_of::<I>(&record, guard)?;
            let (slot, word) = (self.slot(oid), version.to_word());
            // AcqRel: [warm].
            if slot.compare_exchange(place.to_slot(), word, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                shared.cold_rows().note_loaded(place);
                return Ok(Some(version));
            }
            // SAFETY: nobody else has seen it.
            unsafe { version.free(guard) };
        }
    }

    /// Returns a version with this row, which nobody else knows.
    ///
    /// # Errors
    /// [`AbortReason::OutOfMemory`].
    pub(crate) fn version_of<I: Isolation>(
        &self,
        record: &ColdRecord,
        guard: &Guard<'_>,
    ) -> Result<Version<I>, AbortReason> {
        let author = Author::At(record.stamp());
        let version = Version::allocate(guard, self.id(), record.len_bytes(), author, None);
        let version: Version<I> = version.map_err(|_| AbortReason::OutOfMemory)?;
        version.record().store_row_bytes(record.row());
        if let Some(certificates) = version.certificates()
            && !has_fault::<I>(Fault::ForgetReadersOfCold)
        {
            certificates.note_reader(record.predecessor());
        }
        Ok(version)
    }
}

/// Takes the mark away. False if the slot has changed.
pub(crate) fn end_cooling(slot: &AtomicU64, word: u64) -> bool {
    // AcqRel: [head]; and what this thread does with the version comes behind: who would evict it finds another word.
    slot.compare_exchange(word, word & !COOLING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}
