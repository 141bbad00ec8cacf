//! What rows of tables over several instances are read in.

use super::database::DatabaseNumber;
use super::error::IslandError;
use super::program::TableProgram;
use super::statement::{Answer, Statement, from_bytes, to_bytes};
use crate::islands::PointReader;

/// What the rows of an [`IslandTable`](super::IslandTable) can be read in: an [`IslandTransaction`](super::IslandTransaction), or an
/// [`IslandReader`].
///
/// Sealed: implemented by these alone.
pub trait IslandRead: sealed::Sealed {}

pub(super) mod sealed {
    use super::super::database::DatabaseNumber;
    use super::super::recording::Accesses;
    use super::super::statement::{Answer, Statement};
    use crate::tables::IslandError;

    #[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
    pub trait Sealed {
        /// Returns which database it belongs to.
        fn database(&self) -> DatabaseNumber;

        /// Returns where a statement about replicated rows is answered.
        fn home(&self) -> u16;

        /// Has an instance answer a statement.
        fn ask(&mut self, instance: u16, statement: &Statement) -> Result<Answer, IslandError>;

        /// Returns where its accesses are recorded, if they are.
        fn recorded(&mut self) -> Option<&mut Accesses> {
            None
        }
    }
}

/// Reads rows at one consistent point of all instances, inside [`IslandDatabase::read`](super::IslandDatabase::read). It is in conflict with nobody.
#[derive(Debug)]
pub struct IslandReader<'a> {
    point: PointReader<'a, TableProgram>,
    home: u16,
    database: DatabaseNumber,
}

impl<'a> IslandReader<'a> {
    pub(super) fn new(point: PointReader<'a, TableProgram>, home: u16, database: DatabaseNumber) -> Self {
        IslandReader { point, home, database }
    }
}

impl IslandRead for IslandReader<'_> {}

#[allow(private_interfaces, reason = "sealed: callers cannot name this trait")]
impl sealed::Sealed for IslandReader<'_> {
    fn database(&self) -> DatabaseNumber {
        self.database
    }

    fn home(&self) -> u16 {
        self.home
    }

    fn ask(&mut self, instance: u16, statement: &Statement) -> Result<Answer, IslandError> {
        Ok(from_bytes(&self.point.read(instance, &to_bytes(statement))?)?)
    }
}
