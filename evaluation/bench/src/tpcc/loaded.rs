//! A loaded TPC-C database.

use ensilo::generic::Database;
use ensilo::{Engine, Silo};

use super::arrangement::{Arrangement, Whole};
use super::load::load;
use super::options::TpccOptions;
use super::random::NuRand;
use crate::database;
use crate::driver::{Failure, Interrupt, View};

/// TPC-C on the product.
pub type Tpcc = TpccOf<Whole<Silo>>;

/// TPC-C: the database of the options, loaded, with its tables arranged like this.
#[derive(Debug)]
pub struct TpccOf<A: Arrangement> {
    pub(crate) options: TpccOptions,
    pub(crate) database: Database<A::Engine>,
    pub(crate) tables: A,
}

impl<A: Arrangement> TpccOf<A> {
    /// Loads `database`, which is empty. All is stored in the end, if it ever is in this database.
    ///
    /// # Errors
    /// A failure of the database, or [`Failure::Interrupted`].
    pub fn load(
        options: TpccOptions,
        database: Database<A::Engine>,
        view: &mut View,
        interrupt: &Interrupt,
    ) -> Result<Self, Failure> {
        let tables = A::create(&database, &options)?;
        let (for_load, _) = NuRand::of_seed(options.seed);
        load(&database, &tables, &options, for_load, view, interrupt)?;
        database::wait_until_stored(&database)?;
        // Read-only transactions are to find the rows from the beginning.
        database::make_fresh_snapshot(&database)?;
        Ok(Self { options, database, tables })
    }
}

impl<E: Engine> TpccOf<Whole<E>> {
    /// The workload of a `database` that has no tables yet; they are created, empty.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn create(options: TpccOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Whole::create(&database, &options)?;
        Ok(Self { options, database, tables })
    }

    /// The workload of a `database` that was loaded with the same options before.
    ///
    /// # Errors
    /// A failure of the database.
    pub fn open(options: TpccOptions, database: Database<E>) -> Result<Self, Failure> {
        let tables = Whole::open(&database)?;
        Ok(Self { options, database, tables })
    }
}
