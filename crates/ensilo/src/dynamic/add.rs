//! Adding to numbers of dynamic rows.

use ensilo_engine::{Addition, Engine};
use ensilo_row::Value;

use super::DynamicTable;
use crate::addition::{add_to_row, addition_to};
use crate::error::WrongType;
use crate::transaction::WriteTransaction;
use crate::{Error, Result};

impl<E: Engine> DynamicTable<E> {
    /// Adds amounts to the named columns of the row with this primary key, without a look at them, as
    /// [`Table::add`](crate::generic::Table::add) does.
    ///
    /// # Errors
    /// As [`DynamicTable::update`]; [`Error::SumOutOfRange`]; [`Error::WrongType`] for a column that is no integer of up to 64 bits
    /// or decimal, may be null or is part of the primary key, and for an amount that its column could not hold.
    pub fn add<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: &[Value],
        amounts: &[(&str, Value)],
    ) -> Result<()> {
        self.add_amounts(tx, key, amounts, false)
    }

    /// Takes amounts away from the named columns of the row with this primary key, as [`Table::subtract`](crate::generic::Table::subtract) does.
    ///
    /// # Errors
    /// As [`DynamicTable::add`].
    pub fn subtract<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: &[Value],
        amounts: &[(&str, Value)],
    ) -> Result<()> {
        self.add_amounts(tx, key, amounts, true)
    }

    fn add_amounts<'t>(
        &self,
        tx: &mut impl WriteTransaction<'t, E>,
        key: &[Value],
        amounts: &[(&str, Value)],
        is_subtraction: bool,
    ) -> Result<()> {
        let key = self.encode_key(key)?;
        let columns = amounts.iter().map(|(name, _)| self.column(name)).collect::<Result<Vec<_>>>()?;
        let pairs = columns.iter().zip(amounts);
        let additions = pairs.map(|(&column, (_, amount))| self.addition(column, amount, is_subtraction));
        let additions = additions.collect::<Result<Vec<_>>>()?;
        tx.statement(|inner| {
            self.core.check(inner.local)?;
            inner.local.additions.clone_from(&additions);
            add_to_row(inner, &self.core, &key, &columns)
        })
    }

    fn addition(&self, number: usize, amount: &Value, is_subtraction: bool) -> Result<Addition> {
        let schema = &self.core.schema;
        let column = &schema.columns()[number];
        if !column.column_type.is_summable() || column.nullable || schema.is_key_column(number) {
            let text = format!(
                "nothing can be added to column {}: it is no integer of up to 64 bits or decimal, or may be null, or is part of the primary key",
                &*column.name
            );
            return Err(Error::WrongType(WrongType::new(&column.name, text)));
        }
        let bits = schema.number_bits(number, amount).map_err(|error| self.refused(error))?;
        Ok(addition_to(schema.slots()[number], column.column_type, bits, is_subtraction))
    }
}
