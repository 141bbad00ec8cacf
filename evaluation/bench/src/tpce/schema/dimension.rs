//! The dimension tables (clause 2.2.7).

use ensilo::{Row, Text};

use super::{StatusId, TaxRate};

/// A row of the table ADDRESS.
#[derive(Debug, Clone, Row)]
#[row(table = "address")]
pub struct Address {
    #[row(key)]
    pub ad_id: u32,
    pub ad_line1: Text<80>,
    pub ad_line2: Option<Text<80>>,
    pub ad_zc_code: Text<12>,
    pub ad_ctry: Text<80>,
}

/// A row of the table STATUS_TYPE.
#[derive(Debug, Clone, Row)]
#[row(table = "status_type")]
pub struct StatusType {
    #[row(key)]
    pub st_id: StatusId,
    pub st_name: Text<10>,
}

/// A row of the table TAXRATE.
#[derive(Debug, Clone, Row)]
#[row(table = "taxrate")]
pub struct Taxrate {
    #[row(key)]
    pub tx_id: Text<4>,
    pub tx_name: Text<50>,
    pub tx_rate: TaxRate,
}

/// A row of the table ZIP_CODE.
#[derive(Debug, Clone, Row)]
#[row(table = "zip_code")]
pub struct ZipCode {
    #[row(key)]
    pub zc_code: Text<12>,
    pub zc_town: Text<80>,
    pub zc_div: Text<80>,
}
