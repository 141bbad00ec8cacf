//! The customer tables (clause 2.2.4), and ASSET_HISTORY of TPC-E-hybrid.

use ensilo::{Row, Text, Timestamp};

use super::{Money, StatusId, Symbol};

/// A row of the table ACCOUNT_PERMISSION.
#[derive(Debug, Clone, Row)]
#[row(table = "account_permission")]
pub struct AccountPermission {
    #[row(key)]
    pub ap_ca_id: u32,
    #[row(key)]
    pub ap_tax_id: Text<20>,
    pub ap_acl: Text<4>,
    pub ap_l_name: Text<25>,
    pub ap_f_name: Text<20>,
}

/// A row of the table CUSTOMER.
#[derive(Debug, Clone, Row)]
#[row(table = "customer", index(name = "by_tax_id", columns(c_tax_id)))]
pub struct Customer {
    #[row(key)]
    pub c_id: u32,
    pub c_tax_id: Text<20>,
    pub c_st_id: StatusId,
    pub c_l_name: Text<25>,
    pub c_f_name: Text<20>,
    pub c_m_name: Option<Text<1>>,
    pub c_gndr: Option<Text<1>>,
    pub c_tier: u8,
    pub c_dob: i32,
    pub c_ad_id: u32,
    pub c_ctry_1: Text<3>,
    pub c_area_1: Text<3>,
    pub c_local_1: Text<10>,
    pub c_ext_1: Option<Text<5>>,
    pub c_ctry_2: Text<3>,
    pub c_area_2: Text<3>,
    pub c_local_2: Text<10>,
    pub c_ext_2: Option<Text<5>>,
    pub c_ctry_3: Text<3>,
    pub c_area_3: Text<3>,
    pub c_local_3: Text<10>,
    pub c_ext_3: Option<Text<5>>,
    pub c_email_1: Text<50>,
    pub c_email_2: Text<50>,
}

/// A row of the table CUSTOMER_ACCOUNT.
#[derive(Debug, Clone, Row)]
#[row(table = "customer_account", index(name = "by_customer", columns(ca_c_id)))]
pub struct CustomerAccount {
    #[row(key)]
    pub ca_id: u32,
    pub ca_b_id: u32,
    pub ca_c_id: u32,
    pub ca_name: Text<50>,
    pub ca_tax_st: u8,
    pub ca_bal: Money,
}

/// A row of the table CUSTOMER_TAXRATE.
#[derive(Debug, Clone, Row)]
#[row(table = "customer_taxrate")]
pub struct CustomerTaxrate {
    #[row(key)]
    pub cx_c_id: u32,
    #[row(key)]
    pub cx_tx_id: Text<4>,
}

/// A row of the table HOLDING.
#[derive(Debug, Clone, Row)]
#[row(table = "holding", index(name = "by_account", columns(h_ca_id, h_s_symb, h_dts)))]
pub struct Holding {
    #[row(key)]
    pub h_t_id: u64,
    pub h_ca_id: u32,
    pub h_s_symb: Symbol,
    pub h_dts: Timestamp,
    pub h_price: Money,
    pub h_qty: i32,
}

/// A row of the table HOLDING_HISTORY.
#[derive(Debug, Clone, Row)]
#[row(table = "holding_history", index(name = "by_trade", columns(hh_t_id)))]
pub struct HoldingHistory {
    #[row(key)]
    pub hh_h_t_id: u64,
    #[row(key)]
    pub hh_t_id: u64,
    pub hh_before_qty: i32,
    pub hh_after_qty: i32,
}

/// A row of the table HOLDING_SUMMARY.
#[derive(Debug, Clone, Row)]
#[row(table = "holding_summary")]
pub struct HoldingSummary {
    #[row(key)]
    pub hs_ca_id: u32,
    #[row(key)]
    pub hs_s_symb: Symbol,
    pub hs_qty: i32,
}

/// A row of the table WATCH_ITEM.
#[derive(Debug, Clone, Row)]
#[row(table = "watch_item")]
pub struct WatchItem {
    #[row(key)]
    pub wi_wl_id: u32,
    #[row(key)]
    pub wi_s_symb: Symbol,
}

/// A row of the table WATCH_LIST.
#[derive(Debug, Clone, Row)]
#[row(table = "watch_list", index(name = "by_customer", columns(wl_c_id)))]
pub struct WatchList {
    #[row(key)]
    pub wl_id: u32,
    pub wl_c_id: u32,
}

/// A row of the table ASSET_HISTORY: what an evaluation of TPC-E-hybrid found an account to be worth.
#[derive(Debug, Clone, Row)]
#[row(table = "asset_history")]
pub struct AssetHistory {
    /// The evaluation.
    #[row(key)]
    pub ah_id: u64,
    #[row(key)]
    pub ah_ca_id: u32,
    pub ah_dts: Timestamp,
    pub ah_assets: Money,
}
