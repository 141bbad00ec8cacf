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
//! primary key, whose last part is the order's number: its last entry is the customer's latest order. A history row has no natural
//! key (clause 1.3.1), so the table invents one.

use ensilo::{Decimal, Row, Text, Timestamp};

/// An amount of money in cents.
pub(super) type Money = Decimal<2>;
/// A tax or discount in hundredths of a percent.
pub(super) type Rate = Decimal<4>;

#[derive(Debug, Clone, Row)]
#[row(table = "warehouse")]
pub(super) struct Warehouse {
    #[row(key)]
    pub(super) w_id: u16,
    pub(super) w_name: Text<10>,
    pub(super) w_street_1: Text<20>,
    pub(super) w_street_2: Text<20>,
    pub(super) w_city: Text<20>,
    pub(super) w_state: Text<2>,
    pub(super) w_zip: Text<9>,
    pub(super) w_tax: Rate,
    pub(super) w_ytd: Money,
}

#[derive(Debug, Clone, Row)]
#[row(table = "district")]
pub(super) struct District {
    #[row(key)]
    pub(super) d_w_id: u16,
    #[row(key)]
    pub(super) d_id: u8,
    pub(super) d_name: Text<10>,
    pub(super) d_street_1: Text<20>,
    pub(super) d_street_2: Text<20>,
    pub(super) d_city: Text<20>,
    pub(super) d_state: Text<2>,
    pub(super) d_zip: Text<9>,
    pub(super) d_tax: Rate,
    pub(super) d_ytd: Money,
    pub(super) d_next_o_id: u32,
}

#[derive(Debug, Clone, Row)]
#[row(table = "customer", index(name = "by_name", columns(c_w_id, c_d_id, c_last, c_first)))]
pub(super) struct Customer {
    #[row(key)]
    pub(super) c_w_id: u16,
    #[row(key)]
    pub(super) c_d_id: u8,
    #[row(key)]
    pub(super) c_id: u16,
    pub(super) c_first: Text<16>,
    pub(super) c_middle: Text<2>,
    pub(super) c_last: Text<16>,
    pub(super) c_street_1: Text<20>,
    pub(super) c_street_2: Text<20>,
    pub(super) c_city: Text<20>,
    pub(super) c_state: Text<2>,
    pub(super) c_zip: Text<9>,
    pub(super) c_phone: Text<16>,
    pub(super) c_since: Timestamp,
    pub(super) c_credit: Text<2>,
    pub(super) c_credit_lim: Money,
    pub(super) c_discount: Rate,
    pub(super) c_balance: Money,
    pub(super) c_ytd_payment: Money,
    pub(super) c_payment_cnt: u32,
    pub(super) c_delivery_cnt: u32,
    pub(super) c_data: Text<500>,
}

#[derive(Debug, Clone, Row)]
#[row(table = "history")]
pub(super) struct History {
    pub(super) h_c_id: u16,
    pub(super) h_c_d_id: u8,
    pub(super) h_c_w_id: u16,
    pub(super) h_d_id: u8,
    pub(super) h_w_id: u16,
    pub(super) h_date: Timestamp,
    pub(super) h_amount: Money,
    pub(super) h_data: Text<24>,
}

#[derive(Debug, Clone, Row)]
#[row(table = "new_order")]
pub(super) struct NewOrder {
    #[row(key)]
    pub(super) no_w_id: u16,
    #[row(key)]
    pub(super) no_d_id: u8,
    #[row(key)]
    pub(super) no_o_id: u32,
}

#[derive(Debug, Clone, Row)]
#[row(table = "order", index(name = "by_customer", columns(o_w_id, o_d_id, o_c_id)))]
pub(super) struct Order {
    #[row(key)]
    pub(super) o_w_id: u16,
    #[row(key)]
    pub(super) o_d_id: u8,
    #[row(key)]
    pub(super) o_id: u32,
    pub(super) o_c_id: u16,
    pub(super) o_entry_d: Timestamp,
    pub(super) o_carrier_id: Option<u8>,
    pub(super) o_ol_cnt: u8,
    pub(super) o_all_local: bool,
}

#[derive(Debug, Clone, Row)]
#[row(table = "order_line")]
pub(super) struct OrderLine {
    #[row(key)]
    pub(super) ol_w_id: u16,
    #[row(key)]
    pub(super) ol_d_id: u8,
    #[row(key)]
    pub(super) ol_o_id: u32,
    #[row(key)]
    pub(super) ol_number: u8,
    pub(super) ol_i_id: u32,
    pub(super) ol_supply_w_id: u16,
    pub(super) ol_delivery_d: Option<Timestamp>,
    pub(super) ol_quantity: u8,
    pub(super) ol_amount: Money,
    pub(super) ol_dist_info: Text<24>,
}

#[derive(Debug, Clone, Row)]
#[row(table = "item")]
pub(super) struct Item {
    #[row(key)]
    pub(super) i_id: u32,
    pub(super) i_im_id: u32,
    pub(super) i_name: Text<24>,
    pub(super) i_price: Money,
    pub(super) i_data: Text<50>,
}

#[derive(Debug, Clone, Row)]
#[row(table = "stock")]
pub(super) struct Stock {
    #[row(key)]
    pub(super) s_w_id: u16,
    #[row(key)]
    pub(super) s_i_id: u32,
    pub(super) s_quantity: i16,
    pub(super) s_dist_01: Text<24>,
    pub(super) s_dist_02: Text<24>,
    pub(super) s_dist_03: Text<24>,
    pub(super) s_dist_04: Text<24>,
    pub(super) s_dist_05: Text<24>,
    pub(super) s_dist_06: Text<24>,
    pub(super) s_dist_07: Text<24>,
    pub(super) s_dist_08: Text<24>,
    pub(super) s_dist_09: Text<24>,
    pub(super) s_dist_10: Text<24>,
    pub(super) s_ytd: u32,
    pub(super) s_order_cnt: u32,
    pub(super) s_remote_cnt: u32,
    pub(super) s_data: Text<50>,
}
