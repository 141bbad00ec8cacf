//! The sale of a line of an order: what it takes from a stock, here or in another database.

use ensilo::generic::Transaction;
use ensilo::{Columns, Engine, Result, Text};
use serde::{Deserialize, Serialize};

use super::arrangement::Arrangement;
use super::new_order::{LineInput, missing};
use super::random::ORIGINAL;
use super::schema::Stock;
use super::wire;

/// What a sale changes in a stock.
#[derive(Debug, Clone, Copy, Columns)]
#[columns(of = Stock)]
#[allow(missing_docs, reason = "the columns are those of clause 1.3")]
pub struct StockCounts {
    pub s_quantity: i16,
    pub s_ytd: u32,
    pub s_order_cnt: u32,
    pub s_remote_cnt: u32,
}

/// What a sale reads of a stock; which of the ten texts is the district's to say.
struct StockSold {
    counts: StockCounts,
    sold: Sold,
}

/// What an order gets to know of a stock that was sold to it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sold {
    #[serde(with = "wire::text")]
    pub(super) dist_info: Text<24>,
    pub(super) is_original: bool,
}

/// The lines of an order whose stocks are not in this database, and were sold before.
pub(super) trait SoldElsewhere {
    /// Whether there are any.
    fn has_any(&self) -> bool;

    /// What was sold for the line at this place, if its stock is elsewhere.
    fn of_line(&self, at: usize) -> Option<Sold>;
}

/// All stocks are here.
pub(super) struct NothingElsewhere;

impl SoldElsewhere for NothingElsewhere {
    #[inline]
    fn has_any(&self) -> bool {
        false
    }

    #[inline]
    fn of_line(&self, _: usize) -> Option<Sold> {
        None
    }
}

/// Takes a line's quantity from its stock, for an order of `home` and `district`.
#[inline]
pub(super) fn sell_one<'t, E: Engine>(
    found: &FoundStock<'_, 't, E>,
    line: &LineInput,
    (home, district): (u16, u8),
    tx: &mut Transaction<'t, E>,
) -> Result<Sold> {
    let StockSold { counts, sold } = read_stock(found, district, tx)?;
    found.set(tx, counts.after_sale(line, home))?;
    Ok(sold)
}

/// Takes the quantities of some lines from their stocks, for an order of `home` and `district` that is elsewhere.
pub(super) fn sell_to_elsewhere<A: Arrangement>(
    arrangement: &A,
    tx: &mut Transaction<'_, A::Engine>,
    home: (u16, u8),
    lines: &[LineInput],
) -> Result<Vec<Sold>> {
    let sell = |line: &LineInput| {
        let stocks = &arrangement.of(line.supply_warehouse).stocks;
        let found = stocks.find_to_write(tx, (line.supply_warehouse, line.item))?.ok_or_else(missing)?;
        sell_one(&found, line, home, tx)
    };
    lines.iter().map(sell).collect()
}

/// The columns that a sale reads, once for each district, and the choice among them.
macro_rules! stock_of_district {
    ($($district:literal $columns:ident $dist:ident),+) => {
        $(
            #[derive(Columns)]
            #[columns(of = Stock)]
            struct $columns {
                s_quantity: i16,
                s_ytd: u32,
                s_order_cnt: u32,
                s_remote_cnt: u32,
                $dist: Text<24>,
                s_data: Text<50>,
            }
        )+

        /// Reads a stock with the text of `district`.
        #[inline]
        fn read_stock<'t, E: Engine>(
            found: &FoundStock<'_, 't, E>,
            district: u8,
            tx: &mut Transaction<'t, E>,
        ) -> Result<StockSold> {
            match district {
                $($district => {
                    let $columns { s_quantity, s_ytd, s_order_cnt, s_remote_cnt, $dist, s_data } = found.columns(tx)?;
                    Ok(StockSold {
                        counts: StockCounts { s_quantity, s_ytd, s_order_cnt, s_remote_cnt },
                        sold: Sold { dist_info: $dist, is_original: is_original(s_data.as_bytes()) },
                    })
                })+
                _ => unreachable!("a warehouse has ten districts"),
            }
        }
    };
}

pub(super) type FoundStock<'h, 't, E> = ensilo::generic::Found<'h, 't, Stock, E>;

stock_of_district!(
    1 Stock01 s_dist_01, 2 Stock02 s_dist_02, 3 Stock03 s_dist_03, 4 Stock04 s_dist_04, 5 Stock05 s_dist_05,
    6 Stock06 s_dist_06, 7 Stock07 s_dist_07, 8 Stock08 s_dist_08, 9 Stock09 s_dist_09, 10 Stock10 s_dist_10
);

impl StockCounts {
    /// The counts after `line` was sold to a customer of `home`.
    #[inline]
    pub fn after_sale(self, line: &LineInput, home: u16) -> Self {
        let quantity = i16::from(line.quantity);
        let left = self.s_quantity - quantity;
        Self {
            s_quantity: if left >= 10 { left } else { left + 91 },
            s_ytd: self.s_ytd.wrapping_add(u32::from(line.quantity)),
            s_order_cnt: self.s_order_cnt.wrapping_add(1),
            s_remote_cnt: self.s_remote_cnt.wrapping_add(u32::from(line.supply_warehouse != home)),
        }
    }
}

/// By the last byte of a window of data, how far the window may move without missing the word (Horspool's table).
const ORIGINAL_SHIFTS: [u8; 256] = {
    let word = ORIGINAL.as_bytes();
    let mut shifts = [word.len() as u8; 256];
    let mut at = 0;
    while at + 1 < word.len() {
        shifts[word[at] as usize] = (word.len() - 1 - at) as u8;
        at += 1;
    }
    shifts
};

/// Whether the data has the word that marks the original brand.
#[inline]
pub(super) fn is_original(data: &[u8]) -> bool {
    let mut end = ORIGINAL.len();
    while let Some(&last) = data.get(end - 1) {
        if last == ORIGINAL.as_bytes()[ORIGINAL.len() - 1] && data[..end].ends_with(ORIGINAL.as_bytes()) {
            return true;
        }
        end += usize::from(ORIGINAL_SHIFTS[usize::from(last)]);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_low_stock_is_filled_up() {
        let line = LineInput { item: 1, supply_warehouse: 1, quantity: 5 };
        let counts = |s_quantity| StockCounts { s_quantity, s_ytd: 7, s_order_cnt: 1, s_remote_cnt: 0 };
        assert_eq!(counts(15).after_sale(&line, 1).s_quantity, 10);
        assert_eq!(counts(14).after_sale(&line, 1).s_quantity, 100);
        let remote = counts(50).after_sale(&line, 2);
        assert_eq!((remote.s_ytd, remote.s_order_cnt, remote.s_remote_cnt), (12, 2, 1));
    }

    #[test]
    fn the_brand_is_found_anywhere() {
        assert!(is_original(b"xxORIGINAL") && is_original(b"ORIGINALxx") && is_original(b"ORIGINAL"));
        assert!(!is_original(b"ORIGINA") && !is_original(b"xxORIGINAx") && !is_original(b""));
        for at in 0..=42 {
            let mut data = *b"ORIGIORINALGINALLANIGIROORIGIORIGIRIGINALORIGINAXX";
            assert!(!is_original(&data));
            data[at..at + 8].copy_from_slice(b"ORIGINAL");
            assert!(is_original(&data), "at {at}");
        }
    }
}
