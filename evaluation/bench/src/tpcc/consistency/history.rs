//! The sums over the history table that conditions 8, 9 and 10 need.

use ensilo::generic::ReadTransaction;
use ensilo::{Columns, Result};
use serde::{Deserialize, Serialize};

use crate::tpcc::arrangement::Arrangement;
use crate::tpcc::options::{DISTRICTS, TpccOptions};
use crate::tpcc::schema::{History, Money};
use crate::tpcc::wire;

/// Sums of `h_amount` by the district that was paid through and by the paying customer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::tpcc) struct HistorySums {
    customers: usize,
    #[serde(with = "wire::all_scaled")]
    by_district: Vec<Money>,
    #[serde(with = "wire::all_scaled")]
    by_customer: Vec<Money>,
}

#[derive(Columns)]
#[columns(of = History)]
struct Payment {
    h_c_id: u16,
    h_c_d_id: u8,
    h_c_w_id: u16,
    h_d_id: u8,
    h_w_id: u16,
    h_amount: Money,
}

impl HistorySums {
    /// Sums the whole history up.
    pub(in crate::tpcc) fn collect<'t, A: Arrangement>(
        tables: &A,
        options: &TpccOptions,
        tx: &mut impl ReadTransaction<'t, A::Engine>,
    ) -> Result<Self> {
        let customers = usize::from(options.scale.customers);
        let districts = usize::from(options.warehouses) * usize::from(DISTRICTS);
        let mut sums = Self {
            customers,
            by_district: vec![Money::default(); districts],
            by_customer: vec![Money::default(); districts * customers],
        };
        for tables in tables.sets() {
            tables.history.scan().columns::<Payment>().for_each(tx, |_, payment| sums.add(&payment))?;
        }
        Ok(sums)
    }

    /// Adds what the history of another database says.
    pub(in crate::tpcc) fn add_all(&mut self, other: &HistorySums) {
        self.by_district.iter_mut().zip(&other.by_district).for_each(|(sum, more)| *sum += *more);
        self.by_customer.iter_mut().zip(&other.by_customer).for_each(|(sum, more)| *sum += *more);
    }

    /// What was paid through a district.
    pub(super) fn of_district(&self, warehouse: u16, district: u8) -> Money {
        self.by_district[district_index(warehouse, district)]
    }

    /// What a customer has paid.
    pub(super) fn of_customer(&self, warehouse: u16, district: u8, customer: u16) -> Money {
        self.by_customer[self.customer_index(warehouse, district, customer)]
    }

    /// A payment of nobody or nowhere is in no sum, so that the sums disagree with what it was booked to.
    fn add(&mut self, payment: &Payment) {
        let district = district_index(payment.h_w_id, payment.h_d_id);
        if let Some(sum) = self.by_district.get_mut(district) {
            *sum += payment.h_amount;
        }
        let customer = self.customer_index(payment.h_c_w_id, payment.h_c_d_id, payment.h_c_id);
        if let Some(sum) = self.by_customer.get_mut(customer) {
            *sum += payment.h_amount;
        }
    }

    fn customer_index(&self, warehouse: u16, district: u8, customer: u16) -> usize {
        district_index(warehouse, district).saturating_mul(self.customers)
            + usize::from(customer.wrapping_sub(1))
    }
}

fn district_index(warehouse: u16, district: u8) -> usize {
    usize::from(warehouse.wrapping_sub(1)) * usize::from(DISTRICTS) + usize::from(district.wrapping_sub(1))
}
