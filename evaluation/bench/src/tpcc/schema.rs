//! The nine tables of TPC-C with all their columns.
//!
//! # Source
//! TPC-C revision 5.11, clause 1.3. Numeric columns of two decimal places are [`Money`], those of four [`Rate`]; counters
//! are 32 bits wide so that they outlast a run longer than the specification's. Text of fixed and of variable size is
//! [`Text`], which is overwritten in place.
//!
//! # Keys
//! All primary keys but the item's begin with warehouse and district, and all are at most eight bytes long. The index
//! of customers by name is sorted as clause 2.5.2.2 wants its rows; the index of orders by customer ends in the
//! primary key, and the order's number is the last part of that: its last entry is the customer's latest order. A history row has no natural
//! key (clause 1.3.1), so the table invents one.
#![allow(missing_docs, reason = "the columns are those of clause 1.3")]

use ensilo::{Decimal, Row, Text, Timestamp};

/// An amount of money in cents.
pub type Money = Decimal<2>;
/// A tax or discount in hundredths of a percent.
pub type Rate = Decimal<4>;

/// A row of the table WAREHOUSE (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "warehouse")]
pub struct Warehouse {
    #[row(key)]
    pub w_id: u16,
    pub w_name: Text<10>,
    pub w_street_1: Text<20>,
    pub w_street_2: Text<20>,
    pub w_city: Text<20>,
    pub w_state: Text<2>,
    pub w_zip: Text<9>,
    pub w_tax: Rate,
    pub w_ytd: Money,
}

/// A row of the table DISTRICT (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "district")]
pub struct District {
    #[row(key)]
    pub d_w_id: u16,
    #[row(key)]
    pub d_id: u8,
    pub d_name: Text<10>,
    pub d_street_1: Text<20>,
    pub d_street_2: Text<20>,
    pub d_city: Text<20>,
    pub d_state: Text<2>,
    pub d_zip: Text<9>,
    pub d_tax: Rate,
    pub d_ytd: Money,
    pub d_next_o_id: u32,
}

/// A row of the table CUSTOMER (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "customer", index(name = "by_name", columns(c_w_id, c_d_id, c_last, c_first)))]
pub struct Customer {
    #[row(key)]
    pub c_w_id: u16,
    #[row(key)]
    pub c_d_id: u8,
    #[row(key)]
    pub c_id: u16,
    pub c_first: Text<16>,
    pub c_middle: Text<2>,
    pub c_last: Text<16>,
    pub c_street_1: Text<20>,
    pub c_street_2: Text<20>,
    pub c_city: Text<20>,
    pub c_state: Text<2>,
    pub c_zip: Text<9>,
    pub c_phone: Text<16>,
    pub c_since: Timestamp,
    pub c_credit: Text<2>,
    pub c_credit_lim: Money,
    pub c_discount: Rate,
    pub c_balance: Money,
    pub c_ytd_payment: Money,
    pub c_payment_cnt: u32,
    pub c_delivery_cnt: u32,
    pub c_data: Text<500>,
}

/// A row of the table HISTORY (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "history")]
pub struct History {
    pub h_c_id: u16,
    pub h_c_d_id: u8,
    pub h_c_w_id: u16,
    pub h_d_id: u8,
    pub h_w_id: u16,
    pub h_date: Timestamp,
    pub h_amount: Money,
    pub h_data: Text<24>,
}

/// A row of the table NEW-ORDER (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "new_order")]
pub struct NewOrder {
    #[row(key)]
    pub no_w_id: u16,
    #[row(key)]
    pub no_d_id: u8,
    #[row(key)]
    pub no_o_id: u32,
}

/// A row of the table ORDER (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "order", index(name = "by_customer", columns(o_w_id, o_d_id, o_c_id)))]
pub struct Order {
    #[row(key)]
    pub o_w_id: u16,
    #[row(key)]
    pub o_d_id: u8,
    #[row(key)]
    pub o_id: u32,
    pub o_c_id: u16,
    pub o_entry_d: Timestamp,
    pub o_carrier_id: Option<u8>,
    pub o_ol_cnt: u8,
    pub o_all_local: bool,
}

/// A row of the table ORDER-LINE (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "order_line")]
pub struct OrderLine {
    #[row(key)]
    pub ol_w_id: u16,
    #[row(key)]
    pub ol_d_id: u8,
    #[row(key)]
    pub ol_o_id: u32,
    #[row(key)]
    pub ol_number: u8,
    pub ol_i_id: u32,
    pub ol_supply_w_id: u16,
    pub ol_delivery_d: Option<Timestamp>,
    pub ol_quantity: u8,
    pub ol_amount: Money,
    pub ol_dist_info: Text<24>,
}

/// A row of the table ITEM (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "item")]
pub struct Item {
    #[row(key)]
    pub i_id: u32,
    pub i_im_id: u32,
    pub i_name: Text<24>,
    pub i_price: Money,
    pub i_data: Text<50>,
}

/// A row of the table STOCK (clause 1.3).
#[derive(Debug, Clone, Row)]
#[row(table = "stock")]
pub struct Stock {
    #[row(key)]
    pub s_w_id: u16,
    #[row(key)]
    pub s_i_id: u32,
    pub s_quantity: i16,
    pub s_dist_01: Text<24>,
    pub s_dist_02: Text<24>,
    pub s_dist_03: Text<24>,
    pub s_dist_04: Text<24>,
    pub s_dist_05: Text<24>,
    pub s_dist_06: Text<24>,
    pub s_dist_07: Text<24>,
    pub s_dist_08: Text<24>,
    pub s_dist_09: Text<24>,
    pub s_dist_10: Text<24>,
    pub s_ytd: u32,
    pub s_order_cnt: u32,
    pub s_remote_cnt: u32,
    pub s_data: Text<50>,
}
