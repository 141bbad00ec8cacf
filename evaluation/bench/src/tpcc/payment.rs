//! Payment: a customer pays, and district, warehouse and history tell of it (clause 2.5).

use std::fmt::Write;
use std::hint::black_box;

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text, Timestamp};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::customer::customer_number;
use super::input::{CustomerChoice, Inputs};
use super::new_order::missing;
use super::schema::{Customer, District, History, Money, Rate, Warehouse};
use super::tables::Tables;
use super::wire;

/// What the terminal enters.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PaymentInput {
    /// The warehouse that is paid through.
    pub warehouse: u16,
    /// The district that is paid through.
    pub district: u8,
    /// The customer's warehouse.
    pub customer_warehouse: u16,
    /// The customer's district.
    pub customer_district: u8,
    /// The customer.
    pub customer: CustomerChoice,
    /// What is paid.
    #[serde(with = "wire::scaled")]
    pub amount: Money,
    /// When.
    #[serde(with = "wire::micros")]
    pub date: Timestamp,
}

/// What the terminal shows.
pub(super) struct PaymentOutput {
    #[allow(dead_code, reason = "what a terminal would show; nobody looks at it here")]
    shown: (WarehousePaid, DistrictPaid, Option<(CustomerPaid, Option<Text<500>>)>),
}

#[derive(Columns)]
#[columns(of = Warehouse)]
struct WarehousePaid {
    w_name: Text<10>,
    w_street_1: Text<20>,
    w_street_2: Text<20>,
    w_city: Text<20>,
    w_state: Text<2>,
    w_zip: Text<9>,
    w_ytd: Money,
}

#[derive(Columns)]
#[columns(of = Warehouse)]
pub(super) struct WarehouseYtd {
    pub(super) w_ytd: Money,
}

#[derive(Columns)]
#[columns(of = District)]
struct DistrictPaid {
    d_name: Text<10>,
    d_street_1: Text<20>,
    d_street_2: Text<20>,
    d_city: Text<20>,
    d_state: Text<2>,
    d_zip: Text<9>,
    d_ytd: Money,
}

#[derive(Columns)]
#[columns(of = District)]
struct DistrictYtd {
    d_ytd: Money,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerPaid {
    c_first: Text<16>,
    c_middle: Text<2>,
    c_last: Text<16>,
    c_street_1: Text<20>,
    c_street_2: Text<20>,
    c_city: Text<20>,
    c_state: Text<2>,
    c_zip: Text<9>,
    c_phone: Text<16>,
    c_since: Timestamp,
    c_credit: Text<2>,
    c_credit_lim: Money,
    c_discount: Rate,
    c_balance: Money,
    c_ytd_payment: Money,
    c_payment_cnt: u32,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerAccount {
    c_balance: Money,
    c_ytd_payment: Money,
    c_payment_cnt: u32,
}

#[derive(Columns)]
#[columns(of = Customer)]
struct CustomerNotes {
    c_data: Text<500>,
}

impl PaymentInput {
    /// Draws a payment through `warehouse` (clause 2.5.1).
    pub(super) fn draw(inputs: &mut Inputs<'_>, warehouse: u16, date: Timestamp) -> Self {
        let district = inputs.district();
        let (customer_warehouse, customer_district) = if inputs.is_remote_customer() {
            (inputs.other_warehouse(warehouse), inputs.district())
        } else {
            (warehouse, district)
        };
        Self {
            warehouse,
            district,
            customer_warehouse,
            customer_district,
            customer: inputs.customer_choice(),
            amount: Money::from_scaled(inputs.random.between(100, 500_000) as i64),
            date,
        }
    }

    /// A payment of `customer`, of one warehouse and district, through another.
    #[cfg(test)]
    pub(super) fn of(
        (warehouse, district): (u16, u8),
        (customer_warehouse, customer_district): (u16, u8),
        customer: CustomerChoice,
        amount: Money,
        date: Timestamp,
    ) -> Self {
        Self { warehouse, district, customer_warehouse, customer_district, customer, amount, date }
    }

    /// The warehouses that it touches.
    pub(super) fn warehouses(&self) -> impl Iterator<Item = u16> + use<> {
        [self.warehouse, self.customer_warehouse].into_iter()
    }

    /// Runs the transaction (clause 2.5.2.2). Where the customer is of another database, and credited there, `credited` is their number.
    pub(super) fn run<A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'_, A::Engine>,
        numbers: &mut Vec<u16>,
        credited: Option<u16>,
    ) -> Result<PaymentOutput> {
        let tables = arrangement.of(self.warehouse);
        let warehouse = self.pay_warehouse(tables, tx)?;
        let district = self.pay_district(tables, tx)?;
        let (number, customer) = match credited {
            Some(number) => (number, None),
            None => {
                let (number, customer, notes) = self.pay_by_customer(arrangement, tx, numbers)?;
                (number, Some((customer, notes)))
            }
        };
        let row = self.history(number, &warehouse.w_name, &district.d_name);
        tables.history.insert(tx, &row)?;
        Ok(PaymentOutput { shown: (warehouse, district, customer) })
    }

    /// Credits the payment to its customer, which is of this database. Returns the customer's number.
    pub(super) fn credit<A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'_, A::Engine>,
    ) -> Result<u16> {
        let (number, customer, notes) = self.pay_by_customer(arrangement, tx, &mut Vec::new())?;
        black_box((customer, notes));
        Ok(number)
    }

