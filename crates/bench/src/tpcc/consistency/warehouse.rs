//! Conditions 1 and 8, and the walk through a warehouse's districts.

use ensilo::{Columns, ReadTransaction, Result, Silo};

use super::condition::Conditions;
use super::history::HistorySums;
use super::{Place, district};
use crate::tpcc::options::DISTRICTS;
use crate::tpcc::schema::{Money, Warehouse};
use crate::tpcc::workload::Tpcc;

#[derive(Columns)]
#[columns(of = Warehouse)]
struct WarehouseYtd {
    w_ytd: Money,
}

/// Checks all conditions of one warehouse.
pub(super) fn check<'t>(
    tpcc: &Tpcc,
    tx: &mut impl ReadTransaction<'t, Silo>,
    warehouse: u16,
    history: &HistorySums,
    conditions: &mut Conditions,
) -> Result<()> {
    let mut district_ytd = Money::default();
    let mut history_sum = Money::default();
    for number in 1..=DISTRICTS {
        let place = Place { tables: &tpcc.tables, warehouse, district: number };
        district_ytd += district::check(&place, tpcc.options.scale, tx, history, conditions)?;
        history_sum += history.of_district(warehouse, number);
    }
    let row = tpcc.tables.warehouses.get_columns::<WarehouseYtd>(tx, warehouse)?;
    let w_ytd = row.map(|row| row.w_ytd);
    let told = w_ytd.map_or_else(|| "there is no such warehouse".to_owned(), |ytd| format!("w_ytd {ytd}"));
    conditions.of(1).expect(w_ytd == Some(district_ytd), || {
        format!("warehouse {warehouse}: {told}, sum of d_ytd {district_ytd}")
    });
    conditions.of(8).expect(w_ytd == Some(history_sum), || {
        format!("warehouse {warehouse}: {told}, sum of h_amount {history_sum}")
    });
    Ok(())
}
