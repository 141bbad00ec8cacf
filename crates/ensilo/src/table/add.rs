//! Adding to numbers of static rows.

use ensilo_engine::{Addition, Engine};
use ensilo_row::{AsKey, Columns, Row, WordSlice};

use super::Table;
use crate::Result;
use crate::addition::{add_to_row, addition_to};
use crate::transaction::WriteTransaction;

impl<T: Row, E: Engine> Table<T, E> {
    /// Adds `amounts` to the columns of the row with this primary key, without a look at them: transactions that add to the same row at
    /// the same time do not conflict, and each amount counts.
    ///
    /// ```
    /// # use ensilo::{Columns, Database, Error, Row};
    /// #[derive(Row)]
    /// #[row(table = "article")]
    /// struct Article {
    ///     #[row(key)]
    ///     id: u32,
    ///     name: String,
    ///     in_stock: u32,
    ///     sold: u64,
    /// }
    ///
    /// #[derive(Columns)]
    /// #[columns(of = Article)]
    /// struct Stock {
    ///     in_stock: u32,
    /// }
    ///
    /// #[derive(Columns)]
    /// #[columns(of = Article)]
    /// struct Sold {
    ///     sold: u64,
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// let articles = db.table::<Article>()?;
    /// db.transact(|tx| articles.insert(tx, &Article { id: 1, name: "tea".to_owned(), in_stock: 10, sold: 0 }))?;
    /// let sell = |count| {
    ///     db.transact(|tx| {
    ///         articles.subtract(tx, 1, &Stock { in_stock: count })?;
    ///         articles.add(tx, 1, &Sold { sold: count.into() })
    ///     })
    /// };
    /// sell(7)?;
    /// assert!(matches!(sell(7), Err(Error::SumOutOfRange(_))), "3 are left");
    /// let left = db.read(|tx| articles.get(tx, 1))?.unwrap();
    /// assert_eq!((left.in_stock, left.sold), (3, 7));
    /// # Ok(()) }
    /// ```
    ///
    /// The number is read when the transaction commits, while nobody else can change the row. If the transaction reads the row after the statement it
    /// gets the sum, and from then on the row counts as read, as after an update. So the method gains where many transactions add to the same rows and do
    /// not read them otherwise: counters, balances, stocks. It saves attempts that would be undone, and their work. Where all transactions do nothing but
    /// count in one row, two threads together do less than one alone, but more than by `update`.
    ///
    /// In these cases the method works as [`Table::update`] does: the row is read at once, and others that change it are in conflict.
    /// - The engine is another one than [`Silo`](crate::Silo).
    /// - The transaction is a [`Session`](crate::Session)'s own, or a request that others give way to after it has failed often.
    /// - A column is of an index, or the row was written before a change of the schema.
    /// - The transaction has written the row otherwise, or adds to more than 16 numbers of it.
    ///
    /// The columns are integers of up to 64 bits, or [`Decimal`](crate::Decimal)s, or structs of the program's own that are
    /// [stored as one](derive@crate::ColumnValue); they may not be null, nor are they of the primary key. It does not compile otherwise. A negative amount
    /// is taken away.
    ///
    /// ```compile_fail
    /// # use ensilo::{Columns, Database, Row};
    /// # #[derive(Row)] #[row(table = "article")] struct Article { #[row(key)] id: u32, name: String, limit: Option<u32> }
    /// #[derive(Columns)]
    /// #[columns(of = Article)]
    /// struct Limit {
    ///     limit: Option<u32>,
    /// }
    ///
    /// # fn main() -> ensilo::Result<()> {
    /// # let db = Database::in_memory()?;
    /// # let articles = db.table::<Article>()?;
    /// db.transact(|tx| articles.add(tx, 1, &Limit { limit: Some(1) }))?; // error: only columns .. can be added to
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`Table::upsert`]; [`Error::MissingRow`](crate::Error::MissingRow) when there is no such row;
    /// [`Error::SumOutOfRange`](crate::Error::SumOutOfRange) when the sum is no number of the column's type. Nothing has changed then. A request runs once
    /// more to find that out, however many retries it has left.
    pub fn add<'t, C: Columns<T>>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
        amounts: &C,
    ) -> Result<()> {
        self.add_amounts(tx, key, amounts, false)
    }

    /// Takes `amounts` away from the columns of the row with this primary key: as [`Table::add`], the other way, so that columns without a sign
    /// can become less. They do not become less than 0.
    ///
    /// # Errors
    /// As [`Table::add`].
    pub fn subtract<'t, C: Columns<T>>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
        amounts: &C,
    ) -> Result<()> {
        self.add_amounts(tx, key, amounts, true)
    }

    fn add_amounts<'t, C: Columns<T>>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: impl AsKey<T::Key>,
        amounts: &C,
        is_subtraction: bool,
    ) -> Result<()> {
        const {
            assert!(
                C::ARE_SUMMABLE,
                "only columns by `#[derive(Columns)]` can be added to that are integers of up to 64 bits or decimals, neither null nor in the primary key"
            );
        }
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            let bytes = self.encode(&key)?;
            set_additions::<T, C>(amounts, is_subtraction, &mut inner.local.additions);
            add_to_row(inner, &self.core, &bytes, C::COLUMNS)
        })
    }
}

/// Makes `additions` those of the amounts, in the order of their columns.
fn set_additions<T: Row, C: Columns<T>>(amounts: &C, is_subtraction: bool, additions: &mut Vec<Addition>) {
    let mut words = C::patch_base(&WordSlice::new(&[], 0));
    amounts.patch(&mut words);
    additions.clear();
    for &column in C::COLUMNS {
        let (slot, column_type) = (T::SLOTS[column], T::DESCRIPTION.columns[column].column_type);
        let word = words.as_ref().iter().find(|(index, _)| *index as usize == slot.offset() / 8);
        let word = word.map_or(0, |(_, word)| *word);
        additions.push(addition_to(slot, column_type, word >> (slot.offset() % 8 * 8), is_subtraction));
    }
}
