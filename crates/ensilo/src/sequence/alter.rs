//! Altering a sequence that is there: its definition, or where it goes on.
//!
//! Both are a transaction of its own that writes the sequence's row as a whole, while nobody gets numbers: what was reserved before is thrown
//! away with it, so that the next number follows the one that was given last. After a crash the sequence is as it was before, or as it is then (S1
//! of the module above holds, as the next reservation commits later).

use ensilo_engine::Engine;

use super::definition::Definition;
use super::rows::SequenceRow;
use super::sequence_core::SequenceCore;
use crate::durability::Durability;
use crate::error::Name;
use crate::outcome::Visible;
use crate::shared::DatabaseShared;
use crate::{Error, Result};

impl<E: Engine> DatabaseShared<E> {
    /// Lets a sequence go on by another definition.
    pub(crate) fn alter_sequence(&self, core: &SequenceCore, definition: &Definition) -> Result<()> {
        self.rewrite_sequence(core, |_, position| Ok((definition.clone(), position)))
    }

    /// Lets a sequence go on with this number.
    pub(crate) fn restart_sequence(&self, core: &SequenceCore, next: i128) -> Result<()> {
        self.rewrite_sequence(core, |definition, _| {
            let (min, max) = (definition.min, definition.max);
            if !(min..=max).contains(&next) {
                let text = format!("{next} is not a number of {}: they are from {min} to {max}", core.name);
                return Err(Error::InvalidSequence(Name::new(text)));
            }
            Ok((definition.clone(), Some(definition.reserved_before(next))))
        })
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
