//! Altering a sequence that is there: its definition, or where it goes on.
//!
//! Both are a transaction of its own that writes the sequence's row as a whole, while nobody gets numbers. Numbers that were reserved and not given are
//! reserved anew by whoever needs them next, so that none of them is left out. After a crash the sequence is as it was before, or as it is then: the next
//! reservation commits later (S1 of the module above).

use ensilo_engine::{Engine, Store as _};

use super::definition::Definition;
use super::rows::SequenceRow;
use super::sequence_core::SequenceCore;
use super::table_numbers::name_of;
use crate::catalog::table_core::TableCore;
use crate::durability::Durability;
use crate::error::Name;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

impl<E: Engine> DatabaseShared<E> {
    /// Lets a sequence go on by another definition.
    pub(crate) fn alter_sequence(&self, core: &SequenceCore, definition: &Definition) -> Result<()> {
        self.rewrite_sequence(core, |before, position| {
            let reserved = position.and_then(|last| before.reserved_in(definition, last));
            Ok((definition.clone(), reserved))
        })
    }

    /// Lets a sequence go on with this number.
    pub(crate) fn restart_sequence(&self, core: &SequenceCore, next: i128) -> Result<()> {
        self.rewrite_sequence(core, |definition, _| {
            if !definition.has(next) {
                let (min, max) = (definition.min, definition.max);
                let text = format!("{next} is not a number of {}: they are from {min} to {max}", core.name);
                return Err(Error::InvalidSequence(Name::new(text)));
            }
            Ok((definition.clone(), Some(definition.reserved_before(next))))
        })
    }

    /// Lets the keys that a table gives go on with this number.
    pub(crate) fn restart_keys(&self, table: &TableCore<E::Store>, next: i128) -> Result<()> {
        match self.find_sequence_of_table(table.store.id().0, &name_of(table))? {
            Some(core) => self.restart_sequence(&core, next),
            None => Err(Error::UnknownSequence(Name::new(&*name_of(table)))),
        }
    }

    /// Stores what `change` makes of the definition and the number that was given last: another definition, and what is reserved by then.
    fn rewrite_sequence(
        &self,
        core: &SequenceCore,
        change: impl FnOnce(&Definition, Option<i128>) -> Result<(Definition, Option<i128>)>,
    ) -> Result<()> {
        self.check_may_change()?;
        let unknown = || Error::UnknownSequence(Name::new(&*core.name));
        let rows = self.sequence_rows()?.ok_or_else(unknown)?;
        let mut state = core.lock()?;
        let (definition, reserved) = change(&state.definition, state.position())?;
        let row = SequenceRow::new(&core.key, &definition, reserved);
        assert!(row.definition().is_some(), "a sequence that no opening accepts: {row:?}");
        let written = self.commit_apart(|tx| rows.replace(tx, &row));
        if let Ok(Visible { epoch, .. }) = &written {
            state.alter(definition, reserved, *epoch);
        }
        // Others may get numbers before it is stored: who uses these commits in no earlier epoch.
        drop(state);
        match self.answer(written, Durability::Stored) {
            Err(Error::MissingRow(_)) => Err(unknown()),
            answered => answered,
        }
    }
}
