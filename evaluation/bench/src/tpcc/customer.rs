//! Finding a customer by number or by last name, as payment and order-status do (clauses 2.5.2.2 and 2.6.2.2).

use ensilo::generic::ReadTransaction;
use ensilo::{Engine, Result};

use super::input::CustomerChoice;
use super::new_order::missing;
use super::tables::Tables;

/// The number of the customer of `district` of `warehouse` that is chosen; `numbers` is scratch memory.
///
/// Of several with the same last name, ordered by first name, it is the one in the middle, rounded up.
#[inline]
pub(super) fn customer_number<'t, E: Engine>(
    choice: &CustomerChoice,
    warehouse: u16,
    district: u8,
    tables: &Tables<E>,
    tx: &mut impl ReadTransaction<'t, E>,
    numbers: &mut Vec<u16>,
) -> Result<u16> {
    let last_name = match choice {
        CustomerChoice::Number(number) => return Ok(*number),
        CustomerChoice::LastName(last_name) => *last_name,
    };
    numbers.clear();
    let namesakes = tables.customers_by_name.prefix((warehouse, district, last_name));
    namesakes.for_each_primary_key(tx, |(_, _, number)| numbers.push(number))?;
    match numbers.len() {
        0 => Err(missing()),
        count => Ok(numbers[(count - 1) / 2]),
    }
}
