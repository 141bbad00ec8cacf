//! The three tables that CH-benCHmark adds to those of TPC-C, with all their columns.
//!
//! # Source
//! CH-benCHmark, after TPC-H's clause 1.4: a region has nations, a nation suppliers. Which stocks a supplier supplies follows from
//! their keys (`supplier_stocks`).
#![allow(missing_docs, reason = "the columns are those of CH-benCHmark")]

use ensilo::{Row, Text};

use crate::tpcc::Money;

/// A row of the table REGION.
#[derive(Debug, Clone, Row)]
#[row(table = "region")]
pub struct Region {
    #[row(key)]
    pub r_regionkey: u8,
    pub r_name: Text<25>,
    pub r_comment: Text<152>,
}

/// A row of the table NATION.
#[derive(Debug, Clone, Row)]
#[row(table = "nation")]
pub struct Nation {
    #[row(key)]
    pub n_nationkey: u8,
    pub n_name: Text<25>,
    pub n_regionkey: u8,
    pub n_comment: Text<152>,
}

/// A row of the table SUPPLIER.
#[derive(Debug, Clone, Row)]
#[row(table = "supplier")]
pub struct Supplier {
    #[row(key)]
    pub su_suppkey: u32,
    pub su_name: Text<25>,
    pub su_address: Text<40>,
    pub su_nationkey: u8,
    pub su_phone: Text<15>,
    pub su_acctbal: Money,
    pub su_comment: Text<101>,
}

/// The names of the regions, by key (TPC-H, clause 4.2.3).
pub(super) const REGIONS: [&str; 5] = ["AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST"];

/// The names of the nations with the keys of their regions, by key (TPC-H, clause 4.2.3).
pub(super) const NATIONS: [(&str, u8); 25] = [
    ("ALGERIA", 0),
    ("ARGENTINA", 1),
    ("BRAZIL", 1),
    ("CANADA", 1),
    ("EGYPT", 4),
    ("ETHIOPIA", 0),
    ("FRANCE", 3),
    ("GERMANY", 3),
    ("INDIA", 2),
    ("INDONESIA", 2),
    ("IRAN", 4),
    ("IRAQ", 4),
    ("JAPAN", 2),
    ("JORDAN", 4),
    ("KENYA", 0),
    ("MOROCCO", 0),
    ("MOZAMBIQUE", 0),
    ("PERU", 1),
    ("CHINA", 2),
    ("ROMANIA", 3),
    ("SAUDI ARABIA", 4),
    ("VIETNAM", 2),
    ("RUSSIA", 3),
    ("UNITED KINGDOM", 3),
    ("UNITED STATES", 1),
];
