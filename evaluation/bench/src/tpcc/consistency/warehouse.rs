//! Conditions 1 and 8, and the walk through a warehouse's districts.

use ensilo::Result;
use ensilo::generic::ReadTransaction;

use super::condition::Conditions;
use super::district::CheckedDistrict;
use super::history::HistorySums;
use crate::tpcc::arrangement::Arrangement;
use crate::tpcc::options::{DISTRICTS, Scale};
use crate::tpcc::payment::WarehouseYtd;
use crate::tpcc::schema::Money;

/// Checks all conditions of one warehouse.
pub(super) fn check<'t, A: Arrangement>(
    tables: &A,
    scale: Scale,
    tx: &mut impl ReadTransaction<'t, A::Engine>,
    warehouse: u16,
    history: &HistorySums,
) -> Result<Conditions> {
    let mut conditions = Conditions::new();
    let all = tables;
    let tables = all.of(warehouse);
    let mut district_ytd = Money::default();
    let mut history_sum = Money::default();
    for district in 1..=DISTRICTS {
        let next_order = A::HAS_FAST_IDS.then(|| all.next_order(warehouse, district));
        let checked = CheckedDistrict {
            tables,
            warehouse,
            district,
            next_order,
            scale,
            history,
            conditions: &mut conditions,
        };
        district_ytd += checked.check(tx)?;
        history_sum += history.of_district(warehouse, district);
    }
    let row = tables.warehouses.get_columns::<WarehouseYtd>(tx, warehouse)?;
    let w_ytd = row.map(|row| row.w_ytd);
    let found = w_ytd.map_or_else(|| "there is no such warehouse".to_owned(), |ytd| format!("w_ytd {ytd}"));
    conditions.of(1).expect(w_ytd == Some(district_ytd), || {
        format!("warehouse {warehouse}: {found}, sum of d_ytd {district_ytd}")
    });
    conditions.of(8).expect(w_ytd == Some(history_sum), || {
        format!("warehouse {warehouse}: {found}, sum of h_amount {history_sum}")
    });
    Ok(conditions)
}