    #[inline]
    fn pay_by_customer<A: Arrangement>(
        &self,
        arrangement: &A,
        tx: &mut Transaction<'_, A::Engine>,
        numbers: &mut Vec<u16>,
    ) -> Result<(u16, CustomerPaid, Option<Text<500>>)> {
        let (warehouse, district) = (self.customer_warehouse, self.customer_district);
        let tables = arrangement.of(warehouse);
        let number = customer_number(&self.customer, warehouse, district, tables, tx, numbers)?;
        let (customer, notes) = self.pay_customer(tables, tx, number)?;
        Ok((number, customer, notes))
    }

    fn pay_warehouse<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<WarehousePaid> {
        let found = tables.warehouses.find_to_write(tx, self.warehouse)?.ok_or_else(missing)?;
        let warehouse = found.columns::<WarehousePaid>(tx)?;
        found.set(tx, WarehouseYtd { w_ytd: warehouse.w_ytd + self.amount })?;
        Ok(warehouse)
    }

    fn pay_district<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
    ) -> Result<DistrictPaid> {
        let found =
            tables.districts.find_to_write(tx, (self.warehouse, self.district))?.ok_or_else(missing)?;
        let district = found.columns::<DistrictPaid>(tx)?;
        found.set(tx, DistrictYtd { d_ytd: district.d_ytd + self.amount })?;
        Ok(district)
    }

    /// Credits the customer, and notes the payment if their credit is bad.
    fn pay_customer<E: Engine>(
        &self,
        tables: &Tables<E>,
        tx: &mut Transaction<'_, E>,
        number: u16,
    ) -> Result<(CustomerPaid, Option<Text<500>>)> {
        let key = (self.customer_warehouse, self.customer_district, number);
        let found = tables.customers.find_to_write(tx, key)?.ok_or_else(missing)?;
        let customer = found.columns::<CustomerPaid>(tx)?;
        let account = CustomerAccount {
            c_balance: customer.c_balance - self.amount,
            c_ytd_payment: customer.c_ytd_payment + self.amount,
            c_payment_cnt: customer.c_payment_cnt.wrapping_add(1),
        };
        found.set(tx, account)?;
        if customer.c_credit != "BC" {
            return Ok((customer, None));
        }
        let before = found.columns::<CustomerNotes>(tx)?;
        let c_data = self.noted(number, &before.c_data);
        found.set(tx, CustomerNotes { c_data })?;
        Ok((customer, Some(c_data)))
    }

    /// What the history tells of the payment by the customer of this number.
    #[inline]
    pub fn history(&self, number: u16, warehouse: &Text<10>, district: &Text<10>) -> History {
        History {
            h_c_id: number,
            h_c_d_id: self.customer_district,
            h_c_w_id: self.customer_warehouse,
            h_d_id: self.district,
            h_w_id: self.warehouse,
            h_date: self.date,
            h_amount: self.amount,
            h_data: history_text(warehouse, district),
        }
    }

    /// This payment's numbers in front of `before`, as much as fits.
    pub fn noted(&self, number: u16, before: &Text<500>) -> Text<500> {
        let mut notes = Text::EMPTY;
        // A note is at most 40 characters: it fits.
        let _ = write!(
            notes,
            "{number} {} {} {} {} {}|",
            self.customer_district, self.customer_warehouse, self.district, self.warehouse, self.amount
        );
        let room = 500 - notes.len();
        let before = before.as_str();
        let _ = notes.push_str(&before[..before.floor_char_boundary(room)]);
        notes
    }
}

/// Clause 2.5.2.2: the names of warehouse and district with four spaces between.
#[inline]
fn history_text(warehouse: &Text<10>, district: &Text<10>) -> Text<24> {
    let mut text = Text::EMPTY;
    // Ten, four and ten characters: they fit.
    for part in [warehouse.as_str(), "    ", district.as_str()] {
        let _ = text.push_str(part);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_push_older_ones_out() {
        let payment = PaymentInput {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: CustomerChoice::Number(5),
            amount: Money::from_scaled(1_234),
            date: Timestamp::from_micros(0),
        };
        let before = Text::truncated(&"x".repeat(500));
        let notes = payment.noted(5, &before);
        assert!(notes.as_str().starts_with("5 4 3 2 1 12.34|xxx"), "{notes}");
        assert_eq!(notes.len(), 500);
        assert_eq!(payment.noted(5, &Text::EMPTY), "5 4 3 2 1 12.34|");
    }

    #[test]
    fn history_names_warehouse_and_district() {
        assert_eq!(history_text(&Text::truncated("house"), &Text::truncated("quarter")), "house    quarter");
    }
}
